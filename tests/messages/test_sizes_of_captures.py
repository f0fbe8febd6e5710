"""Message sizes of several captures of one pair of hosts are analyzed together.

A single capture does not show the stalls, but all captures together do.
"""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING

import dpkt
import pytest

from tcptrace_lab import analyze
from tcptrace_lab.messages import prediction
from tcptrace_lab.simulation import At, write_capture
from tcptrace_lab.stacks import STACKS, Host, Link, Read, Setting, Write, simulate
from tests.support import packets
from tests.support.captures.modelled_sweeps import ATM, joined
from tests.support.command import only_line, tcptrace_lab

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

BUFFER_BYTES, MSS_BYTES = 16_384, 9148
"""The buffer and the MSS of Liu et al.'s measurement over ATM."""

CAPTURES = 6
SIZES = list(range(150, 30_000, 330))
HOUR_S = 3600


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """One sweep of message sizes, divided into six captures.

    Each capture has every sixth of the shuffled sizes. Addresses, ports and times are equal in all captures.
    """
    folder = tmp_path_factory.mktemp("captures")
    sizes = random.Random(3).sample(SIZES, len(SIZES))  # noqa: S311  (random order, not a secret)
    return [captured(folder / f"{number}.pcap", sizes[number::CAPTURES]) for number in range(CAPTURES)]


def captured(path: Path, sizes: Iterable[int]) -> Path:
    asks = tuple(step for size in sizes for step in (Write(size), Read(50)))
    answers = tuple(step for size in sizes for step in (Read(size), Write(50)))
    client, server = (Host(STACKS["sunos4"], BUFFER_BYTES, BUFFER_BYTES, program=program) for program in (asks, answers))
    link = Link(100_000_000, 200_000)
    setting = Setting(client, server, link, link, mss_bytes=MSS_BYTES, no_slow_start=True)
    with path.open("wb") as stream:
        write_capture(simulate(setting), setting, stream, at=At.CLIENT)
    return path


def test_what_no_capture_shows_alone_all_show_together(captures: list[Path]) -> None:
    assert all(prediction.from_captures([[str(path)]]).measured == () for path in captures)
    known = prediction.from_captures([[str(path)] for path in captures])
    assert [(one.from_bytes, one.to_bytes) for one in known.measured] == joined(ATM, SIZES)
    assert known.messages == len(SIZES)
    assert known.parameters.stack == "sunos4"


def test_captures_of_different_hours_are_one_group_of_an_analysis(captures: list[Path], tmp_path: Path) -> None:
    later = []
    for number, path in enumerate(captures):
        moved = tmp_path / path.name
        with path.open("rb") as source, moved.open("wb") as target:
            reader = dpkt.pcap.Reader(source)
            writer = dpkt.pcap.Writer(target, linktype=reader.datalink(), nano=True)
            for time_s, frame in reader:
                writer.writepkt(frame, time_s + number * HOUR_S)
        later.append(moved)
    (group,) = [group for group in analyze(later).message_sizes if group.measured]
    assert [(one.from_bytes, one.to_bytes) for one in group.measured] == joined(ATM, SIZES)
    assert (group.conn, group.messages) == (None, len(SIZES))


def test_predict_shows_what_was_measured_beside_what_it_predicts(captures: list[Path], tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    names = [word for path in captures for word in ("--from", str(path))]
    done = tcptrace_lab("predict", *names, "--separate", "--json", tmp_path / "predicted.json", "-o", page)
    assert done.returncode == 0, done.stderr.decode()
    document = json.loads((tmp_path / "predicted.json").read_text())
    assert [(one["from_bytes"], one["to_bytes"]) for one in document["measured"]["ranges"]] == joined(ATM, SIZES)
    assert [(one["from_bytes"], one["to_bytes"]) for one in document["ranges"][:2]] == ATM[:2]
    assert "measured, 10.0.0.1 → 10.0.0.2:5001: 91 messages; 3 ranges of sizes were slow" in " ".join(done.stdout.decode().split())
    assert '<h3 id="measured-title">Measured</h3>' in page.read_text()


def test_too_few_messages_show_nothing_of_sizes_and_captures_of_other_hosts_are_reported(captures: list[Path], tmp_path: Path) -> None:
    others = packets.capture(
        tmp_path / "others.pcap",
        """
        host X 10.9.9.9:5000
        +0ms X > S S  0:0(0)       win 8192 <mss 1460>
        +1ms S > X S. 0:0(0) ack 1 win 8192 <mss 1460>
        """,
    )
    done = tcptrace_lab(
        "predict", "--from", captures[0], "--from", others, "--separate", "--stack", "sunos4", "--json", tmp_path / "predicted.json"
    )
    assert json.loads((tmp_path / "predicted.json").read_text())["measured"]["ranges"] is None
    words = " ".join((done.stdout + done.stderr).decode().split())
    assert "others.pcap: nothing between these hosts" in words
    assert "16 messages; too few to find slow sizes" in words


def test_one_connection_is_asked_for_in_one_capture(captures: list[Path]) -> None:
    done = tcptrace_lab("predict", "--from", captures[0], "--from", captures[1], "--separate", "--connection", "0")
    assert done.returncode == 2
    assert "omit --separate" in only_line(done.stderr)
