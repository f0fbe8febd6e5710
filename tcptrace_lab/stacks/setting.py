"""The input of a simulation: two hosts, their stacks, what their applications do, and the path between them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from tcptrace_lab.stacks.events import NS_PER_S
from tcptrace_lab.stacks.path import Link

if TYPE_CHECKING:
    from tcptrace_lab.stacks.stack import Stack


@dataclass(frozen=True, slots=True)
class Write:
    """Write a message to the socket.

    Attributes:
        size_bytes: length of the message.
        call_bytes: bytes per call of `write`; 0: the whole message in one call.
    """

    size_bytes: int
    call_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Read:
    """Read until a whole message has arrived.

    Attributes:
        size_bytes: length of the message; 0: read until the peer closes.
        call_bytes: maximum bytes per call of `read`; 0: all remaining bytes of the message.
    """

    size_bytes: int = 0
    call_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Think:
    """Neither read nor write for a given time."""

    for_ns: int


@dataclass(frozen=True, slots=True)
class WaitUntil:
    """Wait until a given time of the run. There is no wait if this time has passed."""

    at_ns: int


@dataclass(frozen=True, slots=True)
class Flush:
    """Wait until all written bytes are sent. With `acknowledged`, wait until the peer has acknowledged them."""

    acknowledged: bool = False


@dataclass(frozen=True, slots=True)
class Set:
    """Set a socket option: `no_delay`, `cork` or `quick_ack`."""

    option: str
    on: bool = True


@dataclass(frozen=True, slots=True)
class Mark:
    """Record the current time under a name (`Side.marks`)."""

    name: str


@dataclass(frozen=True, slots=True)
class Repeat:
    """Run the steps several times."""

    steps: tuple[Step, ...]
    times: int


@dataclass(frozen=True, slots=True)
class Close:
    """Shut down writing: TCP sends a FIN after the queued bytes."""


Step: TypeAlias = "Write | Read | Think | WaitUntil | Flush | Set | Mark | Repeat | Close"


@dataclass(frozen=True, slots=True)
class Costs:
    """Processor time of a host's operations, in nanoseconds, or in nanoseconds per 1,024 bytes (`_per_kib`). The defaults are 0.

    Attributes:
        write_call_ns, read_call_ns: one call, without copying.
        copy_in_ns_per_kib: copying from the application to the socket buffer.
        copy_out_ns_per_kib: copying from the socket buffer to the application.
        buffer_ns: each buffer (mbuf) that a write fills.
        wakeup_ns: from the interrupt that wakes an application until the application runs.
        data_out_ns, data_out_ns_per_kib: sending a segment with data: protocol, checksum and driver.
        ack_out_ns: sending a segment without data.
        data_in_ns, data_in_ns_per_kib: receiving a segment with data.
        ack_in_ns: receiving a segment without data.
    """

    write_call_ns: int = 0
    read_call_ns: int = 0
    copy_in_ns_per_kib: int = 0
    copy_out_ns_per_kib: int = 0
    buffer_ns: int = 0
    wakeup_ns: int = 0
    data_out_ns: int = 0
    data_out_ns_per_kib: int = 0
    ack_out_ns: int = 0
    data_in_ns: int = 0
    data_in_ns_per_kib: int = 0
    ack_in_ns: int = 0


FREE = Costs()
"""Costs of a processor whose operations take no time."""


@dataclass(frozen=True, slots=True)
class Host:
    """One end of the connection.

    Attributes:
        stack: the TCP implementation.
        send_buffer_bytes, receive_buffer_bytes: sizes that the application requests; 0: the stack's default.
        no_delay, cork, quick_ack: socket options at the start.
        costs: processor time per operation.
        phase_ns: time of the first tick of the host's periodic timers (200 ms, 500 ms, jiffies).
        program: what the application does after connecting. The application closes at the end of the program.
    """

    stack: Stack
    send_buffer_bytes: int = 0
    receive_buffer_bytes: int = 0
    no_delay: bool = False
    cork: bool = False
    quick_ack: bool = False
    costs: Costs = FREE
    phase_ns: int = 0
    program: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True)
class Setting:
    """The complete input of a simulation run.

    Attributes:
        client, server: the hosts; the client connects.
        forward, backward: the path from the client to the server, and from the server to the client.
        mss_bytes: MSS that both SYNs announce. It follows from the path's MTU, without subtracting TCP options.
        no_slow_start: True if the congestion window does not limit the sender before the first loss, as on a long-lived connection.
        until_ns: time limit of the run.
    """

    client: Host
    server: Host
    forward: Link = field(default_factory=Link)
    backward: Link = field(default_factory=Link)
    mss_bytes: int = 1460
    no_slow_start: bool = False
    until_ns: int = 3_600 * NS_PER_S
