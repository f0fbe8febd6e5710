"""Rules of Linux 6.x that make a sender or a receiver wait.

The rules follow these sources; no code is copied: `net/ipv4/tcp_output.c` (`tcp_nagle_test`, `tcp_minshall_check`, `tcp_snd_wnd_test`,
`tcp_event_data_sent`, `tcp_send_delayed_ack`, `__tcp_select_window`), `tcp_input.c` (`tcp_event_data_recv`, `tcp_measure_rcv_mss`,
`__tcp_ack_snd_check`, `tcp_grow_window`), `tcp.c` (`tcp_sendmsg_locked`, `__tcp_cleanup_rbuf`), `tcp_timer.c` (`tcp_delack_timer_handler`).

The model lacks autocorking, TSO deferral, pacing, tail loss probes and RACK. It also lacks buffer auto-tuning. Buffers have the sizes that
SO_SNDBUF and SO_RCVBUF set, without the kernel's overhead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcptrace_lab.stacks.events import NS_PER_MS

if TYPE_CHECKING:
    from tcptrace_lab.stacks.endpoint import Endpoint

JIFFY_NS = 4 * NS_PER_MS
"""Granularity of the delayed-ACK timer: one jiffy (CONFIG_HZ=250)."""

MIN_DELAY_NS = 40 * NS_PER_MS
"""Minimum ACK delay: `TCP_DELACK_MIN` and `TCP_ATO_MIN`."""

MAX_DELAY_NS = 200 * NS_PER_MS
"""Maximum ACK delay: `TCP_DELACK_MAX`."""

MAX_QUICK_ACKS = 16
"""Maximum number of quick ACKs in a row: `TCP_MAX_QUICKACKS`."""

FIRST_MSS_BYTES = 536
"""Receiver's estimate of the sender's MSS before any data arrives (`tcp_initialize_rcv_mss`)."""

SMALL_WINDOW_BYTES = 536
"""`TCP_MSS_DEFAULT`. Only a window larger than this limits segments to half of the window."""

MIN_FULL_BYTES = 48
"""Minimum size of a full segment: the smallest IPv4 MTU (68 bytes) minus a TCP header of 20 bytes (`tcp_bound_to_half_wnd`)."""

FIRST_WINDOW_BYTES = 65_535
"""Upper bound of the advertised window before the window grows."""

SCARCE = 16
"""The window does not open while less than 1/16 of the buffer, or less than a segment, is free (`__tcp_select_window`)."""


class Socket:
    """A write fills the send buffer. Then the application sleeps until a third of the buffer is free (`sk_stream_write_space`)."""

    __slots__ = ("_sleeps", "_tcp")

    def __init__(self, tcp: Endpoint) -> None:
        self._tcp = tcp
        self._sleeps = False

    def room(self) -> int:
        """Return the free bytes of the send buffer. Bytes leave the buffer when they are acknowledged."""
        return self._tcp.unacked_room()

    def blocks(self, space: int, remaining: int, buffered: int) -> bool:  # noqa: ARG002 - required by the Protocol
        """True if no byte is free. A sleeping application stays blocked while less than a third of the buffer is free."""
        self._sleeps = space <= 0 or (self._sleeps and 3 * space < self._tcp.send_buffer)
        return self._sleeps

    def takes(self, space: int, remaining: int) -> tuple[int, int]:
        """Return all bytes that fit the send buffer."""
        return min(space, remaining), 1

    def full(self) -> None:
        """Send small segments before the application sleeps, in spite of Nagle's algorithm (`tcp_push` with `TCP_NAGLE_PUSH`)."""
        tcp = self._tcp
        tcp.pushing = True
        tcp.output()
        tcp.pushing = False


