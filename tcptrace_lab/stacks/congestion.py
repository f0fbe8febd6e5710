"""Congestion control: slow start, congestion avoidance and loss recovery (RFC 5681; Tahoe and Reno as in 4.3BSD and 4.4BSD)."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tcptrace_lab.stacks.endpoint import Endpoint

OPEN = 1 << 30
"""Size in bytes of a congestion window that never limits the sender."""

DUPLICATE_ACKS = 3
"""Number of duplicate ACKs that starts a fast retransmit (RFC 5681, 3.2)."""


class Congestion:
    """The congestion window of one direction.

    Attributes:
        window: cwnd, in bytes.
        threshold: ssthresh, in bytes.
        recovering_until: NewReno ends fast recovery when this sequence number is acknowledged, and Reno at the first ACK of new data; None
            outside fast recovery.
        resent: a fast retransmit of Tahoe is not yet acknowledged.
        timeout: the retransmission timer has expired, and no new data has been acknowledged since.
        after_loss: a loss has reduced the window.
    """

    __slots__ = ("_avoided", "_ends", "_tcp", "after_loss", "recovering_until", "resent", "threshold", "timeout", "window")

    def __init__(self, tcp: Endpoint) -> None:
        self._tcp = tcp
        self.threshold = OPEN
        self.recovering_until: int | None = None
        self.after_loss = self.timeout = self.resent = False
        self._avoided = 0
        self._ends: deque[int] = deque()  # end of each segment in flight; used only if the window counts segments
        self.window = OPEN
        self.start()

    def start(self) -> None:
        """Set the initial window."""
        if self._tcp.stack.initial_segments:
            self.window = self._tcp.stack.initial_segments * self._tcp.mss

    def restart(self) -> None:
        """Reduce the window to its initial value after one RTO of idle time (RFC 5681, 4.1)."""
        stack = self._tcp.stack
        if stack.initial_segments and self.window < OPEN:
            self.window = min(self.window, stack.initial_segments * self._tcp.mss)

    def open(self) -> None:
        """Make the window unlimited, as on a connection that has sent for a long time without loss."""
        self.window = OPEN

    @property
    def _by_segments(self) -> bool:
        return self._tcp.stack.counts_segments and not self.after_loss

    def room(self) -> int:
        """Return how many more bytes the window allows.

        A stack that counts segments counts each segment in flight as a full segment until the first loss.
        """
        tcp = self._tcp
        if self._by_segments:
            return self.window - len(self._ends) * tcp.mss
        return self.window - (tcp.snd_nxt - tcp.snd_una)

    def sent(self, end: int) -> None:
        """Count a sent segment with new data that ends at sequence number `end`."""
        if self._by_segments:
            self._ends.append(end)

    def _passed(self, acked: int) -> int:
        """Return how many bytes count as acknowledged. If the window counts segments, each acknowledged segment counts as one MSS."""
        tcp, ends = self._tcp, self._ends
        if not self._by_segments:
            return acked
        before = len(ends)
        while ends and ends[0] <= tcp.snd_una:
            ends.popleft()
        return (before - len(ends)) * tcp.mss

    @property
    def repairs(self) -> bool:
        """True while a fast retransmit is not fully acknowledged."""
        return self.resent or self.recovering_until is not None

    def cause(self) -> str:
        """Return the ledger's cause for data that the congestion window delays."""
        if self.timeout:
            return "timeout"
        if self.repairs:
            return "loss-recovery"
        return "slow-start" if self.window < self.threshold and not self.after_loss else "congestion-window"

    def acked(self, acked: int) -> None:
        """Process an ACK of `acked` new bytes."""
        tcp = self._tcp
        acked = self._passed(acked)
        self.timeout = self.resent = False
        if self.recovering_until is not None:
            if tcp.stack.partial and tcp.snd_una < self.recovering_until:
                self.window = max(self.window - acked + tcp.mss, tcp.mss)
                tcp.resend_first()
                return
            self.recovering_until = None  # Reno's fast recovery ends with the first ACK of new data (RFC 5681, 3.2)
            self.window = self.threshold
            return
        if self.window >= OPEN:
            return
        mss = tcp.mss
        if self.window < self.threshold:
            self.window += min(acked, mss) if tcp.stack.initial_segments == 1 else acked
        else:
            self._avoided += acked
            if self._avoided >= self.window:
                self._avoided -= self.window
                self.window += mss
        self.window = min(self.window, OPEN)

    def duplicate(self, count: int) -> None:
        """Process the `count`-th consecutive duplicate ACK."""
        tcp = self._tcp
        recovery = tcp.stack.recovery
        if recovery == "none":
            return
        if self.recovering_until is not None:
            self.window += tcp.mss
            tcp.output()
        elif count == DUPLICATE_ACKS:
            self._reduce()
            if recovery == "tahoe":
                self.window = tcp.mss
                self.resent = True
                tcp.resend_first()
            else:
                self.recovering_until = tcp.snd_max
                self.window = self.threshold + DUPLICATE_ACKS * tcp.mss
                tcp.resend_first()

    def timed_out(self) -> None:
        """Process a retransmission timeout."""
        self.recovering_until, self.resent = None, False
        if self._tcp.stack.initial_segments:
            self._reduce()
            self.window = self._tcp.mss
        self.timeout = True

    def _reduce(self) -> None:
        tcp = self._tcp
        self.threshold = max(tcp.in_flight // 2 // tcp.mss, 2) * tcp.mss
        self.after_loss = True
