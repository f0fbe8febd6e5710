"""The table of programs, the transfers that a seed draws, and the held-back transfers."""

from __future__ import annotations

import shlex
from collections import Counter
from pathlib import Path

import pytest

from tcptrace_lab.lab.corpus import drawn, paths
from tcptrace_lab.lab.corpus.__main__ import main
from tcptrace_lab.lab.corpus.drawn import DEVELOPED_ON, DEVELOPMENT, HELD_BACK, part_of, transfers
from tcptrace_lab.lab.corpus.programs import PROGRAMS
from tcptrace_lab.lab.corpus.programs.program import PATH, Program, filled
from tcptrace_lab.lab.corpus.running import Competitor

DECK = len(PROGRAMS)
MAX_OF_ONE_PROGRAM = 0.08
"""The largest allowed share of one program in all transfers."""


@pytest.mark.parametrize("name", PROGRAMS)
def test_commands_are_text_that_a_shell_can_read(name: str) -> None:
    program = PROGRAMS[name]
    for command in (program.server, program.client, program.prepare, program.before):
        words = shlex.split(filled(command, Path("/tmp/x"), "192.0.2.2"))  # noqa: S108  (only text)
        assert not any(f"{{{word}}}" in text for text in words for word in ("address", "port", "folder", "file", "python", "here"))
    assert "{port}" in program.server or program.files
    assert "{address}" in program.client or "{folder}" in program.client


def test_a_program_that_is_not_installed_is_named() -> None:
    program = Program("none", "no-such-server -p {port}", "for n in 1 2; do no-such-client; done", needs=("no-such-client", "sh"))
    assert program.missing() == ("no-such-server", "no-such-client")
    assert "/usr/sbin" in PATH


def test_the_command_lists_every_program_and_where_it_belongs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["programs"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [line[0] for line in lines] == list(PROGRAMS)
    assert {line[2] for line in lines} == {DEVELOPMENT, HELD_BACK}


def test_a_seed_stands_for_the_same_transfers_each_time() -> None:
    some = transfers(7, range(20))
    assert some == transfers(7, range(20))
    assert some[5:10] == transfers(7, range(5, 10))
    assert some != transfers(8, range(20))


def test_each_program_comes_once_in_a_deck_and_each_path_about_as_often() -> None:
    some = transfers(3, range(DECK))
    assert Counter(one.program for one in some) == dict.fromkeys(PROGRAMS, 1)
    often = Counter(one.path for one in some)
    assert set(often) == set(paths.PATHS)
    assert max(often.values()) - min(often.values()) <= 1
    assert 1 / DECK <= MAX_OF_ONE_PROGRAM


def test_a_transfer_names_its_congestion_control_and_some_have_an_end_that_is_held() -> None:
    some = transfers(3, range(2 * DECK))
    assert {one.congestion_control for one in some} == {"reno", "cubic", "bbr"}
    held = [one.paused for one in some if one.paused]
    assert 0.05 < len(held) / len(some) < 0.3
    assert all(0 < one.paused_s < one.period_s for one in held)


def test_what_is_held_back_is_decided_by_the_source_and_never_by_the_seed() -> None:
    some = [one for seed in (1, 2) for one in transfers(seed, range(DECK))]
    of_sources: dict[tuple[str, str], set[str]] = {}
    for one in some:
        of_sources.setdefault((PROGRAMS[one.program].family, one.path), set()).add(one.part)
    assert all(len(parts) == 1 for parts in of_sources.values())
    shares = Counter(one.part for one in some)
    assert 0.2 < shares[HELD_BACK] / len(some) < 0.5


def test_programs_that_rules_were_developed_on_are_not_held_back_but_for_their_path() -> None:
    development = [path for path in paths.PATHS if drawn.part_of_path(path) == DEVELOPMENT]
    assert 0 < len(development) < len(paths.PATHS)
    assert {part_of(family, path) for family in DEVELOPED_ON for path in development} == {DEVELOPMENT}
    held_back = next(path for path in paths.PATHS if path not in development)
    assert part_of("iperf3", held_back) == HELD_BACK


def test_transfers_with_competitors_share_a_bottleneck_with_one_to_as_many_as_asked_for() -> None:
    some = transfers(1, range(60), most_competitors=8)
    assert some == transfers(1, range(60), most_competitors=8)
    assert {len(one.competing) for one in some} == set(range(1, 9))
    assert {is_other_host for one in some for _, is_other_host in one.competing} == {True, False}
    for one in some:
        assert one.medium.forward.rate_bps
        assert one.medium.backward.rate_bps
        assert not one.medium.forward.loss_share
        assert one.paused is None
    assert not any(one.competing for one in transfers(1, range(60)))


def test_competitors_belong_to_families_that_are_developed_on() -> None:
    assert {part_of(PROGRAMS[name].family, "long-queue") for name in drawn.COMPETITORS} == {DEVELOPMENT}
    assert len({PROGRAMS[name].family for name in drawn.COMPETITORS}) >= 5


def test_each_competitor_has_an_address_or_a_port_of_its_own() -> None:
    program = PROGRAMS["nginx-curl"]
    places = [Competitor(program, is_other_host).place(n) for n in range(8) for is_other_host in (False, True)]
    assert len(set(places)) == 16
    assert places[:2] == [("192.0.2.2", 8_100), ("192.0.2.10", 8_100)]
    assert f"listen {places[2][1]}" in filled(program.files["nginx.conf"], Path("x"), *places[2])
