"""Determines what limits a sender. The evidence is the state of its kernel, its applications and the path's log, but no capture.

TCP_INFO of the sending socket is read every millisecond. The sender's state since the previous reading follows from the first row that
applies:

    unsent bytes, and the window has no room for the next segment        receiver's window
    unsent bytes, and the kernel is in loss recovery                     loss
    unsent bytes, and the window has less room than Linux waits for      receiver's window (as in the kernel's `rwnd_limited`)
    at least a full segment of unsent bytes                              congestion window (*)
    unsent bytes, and the congestion window is used up                   congestion window (*)
    less than a full segment of unsent bytes, and bytes in flight        Nagle's algorithm
    no unsent bytes, and the kernel is in loss recovery                  loss
    no unsent bytes, bytes in flight, and the writer is at its limit     send buffer
    no unsent bytes, and the server sleeps before it answers             peer (it has read everything, and possibly not yet ACKed it)
    nothing in flight, and the client sleeps                             application

(*) The congestion window counts as slow start until a loss first reduces it. After this reduction, the congestion window counts as loss.
If no row applies, bytes are in transit. While the bottleneck is busy, four states count as network: bytes in transit, slow start, loss and
send buffer. This module needs Linux with reno or cubic, because TCP_INFO does not show what limits a paced sender.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_right
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tcptrace_lab.lab.hosts import tcp_info

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator, Sequence

    from tcptrace_lab.lab.hosts.sockets import Pair
    from tcptrace_lab.lab.networks.path import PathLog

PERIOD_S = 0.001
REPAIRING = ("Recovery", "Loss")
TSO_WIN_DIVISOR = 3  # Linux: net.ipv4.tcp_tso_win_divisor
MIN_TSO_SEGMENTS = 2  # Linux: net.ipv4.tcp_min_tso_segs
TSO_RTT_LOG = 9  # Linux: net.ipv4.tcp_tso_rtt_log
PACING_SHIFT = 10  # Linux: sk_pacing_shift, net/core/sock.c: one piece contains the data of about 1 ms at the pacing rate
LARGEST_TSO_BYTES = 65_536 - 321  # Linux: GSO_LEGACY_MAX_SIZE - MAX_TCP_HEADER - 1, sk_setup_caps
NO_THRESHOLD = 0x7FFFFFFF  # Linux: TCP_INFINITE_SSTHRESH

WINDOW, LOSS, SLOW_START, NETWORK, NAGLE, SEND_BUFFER = "receiver-window", "loss", "slow-start", "network", "nagle", "send-buffer"
APPLICATION, PEER, ON_THE_WAY = "application", "peer", ""

Spans = list[tuple[int, int]]


@dataclass(slots=True)
class Witness:
    """Readings of one connection as (monotonic ns, raw TCP_INFO), and the recorded intervals of its applications.

    Attributes:
        ahead_ns: how many ns the capture clock is ahead of the monotonic clock.
    """

    pair: Pair
    ahead_ns: int = 0
    readings: list[tuple[int, bytes]] = field(default_factory=list)

    def truth(self, start_ns: int, end_ns: int, *, nodelay: bool, forward: PathLog | None) -> dict[str, int]:
        """Return the total duration of each state in ns.

        Args:
            start_ns: start of the interval, on the capture clock.
            end_ns: end of the interval.
            nodelay: True if TCP_NODELAY was set all the time, so that Nagle's algorithm delayed nothing.
            forward: log of the data's path, if it has a bottleneck.
        """
        spent = {what: _joined([(start, end) for name, start, end in self.pair.spent if name == what]) for what in _SPENT}
        busy = _busy(forward) if forward is not None else []
        sums: dict[str, int] = {}
        for (before_ns, _), (now_ns, raw) in zip(self.readings, self.readings[1:], strict=False):
            lasted = min(now_ns + self.ahead_ns, end_ns) - max(before_ns + self.ahead_ns, start_ns)
            if lasted <= 0:
                continue
            state = _state(tcp_info.decode(raw), {what: _within(spans, now_ns) for what, spans in spent.items()}, nodelay=nodelay)
            if state in {SLOW_START, LOSS, SEND_BUFFER, ON_THE_WAY} and _within(busy, now_ns):
                state = NETWORK
            sums[state] = sums.get(state, 0) + lasted
        return sums


_SPENT = (APPLICATION, PEER, "blocked")


def _state(info: dict[str, Any], doing: dict[str, bool], *, nodelay: bool) -> str:
    in_flight = (
        info["tcpi_bytes_sent"] - info["tcpi_bytes_retrans"] - max(info["tcpi_bytes_acked"] - 1, 0)
    )  # `tcpi_bytes_acked` counts the SYN as one byte
    if info["tcpi_notsent_bytes"]:
        return _limit(info, in_flight, nodelay=nodelay)
    if info["tcpi_ca_state"] in REPAIRING:
        return LOSS
    if in_flight > 0 and doing["blocked"]:
        return SEND_BUFFER
    if doing[PEER]:
        return PEER
    return APPLICATION if in_flight <= 0 and doing[APPLICATION] else ON_THE_WAY


def _limit(info: dict[str, Any], in_flight: int, *, nodelay: bool) -> str:
    waiting, full = info["tcpi_notsent_bytes"], info["tcpi_snd_mss"]
    if info["tcpi_snd_wnd"] - in_flight < min(full, waiting):
        return WINDOW
    if info["tcpi_ca_state"] in REPAIRING:
        return LOSS
    if in_flight > 0 and _deferred(info, in_flight):
        return WINDOW
    if waiting >= full or info["tcpi_unacked"] >= info["tcpi_snd_cwnd"]:
        return LOSS if _reduced(info) else SLOW_START
    return NAGLE if in_flight > 0 and not nodelay else ON_THE_WAY


def _reduced(info: dict[str, Any]) -> bool:
    """Return whether a loss has reduced the congestion window.

    A reduction by a loss sets ssthresh. A spurious retransmit, for example a tail loss probe, does not reduce the congestion window. After
    an idle period, the window is small without a loss, because it restarts at its initial value (RFC 5681, 4.1).
    """
    return bool(info["tcpi_total_retrans"]) and bool(info["tcpi_snd_ssthresh"] < NO_THRESHOLD)


def _deferred(info: dict[str, Any], in_flight: int) -> bool:
    """Return whether Linux waits until the receiver's window has more room (`tcp_tso_should_defer`, net/ipv4/tcp_output.c).

    The kernel counts this time as `rwnd_limited`. If the congestion window has less room, it is the limit, and the result is False. The
    kernel also defers the last bytes of the send queue, but does not count that time.
    """
    full = info["tcpi_snd_mss"]
    room, congestion = info["tcpi_snd_wnd"] - in_flight, (info["tcpi_snd_cwnd"] - info["tcpi_unacked"]) * full
    whole = min(info["tcpi_snd_wnd"], info["tcpi_snd_cwnd"] * full)
    return bool(room <= congestion and room < _one_piece(info) * full and TSO_WIN_DIVISOR * room < whole)


def _one_piece(info: dict[str, Any]) -> int:
    """Return the maximum number of segments that Linux sends in one piece (`tcp_tso_autosize`).

    If the window has room for that many segments, Linux does not wait for more room.
    """
    shift = min(info["tcpi_min_rtt"] >> TSO_RTT_LOG, LARGEST_TSO_BYTES.bit_length())
    paced = (info["tcpi_pacing_rate"] >> PACING_SHIFT) + (LARGEST_TSO_BYTES >> shift)
    segments: int = min(paced, LARGEST_TSO_BYTES) // info["tcpi_snd_mss"]
    return max(segments, MIN_TSO_SEGMENTS)


@contextmanager
def witnessing(pair: Pair) -> Iterator[Witness]:
    """Read the client's TCP_INFO periodically during the block."""
    witness, stop = Witness(pair, time.time_ns() - time.monotonic_ns()), threading.Event()
    thread = threading.Thread(target=_watch, args=(pair.client, witness.readings, stop), name="witness", daemon=True)
    thread.start()
    try:
        yield witness
    finally:
        stop.set()
        thread.join()


def _watch(client: socket.socket, readings: list[tuple[int, bytes]], stop: threading.Event) -> None:
    while not stop.wait(PERIOD_S):
        readings.append((time.monotonic_ns(), tcp_info.raw(client)))


def _busy(log: PathLog) -> Spans:
    """Return the intervals in which packets waited for the bottleneck: from the arrival of each packet there until it is sent."""
    delay_ns = min((entry.due_ns - entry.arrived_ns for entry in log.entries if entry.due_ns is not None), default=0)
    waits = [(entry.arrived_ns, entry.due_ns - delay_ns) for entry in log.entries if entry.due_ns is not None]
    return _joined([(start, end) for start, end in waits if end > start])


def _joined(spans: Sequence[tuple[int, int]]) -> Spans:
    joined: Spans = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(joined[-1][1], end)
        else:
            joined.append((start, end))
    return joined


def _within(spans: Spans, moment_ns: int) -> bool:
    at = bisect_right(spans, (moment_ns, moment_ns)) - 1
    return at >= 0 and spans[at][0] <= moment_ns < spans[at][1]
