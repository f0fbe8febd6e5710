"""Defines a TCP stack: its parameters, and the rules that distinguish stacks.

A `Stack` is data. Each connection has three small objects with the stack's rules:

- `Socket`: when a write blocks, and how many bytes each pass copies;
- `Sender`: whether TCP can send a segment now;
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
    """Rules by which an application's write is copied to the send buffer."""

    def room(self) -> int:
        """Return the free bytes in the send buffer, possibly negative."""

    def blocks(self, space: int, remaining: int, buffered: int) -> bool:
        """Return whether the write blocks. `remaining` bytes of the call are not yet copied, and `buffered` bytes are in the buffer."""

    def takes(self, space: int, remaining: int) -> tuple[int, int]:
        """Return how many bytes the next pass copies, and how many buffers (mbufs) these bytes fill."""

    def full(self) -> None:
        """Called before the application sleeps for send buffer space."""


class Sender(Protocol):
    """Rules that decide when data is sent: Nagle's algorithm, sender-side silly window avoidance, and similar rules."""

    def length(self, tcp: Endpoint, queued: int, usable: int, idle: bool) -> int:  # noqa: FBT001 - as in the TCP sources
        """Return the bytes of the segment to send now. If no segment can be sent, return 0, and set `tcp.blocked_by` to the cause.

        Args:
            tcp: the endpoint.
            queued: bytes from SND.NXT to the end of the queued data, at least 1.
            usable: bytes that the congestion window and the receive window allow, possibly negative.
            idle: True if nothing was in flight when this call of `output` began.
        """

    def sent(self, tcp: Endpoint, length: int) -> None:
        """Called when a segment with data is sent."""


class Receiver(Protocol):
    """Rules that decide when to send an ACK, and which window to advertise."""

    def arrived(self, tcp: Endpoint, length: int, pushed: bool) -> None:  # noqa: FBT001 - as in the TCP sources
        """Called for in-order data. Requests an immediate ACK (`tcp.ack_now`), or delays the ACK (`tcp.delay_ack`)."""

    def read(self, tcp: Endpoint) -> None:
        """Called when the application has read data."""

    def update_due(self, tcp: Endpoint) -> bool:
        """Return whether a window update is due. Called when `output` has no other segment to send."""

    def window(self, tcp: Endpoint) -> int:
        """Return the window to advertise, in bytes."""

    def sent(self, tcp: Endpoint, length: int) -> None:
        """Called when a segment with an ACK and `length` bytes of data is sent."""

    def timer(self, tcp: Endpoint) -> None:
        """Called when the delayed-ACK timer expires and the ACK is still due."""


@dataclass(frozen=True, slots=True)
class Stack:
    """A TCP implementation.

    Attributes:
        name: the stack's name on the command line.
        follows: sources of the rules: files, functions and documents.
        socket, sender, receiver: constructors of the connection's rules.
        default_buffer_bytes: default size of the send buffer and of the receive buffer.
        initial_segments: initial congestion window, in segments; 0: no congestion control.
        counts_segments: True if the congestion window counts segments instead of bytes (Linux: `tcp_packets_in_flight`).
        recovery: reaction to three duplicate ACKs: `none`, `tahoe` (window of one segment) or `reno` (half the window). With `partial`,
            `reno` is NewReno.
        partial: True if a partial ACK during recovery retransmits the next missing segment at once (RFC 6582).
        round_mss: rounds the MSS.
        round_buffer: rounds a buffer size, given the MSS.
        tick_ns: granularity of the retransmission timer; 0: 1 ns.
        min_rto_ns, first_rto_ns, max_rto_ns: minimum RTO, RTO before the first RTT sample, maximum RTO.
        min_persist_ns, max_persist_ns: bounds of the persist timer, which spaces window probes.
        probe_bytes: data in a window probe. 1: the next byte, which lies beyond the window. 0: no data, and an acknowledged sequence
            number.
        takes_beyond_window: True if data beyond the advertised window is accepted while the receive buffer has space (BSD recomputes
            `rcv_wnd` for each segment).
        option_bytes: length of the timestamp option in each segment, subtracted from the MSS. The option is used if both stacks support it.
        window_scale: shift count of the window scale option; None: no option (windows up to 65,535 bytes).
        output_on_ack: True: every ACK calls `output`. False: an ACK calls `output` only while data is queued.
        idle_restart: after one RTO of idle time the congestion window returns to its initial value (RFC 5681, 4.1).
        holds_small: True if Nagle's algorithm is in use, unless the application disables it.
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
