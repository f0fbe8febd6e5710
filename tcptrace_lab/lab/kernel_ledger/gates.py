"""Determines which gates of a sender are closed. A gate is a test in the kernel's `tcp_write_xmit` (net/ipv4/tcp_output.c).

Linux 6.18 makes these tests in this order: pacing, congestion window, receiver's window, Nagle or deferral, small queue. If all bytes are
sent, the gate is the reason why the application does not write. Possible reasons are a full send buffer, a limit of the application itself,
and reasons that the kernel does not record.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcptrace_lab.lab.kernel_ledger.sockets import CLOSE_WAIT, FIN_SENT, OPENING, ahead

if TYPE_CHECKING:
    from tcptrace_lab.lab.kernel_ledger.sockets import Event

HANDSHAKE, CLOSING = "handshake", "closing"
TIMEOUT = "timeout"
"""The sender waits for its retransmission timer, and no ACK stops the timer before it expires."""
TAIL_PROBE = "tail-probe"
"""The sender waits for the timer of a tail loss probe, and no ACK stops the timer before it expires."""
TIMERS = frozenset({TIMEOUT, TAIL_PROBE})
RECOVERY = "loss-recovery"
PACING, CONGESTION_WINDOW, ZERO_WINDOW, RECEIVER_WINDOW = "pacing", "congestion-window", "zero-window", "receiver-window"
NAGLE, CORK = "nagle", "cork"
DEFERRED_BY_WINDOW, DEFERRED_BY_CONGESTION_WINDOW = "deferral-window", "deferral-congestion-window"
"""TSO deferral: the window has room for a segment, but TCP waits for more room. The name contains the smaller of the two windows."""
SMALL_QUEUE = "small-queue"
SEND_BUFFER = "send-buffer"
OWN_BOUND = "own-bound"
"""The application limits itself: before it writes more, it asks for its unacknowledged bytes (SIOCOUTQ)."""
NOTHING = "nothing-to-send"
OPEN = "open"
"""Bytes are unsent, and no gate is closed. The kernel is about to send the bytes, or waits for the processor."""

GATES = (
    *(HANDSHAKE, CLOSING, TIMEOUT, TAIL_PROBE, RECOVERY, PACING, CONGESTION_WINDOW, ZERO_WINDOW, RECEIVER_WINDOW, NAGLE, CORK),
    *(DEFERRED_BY_WINDOW, DEFERRED_BY_CONGESTION_WINDOW, SMALL_QUEUE, SEND_BUFFER, OWN_BOUND, NOTHING, OPEN),
)

# Linux: include/net/tcp.h, include/net/sock.h, enum tcp_ca_state of include/uapi/linux/tcp.h
TCP_NAGLE_OFF, TCP_NAGLE_CORK, TCP_NAGLE_PUSH = 1, 2, 4
SK_PACING_NEEDED = 1
CA_RECOVERY, CA_LOSS = 3, 4
# struct record in tracer.h
IS_LAST, HAS_FIN = 1, 2

TSO_WIN_DIVISOR = 3
"""Linux: net.ipv4.tcp_tso_win_divisor."""


def closed(event: Event, at_ns: int) -> tuple[str, ...]:
    """Return the gates that are closed at `at_ns` if the sender has the state of `event`."""
    if event.state in OPENING:
        return (HANDSHAKE,)
    recovering = (RECOVERY,) if event.ca_state >= CA_RECOVERY else ()
    only_fin = event.unsent_bytes == 1 and event.unsent_skb_bytes == 0 and event.unsent_marks & HAS_FIN
    if event.unsent_bytes > 0 and not only_fin:
        return (*recovering, *_held(event, at_ns)) or (OPEN,)
    if recovering:
        return recovering
    if event.state in FIN_SENT or event.state == CLOSE_WAIT:
        return (CLOSING,)
    return (SEND_BUFFER,) if event.no_space else (NOTHING,)


def _held(event: Event, at_ns: int) -> tuple[str, ...]:
    """Return the closed gates that keep the application's bytes from the network, in the kernel's order."""
    tests = (pacing, congestion_window, window, nagle, small_queue)
    gates = tuple(gate for test in tests if (gate := test(event, at_ns)))
    if NAGLE in gates and event.no_space:  # if the buffer had space, the application would fill the partial segment
        gates = (*gates, SEND_BUFFER)
    return gates or tuple(filter(None, [deferral(event)]))


def pacing(event: Event, at_ns: int) -> str | None:
    """Return the gate if pacing does not allow the next transmission yet (`tcp_pacing_check`).

    This gate opens when the pacing timer expires, even if another gate is still closed.
    """
    return PACING if event.pacing_status == SK_PACING_NEEDED and event.paced_until_ns > at_ns else None


def congestion_window(event: Event, _at_ns: int = 0) -> str | None:
    """Return the gate if as many segments are in flight as the congestion window allows (`tcp_cwnd_test`)."""
    return CONGESTION_WINDOW if event.packets_in_flight >= event.snd_cwnd else None


def window(event: Event, _at_ns: int = 0) -> str | None:
    """Return the gate if the next segment ends beyond the receiver's window (`tcp_snd_wnd_test`)."""
    needed = min(event.unsent_skb_bytes, event.mss_cache)
    if needed <= _room(event):
        return None
    return RECEIVER_WINDOW if event.snd_wnd else ZERO_WINDOW


def nagle(event: Event, _at_ns: int = 0) -> str | None:
    """Return the gate if Nagle's algorithm delays the last segment of the queue (`tcp_nagle_test`).

    The segment is partial, and an earlier small segment is unacknowledged (Minshall).
    """
    partial = event.unsent_skb_bytes < event.mss_cache and bool(event.unsent_marks & IS_LAST)
    if not partial or event.unsent_marks & HAS_FIN or event.nonagle & TCP_NAGLE_PUSH:
        return None
    if event.nonagle & TCP_NAGLE_CORK:
        return CORK
    small_pending = ahead(event.snd_sml, event.snd_una) > 0 and ahead(event.snd_sml, event.snd_nxt) <= 0
    return NAGLE if not event.nonagle and event.packets_out and small_pending else None


def deferral(event: Event) -> str | None:
    """Return the gate that TSO deferral closes: less than a third of the window (receive or congestion) is free.

    The condition is that of `tcp_tso_should_defer`, without its time conditions.
    """
    if event.unsent_skb_bytes <= event.mss_cache or event.ca_state >= CA_RECOVERY:
        return None
    congestion = (event.snd_cwnd - event.packets_in_flight) * event.mss_cache
    limit = min(_room(event), congestion)
    if TSO_WIN_DIVISOR * limit >= min(event.snd_wnd, event.snd_cwnd * event.mss_cache):
        return None
    return DEFERRED_BY_CONGESTION_WINDOW if congestion < _room(event) else DEFERRED_BY_WINDOW


def small_queue(event: Event, _at_ns: int = 0) -> str | None:
    """Return the name of this gate if too much data of the socket waits in queues of the sending host (`tcp_small_queue_check`)."""
    return SMALL_QUEUE if event.throttled else None


def _room(event: Event) -> int:
    """Return how many more bytes the receiver's window allows."""
    return ahead(event.snd_una + event.snd_wnd, event.snd_nxt)
