"""tshark uses the Wireshark profile and the post-dissector: columns, colours, filters and sums by cause."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl
import pytest

from tcptrace_lab import analyze
from tcptrace_lab.ledger.departures import departures
from tcptrace_lab.outputs.wireshark import profile
from tcptrace_lab.schema import CAUSES
from tests.support import needs, packets
from tests.support.command import only_line, tcptrace_lab
from tests.support.exchanges import LATE_ACK
from tests.support.places import CAPTURES

if TYPE_CHECKING:
    from pathlib import Path

NAGLE = CAPTURES / "ethernet-nagle-on.pcapng"


def tshark(capture: Path, folder: Path, *options: str, fails: bool = False) -> str:
    """Return what tshark prints with the profile `profiles/slow` in `folder`."""
    script = folder / "profiles" / "slow" / "tcptrace_lab.lua"
    command = [needs.program("tshark"), "-n", "-C", "slow", "-X", f"lua_script:{script}", "-r", str(capture), *options]
    environment = os.environ | {"WIRESHARK_CONFIG_DIR": str(folder), "LC_ALL": "C.UTF-8"}
    done = subprocess.run(command, capture_output=True, timeout=60, check=not fails, env=environment, cwd=folder)
    remarks = [line for line in done.stderr.decode().splitlines() if "could be dangerous" not in line]
    assert bool(remarks) == fails, remarks
    return "\n".join(remarks) if fails else done.stdout.decode()


def fields(capture: Path, folder: Path, shown: str, *names: str) -> list[list[str]]:
    asked = [part for name in names for part in ("-e", name)]
    return [line.split("\t") for line in tshark(capture, folder, "-Y", shown, "-T", "fields", *asked).splitlines()]


def with_profile(capture: Path, folder: Path, *options: str) -> Path:
    """Annotate a capture and return the copy. The command also writes the profile to `profiles/slow` in `folder`."""
    (folder / "profiles").mkdir()
    done = tcptrace_lab("annotate", capture, "-o", "copy.pcapng", "--profile", "profiles/slow", *options, folder=folder)
    assert done.returncode == 0, done.stderr.decode()
    return folder / "copy.pcapng"


def test_a_wait_has_its_cause_and_length_and_the_columns_show_them(tmp_path: Path) -> None:
    copy = with_profile(packets.capture(tmp_path / "in.pcap", LATE_ACK), tmp_path)
    found = fields(copy, tmp_path, 'tcptrace_lab.cause == "nagle-delayed-ack"', "frame.number", "tcptrace_lab.wait")
    assert found == [["6", "0.060100000"]]
    assert fields(copy, tmp_path, "tcptrace_lab.wait > 0.06", "frame.number") == [["6"], ["7"]]
    line = tshark(copy, tmp_path, "-Y", "frame.number == 6")
    assert re.search(r"TCP \d+ +nagle-delayed-ack +0\.060100000 +nagle-delayed-ack ", line)


def test_the_command_that_is_printed_moves_the_profile_and_opens_the_copy(tmp_path: Path) -> None:
    """A shell runs the command as it was printed. A script named wireshark runs tshark instead."""
    done = tcptrace_lab("annotate", NAGLE, "-o", "copy.pcapng", "--profile", "a profile", folder=tmp_path)
    command = done.stderr.decode().splitlines()[-1].removeprefix("tcptrace-lab: ")
    script = tmp_path / "wireshark"
    script.write_text(
        f'#!/bin/sh\nexec {needs.program("tshark")} -n -T fields -e tcptrace_lab.cause -Y tcptrace_lab.cause "$1" "$2" "$3" "$4" -r "$5"\n'
    )
    script.chmod(0o755)
    environment = os.environ | {"HOME": str(tmp_path / "home"), "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    environment.pop("XDG_CONFIG_HOME", None)
    shown = subprocess.run(
        ["/bin/sh", "-c", command], capture_output=True, text=True, timeout=60, check=True, env=environment, cwd=tmp_path
    )
    assert shown.stdout.splitlines().count("nagle-delayed-ack") == 11
    assert (tmp_path / "home/.config/wireshark/profiles/a profile/tcptrace_lab.lua").exists()


def test_the_script_is_for_the_original_as_well_as_for_the_copy(tmp_path: Path) -> None:
    copy = with_profile(NAGLE, tmp_path)
    names = "frame.number", "tcptrace_lab.cause", "tcptrace_lab.wait", "tcptrace_lab.finding"
    assert fields(NAGLE, tmp_path, "tcptrace_lab", *names) == fields(copy, tmp_path, "tcptrace_lab", *names)


@pytest.mark.parametrize("name", ["ethernet-nagle-on.pcapng", "ethernet-loss.pcapng"])
def test_the_waits_of_each_cause_add_up_to_the_ledger(tmp_path: Path, name: str) -> None:
    """The post-dissector has a field for the wait before a frame. The sum of this field equals the sum of the waits in the ledger."""
    capture = CAPTURES / name
    copy = with_profile(capture, tmp_path)
    sums = departures(analyze(capture).ledger).group_by("cause").agg(pl.col("wait_ns").sum(), pl.len()).collect()
    for cause, wait_ns, count in sums.iter_rows():
        rows = fields(copy, tmp_path, profile.is_cause(cause), "tcptrace_lab.wait")
        assert (sum(int(row[0].replace(".", "")) for row in rows), len(rows)) == (wait_ns, count), cause


def test_rows_have_the_colour_of_their_cause(tmp_path: Path) -> None:
    copy = with_profile(NAGLE, tmp_path)
    shown = tshark(
        copy, tmp_path, "--color", "-Y", "tcptrace_lab.cause", "-T", "fields", "-e", "tcptrace_lab.cause", "-e", "frame.coloring_rule.name"
    )
    pairs = {tuple(line.split("\t")) for line in re.sub(r"\x1b\[[\d;]*[mK]", "", shown).splitlines()}
    assert {cause for cause, _ in pairs} >= {"nagle-delayed-ack", "peer", "application"}
    assert all(cause == rule for cause, rule in pairs)


def test_every_button_and_graph_is_a_filter_that_tshark_accepts_and_shows_the_finding(tmp_path: Path) -> None:
    copy = with_profile(NAGLE, tmp_path)
    findings = {finding.id: set(finding.evidence_frames) for finding in analyze(NAGLE).findings}
    buttons = [table_row(line) for line in (tmp_path / "profiles/slow/dfilter_buttons").read_text().splitlines()]
    assert [button[1].split(" // ")[0] for button in buttons] == list(findings)
    for _, label, shown, _ in buttons:
        frames = {int(row[0]) for row in fields(copy, tmp_path, shown, "frame.number")}
        assert frames >= findings[label.split(" // ")[0]]
    graphs = [table_row(line) for line in (tmp_path / "profiles/slow/io_graphs").read_text().splitlines()]
    assert [graph[1] for graph in graphs] == list(CAUSES)
    delayed = next(graph for graph in graphs if graph[1] == "nagle-delayed-ack")
    table = tshark(copy, tmp_path, "-q", "-z", f"io,stat,0,SUM({delayed[6]}){delayed[6]} && {delayed[2]}")
    waits = departures(analyze(NAGLE).ledger).filter(pl.col("cause") == "nagle-delayed-ack").collect()
    assert f"{int(waits['wait_ns'].sum()) / 1e9:.6f}" in table


def table_row(line: str) -> list[str]:
    r"""Return the values in one line of a Wireshark table. Each `\xhh` in the line stands for one byte."""
    return [re.sub(r"\\x(..)", lambda found: chr(int(found[1], 16)), value) for value in re.findall(r'"([^"]*)"', line)]


HOSTILE = '"]] os.execute("touch broken") --[[ \\ \n\r\0 \x1b[31m é'


def test_hostile_text_stays_text(tmp_path: Path) -> None:
    analysis = analyze(NAGLE)
    first = replace(analysis.findings[0], title=HOSTILE, remedy=(HOSTILE,))
    (tmp_path / "profiles").mkdir()
    profile.write(replace(analysis, findings=(first,)), str(tmp_path / "profiles/slow"))
    found = fields(NAGLE, tmp_path, f'tcptrace_lab.finding == "{first.id}"', "frame.number", "tcptrace_lab.remedy")
    assert {int(row[0]) for row in found} >= set(first.evidence_frames)
    assert all('"]] os.execute("touch broken") --[[' in row[1] for row in found)
    assert not (tmp_path / "broken").exists()
    buttons = (tmp_path / "profiles/slow/dfilter_buttons").read_text().splitlines()
    assert [table_row(line)[3].encode("latin-1").decode() for line in buttons] == [HOSTILE]


def test_a_frame_of_another_capture_gets_no_fields(tmp_path: Path) -> None:
    with_profile(NAGLE, tmp_path)
    other = packets.capture(tmp_path / "other.pcap", LATE_ACK)
    assert fields(other, tmp_path, "tcptrace_lab.cause", "frame.number") == []
    assert "these fields belong to another capture" in tshark(other, tmp_path, "-V", "-c", "2")


def test_without_its_table_the_script_says_so(tmp_path: Path) -> None:
    copy = with_profile(NAGLE, tmp_path)
    (tmp_path / "profiles/slow/tcptrace_lab.frames").unlink()
    assert "tcptrace_lab.frames; it belongs beside tcptrace_lab.lua" in tshark(copy, tmp_path, fails=True)


def test_the_table_has_16_bytes_per_frame_and_its_blocks_are_read_on_demand(tmp_path: Path) -> None:
    """The table has more records than fit into one block of 4,096. The last block has a wait."""
    lines = [line for line in LATE_ACK.splitlines() if line][:3]
    lines += [f"{0.03 + index * 0.0001:.4f} C > S . {1 + index * 10}:{11 + index * 10} ack 1" for index in range(5_000)]
    lines.append("0.9300 C > S P. 50001:50011 ack 1")
    copy = with_profile(packets.capture(tmp_path / "in.pcap", "\n".join(lines)), tmp_path)
    assert (tmp_path / "profiles/slow/tcptrace_lab.frames").stat().st_size == 16 * 5_004
    assert fields(copy, tmp_path, "tcptrace_lab.wait > 0.3", "frame.number", "tcptrace_lab.wait") == [["5004", "0.400100000"]]


def test_pseudonyms_hold_in_the_profile(tmp_path: Path) -> None:
    copy = with_profile(NAGLE, tmp_path, "--anonymize")
    assert len(fields(copy, tmp_path, 'tcptrace_lab.cause == "nagle-delayed-ack"', "frame.number")) == 11
    for path in (tmp_path / "profiles/slow").iterdir():
        assert b"192.0.2." not in path.read_bytes()
        assert b"ethernet-nagle-on" not in path.read_bytes()
        assert str(tmp_path).encode() not in path.read_bytes()


def test_a_profile_of_the_user_is_never_overwritten_and_ours_is_renewed(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/preferences").write_text("gui.column.format: mine\n")
    done = tcptrace_lab("annotate", NAGLE, "-o", "copy.pcapng", "--profile", "mine", folder=tmp_path)
    assert done.returncode == 2
    assert "the folder for the profile is not empty" in only_line(done.stderr)
    assert not (tmp_path / "copy.pcapng").exists()
    with_profile(NAGLE, tmp_path)
    shutil.rmtree(tmp_path / "mine")
    assert tcptrace_lab("annotate", NAGLE, "-o", "copy.pcapng", "--profile", "profiles/slow", folder=tmp_path).returncode == 0
