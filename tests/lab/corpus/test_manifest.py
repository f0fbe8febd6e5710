"""The manifest of transfers, and the capture that a router in the middle of the path would make."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import dpkt
import jsonschema
import pytest

from tcptrace_lab.errors import UsageError
from tcptrace_lab.lab.corpus import making, manifest
from tcptrace_lab.lab.corpus.__main__ import main
from tcptrace_lab.lab.corpus.drawn import DEVELOPMENT, PARTS, Drawn, transfers
from tcptrace_lab.lab.corpus.middle import MIDDLE, write_middle
from tcptrace_lab.lab.corpus.programs import PROGRAMS
from tcptrace_lab.lab.corpus.programs.program import Program
from tcptrace_lab.lab.kernel_ledger.agreement import capture_of, kernel_rows
from tcptrace_lab.lab.networks.network import Medium
from tcptrace_lab.lab.networks.path import Direction, PathModel
from tests.support import packets

MS = 1_000_000


def entry(one: Drawn, **changes: Any) -> dict[str, Any]:
    """Return an entry of the manifest, in the form in which `making` writes it."""
    frames = {"client": 10, "server": 10, "middle": 10}
    return making.entry_of(one, is_complete=True, duration_s=1.5, frames=frames, records=100) | changes


def test_lines_follow_the_schema(tmp_path: Path) -> None:
    for one in (*transfers(1, range(200)), *transfers(1, range(20), most_competitors=8)):
        jsonschema.validate(entry(one), manifest.SCHEMA)
    one = transfers(1, range(1))[0]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(entry(one, part="both"), manifest.SCHEMA)
    manifest.append(tmp_path, entry(one))
    manifest.append(tmp_path, entry(one, tracer_records=7))
    assert [line["tracer_records"] for line in manifest.entries(tmp_path)] == [7]


def test_a_manifest_of_the_older_version_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / manifest.MANIFEST).write_text('{"version": 1, "name": "1-0001-iperf3", "held": null}\n')
    with pytest.raises(UsageError, match="schema_version is 1, and only 2 can be read"):
        list(manifest.entries(tmp_path))


def test_the_table_counts_both_parts_and_shows_what_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    some = transfers(1, range(len(PROGRAMS)))
    for part in PARTS:
        (tmp_path / part).mkdir()
    for one in some:
        manifest.append(tmp_path / one.part, entry(one))
    assert main(["table", str(tmp_path)]) == 0
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in capsys.readouterr().out.splitlines()]
    paths = lines[0][2:]
    assert lines[0][0] == f"{len(some)} transfers"
    for one in some:
        (row,) = (line for line in lines if line[0] == one.program)
        assert row[1] == "1"
        assert [path for path, cell in zip(paths, row[2:], strict=True) if cell] == [one.path]


def test_what_is_in_the_manifest_is_not_made_again(tmp_path: Path) -> None:
    some = transfers(1, range(3))
    for part in PARTS:
        (tmp_path / part).mkdir()
    for one in some:
        manifest.append(tmp_path / one.part, entry(one))
    assert list(making.make(some, tmp_path, 1)) == []


def test_a_program_that_is_not_installed_is_left_out_with_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both transfers use a program that is not installed. The program is named once."""
    absent = Program("none", "no-such-server", "no-such-client", "no-such-package")
    monkeypatch.setitem(PROGRAMS, "absent", absent)
    (line,) = making.make(transfers(1, range(2), ("absent",)), tmp_path, 1)
    assert line == "absent is skipped: no-such-server, no-such-client not installed (apt-get install no-such-package)"


KEPT = Path(__file__).parents[3] / "captures" / "corpus" / "development"
GATES = {
    "2-0036-mosquitto-lines-acknowledged": "nagle",
    "3-0004-nginx-h2load-one-at-a-time": "nagle",
    "3-0000-sampler-100-every-2ms": "nagle",
    "1-0001-ffmpeg-audio": "own-turn",
    "1-0079-rsyslog-forward": "own-turn",
    "1-0048-pgbench-select": "peer-in-transit",
}
"""Maps a capture to the closed gate in its waits, according to the captures' README."""


def test_the_transfers_in_the_repository_are_whole_and_held_by_what_their_list_says() -> None:
    for line in manifest.entries(KEPT):
        jsonschema.validate(line, manifest.SCHEMA)
        assert line["part"] == DEVELOPMENT
        for point, frames in line["frames"].items():
            with capture_of(KEPT / line["name"], point).open("rb") as file:
                assert sum(1 for _ in dpkt.pcap.UniversalReader(file)) == frames
        spent: Counter[str] = Counter()
        for rows in kernel_rows(KEPT / line["name"]).values():
            for last, start_ns, end_ns in rows.select("last", "start_ns", "end_ns").iter_rows():
                spent.update(dict.fromkeys(last, end_ns - start_ns))
        of_senders = {gate: ns for gate, ns in spent.items() if gate not in {"peer-turn", "peer-held", "sent-all"}}
        assert GATES[line["name"]] == max(of_senders, key=lambda gate: of_senders[gate])
    assert {line["name"] for line in manifest.entries(KEPT)} == set(GATES)


class FinishedRelay:
    """The logs of a relay after the transfer."""

    def __init__(self, forward: Direction, backward: Direction) -> None:
        self.forward_log, self.backward_log = forward.log, backward.log


def test_a_router_sees_what_is_lost_behind_it_and_not_what_is_lost_before(tmp_path: Path) -> None:
    """The first copy of a question is lost. The client retransmits it after 40 ms, and the server answers.

    The capture point is in the middle of the path, 5 ms from either host.
    """
    lines = (
        "host A 192.0.2.1:40001\nhost B 192.0.2.2:5001\n0ms A > B P. 1:101(100) ack 1\n40ms A > B P. 1:101(100) ack 1\n"
        "60ms B > A P. 1:51(50) ack 101\n70ms B > A P. 51:101(50) ack 101"
    )
    packets.capture(tmp_path / "sent.pcap", lines)
    with (tmp_path / "sent.pcap").open("rb") as file:
        frames = [frame for _, frame in dpkt.pcap.UniversalReader(file)]
    medium = Medium("tap", 1_500, forward=PathModel(0.010, lost=frozenset({0})), backward=PathModel(0.010, lost=frozenset({1})))
    forward, backward = Direction(medium.forward), Direction(medium.backward)
    for direction, at_ms, frame in (
        (forward, 0, frames[0]),
        (forward, 40, frames[1]),
        (backward, 60, frames[2]),
        (backward, 70, frames[3]),
    ):
        direction.accept(len(frame), at_ms * MS, frame)
    count = write_middle(tmp_path, FinishedRelay(forward, backward), medium, 1_700_000_000_000 * MS)  # type: ignore[arg-type]
    with (tmp_path / MIDDLE).open("rb") as file:
        seen = [(at_s, frame) for at_s, frame in dpkt.pcap.UniversalReader(file)]
    assert count == len(seen) == 3
    assert [round((float(at_s) - 1_700_000_000) * 1_000) for at_s, _ in seen] == [5, 45, 65]
    assert [frame for _, frame in seen] == frames[:3]
