"""Timers of an endpoint: delayed ACK, retransmission, persist (window probe).

BSD's timers use ticks, which all connections of a host share: `tcp_fasttimo` every 200 ms and `tcp_slowtimo` every 500 ms. The first tick
is at the host's `phase_ns`. In other stacks, a timer starts when a segment is sent or received. If a timer is postponed, its old event
stays in the event heap. When this event runs, the timer is not yet due, and the next event is scheduled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcptrace_lab.stacks.events import NS_PER_MS

if TYPE_CHECKING:
    from tcptrace_lab.stacks.endpoint import Endpoint

HEARTBEAT_NS = 200 * NS_PER_MS
"""Period of BSD's `tcp_fasttimo`."""

MAX_BACKOFF = 12
"""Maximum number of doublings of a timer (`TCP_MAXRXTSHIFT`). The timer reaches the stack's maximum timeout before that."""


def next_beat(after_ns: int, period_ns: int, phase_ns: int) -> int:
    """Return the time of the first tick after `after_ns`."""
    return after_ns + period_ns - (after_ns - phase_ns) % period_ns


class Timers:
    """Delayed-ACK, retransmission and persist timers of one endpoint."""

    __slots__ = (
        "_ack_event_ns",
        "_backoff",
        "_persist_due_ns",
        "_persists",
        "_rto_due_ns",
        "_rto_event_ns",
        "_tcp",
        "_timed_ns",
        "_timed_seq",
        "ack_due_ns",
        "rtt_var_ns",
        "srtt_ns",
    )  # fmt: skip

    def __init__(self, tcp: Endpoint) -> None:
        self._tcp = tcp
        self.ack_due_ns: int | None = None
        self._ack_event_ns: int | None = None
        self._rto_due_ns: int | None = None
        self._rto_event_ns: int | None = None
        self._persist_due_ns: int | None = None
        self._persists = self._backoff = 0
        self._timed_seq: int | None = None
        self._timed_ns = 0
        self.srtt_ns = self.rtt_var_ns = 0

    # Delayed ACK

    def delayed_ack(self, due_ns: int | None = None) -> None:
        """Set the delayed-ACK timer to `due_ns`. If `due_ns` is None, set it to the host's next 200 ms tick."""
        tcp = self._tcp
        if due_ns is None:
            due_ns = next_beat(tcp.clock.now_ns, HEARTBEAT_NS, tcp.host.phase_ns)
        self.ack_due_ns = due_ns
        if self._ack_event_ns is None or self._ack_event_ns > due_ns:
            self._ack_event_ns = due_ns
            tcp.clock.at(due_ns, self._ack_event)

    def _ack_event(self) -> None:
        tcp = self._tcp
        now_ns = tcp.clock.now_ns
        if self._ack_event_ns is not None and self._ack_event_ns <= now_ns:
            self._ack_event_ns = None
        if not tcp.ack_owed or self.ack_due_ns is None:
            return
        if self.ack_due_ns > now_ns:
            self.delayed_ack(self.ack_due_ns)
            return
        tcp.receiver.timer(tcp)

    # Retransmission (RFC 6298; BSD's ticks)

    def rto_ns(self) -> int:
        """Return the current RTO, without backoff."""
        stack = self._tcp.stack
        if not self.srtt_ns:
            return stack.first_rto_ns
        return min(max(self.srtt_ns + 4 * self.rtt_var_ns, stack.min_rto_ns), stack.max_rto_ns)

    def sent(self, seq: int, *, again: bool) -> None:
        """Start an RTT measurement and the retransmission timer, unless they are already running.

        Args:
            seq: first sequence number of the segment.
            again: True if the segment is a retransmission. A retransmission cancels the RTT measurement (Karn's algorithm).
        """
        if again:
            self._timed_seq = None
        elif self._timed_seq is None:
            self._timed_seq, self._timed_ns = seq, self._tcp.clock.now_ns
        if self._rto_due_ns is None:
            self._restart()
        self._persist_due_ns = None

    def acked(self, ack: int) -> None:
        """Process an ACK of new data: take the RTT sample, and restart or stop the retransmission timer."""
        tcp = self._tcp
        measured = self._timed_seq is not None and ack > self._timed_seq
        if measured:
            self._sample(tcp.clock.now_ns - self._timed_ns)
            self._timed_seq = None
        if measured or tcp.option_bytes:  # Karn: a retransmitted segment gives an RTT sample only if timestamps show which copy is ACKed
            self._backoff = 0
        if ack >= tcp.snd_max:
            self._rto_due_ns = None
        else:
            self._restart()

    def _sample(self, rtt_ns: int) -> None:
        rtt_ns = max(rtt_ns, 1)
        if not self.srtt_ns:
            self.srtt_ns, self.rtt_var_ns = rtt_ns, rtt_ns // 2
            return
        self.rtt_var_ns += (abs(rtt_ns - self.srtt_ns) - self.rtt_var_ns) // 4
        self.srtt_ns += (rtt_ns - self.srtt_ns) // 8

    def _restart(self) -> None:
        tcp = self._tcp
        self._rto_due_ns = self._due_ns(min(self.rto_ns() << self._backoff, tcp.stack.max_rto_ns))
        self._wake_for_rto()

    def _wake_for_rto(self) -> None:
        """Schedule an event at which the timer expires. If an earlier event is scheduled, that event checks the timer."""
        due_ns = self._rto_due_ns
        if due_ns is not None and (self._rto_event_ns is None or self._rto_event_ns > due_ns):
            self._rto_event_ns = due_ns
            self._tcp.clock.at(due_ns, self._rto, due_ns)

    def _due_ns(self, wait_ns: int) -> int:
        """Return the time at which a timer of `wait_ns` expires.

        A timer with ticks counts whole ticks, and the first tick can come immediately (`tcp_slowtimo`).
        """
        tcp = self._tcp
        due_ns, tick_ns = tcp.clock.now_ns + wait_ns, tcp.stack.tick_ns
        return next_beat(due_ns - tick_ns, tick_ns, tcp.host.phase_ns) if tick_ns else due_ns

    def _rto(self, event_ns: int) -> None:
        if event_ns != self._rto_event_ns:
            return
        tcp = self._tcp
        self._rto_event_ns = None
        if self._rto_due_ns is None or self._rto_due_ns > tcp.clock.now_ns:
            self._wake_for_rto()
            return
        self._backoff = min(self._backoff + 1, MAX_BACKOFF)
        self._timed_seq = None
        self._rto_due_ns = None
        if not tcp.connected:
            tcp.syn_again()
            return
        tcp.cc.timed_out()
        tcp.snd_nxt = tcp.snd_una
        tcp.resend_first()
        tcp.output()
        if self._rto_due_ns is None:
            self._restart()

    # Window probe

    def persist(self) -> None:
        """Start the persist timer if nothing is in flight, because then no ACK will release the queued data."""
        tcp = self._tcp
        if self._persist_due_ns is None and tcp.snd_max == tcp.snd_una:
            self._persists = 0
            self._set_persist()

    def _set_persist(self) -> None:
        """Set the persist timer. Each interval between window probes is twice as long as the previous one, within the stack's bounds.

        Sources: `tcp_setpersist`, `tcp_probe0_when`.
        """
        tcp, stack = self._tcp, self._tcp.stack
        wait_ns = min(max(self.rto_ns() << self._persists, stack.min_persist_ns), stack.max_persist_ns)
        self._persists = min(self._persists + 1, MAX_BACKOFF)
        self._persist_due_ns = self._due_ns(wait_ns)
        tcp.clock.at(self._persist_due_ns, self._persist, self._persist_due_ns)

    def _persist(self, due_ns: int) -> None:
        if self._persist_due_ns != due_ns:
            return
        tcp = self._tcp
        self._set_persist()  # repeats until TCP sends data that advances SND.NXT
        tcp.force = True
        tcp.output()
        tcp.force = False