class Sender:
    """Minshall's variant of Nagle's algorithm: a small segment waits only while an earlier small segment is unacknowledged."""

    __slots__ = ("_full_bytes", "_small_end")

    def __init__(self, _tcp: Endpoint) -> None:
        self._small_end = 0
        self._full_bytes = 0

    def _full(self, tcp: Endpoint) -> int:
        """Return the size of a full segment. The size is set at first use, to at most half of the peer's window.

        Sources: `tcp_bound_to_half_wnd` in `tcp_sync_mss`.
        """
        if not self._full_bytes:
            half = tcp.max_window // 2 if tcp.max_window > SMALL_WINDOW_BYTES else tcp.max_window
            self._full_bytes = min(tcp.mss, max(half, MIN_FULL_BYTES))
        return self._full_bytes

    def length(self, tcp: Endpoint, queued: int, usable: int, idle: bool) -> int:  # noqa: ARG002, FBT001 - required by the Protocol
        """Allow a segment only if the windows have room for the whole segment."""
        full = self._full(tcp)
        length = min(queued, full)
        if length > usable:
            tcp.blocked_by = tcp.window_cause()
            return 0
        if length == full or tcp.resending or tcp.pushing:
            return length
        if tcp.cork or (not tcp.no_delay and self._small_end > tcp.snd_una):  # TCP_CORK overrides TCP_NODELAY (`tcp_nagle_check`)
            tcp.blocked_by = "nagle"
            return 0
        return length

    def sent(self, tcp: Endpoint, length: int) -> None:
        """Record the end of a small segment (`tcp_minshall_update`)."""
        if length < self._full(tcp):
            self._small_end = tcp.snd_nxt


