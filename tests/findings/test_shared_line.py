"""What a remedy can save on a busy line, with one connection or several.

The expected times are calculated by hand, for captures at the receiver.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import tcptrace_lab
from tests.support import packets

if TYPE_CHECKING:
    from pathlib import Path

    from tcptrace_lab.findings.finding import Finding

MS = 1_000_000
FULL, PLACES, ROUNDS = 1_460, 20, 100
"""The line carries a full segment each millisecond. A round trip takes 20 ms."""


def uploads(count: int, window: int = 10) -> str:
    """Return `count` connections between two hosts.

    In each RTT of 20 ms, each connection sends its window of ten segments, one connection after the other.
    """
    events: list[tuple[float, str]] = []
    hosts = [f"host C{n} 10.0.0.1:{40_000 + n}\nhost S{n} 10.0.0.2:{80 + n}" for n in range(count)]
    for n in range(count):
        c, s = f"C{n}", f"S{n}"
        events += [
            (0.1 * n, f"{c} > {s} S 0:0(0) win 65535 <mss {FULL}, wscale 0>"),
            (0.1 * n + 0.01, f"{s} > {c} S. 0:0(0) ack 1 win {window * FULL} <mss {FULL}, wscale 0>"),
            (0.1 * n + 20, f"{c} > {s} . ack 1"),
        ]
        for turn in range(ROUNDS):
            for k in range(window):
                at_ms, first = 21 + PLACES * turn + window * n + k, 1 + FULL * (window * turn + k)
                events.append((at_ms, f"{c} > {s} . {first}:{first + FULL} ack 1"))
                if k == window - 1:
                    events.append((at_ms + 0.01, f"{s} > {c} . ack {first + FULL} win {window * FULL}"))
    return "\n".join([*hosts, *(f"{at_ms:.3f}ms {line}" for at_ms, line in sorted(events, key=lambda event: event[0]))])


def limited(path: Path) -> list[Finding]:
    return [one for one in tcptrace_lab.analyze(path).findings if one.id == "receiver-window-limited"]


def test_a_window_on_a_line_that_is_half_busy_can_save_the_other_half(tmp_path: Path) -> None:
    """The transfer has 100 round trips of 20 ms. In each, the data take 10 ms. A larger window can save at most about 1 s of 2 s."""
    (found,) = limited(packets.capture(tmp_path / "x.pcap", uploads(1)))
    assert found.gain_ns is not None
    assert 0.9 * 1000 * MS <= found.gain_ns <= 1.1 * 1000 * MS


def test_windows_on_a_line_that_two_connections_fill_save_nothing(tmp_path: Path) -> None:
    """The window limits each connection for half of the time, while the data of the other connection occupy the line."""
    found = limited(packets.capture(tmp_path / "x.pcap", uploads(2)))
    assert found
    assert all(one.gain_ns is not None and one.gain_ns <= 0.05 * 2_000 * MS for one in found)
    assert all(one.predicted_gain is not None and one.predicted_gain.endswith("the path needs the rest for the data") for one in found)
    assert all(one.cost_ns is not None and one.cost_ns >= 900 * MS for one in found)
