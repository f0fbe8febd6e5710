"""What is simulated: two hosts, their stacks, what their programs do, and the path between them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from tcptrace_lab.stacks.events import NS_PER_S
from tcptrace_lab.stacks.path import Link

if TYPE_CHECKING:
    from tcptrace_lab.stacks.stack import Stack


@dataclass(frozen=True, slots=True)
class Write:
    """Give the socket some bytes.

    Attributes:
        size_bytes: of the message.
        call_bytes: of one call of `write`; 0: the whole message in one.
    """

    size_bytes: int
    call_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Read:
    """Take bytes until a message is there.

    Attributes:
        size_bytes: of the message; 0: until the peer closes.
        call_bytes: most that one call of `read` takes; 0: as much as is still missing.
    """

    size_bytes: int = 0
    call_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Think:
    """Do something else for a time."""

    for_ns: int


@dataclass(frozen=True, slots=True)
class WaitUntil:
    """Do nothing before a time of the run; nothing if it has passed (an alarm)."""

    at_ns: int


@dataclass(frozen=True, slots=True)
class Flush:
    """Do nothing before all that was written has left, or, if so asked, before it was acknowledged."""

    acknowledged: bool = False


@dataclass(frozen=True, slots=True)
class Set:
    """Set an option of the socket: `no_delay`, `cork` or `quick_ack`."""

    option: str
    on: bool = True


@dataclass(frozen=True, slots=True)
class Mark:
    """Note the time under a name (`Run.marks`)."""

    name: str


@dataclass(frozen=True, slots=True)
class Repeat:
    """The same steps, several times."""

    steps: tuple[Step, ...]
    times: int


@dataclass(frozen=True, slots=True)
class Close:
    """Say that no more is written."""


Step: TypeAlias = "Write | Read | Think | WaitUntil | Flush | Set | Mark | Repeat | Close"


@dataclass(frozen=True, slots=True)
class Costs:
    """What a host's processor needs, in nanoseconds, and per 1,024 bytes where so named. Nothing by default.

    Attributes:
        write_call_ns, read_call_ns: of one call, without its bytes.
        copy_in_ns_per_kib, copy_out_ns_per_kib: from the program to the socket's buffer, and back.
        buffer_ns: of each buffer (mbuf) that a write fills.
        wakeup_ns: from the interrupt that wakes a program until it runs.
        data_out_ns, data_out_ns_per_kib: to send a segment with data: protocol, checksum, driver.
        ack_out_ns: to send one without.
        data_in_ns, data_in_ns_per_kib: to receive a segment with data.
        ack_in_ns: to receive one without.
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
"""A processor that needs no time."""


@dataclass(frozen=True, slots=True)
class Host:
    """One end of the connection.

    Attributes:
        stack: how its TCP decides.
        send_buffer_bytes, receive_buffer_bytes: as the program asks for them; 0: the stack's default.
        no_delay, cork, quick_ack: options of its socket at the start.
        costs: of its processor.
        phase_ns: when its timers that beat (200 ms, 500 ms, jiffies) do so first.
        program: what it does, once connected; it closes at the end.
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
    """Everything that a run depends on.

    Attributes:
        client, server: the ends; the client connects.
        forward, backward: the path from the client to the server and back.
        mss_bytes: that the path allows, without options.
        open_window: the connection has carried so much that no congestion window binds before a loss.
        until_ns: the run ends then at the latest.
    """

    client: Host
    server: Host
    forward: Link = field(default_factory=Link)
    backward: Link = field(default_factory=Link)
    mss_bytes: int = 1460
    open_window: bool = False
    until_ns: int = 3_600 * NS_PER_S
