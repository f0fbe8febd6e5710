"""Reconstructs from a captured connection what its applications did.

The messages of the connection (`messages`) show what an application wrote and when. Some messages also show the write calls. If the ends
take turns, each end reads the peer's message, pauses, and writes its own message. The RTT explains part of the time between these two
messages. The rest is the pause. An end can also write two messages in a row. The pause between them starts with the first write, because a
small write returns at once. For a large first message, the pause starts when TCP has sent its last byte. If both ends send at the same
time, each end has one task that writes and one that reads.

The schedule's `unknowns` list what the capture does not show, for example whether TCP_NODELAY was set.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from tcptrace_lab.connections.rates import PLATEAU_ROUNDS
from tcptrace_lab.errors import CaptureInsufficient
from tcptrace_lab.messages import messages
from tcptrace_lab.replay.changes import MIN_IPV4_MTU
from tcptrace_lab.replay.evidence import WINDOW_CAUSES
from tcptrace_lab.replay.losses import loss_share, lost_packets
from tcptrace_lab.replay.reader_pauses import begin_ns, pauses
from tcptrace_lab.replay.schedule import MAX_STEPS, Action, AwaitRead, Between, End, PathDirection, Schedule, Task
from tcptrace_lab.stacks.packet import FIN
from tcptrace_lab.stacks.setting import Close, Flush, Read, Think, Write

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tcptrace_lab.replay.evidence import Evidence

SMALL_MESSAGE_BYTES: Final = 65_536
"""A write of up to this size returns at once, because it fits the send buffer of a new Linux connection.

The buffer has room for 16 KiB of segment memory at first, and for more after the first window (net.ipv4.tcp_wmem). On other systems, this
size is a heuristic.
"""

MIN_THINK_NS: Final = 20_000
"""Shorter pauses are left out, because the system calls of an application take about this long."""

PROMPT_NS: Final = 5_000_000
"""An application that closes within this time after the ACK of all data is assumed to have waited for this ACK (a heuristic)."""

WINDOW_SHARE: Final = 0.05
"""The schedule includes the window size if the receive window limits the sender for at least this share of the connection's duration."""

CUT_SHARE: Final = 0.05
"""If the receive window limits the sender for at least this share of a message's sending time, segments do not show the write calls."""

BOUND_SHARE: Final = 0.05
"""The schedule limits unacknowledged bytes if the send buffer limits the sender for at least this share of the duration."""

NETWORK_SHARE: Final = 0.2
"""The path has a bottleneck rate if the network is the cause for at least this share of the connection's duration."""

QUEUED_TIMES: Final = 1.25
"""A median RTT of at least this factor times the minimum RTT shows queueing or delayed ACKs, not jitter (a heuristic)."""

GROWN_BY: Final = 2
"""If a window grows to more than this factor times its first size, the kernel tunes the buffer.

On Linux, the window of a buffer of fixed size stays below twice the requested size (`tcp_scaling_ratio`).
"""

PACING_SHARE: Final = 0.2
"""If pacing is the cause for at least this share of the duration, the replay uses BBR, which paces."""

TUNNEL_MTU_BYTES: Final = 65_535
LOOPBACK_MSS_FROM: Final = 60_000
"""An MSS of at least this size shows a loopback interface if the base RTT is at most `LOOPBACK_MAX_NS`. Addresses do not matter."""

LOOPBACK_MAX_NS: Final = 1_000_000
"""Longest base RTT over loopback.

An RTT of 20 µs is usual, and 200 µs on a busy machine (measured). A longer RTT shows a path or an added delay.
"""

IP_TCP_BYTES: Final = {False: 40, True: 60}
"""Bytes of the IP and TCP headers without options. The key is True for IPv6, and False for IPv4."""

USUAL_CALLS: Final = 2
"""A message of more than two writes is replayed in calls of one size if more than half of its writes have this size."""


