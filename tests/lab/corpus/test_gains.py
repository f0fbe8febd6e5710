"""The gains that findings promise are compared with the idle time of the bottleneck. The idle times are calculated by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tcptrace_lab.lab.corpus import manifest
from tcptrace_lab.lab.corpus.__main__ import main
from tcptrace_lab.lab.corpus.drawn import DEVELOPMENT
from tcptrace_lab.lab.corpus.gains import Gain, gains, report
from tests.support import packets
from tests.support.kernel.transfer import ENTRY

if TYPE_CHECKING:
    from pathlib import Path

S = 1_000_000_000
FULL, ROUNDS = 1_434, 100
"""Data bytes of a full segment, and the number of RTTs.

With the headers that the relay carries, a frame has 1,500 bytes.
"""


def gain(gain_s: float, free_s: float, *, cost_s: float = 2.0, is_headline: bool = False) -> Gain:
    """Return the promised gain `gain_s` of a finding, and the gain `free_s` that was possible.

    The capture is at the sender, and the direction was active for four seconds.
    """
    return Gain("one", "sender", "loss", 0, 4 * S, round(cost_s * S), round(gain_s * S), round(free_s * S), is_headline)


def test_more_and_less_than_the_line_had_free() -> None:
    """Four findings promise gains of 2, 2, 0.2 and 1.1 s. The line was free for 0.5, 2, 3 and 1 s.

    So the first finding promises 1.5 s too much, and the fourth promises 0.1 s too much. The third finding costs 1 s and promises only 0.2
    s, although the line was free for longer. So it promises 0.8 s too little.
    """
    every = [gain(2, 0.5, is_headline=True), gain(2, 2), gain(0.2, 3, cost_s=1), gain(1.1, 1)]
    assert [one.excess_ns / S for one in every] == pytest.approx([1.5, 0, 0, 0.1])
    assert [one.missing_ns / S for one in every] == pytest.approx([0, 0, 0.8, 0])
    lines = list(report(every, 1, 1))
    assert "| sender | 4 | 5.3 | 1.6 | 0.8 | 1 | 1 |" in lines
    assert lines[-1] == "| one | sender | 1 | loss | 4.00 | 2.00 | 0.50 |"


def upload() -> str:
    """Return the text of a capture at the receiver of an upload.

    Every 20 ms, ten frames arrive, which fill the receiver's window. The receiver acknowledges them after the last frame.
    """
    lines = ["host A 192.0.2.1:40001", "host B 192.0.2.2:8000", f"0ms A > B S 0:0(0) win 65535 <mss {FULL}, wscale 0>"]
    lines += [f"0.01ms B > A S. 0:0(0) ack 1 win {10 * FULL} <mss {FULL}, wscale 0>", "20ms A > B . ack 1"]
    for turn in range(ROUNDS):
        first = 1 + 10 * FULL * turn
        lines += [f"{21 + 20 * turn + k}ms A > B . {first + k * FULL}:{first + (k + 1) * FULL} ack 1" for k in range(10)]
        lines.append(f"{30 + 20 * turn}.01ms B > A . ack {first + 10 * FULL} win {10 * FULL}")
    return "\n".join(lines)


def test_the_line_is_busy_with_the_frames_that_arrived_at_its_rate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A frame takes 1 ms at 12 Mb/s, so 1,000 frames keep the line busy for half of the 2 s."""
    for point in ("client", "middle", "server"):
        (tmp_path / DEVELOPMENT / "one").mkdir(parents=True, exist_ok=True)
        packets.capture(tmp_path / DEVELOPMENT / "one" / f"{point}.pcap", upload())
    entry = ENTRY | {"forward": {"delay_s": 0.010, "rate_bps": 12_000_000}, "backward": {"delay_s": 0.010, "rate_bps": 12_000_000}}
    found = gains(tmp_path / DEVELOPMENT, [entry], 1)
    assert {one.finding for one in found} == {"receiver-window-limited"}
    assert {one.at for one in found} == {"sender", "middle", "receiver"}
    for one in found:
        assert one.active_ns - one.free_ns == pytest.approx(S, rel=0.01)
    manifest.append(tmp_path / DEVELOPMENT, entry)
    assert main(["gains", str(tmp_path), "--processes", "1"]) == 0
    assert "captures of 1 transfers" in capsys.readouterr().out
