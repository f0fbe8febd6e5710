"""What makes a stack: figures with units, and the few decisions in which stacks differ.

A `Stack` is data. Its decisions are three small objects per connection: a socket (when a writing program blocks, how much one turn
takes), a sender (may this segment go now?) and a receiver (when is an ACK due, which window is told?). `Endpoint` does what all do alike.
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
    """How a write of a program gets into the send buffer."""

    def room(self) -> int:
        """Bytes of room."""

    def blocks(self, space: int, remaining: int, buffered: int) -> bool:
        """Whether the program must wait, with so many bytes of room, left to write and in the buffer."""

    def takes(self, space: int, remaining: int) -> tuple[int, int]:
        """Bytes that one turn takes, and the buffers (mbufs) that they fill."""

    def full(self) -> None:
        """The program is about to sleep for room."""


class Sender(Protocol):
    """May this go now?"""

    def length(self, tcp: Endpoint, queued: int, usable: int, idle: bool) -> int:  # noqa: FBT001 - as in the sources
        """Bytes of the segment that goes now; 0: none, and `tcp.held` says why.

        Args:
            tcp: the endpoint.
            queued: bytes that were given and never sent, at least 1.
            usable: bytes that windows allow; may be negative.
            idle: whether nothing was in flight when this turn began.
        """

    def sent(self, tcp: Endpoint, length: int) -> None:
        """A segment left."""


class Receiver(Protocol):
    """When is an ACK due?"""

    def arrived(self, tcp: Endpoint, length: int, pushed: bool) -> None:  # noqa: FBT001 - as in the sources
        """Data came in order: ask for an ACK now (`tcp.ack_now`) or later (`tcp.delay_ack`)."""

    def read(self, tcp: Endpoint) -> None:
        """The program took data."""

    def update_due(self, tcp: Endpoint) -> bool:
        """Whether an ACK must go for the sake of its window alone (asked whenever nothing else is sent)."""

    def window(self, tcp: Endpoint) -> int:
        """Bytes to advertise."""

    def sent(self, tcp: Endpoint, length: int) -> None:
        """A segment with an ACK left, with so many bytes of data."""

    def timer(self, tcp: Endpoint) -> None:
        """The delayed ACK's timer has run out with the ACK still owed."""


@dataclass(frozen=True, slots=True)
class Stack:
    """A TCP implementation.

    Attributes:
        name: as users write it.
        follows: its sources: files and functions, documents.
        socket, sender, receiver: make the connection's decisions.
        default_buffer_bytes: of both buffers.
        initial_segments: congestion window at the start, in segments; 0: there is none.
        counts_segments: the congestion window is so many segments, however small (Linux: `tcp_packets_in_flight`), not so many bytes.
        recovery: after three duplicate ACKs: `none`, `tahoe` (from one segment on) or `reno` (from half on; NewReno with `partial`).
        partial: a partial ACK during recovery resends the next hole at once (RFC 6582).
        round_mss: what becomes of the MSS.
        round_buffer: what becomes of a buffer, given the MSS.
        tick_ns: retransmission timers run in such steps; 0: in nanoseconds.
        least_rto_ns, first_rto_ns, most_rto_ns: bounds of the retransmission timer, and its value before a round trip is known.
        least_persist_ns, most_persist_ns: bounds of the time before a closed window is probed, and before it is probed again.
        probe_bytes: of such a probe: 1, beyond the window; 0: none, from before it.
        takes_beyond_window: data beyond the window that it told goes in as far as there is room (BSD reckons `rcv_wnd` anew for each
            segment); else it is refused.
        option_bytes: of each segment's header (timestamps), where both stacks want them; taken from the MSS.
        window_scale: shift of the windows that it tells; None: no option (at most 65,535 bytes).
        output_on_ack: every ACK makes it look for something to send; else only while data waits.
        idle_restart: after an idle time of one RTO the congestion window is the initial one again.
        holds_small: it follows Nagle's rule where that is not switched off.
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
    least_rto_ns: int = NS_PER_S
    first_rto_ns: int = 6 * NS_PER_S
    most_rto_ns: int = 64 * NS_PER_S
    least_persist_ns: int = 5 * NS_PER_S
    most_persist_ns: int = 60 * NS_PER_S
    probe_bytes: int = 1
    takes_beyond_window: bool = True
    option_bytes: int = 0
    window_scale: int | None = None
    output_on_ack: bool = True
    idle_restart: bool = False
    holds_small: bool = True
