"""Tests of experiment files: allowed content, one-line errors with file, line and key, and the data points of an experiment."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING

import pytest

from tcptrace_lab.errors import UsageError
from tcptrace_lab.lab.studies import experiment_file, study
from tcptrace_lab.lab.studies.experiment_keys import KEYS, KINDS, Type
from tests.support.command import only_line, tcptrace_lab

if TYPE_CHECKING:
    from pathlib import Path

GOOD = """
title = "A test"

[path]
medium = "tun"
delay = "10ms"
rate = "8M"

[transfer]
kind = "bulk"
total = "40K"

[run]
repetitions = 3

[sweep]
transfer.write = [10, "1K"]
path.loss = [0.0, 0.1]

[short.sweep]
transfer.write = [10]

[[figure]]
measure = "throughput"
x = "transfer.write"
"""


def test_a_sweep_makes_every_combination_in_base_units() -> None:
    declared = experiment_file.parse("good.toml", GOOD)
    assert [(point["transfer.write"], point["path.loss"]) for point in declared.points] == [(10, 0.0), (10, 0.1), (1024, 0.0), (1024, 0.1)]
    point = declared.points[2]
    assert (point["path.delay"], point["path.rate"], point["transfer.total"], point["run.repetitions"]) == (
        10_000_000,
        8_000_000,
        40_960,
        3,
    )
    assert point["path.mtu"] == 1_500
    assert point.label == "write 1K, loss 0.0"
    assert [point["transfer.write"] for point in experiment_file.parse("good.toml", GOOD, short=True).points] == [10, 10]


def test_settings_that_are_not_for_a_kind_make_no_points_of_their_own() -> None:
    text = '[transfer]\nmessage = 1000\n[sweep]\ntransfer.kind = ["echo", "udp-echo"]\nsockets.nodelay = [false, true]\n'
    labels = [point.label for point in experiment_file.parse("x.toml", text).points]
    assert labels == ["kind echo, nodelay no", "kind echo, nodelay yes", "kind udp-echo"]


def test_a_point_becomes_the_network_and_the_options_that_it_names() -> None:
    point = experiment_file.parse(
        "good.toml", GOOD.replace('total = "40K"', 'total = "40K"\n[sockets]\nbuffers = "16K"\nsend_buffer = "8K"')
    ).points[1]
    medium, options = study.medium(point), study.options(point)
    assert (medium.kind, medium.mtu_bytes) == ("tun", 1_500)
    assert (medium.forward.delay_s, medium.backward.delay_s, medium.forward.rate_bps) == (0.01, 0.01, 8_000_000)
    assert (medium.forward.loss_share, medium.backward.loss_share) == (0.1, 0.0)
    assert (options.send_buffer_bytes, options.receive_buffer_bytes) == (8_192, 16_384)


@pytest.mark.parametrize(
    ("before", "after", "line", "words"),
    [
        ('delay = "10ms"', 'delay = "ten"', 6, "path.delay: not a time: 'ten'"),
        ('delay = "10ms"', "delay = 10", 6, "path.delay: it must be a time"),
        ('delay = "10ms"', 'dely = "10ms"', 6, "there is no key path.dely"),
        ('medium = "tun"', 'medium = "veth"', 6, "a path over veth has no delay"),
        ('medium = "tun"', 'medium = "tuna"', 5, "path.medium: it must be one of loopback, veth, tap, tun"),
        ('rate = "8M"', "mtu = 100", 7, "path.mtu: it must be at least 576"),
        ("repetitions = 3", "repetitions = 0", 14, "run.repetitions: it must be at least 1"),
        ("repetitions = 3", "repetitions = true", 14, "run.repetitions: it must be a whole number"),
        ("repetitions = 3", "repetitions = ", 14, "not TOML"),
        ('total = "40K"', "message = 5", 11, "transfer.message does not apply to transfers of kind bulk"),
        ('total = "40K"', "", 9, "bulk needs either total or writes"),
        ('kind = "bulk"', 'kind = "telnet"', 10, "transfer.kind: it must be one of bulk"),
        ('transfer.write = [10, "1K"]', "transfer.write = 10", 17, "transfer.write is not swept by 10"),
        ('transfer.write = [10, "1K"]', "transfer.write = []", 17, "transfer.write is not swept by []"),
        ("path.loss = [0.0, 0.1]", "path.loss = [0.0, 1.5]", 18, "path.loss: it must be at most 1"),
        ("path.loss = [0.0, 0.1]", 'path.delay = ["1ms"]', 18, "path.delay is both set and swept"),
        ("transfer.write = [10]\n", "path.delay = ['1ms']\n", 21, "path.delay is not swept"),
        ('measure = "throughput"', 'measure = "beauty"', 24, "'beauty' is not a measure"),
        ('x = "transfer.write"', 'x = "path.mtu"', 25, "'path.mtu' is not swept"),
        ('x = "transfer.write"', "", 23, "a figure needs x"),
        ("[run]", "[runs]", 13, "there is no key or table 'runs'"),
        ('title = "A test"', "title = 5", 2, "title must be text"),
    ],
)
def test_what_is_wrong_is_said_with_its_line_and_key(before: str, after: str, line: int, words: str) -> None:
    text = GOOD.replace(before, after, 1)
    assert text != GOOD
    with pytest.raises(UsageError) as raised:
        experiment_file.parse("bad.toml", text)
    assert words in str(raised.value)
    assert f"bad.toml, line {line}" in str(raised.value)
    assert "\n" not in str(raised.value)


def test_every_ready_made_experiment_can_be_read_and_its_short_form_is_shorter() -> None:
    names = experiment_file.ready_made()
    assert {"write-sizes", "echo-sizes", "buffer-grid", "http-files", "ftp-files", "size-boundaries", "host-load"} <= set(names)
    kinds = set()
    for name in names:
        full, short = experiment_file.load(name), experiment_file.load(name, short=True)
        transfers = [sum(int(point["run.repetitions"]) for point in one.points) for one in (full, short)]
        assert transfers[0] > transfers[1] >= 4
        assert all((full.title, full.source, full.question, full.claims, full.figures))
        kinds |= {point["transfer.kind"] for point in full.points}
    assert kinds == set(KINDS)


def test_lab_lists_shows_and_refuses(tmp_path: Path) -> None:
    tmp_path.joinpath("a file").touch()
    listed = tcptrace_lab("lab", "list")
    assert listed.returncode == 0
    assert [line.split()[0] for line in listed.stdout.decode().splitlines()] == experiment_file.ready_made()
    assert max(map(len, listed.stdout.decode().splitlines())) <= 80
    shown = tcptrace_lab("lab", "show", "echo-sizes", "--short")
    assert shown.stdout.decode() == experiment_file.load("echo-sizes").text
    assert b"short form: 9 points, 18 transfers" in shown.stderr
    points = tcptrace_lab("lab", "run", "path-troubles", "--short", "--dry-run")
    assert points.stdout.decode().splitlines() == ["loss 0.0, reorder 0.0", "loss 0.03, reorder 0.0"]
    reported = tcptrace_lab("lab", "keys").stdout.decode()
    assert all(f"{name}: " in reported for name in KEYS)
    assert 'path.reorder_by: a time such as "10ms"; else "5ms"\n' in reported
    assert all(
        key.parsed(tomllib.loads(f"it = {key.default_words}")["it"]) == key.default
        for key in KEYS.values()
        if key.type is Type.TIME and key.default is not None
    )
    for arguments, words in (
        (("show", "nothing"), "no such experiment"),
        (("run", "nothing.toml"), "no such experiment"),
        (("run", "echo-sizes", "-o", "/nonexistent/x"), "no such directory"),
        (("run", "echo-sizes", "-o", str(tmp_path)), "the folder is not empty"),
    ):
        done = tcptrace_lab("lab", *arguments)
        assert (done.returncode, done.stdout) == (2, b"")
        assert words in only_line(done.stderr)
