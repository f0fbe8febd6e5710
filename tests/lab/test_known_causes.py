"""The delay that a path adds is computed from captures of both its ends. The captures are written by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tcptrace_lab.lab.experiment import Outcome
from tcptrace_lab.lab.known_causes.scoring import late_ns
from tcptrace_lab.lab.known_causes.transfers import TRANSFERS
from tests.support import packets

if TYPE_CHECKING:
    from pathlib import Path

PLAIN, NARROW = "window 8,192 B, 20 ms, MTU 1500", "4 Mb/s, endless queue, 20 ms, MTU 1500, cubic"


def outcome(folder: Path, *, late_ms: float = 0, lost: bool = False) -> Outcome:
    """Return captures of both ends of a path with a delay of 10 ms per direction.

    The client sends two segments, and the server acknowledges each of them. The second segment arrives `late_ms` late. If `lost` is true,
    the ACK of the second segment is lost.
    """

    def seen(end: str, way_ms: float) -> Path:
        back_ms = 20 - way_ms
        lines = [
            f"{way_ms}ms C > S S 0:0(0) win 64240 <mss 1460>",
            f"{back_ms}ms S > C S. 0:0(0) ack 1 win 65160 <mss 1460>",
            f"{20 + way_ms}ms C > S . 1:1461 ack 1 win 64240",
            f"{20 + back_ms}ms S > C . ack 1461 win 65160",
            f"{60 + way_ms + (late_ms if end == 'server' else 0)}ms C > S . 1461:2921 ack 1",
            *([] if lost and end == "client" else [f"{60 + late_ms + back_ms}ms S > C . ack 2921"]),
        ]
        return packets.capture(folder / f"{end}.pcap", "\n".join(lines))

    return Outcome({"client": seen("client", 0), "server": seen("server", 10)}, "", [], 1, None, {})


@pytest.mark.parametrize("late_ms", [0, 9.5])
def test_the_slowest_packet_shows_how_late_a_path_was(tmp_path: Path, late_ms: float) -> None:
    assert late_ns(TRANSFERS[PLAIN], outcome(tmp_path, late_ms=late_ms)) == late_ms * 1_000_000


def test_a_path_with_a_rate_or_one_that_lost_a_packet_is_not_called_late(tmp_path: Path) -> None:
    assert late_ns(TRANSFERS[NARROW], outcome(tmp_path, late_ms=9.5)) is None
    assert late_ns(TRANSFERS[PLAIN], outcome(tmp_path, lost=True)) is None