@dataclass(frozen=True, slots=True)
class Message:
    """The fields of a row of `schema.MESSAGES` that the reconstruction uses.

    Attributes:
        is_small: True if the write call probably returned at once: the message fits a send buffer, and TCP sent it promptly.
    """

    from_client: bool
    start: int
    size_bytes: int
    first_ns: int
    last_ns: int
    acked_ns: int | None
    writes: tuple[int, ...]
    is_small: bool


def reconstruct(evidence: Evidence) -> Schedule:
    """Reconstruct the schedule of a connection.

    Raises:
        CaptureInsufficient: the connection has too many messages for a schedule.
    """
    both = _messages(evidence)
    if len(both) * 4 > MAX_STEPS:
        raise CaptureInsufficient(
            f"connection {evidence.conn} has {len(both):,} messages", where=evidence.capture, remedy="extract a part with editcap"
        )
    turns = not _overlap(evidence)
    unknowns = list(_unknowns(evidence, turns=turns))
    ends = []
    for is_client in (True, False):
        tasks = (_in_turn(evidence, both, is_client),) if turns else _at_once(evidence, both, is_client)
        ends.append(_socket(evidence, tasks, is_client=is_client))
    path = _between(evidence, unknowns)
    source = {"capture": evidence.capture, "connection": evidence.conn, "duration_s": evidence.life_ns / 1e9}
    return Schedule(ends[0], ends[1], path, source, tuple(unknowns))


# Messages


def _messages(evidence: Evidence) -> list[Message]:
    names = ("from_client", "start_offset", "payload_bytes", "first_ts_ns", "last_ts_ns", "acked_ts_ns", "writes_inferred")
    prompt_ns = max(messages.GAP_NS, 2 * evidence.base_rtt_ns)
    found = []
    for from_client, start, size, first_ns, last_ns, acked_ns, writes in evidence.messages.select(names).iter_rows():
        # While the receive window limits the sender, segments end where the window ends, not where a write call ends.
        seen = () if _cut(evidence.window_ns[from_client], first_ns, last_ns) else tuple(writes or ())
        is_small = size <= SMALL_MESSAGE_BYTES and last_ns - first_ns < prompt_ns
        found.append(Message(from_client, start, size, first_ns, last_ns, acked_ns, seen, is_small))
    return found


def _cut(stalled_ns: Sequence[tuple[int, int]], first_ns: int, last_ns: int) -> bool:
    """Return whether the receive window limited the sender for at least `CUT_SHARE` of a message's sending time."""
    since = max(bisect_right(stalled_ns, (first_ns, 0)) - 1, 0)
    within = sum(
        max(0, min(end, last_ns) - max(begin, first_ns)) for begin, end in stalled_ns[since : bisect_right(stalled_ns, (last_ns, 0))]
    )
    return within > 0 and within >= CUT_SHARE * (last_ns - first_ns)


def _overlap(evidence: Evidence) -> bool:
    return bool((evidence.messages["state"].cast(pl.String) == "overlapping").any())


def _written(message: Message) -> Iterator[Action]:
    """Yield the writes of a message: equal calls if most calls have one size, otherwise the calls that the capture shows."""
    writes = message.writes
    if sum(writes) != message.size_bytes or not writes:
        yield Write(message.size_bytes)
        return
    usual = max(set(writes), key=writes.count)
    if len(writes) > USUAL_CALLS and 2 * writes.count(usual) > len(writes):
        yield Write(message.size_bytes, usual)
        return
    for size in writes:
        yield Write(size)


# Ends that take turns


