"""TCP timestamps show how long the path delayed the originals of spurious retransmits. The delays in these exchanges are known."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tcptrace_lab.analysis import analyze
from tcptrace_lab.connections import late_originals
from tests.support import packets

if TYPE_CHECKING:
    from pathlib import Path


def exchange(path_delay_ms: int, ticks_per_s: int = 1000) -> str:
    """Return five segments and their retransmits, which the server sent 300 ms later; the originals are delayed on the path.

    The server's clock starts at 1000 ticks.
    """

    def tick(at_ms: float) -> int:
        return 1000 + round(at_ms * ticks_per_s / 1000)

    sent_ms, arrived_ms = 1000, 1000 + path_delay_ms
    lines = [
        "0ms C > S S 0:0(0) win 65535 <mss 1000, sackOK, TS val 1 ecr 0>",
        f"20ms S > C S. 0:0(0) ack 1 win 65535 <mss 1000, sackOK, TS val {tick(20)} ecr 1>",
        f"20ms C > S . ack 1 win 65535 <nop, nop, TS val 21 ecr {tick(20)}>",
    ]
    for place in range(5):
        span = f"{1000 * place + 1}:{1000 * place + 1001}"
        lines.append(f"{arrived_ms + place}ms S > C . {span} ack 1 <nop, nop, TS val {tick(sent_ms + place)} ecr 21>")
        lines.append(f"{arrived_ms + place}.1ms C > S . ack {1000 * place + 1001} <nop, nop, TS val 900 ecr {tick(sent_ms + place)}>")
    for place in range(5):
        span = f"{1000 * place + 1}:{1000 * place + 1001}"
        lines.append(f"{1300 + place}ms S > C . {span} ack 1 <nop, nop, TS val {tick(1300 + place)} ecr 21>")
        lines.append(f"{1300 + place}.1ms C > S . ack 5001 <nop, nop, TS val 990 ecr {tick(sent_ms + 4)}>")
    return "\n".join(lines)


@pytest.mark.parametrize(("delay_ms", "ticks_per_s"), [(250, 1000), (250, 250), (0, 1000)])
def test_the_delay_of_the_originals_is_that_of_the_path(tmp_path: Path, delay_ms: int, ticks_per_s: int) -> None:
    analysis = analyze(packets.capture(tmp_path / "exchange.pcap", exchange(delay_ms, ticks_per_s)))
    tick_ns = 1_000_000_000 // ticks_per_s
    delays = late_originals.delays_ns(analysis.segments, [(0, False)])
    assert delays[0, False] == pytest.approx(delay_ms * 1_000_000, abs=tick_ns)
    (found,) = (one for one in analysis.findings if one.id == "spurious-retransmission")
    assert ("delayed on the path by up to 25" in found.title) is (delay_ms == 250)


def test_a_clock_of_an_unusual_rate_shows_nothing(tmp_path: Path) -> None:
    analysis = analyze(packets.capture(tmp_path / "exchange.pcap", exchange(250, 600)))
    assert late_originals.delays_ns(analysis.segments, [(0, False)]) == {}
