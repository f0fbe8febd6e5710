"""Frames, bytes and duration of each connection equal those of Wireshark's conversations (`tshark -z conv,tcp`).

The tests use the captures of this project.
"""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.support import engine, needs
from tests.support.captures.real_captures import real
from tests.support.places import CAPTURES as OWN

if TYPE_CHECKING:
    from pathlib import Path

LINE = re.compile(r"(\S+):(\d+)\s+<-> (\S+):(\d+)\s+(\d+) (\d+ \S+)\s+(\d+) (\d+ \S+)\s+\d+ \d+ \S+\s+[\d.]+\s+([\d.]+)", re.ASCII)
UNITS = {"bytes": 1, "kB": 1000, "MB": 1000**2}
TIME_LIMIT_S = 60
ROUNDED_S = 0.0000501
"""Tolerance in seconds, because tshark's durations have four decimals."""

Conversation = tuple[tuple[tuple[str, int], int, str], tuple[tuple[str, int], int, str], float]
"""A conversation: address and port, frames, and bytes of each end, followed by the duration in seconds."""


def _theirs(capture: Path) -> list[Conversation]:
    command = [needs.program("tshark"), "-n", "-q", "-r", str(capture), "-z", "conv,tcp"]
    done = subprocess.run(command, capture_output=True, timeout=TIME_LIMIT_S, check=False)
    found = []
    for line in done.stdout.decode(errors="replace").splitlines():
        parts = LINE.match(line)
        if parts:
            a, a_port, b, b_port, to_a, to_a_bytes, to_b, to_b_bytes, duration = parts.groups()
            ends = sorted([((a, int(a_port)), int(to_b), to_b_bytes), ((b, int(b_port)), int(to_a), to_a_bytes)])
            found.append((ends[0], ends[1], float(duration)))
    return found


def _ours(capture: Path) -> list[Conversation]:
    found = []
    for row in engine.read(capture).connections.iter_rows(named=True):
        ends = sorted(
            ((row[f"{side}_addr"], row[f"{side}_port"]), row[f"{side}_segments"], _size(row[f"{side}_frame_bytes"]))
            for side in ("client", "server")
        )
        found.append((ends[0], ends[1], (row["last_ts_ns"] - row["first_ts_ns"]) / 1e9))
    return found


def _size(count: int) -> str:
    """Return a number of bytes as tshark writes it, for example `9999 bytes` or `10 kB`."""
    for unit, factor in UNITS.items():
        if count // factor < 10_000 or unit == "MB":
            return f"{count // factor} {unit}"
    raise AssertionError(count)


DELIVERED_TWICE = {"ethernet-duplicates.pcapng"}
"""Captures in which the network delivered some packets twice.

Wireshark counts both copies, and tcptrace-lab counts one.
"""


@pytest.mark.parametrize(
    "capture", [path for path in real() if path.parent == OWN and path.name not in DELIVERED_TWICE], ids=lambda path: path.name
)
def test_conversations_equal_wiresharks(capture: Path) -> None:
    ours, theirs = sorted(_ours(capture)), sorted(_theirs(capture))
    assert [ends for *ends, _ in ours] == [ends for *ends, _ in theirs]
    assert [duration for *_, duration in ours] == pytest.approx([duration for *_, duration in theirs], abs=ROUNDED_S)


@pytest.mark.parametrize("name", sorted(DELIVERED_TWICE))
def test_packets_delivered_twice_make_the_difference_to_wireshark(name: str) -> None:
    (row,) = engine.read(OWN / name).connections.iter_rows(named=True)
    ((*ends, _),) = _theirs(OWN / name)
    theirs = {port: packets for (_, port), packets, _ in ends}
    for side in ("client", "server"):
        assert row[f"{side}_segments"] + row[f"{side}_network_duplicates"] == theirs[row[f"{side}_port"]]