def _in_turn(evidence: Evidence, both: Sequence[Message], is_client: bool) -> Task:  # noqa: FBT001
    """Return the task of an end that takes turns: read the peer's messages, pause, write messages, close."""
    side = "client" if is_client else "server"
    transit_ns = int(evidence.row[f"rtt_to_{side}_ns"] or 0)
    reader = _Reader(evidence, is_client=is_client)
    steps: list[Action] = []
    own: Message | None = None
    received_ns = begin_ns(evidence) + (0 if is_client else transit_ns)
    anchor_ns = received_ns
    for message in both:
        if message.from_client != is_client:
            steps += reader.steps(message.size_bytes)
            anchor_ns, own = message.last_ns + transit_ns, None
            continue
        if own is not None:
            steps += _behind(own)
            anchor_ns = own.first_ns if own.is_small else own.last_ns
        steps += _thought(message.first_ns - anchor_ns)
        steps += _written(message)
        own, anchor_ns = message, message.first_ns
    return *steps, *_ending(evidence, is_client=is_client, own=own, anchor_ns=anchor_ns), Read()


def _behind(own: Message) -> list[Action]:
    """Return the steps after a message of this end: nothing after a small message, otherwise a wait until all bytes were sent."""
    return [] if own.is_small else [Flush()]


def _thought(for_ns: int) -> list[Action]:
    return [Think(for_ns)] if for_ns >= MIN_THINK_NS else []


class _Reader:
    """Makes the steps that read the peer's messages, with the pauses that the advertised windows show."""

    def __init__(self, evidence: Evidence, *, is_client: bool) -> None:
        self._pauses = pauses(evidence, reader_is_client=is_client)
        self._have = 0

    def steps(self, size_bytes: int) -> list[Action]:
        """Return the steps that read the next message, of `size_bytes`."""
        found: list[Action] = []
        end = self._have + size_bytes
        while self._pauses and self._pauses[0].read_bytes < end:
            pause = self._pauses.pop(0)
            if pause.read_bytes > self._have:
                found.append(Read(pause.read_bytes - self._have))
                self._have = pause.read_bytes
            found.append(Think(pause.for_ns))
        if end > self._have:
            found.append(Read(end - self._have))
        self._have = end
        return found


def _ending(evidence: Evidence, *, is_client: bool, own: Message | None, anchor_ns: int) -> list[Action]:
    """Return the steps that close this end: immediately, after the ACK of all data that it wrote, or after the peer has closed."""
    closed_ns, other_ns = (_fin_ns(evidence, from_client=of_client) for of_client in (is_client, not is_client))
    transit_ns = int(evidence.row[f"rtt_to_{'client' if is_client else 'server'}_ns"] or 0)
    if closed_ns is None:
        return [Read(), Close()]
    if other_ns is not None and other_ns < closed_ns:
        return [Read(), *_thought(closed_ns - max(anchor_ns, other_ns + transit_ns)), Close()]
    if own is not None and own.acked_ns is not None and own.acked_ns <= closed_ns <= own.acked_ns + transit_ns + PROMPT_NS:
        return [Flush(acknowledged=True), Close()]
    if own is not None and not own.is_small:
        return [Flush(), *_thought(closed_ns - own.last_ns), Close()]
    return [*_thought(closed_ns - anchor_ns), Close()]


def _fin_ns(evidence: Evidence, *, from_client: bool) -> int | None:
    fins = evidence.segments.filter((pl.col("from_client") == from_client) & (pl.col("flags") & FIN > 0))["ts_ns"]
    return int(fins[0]) if len(fins) else None


# Ends that send at the same time


