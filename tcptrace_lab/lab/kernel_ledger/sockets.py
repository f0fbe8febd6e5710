"""Groups the tracer's records by socket and connection, and pairs the two sockets of each connection."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, NamedTuple

from tcptrace_lab.lab.kernel_ledger.events import STATE

if TYPE_CHECKING:
    from collections.abc import Iterable

    import polars as pl

# The TCP states in the order of their numbers in Linux (include/net/tcp_states.h).
ESTABLISHED, SYN_SENT, SYN_RECV, FIN_WAIT1, FIN_WAIT2, TIME_WAIT, CLOSED, CLOSE_WAIT, LAST_ACK, LISTEN, CLOSING = range(1, 12)
OPENING = frozenset({SYN_SENT, SYN_RECV})
FIN_SENT = frozenset({FIN_WAIT1, FIN_WAIT2, TIME_WAIT, CLOSED, LAST_ACK, CLOSING})

SEQ_SPACE, HALF_SEQ_SPACE = 1 << 32, 1 << 31


def ahead(one: int, other: int) -> int:
    """Return how far sequence number `one` is ahead of `other`. The result is negative if `one` is behind."""
    return (one - other + HALF_SEQ_SPACE) % SEQ_SPACE - HALF_SEQ_SPACE


@dataclass(frozen=True, slots=True)
class Event:
    """One record of the tracer: what happened to a socket, and the socket's state at that moment.

    The fields have the names of `events.SCHEMA` and of the kernel.
    """

    time_ns: int
    kind: str
    state: int = ESTABLISHED
    ca_state: int = 0
    detail_seq: int = 0
    detail_ack: int = 0
    detail_bytes: int = 0
    tcp_flags: int = 0
    write_seq: int = 0
    snd_nxt: int = 0
    snd_una: int = 0
    snd_wnd: int = 0
    snd_cwnd: int = 10
    ssthresh: int = 0x7FFFFFFF
    packets_out: int = 0
    sacked_out: int = 0
    lost_out: int = 0
    retrans_out: int = 0
    mss_cache: int = 1_448
    snd_sml: int = 0
    unsent_skb_bytes: int = 0
    unsent_marks: int = 0
    nonagle: int = 0
    pacing_status: int = 0
    paced_until_ns: int = 0
    pacing_rate: int = 0
    throttled: int = 0
    no_space: int = 0
    retransmits: int = 0
    rcv_nxt: int = 0
    copied_seq: int = 0
    srtt_us: int = 0
    min_rtt_us: int = 0

    @property
    def unsent_bytes(self) -> int:
        """Return the number of bytes that the application has written and TCP has not sent. A FIN counts as one byte."""
        return ahead(self.write_seq, self.snd_nxt)

    @property
    def unacked_bytes(self) -> int:
        """Return the number of bytes that TCP has sent and the peer has not acknowledged."""
        return ahead(self.snd_nxt, self.snd_una)

    @property
    def packets_in_flight(self) -> int:
        """Return the number of segments in flight, by Linux's `tcp_packets_in_flight` (include/net/tcp.h)."""
        return self.packets_out - self.sacked_out - self.lost_out + self.retrans_out


_FIELDS = [column.name for column in fields(Event)]


class Endpoint(NamedTuple):
    """An address and a port."""

    address: str
    port: int


@dataclass(slots=True)
class Life:
    """One socket, for the duration of one connection."""

    local: Endpoint
    remote: Endpoint
    is_client: bool
    events: list[Event] = field(default_factory=list)

    @property
    def span_ns(self) -> tuple[int, int]:
        """Return the times of the first and the last event of this socket."""
        return self.events[0].time_ns, self.events[-1].time_ns


def lives(table: pl.DataFrame) -> list[Life]:
    """Return the lives of all sockets in a table of events, in the order of their first events. Listening sockets are left out."""
    found: list[Life] = []
    current: dict[int, Life] = {}
    names = ["socket", "local_address", "local_port", "remote_address", "remote_port", *_FIELDS]
    for socket, local_address, local_port, remote_address, remote_port, *values in table.select(names).iter_rows():
        event = Event(*values)
        begins = event.kind == STATE and event.detail_bytes in OPENING
        if begins or (socket not in current and local_port and remote_port and event.state not in {LISTEN, CLOSED}):
            current[socket] = Life(
                Endpoint(local_address, local_port), Endpoint(remote_address, remote_port), event.detail_bytes == SYN_SENT
            )
            found.append(current[socket])
        life = current.get(socket)
        if life is None:
            continue
        if local_port and remote_port:
            life.local, life.remote = Endpoint(local_address, local_port), Endpoint(remote_address, remote_port)
        life.events.append(event)
        if event.kind == STATE and event.detail_bytes == CLOSED:
            del current[socket]
    return [life for life in found if life.remote.port]


def pairs(every: Iterable[Life]) -> list[tuple[Life, Life | None]]:
    """Pair each life with the life of the peer's socket, or with None if the peer was not traced."""
    every = list(every)
    by_ends: dict[tuple[Endpoint, Endpoint], list[Life]] = {}
    for life in every:
        by_ends.setdefault((life.local, life.remote), []).append(life)

    def partner(life: Life) -> Life | None:
        start_ns, end_ns = life.span_ns
        others = by_ends.get((life.remote, life.local), [])
        meets = [other for other in others if other.span_ns[0] <= end_ns and start_ns <= other.span_ns[1] and other is not life]
        return max(meets, key=lambda other: min(end_ns, other.span_ns[1]) - max(start_ns, other.span_ns[0]), default=None)

    return [(life, partner(life)) for life in every]
