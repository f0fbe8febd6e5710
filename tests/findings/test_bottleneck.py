"""Connections of several hosts share one bottleneck.

While data of any connection fill the bottleneck, the bottleneck counts as busy for all connections. The expected times are calculated by
hand, for captures at the receiver and at the sender.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import tcptrace_lab
from tcptrace_lab.engine.segments import read
from tcptrace_lab.findings import bottleneck
from tests.support import packets

if TYPE_CHECKING:
    from pathlib import Path

MS = 1_000_000
FULL, WINDOW, TURN_MS, TURNS = 1_460, 10, 20, 100
"""The line carries a full segment each millisecond. Each connection fills its window of ten full segments in each round trip of 20 ms."""
LASTS_MS = TURN_MS * (TURNS - 1) + WINDOW - 1
"""Time from the first to the last segment of a connection, in ms."""


def uploads(apart_ms: float, *, size: int = FULL, at_sender: bool = False, others: str = "10.0.0.2", window: int = WINDOW) -> str:
    """Return uploads of two hosts to a third host. The second upload starts `apart_ms` after the first.

    In the capture at the receiver, one ACK follows the last segment of each window of data. With `at_sender`, one host has both connections
    and sends each window at once. The ACK of a segment arrives when the line has carried the segment.

    The second upload has windows of `window` segments, and goes to the address `others`. If this is another host, the last five ACKs of
    every second window arrive together.
    """
    client = "10.0.0.1" if at_sender else "10.0.0.3"
    hosts = [f"host C0 10.0.0.1:40000\nhost C1 {client}:40001", f"host S0 10.0.0.2:80\nhost S1 {others}:81"]
    events: list[tuple[float, str]] = []
    for n in range(2):
        c, s, begin_ms = f"C{n}", f"S{n}", 21 + apart_ms * n
        opened_ms = (20, 0.01) if at_sender else (0.01, 20)
        events += [
            (0.1 * n, f"{c} > {s} S 0:0(0) win 65535 <mss {FULL}, wscale 0>"),
            (0.1 * n + opened_ms[0], f"{s} > {c} S. 0:0(0) ack 1 win {WINDOW * FULL} <mss {FULL}, wscale 0>"),
            (0.1 * n + sum(opened_ms), f"{c} > {s} . ack 1"),
        ]
        for turn in range(TURNS):
            together = n == 1 and others != "10.0.0.2" and turn % 2 == 0
            for k in range(window if n else WINDOW):
                at_ms, first = begin_ms + TURN_MS * turn, 1 + size * ((window if n else WINDOW) * turn + k)
                left_ms = at_ms + k / 1000 if at_sender else at_ms + k
                events.append((left_ms, f"{c} > {s} {'.' if size == FULL else 'P.'} {first}:{first + size} ack 1"))
                if at_sender or k == WINDOW - 1:
                    acked_ms = at_ms + TURN_MS - WINDOW + k + 0.5 if at_sender else left_ms + 0.01
                    if together and k >= window - 5:
                        acked_ms += (window - 1 - k) * 0.99
                    events.append((acked_ms, f"{s} > {c} . ack {first + size} win {WINDOW * FULL}"))
    return "\n".join([*hosts, *(f"{at_ms:.3f}ms {line}" for at_ms, line in sorted(events, key=lambda event: event[0]))])


def stop_and_wait(count: int) -> str:
    """Return `count` connections that take turns: in each RTT of 20 ms, each connection sends a full segment, at even intervals.

    Each connection waits for the ACK of its segment. The capture point is the receiver.
    """
    hosts = "\n".join(f"host C{n} 10.0.0.1:{40_000 + n}\nhost S{n} 10.0.0.2:{80 + n}" for n in range(count))
    events: list[tuple[float, str]] = []
    for n in range(count):
        c, s = f"C{n}", f"S{n}"
        events += [
            (0.1 * n, f"{c} > {s} S 0:0(0) win 65535 <mss {FULL}, wscale 0>"),
            (0.1 * n + 0.01, f"{s} > {c} S. 0:0(0) ack 1 win 65535 <mss {FULL}, wscale 0>"),
            (0.1 * n + 20.01, f"{c} > {s} . ack 1"),
        ]
        for turn in range(TURNS):
            at_ms, end = 41 + TURN_MS * (turn + n / count), 1 + FULL * (turn + 1)
            events += [(at_ms, f"{c} > {s} . {end - FULL}:{end} ack 1"), (at_ms + 0.01, f"{s} > {c} . ack {end} win 65535")]
    return "\n".join([hosts, *(f"{at_ms:.3f}ms {line}" for at_ms, line in sorted(events, key=lambda event: event[0]))])


def busy_ms(path: Path, text: str) -> dict[int, float]:
    """Return, for each of the first two clients, how long (ms) the bottleneck was busy while this client sent."""
    tables = read(packets.capture(path, text), worth=())
    busy = bottleneck.busy_ns(tables.connections, tables.segments, {(0, True), (1, True)})
    return {conn: ns / MS for (conn, _), ns in busy.items()}


def test_a_line_that_the_data_of_two_hosts_fill_is_busy_all_the_time_for_each(tmp_path: Path) -> None:
    """In each 20 ms, ten segments of one connection and ten of the other arrive, one millisecond apart."""
    busy = busy_ms(tmp_path / "x.pcap", uploads(WINDOW))
    assert busy == {0: pytest.approx(LASTS_MS, rel=0.02), 1: pytest.approx(LASTS_MS, rel=0.02)}


def test_hosts_whose_data_arrive_at_the_same_time_share_no_line(tmp_path: Path) -> None:
    """The segments of both connections arrive at the same times, so each connection has its own bottleneck.

    Each bottleneck is busy for 10 ms of 20.
    """
    busy = busy_ms(tmp_path / "x.pcap", uploads(0.5))
    assert busy == {0: pytest.approx(LASTS_MS / 2, rel=0.02), 1: pytest.approx(LASTS_MS / 2, rel=0.02)}


def test_before_the_line_the_acks_that_return_show_it(tmp_path: Path) -> None:
    """Each connection sends ten segments at once. The ACKs of both connections return a millisecond apart, without a gap."""
    busy = busy_ms(tmp_path / "x.pcap", uploads(WINDOW, at_sender=True))
    assert busy == {0: pytest.approx(LASTS_MS, rel=0.02), 1: pytest.approx(LASTS_MS, rel=0.02)}


@pytest.mark.parametrize(("window", "busy_share"), [(WINDOW, 1.0), (16, 0.5)])
def test_where_acks_of_several_hosts_are_mixed_the_line_is_shared_if_all_data_fill_it(
    tmp_path: Path, window: int, busy_share: float
) -> None:
    """Some ACKs of the other host arrive together and hide the rate. The first host's ACKs show it: one segment per millisecond.

    In 20 ms, the line carries two windows of ten segments. Windows of ten and 16 segments are too much for it, so there is another line.
    """
    busy = busy_ms(tmp_path / "x.pcap", uploads(WINDOW, at_sender=True, others="10.0.0.3", window=window))
    assert busy[0] == pytest.approx(busy_share * LASTS_MS, rel=0.03)


def test_small_segments_on_a_clock_are_no_line(tmp_path: Path) -> None:
    """Every millisecond, one of the two applications writes 100 bytes.

    The applications set this pace, not a bottleneck. One large segment shows how long a full segment is.
    """
    first = 1 + 100 * WINDOW * TURNS
    text = f"{uploads(WINDOW, size=100)}\n{TURN_MS * TURNS + 100}ms C0 > S0 . {first}:{first + FULL} ack 1"
    assert busy_ms(tmp_path / "x.pcap", text) == {}


@pytest.mark.parametrize("count", [2, 4, 5])
def test_connections_that_wait_for_each_ack_are_no_line(tmp_path: Path, count: int) -> None:
    """Segments arrive at even intervals, but each RTT has one segment of each connection. The RTT sets the pace."""
    assert busy_ms(tmp_path / "x.pcap", stop_and_wait(count)) == {}


def test_a_connection_alone_has_no_others(tmp_path: Path) -> None:
    lines = [line for line in uploads(WINDOW).splitlines() if "C1" not in line or line.startswith("host")]
    assert busy_ms(tmp_path / "x.pcap", "\n".join(lines)) == {}


@pytest.mark.parametrize(("apart_ms", "saved_ms"), [(WINDOW, 0), (0.5, LASTS_MS / 2)])
def test_a_larger_window_saves_what_the_line_has_free(tmp_path: Path, apart_ms: float, saved_ms: float) -> None:
    """The window delays each connection for half of the time.

    If the other connection's data fill the line during that time, a larger window saves nothing.
    """
    found = tcptrace_lab.analyze(packets.capture(tmp_path / "x.pcap", uploads(apart_ms))).findings
    limited = [one for one in found if one.id == "receiver-window-limited"]
    assert {one.conn for one in limited} == {0, 1}
    for one in limited:
        assert one.gain_ns is not None
        assert one.gain_ns / MS == pytest.approx(saved_ms, abs=0.05 * LASTS_MS)