def _at_once(evidence: Evidence, both: Sequence[Message], is_client: bool) -> tuple[Task, ...]:  # noqa: FBT001
    """Return the two tasks of an end that sends and receives at the same time.

    The second task reads. The first task writes a message when the second has read enough: as much as had arrived when the application
    wrote this message in the capture.
    """
    side = "client" if is_client else "server"
    transit_ns = int(evidence.row[f"rtt_to_{side}_ns"] or 0)
    theirs = evidence.segments.filter((pl.col("from_client") != is_client) & (pl.col("payload_bytes") > 0)).select(
        end=(pl.col("seq") + pl.col("payload_bytes") - 1).cum_max(), ts_ns=pl.col("ts_ns") + transit_ns
    )
    writing: list[Action] = []
    own: Message | None = None
    anchor_ns = begin_ns(evidence) + (0 if is_client else transit_ns)
    received_bytes = 0
    for message in both:
        if message.from_client != is_client:
            continue
        if own is not None:
            writing += _behind(own)
            anchor_ns = own.first_ns if own.is_small else own.last_ns
        arrived = theirs.filter(pl.col("ts_ns") <= message.first_ns)
        if len(arrived) and arrived["end"][-1] > received_bytes:
            received_bytes = arrived["end"][-1]
            writing.append(AwaitRead(received_bytes))
            anchor_ns = max(anchor_ns, arrived["ts_ns"][-1])
        writing += _thought(message.first_ns - anchor_ns)
        writing += _written(message)
        own, anchor_ns = message, message.first_ns
    reader = _Reader(evidence, is_client=is_client)
    total = theirs["end"][-1] if len(theirs) else 0
    other_ns, closed_ns = (_fin_ns(evidence, from_client=of_client) for of_client in (not is_client, is_client))
    after_other = closed_ns is None or (other_ns is not None and other_ns < closed_ns)
    ending: list[Action] = [AwaitRead(total)] if after_other else []
    ending += [step for step in _ending(evidence, is_client=is_client, own=own, anchor_ns=anchor_ns) if not isinstance(step, Read)]
    return (*writing, *ending), (*reader.steps(total), Read())


# Sockets and path


def _socket(evidence: Evidence, tasks: tuple[Task, ...], *, is_client: bool) -> End:
    row, side, other = evidence.row, *(("client", "server") if is_client else ("server", "client"))
    bound = None
    if evidence.share("send-buffer", from_client=is_client) >= BOUND_SHARE and (row[f"{side}_level_rounds"] or 0) >= PLATEAU_ROUNDS:
        bound = int(row[f"{side}_level_flight_bytes"])
        tasks = tuple(_in_calls(task, bound, row[f"{side}_full_segment_bytes"] or bound) for task in tasks)
    held = evidence.share(*WINDOW_CAUSES, from_client=not is_client) >= WINDOW_SHARE
    slow = any(isinstance(step, Think) for step in _reading_of(tasks)) and held
    window = row[f"{side}_max_window_bytes"] if held or slow else None
    paced = evidence.share("pacing", from_client=is_client) >= PACING_SHARE
    return End(
        tasks,
        nodelay=row[f"{side}_nagle"] == "off",
        max_unacked_bytes=bound,
        receive_buffer_bytes=_asked(row, side, other) if window else None,
        window_clamp_bytes=window,
        congestion_control="bbr" if paced else "cubic",
    )


def _in_calls(task: Task, max_unacked_bytes: int, full_bytes: int) -> Task:
    """Return a task whose write calls fit the limit of unacknowledged bytes.

    The real size of a larger call is unknown. Calls of one full segment replace such a call.
    """
    call = min(full_bytes, max_unacked_bytes)
    return tuple(
        replace(step, call_bytes=call) if isinstance(step, Write) and (step.call_bytes or step.size_bytes) > max_unacked_bytes else step
        for step in task
    )


def _reading_of(tasks: tuple[Task, ...]) -> Task:
    return tasks[-1]


