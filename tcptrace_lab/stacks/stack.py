"""What defines a TCP stack: its parameters, and the rules in which stacks differ.

A `Stack` is data. Three small objects per connection hold its rules:

- `Socket`: when a write blocks, and how many bytes one turn copies;
- `Sender`: whether a segment may leave now;
- `Receiver`: when to send an ACK, and which window to advertise.

`Endpoint` is the TCP that all stacks share.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from tcptrace_lab.stacks.events import NS_PER_MS, NS_PER_S
from tcptrace_lab.stacks.rounding import same

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcptrace_lab.stacks.endpoint import Endpoint


class Socket(Protocol):
    """How an application's write enters the send buffer."""

    def room(self) -> int:
        """Free bytes in the send buffer; may be negative."""

    def blocks(self, space: int, remaining: int, buffered: int) -> bool:
        """Whether the write blocks: `space` bytes free, `remaining` bytes of the call to copy, `buffered` bytes in the send buffer."""

    def takes(self, space: int, remaining: int) -> tuple[int, int]:
        """Bytes that one turn copies, and the buffers (mbufs) that they fill."""

    def full(self) -> None:
        """Called before the application sleeps for send buffer space."""


class Sender(Protocol):
    """When data may leave: Nagle's algorithm, sender-side silly window avoidance, and similar rules."""

    def length(self, tcp: Endpoint, queued: int, usable: int, idle: bool) -> int:  # noqa: FBT001 - as in the TCP sources
        """Bytes of the segment to send now; 0: none, and `tcp.blocked_by` names the cause.

        Args:
            tcp: the endpoint.
            queued: bytes from SND.NXT to the end of the queued data, at least 1.
            usable: bytes that the congestion window and the receive window allow; may be negative.
            idle: whether nothing was in flight when this call of `output` began.
        """

    def sent(self, tcp: Endpoint, length: int) -> None:
        """Called when a segment with data leaves."""


class Receiver(Protocol):
    """When to send an ACK, and which window to advertise."""

    def arrived(self, tcp: Endpoint, length: int, pushed: bool) -> None:  # noqa: FBT001 - as in the TCP sources
        """Called for in-order data; requests an ACK at once (`tcp.ack_now`) or a delayed one (`tcp.delay_ack`)."""

    def read(self, tcp: Endpoint) -> None:
        """Called when the application has read data."""

    def update_due(self, tcp: Endpoint) -> bool:
        """Whether a window update is due; called whenever `output` sends nothing else."""

    def window(self, tcp: Endpoint) -> int:
        """Window to advertise, in bytes."""

    def sent(self, tcp: Endpoint, length: int) -> None:
        """Called when a segment leaves; it carries an ACK and `length` bytes of data."""

    def timer(self, tcp: Endpoint) -> None:
        """Called when the delayed-ACK timer expires and the ACK is still due."""


@dataclass(frozen=True, slots=True)
class Stack:
    """A TCP implementation.

    Attributes:
        name: the stack's name on the command line.
        follows: sources: files and functions, documents.
        socket, sender, receiver: constructors of the connection's rules.
        default_buffer_bytes: default size of the send buffer and of the receive buffer.
        initial_segments: initial congestion window, in segments; 0: no congestion control.
        counts_segments: the congestion window counts segments of any size (Linux: `tcp_packets_in_flight`), not bytes.
        recovery: reaction to three duplicate ACKs: `none`, `tahoe` (window of one segment) or `reno` (half the window; NewReno with
            `partial`).
        partial: a partial ACK during recovery retransmits the next missing segment at once (RFC 6582).
        round_mss: rounds the MSS.
        round_buffer: rounds a buffer size, given the MSS.
        tick_ns: granularity of the retransmission timer; 0: 1 ns.
        min_rto_ns, first_rto_ns, max_rto_ns: minimum RTO, RTO before the first RTT sample, maximum RTO.
        min_persist_ns, max_persist_ns: bounds of the persist timer, which spaces window probes.
        probe_bytes: data in a window probe. 1: the next byte, beyond the window; 0: none, with an already acknowledged sequence number.
        takes_beyond_window: accepts data beyond the advertised window if the receive buffer has space (BSD recomputes `rcv_wnd` for each
            segment); otherwise refuses it.
        option_bytes: timestamp option in each segment, subtracted from the MSS; used if both stacks support it.
        window_scale: shift count of the window scale option; None: no option (windows up to 65,535 bytes).
        output_on_ack: every ACK calls `output`; otherwise an ACK does so only while data is queued.
        idle_restart: after one RTO of idle time the congestion window returns to its initial value (RFC 5681, 4.1).
        holds_small: uses Nagle's algorithm unless the application disables it.
    """

    name: str
    follows: str
    socket: Callable[[Endpoint], Socket]
    sender: Callable[[Endpoint], Sender]
    receiver: Callable[[Endpoint], Receiver]
    default_buffer_bytes: int
    initial_segments: int = 1
    counts_segments: bool = False
    recovery: str = "tahoe"
    partial: bool = False
    round_mss: Callable[[int, int], int] = same
    round_buffer: Callable[[int, int], int] = same
    tick_ns: int = 500 * NS_PER_MS
    min_rto_ns: int = NS_PER_S
    first_rto_ns: int = 6 * NS_PER_S
    max_rto_ns: int = 64 * NS_PER_S
    min_persist_ns: int = 5 * NS_PER_S
    max_persist_ns: int = 60 * NS_PER_S
    probe_bytes: int = 1
    takes_beyond_window: bool = True
    option_bytes: int = 0
    window_scale: int | None = None
    output_on_ack: bool = True
    idle_restart: bool = False
    holds_small: bool = True