class Receiver:
    """Sends ACKs at once at the beginning (quick ACKs).

    Later, an ACK is sent with data, after more than one segment, or after a read that empties the buffer. Otherwise, the delayed-ACK timer
    sends the ACK after at least 40 ms.
    """

    __slots__ = ("_ato_ns", "_interactive", "_pushed", "_quick", "_segment_bytes", "_told", "_window_limit")

    def __init__(self, tcp: Endpoint) -> None:
        self._ato_ns = 0
        self._quick = 0
        self._interactive = False
        self._pushed = 0
        self._segment_bytes = min(tcp.mss, FIRST_MSS_BYTES)
        self._told = 0  # RCV.NXT when the last ACK was sent (rcv_wup)
        self._window_limit = min(tcp.receive_buffer, FIRST_WINDOW_BYTES)

    def arrived(self, tcp: Endpoint, length: int, pushed: bool) -> None:  # noqa: ARG002, FBT001 - required by the Protocol
        """Update the ACK timeout, then send an ACK at once or delay it (`tcp_event_data_recv`, then `__tcp_ack_snd_check`)."""
        now_ns = tcp.clock.now_ns
        if length >= self._segment_bytes:
            self._segment_bytes = min(length, tcp.mss)
            self._window_limit = min(tcp.receive_buffer, self._window_limit + 2 * tcp.mss)
        else:
            self._pushed += 1
        if not self._ato_ns:
            self._enter_quick(tcp)
            self._ato_ns = MIN_DELAY_NS
        else:
            since_ns = now_ns - tcp.last_received_ns
            if since_ns <= MIN_DELAY_NS // 2:
                self._ato_ns = self._ato_ns // 2 + MIN_DELAY_NS // 2
            elif since_ns < self._ato_ns:
                self._ato_ns = min(self._ato_ns // 2 + since_ns, tcp.timers.rto_ns())
            elif since_ns > tcp.timers.rto_ns():
                self._enter_quick(tcp)
        many = tcp.rcv_nxt - self._told > self._segment_bytes and self._free(tcp) >= tcp.advertised - tcp.rcv_nxt
        if many or tcp.quick_ack or (self._quick and not self._interactive):
            tcp.ack_now = True
        else:
            self._delay(tcp)

    def _enter_quick(self, tcp: Endpoint) -> None:
        """Enter quick ACK mode (`tcp_incr_quickack`)."""
        self._quick = max(self._quick, min((tcp.advertised - tcp.rcv_nxt) // (2 * self._segment_bytes) or 2, MAX_QUICK_ACKS))

    def _delay(self, tcp: Endpoint) -> None:
        """Delay the ACK by 40 to 200 ms (`tcp_send_delayed_ack`). If the smoothed RTT is known and above 40 ms, it limits the delay."""
        delay_ns = self._ato_ns
        if delay_ns > MIN_DELAY_NS:
            max_ns = MAX_DELAY_NS if self._interactive or self._pushed else MAX_DELAY_NS * 5 // 2
            if tcp.timers.srtt_ns:
                max_ns = min(max_ns, max(tcp.timers.srtt_ns, MIN_DELAY_NS))
            delay_ns = min(delay_ns, max_ns)
        jiffies = (tcp.clock.now_ns - tcp.host.phase_ns) // JIFFY_NS + -(-min(delay_ns, MAX_DELAY_NS) // JIFFY_NS) + 1
        due_ns = tcp.host.phase_ns + jiffies * JIFFY_NS
        if tcp.ack_owed and tcp.timers.ack_due_ns is not None:
            due_ns = min(due_ns, tcp.timers.ack_due_ns)
        tcp.delay_ack(due_ns)

    def read(self, tcp: Endpoint) -> None:
        """Send an ACK if the read emptied the buffer or doubled the window (`__tcp_cleanup_rbuf`)."""
        drained = not tcp.unread and (self._pushed > 1 or (self._pushed and not self._interactive))
        due = tcp.ack_owed and (tcp.rcv_nxt - self._told > self._segment_bytes or drained)
        now = tcp.advertised - tcp.rcv_nxt
        if not due and 2 * now <= self._window_limit:
            new = self.window(tcp)
            due = new > 0 and new >= 2 * now
        if due:
            tcp.ack_now = True
            tcp.output()

    def update_due(self, tcp: Endpoint) -> bool:  # noqa: ARG002 - required by the Protocol
        """Always False, because only `read` sends window updates."""
        return False

    def _free(self, tcp: Endpoint) -> int:
        return min(tcp.receive_buffer - tcp.unread, self._window_limit)

    def window(self, tcp: Endpoint) -> int:
        """Return the window of `__tcp_select_window`. This window never shrinks, and it does not open while little space is free.

        With window scaling, the window is a multiple of the scale's unit. Without window scaling, it is a multiple of a segment.
        """
        free, current = tcp.receive_buffer - tcp.unread, max(tcp.advertised - tcp.rcv_nxt, 0)
        segment = min(self._segment_bytes, tcp.receive_buffer)
        if free < tcp.receive_buffer // SCARCE or free < segment:
            return current
        free = min(free, self._window_limit)
        if tcp.scale:
            window = -(-free >> tcp.scale) << tcp.scale
        else:
            window = tcp.window_advertised
            if window <= free - segment or window > free:
                window = free // segment * segment
        return max(window, current)

    def sent(self, tcp: Endpoint, length: int) -> None:
        """Update interactive mode and the quick ACK count (`tcp_event_ack_sent`, `tcp_event_data_sent`)."""
        now_ns = tcp.clock.now_ns
        if length and tcp.last_sent_ns < tcp.last_received_ns and now_ns - tcp.last_received_ns < self._ato_ns:
            self._interactive = True
        self._told = tcp.rcv_nxt
        self._pushed = 0
        if self._quick:
            self._quick -= 1
            if not self._quick:
                self._ato_ns = MIN_DELAY_NS

    def timer(self, tcp: Endpoint) -> None:
        """Send the delayed ACK (`tcp_delack_timer_handler`).

        No data has carried the ACK. So interactive mode ends, or the ACK timeout doubles.
        """
        if self._interactive:
            self._interactive = False
            self._ato_ns = MIN_DELAY_NS
        else:
            self._ato_ns = min(self._ato_ns * 2, tcp.timers.rto_ns())
        tcp.ack_now = True
        tcp.output()