def _asked(row: Any, side: str, other: str) -> int | None:  # noqa: ANN401  (a row of connections)
    """Return the requested SO_RCVBUF; None if the kernel tunes the buffer.

    The window in a Linux SYN is the requested size, rounded down to whole segments of the peer's MSS. So several sizes are possible. A
    power of two among them is the most likely one.
    """
    first, largest, mss = row[f"{side}_syn_window_bytes"], row[f"{side}_max_window_bytes"], row[f"{other}_mss_bytes"] or 1
    if not first:
        return int(largest)
    if largest > GROWN_BY * first:
        return None
    power = 1 << (first - 1).bit_length()
    return int(power if power < first + mss else first + mss // 2)


def _between(evidence: Evidence, unknowns: list[str]) -> Between:
    row = evidence.row
    offered = [row[f"{side}_mss_bytes"] for side in ("client", "server") if row[f"{side}_mss_bytes"]]
    ipv6 = ":" in str(row["client_addr"])
    largest = max(row["client_max_segment_bytes"] or 0, row["server_max_segment_bytes"] or 0)
    mss = min(offered) if offered else largest
    loopback = row["vantage_known_by"] == "loopback" or (mss >= LOOPBACK_MSS_FROM and evidence.base_rtt_ns <= LOOPBACK_MAX_NS)
    one_way_ns = 0 if loopback else evidence.base_rtt_ns // 2
    forward, backward = (_path_direction(evidence, one_way_ns, from_client=of_client, unknowns=unknowns) for of_client in (True, False))
    mtu = min(mss + IP_TCP_BYTES[ipv6], TUNNEL_MTU_BYTES + 1 if loopback else TUNNEL_MTU_BYTES)
    used = {name: all(row[f"{side}_{key}"] for side in ("client", "server")) for name, key in _BOTH_WANT.items()} if offered else {}
    return Between(forward, backward, max(mtu, MIN_IPV4_MTU), loopback, ipv6, **used)


_BOTH_WANT: Final = {"timestamps": "timestamps", "sack": "sack_permitted"}


def _path_direction(evidence: Evidence, delay_ns: int, *, from_client: bool, unknowns: list[str]) -> PathDirection:
    side, at = ("client" if from_client else "server"), evidence.row["vantage"]
    direction = PathDirection(delay_ns, _rate_bps(evidence, from_client=from_client))
    share = loss_share(evidence, from_client=from_client)
    if not share and not _handshake_lost(evidence, from_client=from_client):
        return direction
    if at in {side, "unknown", "middle"}:
        return replace(direction, lost=lost_packets(evidence, from_client=from_client))
    unknowns.append(
        f"a capture after the path does not show which packets of the {side} were lost: {share:.1%} are drawn at random instead"
    )
    return replace(direction, loss_share=min(share, 0.5))


def _handshake_lost(evidence: Evidence, *, from_client: bool) -> bool:
    return int(evidence.row[f"{'client' if from_client else 'server'}_syn_segments"] or 0) > 1


def _rate_bps(evidence: Evidence, *, from_client: bool) -> int | None:
    """Return the bottleneck rate in bits per second, with Ethernet, IP and TCP headers; None if the capture shows no bottleneck."""
    side = "client" if from_client else "server"
    row = evidence.row
    if evidence.share("network", from_client=from_client) < NETWORK_SHARE or not row[f"{side}_drained_ns"] or not _queued(row, side):
        return None
    payload_bps = row[f"{side}_drained_bytes"] * 8e9 / row[f"{side}_drained_ns"]
    full = row[f"{side}_full_segment_bytes"] or 0
    header = 14 + IP_TCP_BYTES[":" in str(row["client_addr"])] + (12 if row["client_timestamps"] else 0)
    return round(payload_bps * (full + header) / full) if full else None


def _queued(row: Any, side: str) -> bool:  # noqa: ANN401  (a row of connections)
    """Return whether the RTTs show a queue. Without a queue, the measured rate is only one window per RTT, not a bottleneck."""
    usual, least = row[f"{side}_rtt_p50_ns"], row[f"{side}_rtt_min_ns"]
    return usual is None or least is None or usual >= QUEUED_TIMES * least


def _unknowns(evidence: Evidence, *, turns: bool) -> Iterator[str]:
    row = evidence.row
    if row["syn_to_synack_ns"] is None:
        yield "the handshake was not captured: windows, MSS and earlier data are unknown"
    if not turns:
        yield "both ends send at once: each write is assumed to wait for all data read before it"
    for side in ("client", "server"):
        if row[f"{side}_nagle"] == "unknown" and row[f"{side}_data_segments"]:
            yield f"the {side}'s NODELAY setting is unknown; assumed off"
        if row[f"{side}_not_captured_bytes"]:
            yield f"{row[f'{side}_not_captured_bytes']:,} bytes of the {side} were not captured"
