"""A connection of a capture → what its applications did.

A program is told by its messages (`messages`): what it wrote, in which pieces as far as they show, and when. Where the ends take turns, an
end reads the other's message and thinks for the time that its answer comes later than the way there and back allows. Behind a message of
its own it thinks from the write's beginning on (the write of what leaves at once returns at once), or, behind one that took its time to
leave, from the moment the last of it left. Where both ends send at once, each has a task that writes and one that reads.

What no capture tells is in the schedule's doubts: writes that TCP joined, options that were never put to the test.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from tcptrace_lab.connections.rates import PLATEAU_ROUNDS
from tcptrace_lab.errors import CaptureInsufficient
from tcptrace_lab.messages import messages
from tcptrace_lab.replay.changes import LEAST_IPV4_MTU
from tcptrace_lab.replay.evidence import WINDOW_CAUSES
from tcptrace_lab.replay.losses import loss_share, lost_packets
from tcptrace_lab.replay.reading import begin_ns, pauses
from tcptrace_lab.replay.schedule import MOST_STEPS, Action, Between, End, Heard, Schedule, Task, Way
from tcptrace_lab.stacks.packet import FIN
from tcptrace_lab.stacks.setting import Close, Flush, Read, Think, Write

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tcptrace_lab.replay.evidence import Evidence

SMALL_MESSAGE_BYTES: Final = 65_536
"""A write of so much returns at once: it fits the send buffer that Linux gives a new connection (net.ipv4.tcp_wmem: 16 KiB of segments'
memory at first, grown with the first window; a heuristic elsewhere)."""

LEAST_THINK_NS: Final = 20_000
"""Shorter thoughts are left out: a program's own system calls take that long."""

PROMPT_NS: Final = 5_000_000
"""A FIN so soon behind the ACK of everything was waiting for it (a heuristic)."""

WINDOW_SHARE: Final = 0.05
"""From this share of the life on, that the receiver's window holds the sender, its size is a part of the schedule."""

CUT_SHARE: Final = 0.05
"""Likewise of the time that one message takes to leave: its segments end where the window does, not where writes did."""

BOUND_SHARE: Final = 0.05
"""Likewise for the send buffer."""

NETWORK_SHARE: Final = 0.2
"""From this share on that bytes drain through the path, the path has a rate."""

QUEUED_TIMES: Final = 1.25
"""A median round trip so much longer than the least one is not the path's jitter but a queue or delayed ACKs (a heuristic)."""

GROWN_BY: Final = 2
"""A window that grows beyond so many times its first size belongs to a buffer that grows by itself: what Linux makes of a fixed one is less
than twice what was asked for (`tcp_scaling_ratio`)."""

PACING_SHARE: Final = 0.2
"""From this share on the sender paces: a congestion control as BBR."""

TUNNEL_MTU_BYTES: Final = 65_535
LOOPBACK_MSS_FROM: Final = 60_000
"""An MSS so large is that of a loopback interface, whatever the addresses, if the round trip is not too long for one."""

LOOPBACK_MOST_NS: Final = 1_000_000
"""Of a round trip: loopback takes some 20 µs, a busy machine ten times that (measured); more is a path, or a delay that was put there."""

IP_TCP_BYTES: Final = {False: 40, True: 60}
"""Headers without options, IPv4 and IPv6."""

USUAL_CALLS: Final = 2
"""A call size must be seen so many times to be taken for that of all calls."""


@dataclass(frozen=True, slots=True)
class Message:
    """What is used of a row of `schema.MESSAGES`.

    Attributes:
        is_small: its write returned at once, as far as one can tell: it fits a send buffer, and left without delay.
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
    """The schedule of a connection.

    Raises:
        CaptureInsufficient: it has more messages than a schedule has steps.
    """
    both = _messages(evidence)
    if len(both) * 4 > MOST_STEPS:
        raise CaptureInsufficient(
            f"connection {evidence.conn} has {len(both):,} messages", where=evidence.capture, remedy="cut a part out of it with editcap"
        )
    turns = not _overlap(evidence)
    doubts = list(_doubts(evidence, turns=turns))
    ends = []
    for is_client in (True, False):
        tasks = (_in_turn(evidence, both, is_client),) if turns else _at_once(evidence, both, is_client)
        ends.append(_socket(evidence, tasks, is_client=is_client))
    path = _between(evidence, doubts)
    source = {"capture": evidence.capture, "connection": evidence.conn, "duration_s": evidence.life_ns / 1e9}
    return Schedule(ends[0], ends[1], path, source, tuple(doubts))


# Messages


def _messages(evidence: Evidence) -> list[Message]:
    names = ("from_client", "start_offset", "payload_bytes", "first_ts_ns", "last_ts_ns", "acked_ts_ns", "writes_inferred")
    prompt_ns = max(messages.GAP_NS, 2 * evidence.round_trip_ns)
    found = []
    for from_client, start, size, first_ns, last_ns, acked_ns, writes in evidence.messages.select(names).iter_rows():
        # Where windows cut segments, a segment's end is no write's end.
        seen = () if _cut(evidence.window_ns[from_client], first_ns, last_ns) else tuple(writes or ())
        is_small = size <= SMALL_MESSAGE_BYTES and last_ns - first_ns < prompt_ns
        found.append(Message(from_client, start, size, first_ns, last_ns, acked_ns, seen, is_small))
    return found


def _cut(held_ns: Sequence[tuple[int, int]], first_ns: int, last_ns: int) -> bool:
    """Whether a window held the sender for enough of the time that a message took to leave."""
    since = max(bisect_right(held_ns, (first_ns, 0)) - 1, 0)
    within = sum(max(0, min(end, last_ns) - max(begin, first_ns)) for begin, end in held_ns[since : bisect_right(held_ns, (last_ns, 0))])
    return within > 0 and within >= CUT_SHARE * (last_ns - first_ns)


def _overlap(evidence: Evidence) -> bool:
    return bool((evidence.messages["state"].cast(pl.String) == "overlapping").any())


def _written(message: Message) -> Iterator[Action]:
    """The writes of a message: as they show, or one size of call where nearly all show the same, or one write."""
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
    """One task: read the other's messages, think, write one's own, close."""
    side = "client" if is_client else "server"
    transit_ns = int(evidence.row[f"to_{side}_ns"] or 0)
    reader = _Reader(evidence, is_client=is_client)
    steps: list[Action] = []
    own: Message | None = None
    heard_ns = begin_ns(evidence) + (0 if is_client else transit_ns)
    anchor_ns = heard_ns
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
    """What precedes a thought behind a message of one's own."""
    return [] if own.is_small else [Flush()]


def _thought(for_ns: int) -> list[Action]:
    return [Think(for_ns)] if for_ns >= LEAST_THINK_NS else []


class _Reader:
    """Reads what the other end sends, with the pauses that the windows show."""

    def __init__(self, evidence: Evidence, *, is_client: bool) -> None:
        self._pauses = pauses(evidence, reader_is_client=is_client)
        self._have = 0

    def steps(self, size_bytes: int) -> list[Action]:
        """Read one message."""
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
    """How it closes: by itself, behind the ACK of all that it wrote, or when the other end has closed."""
    closed_ns, other_ns = (_fin_ns(evidence, from_client=way) for way in (is_client, not is_client))
    transit_ns = int(evidence.row[f"to_{'client' if is_client else 'server'}_ns"] or 0)
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


# Ends that send at once


def _at_once(evidence: Evidence, both: Sequence[Message], is_client: bool) -> tuple[Task, ...]:  # noqa: FBT001
    """Two tasks: one writes, behind what it had read by then; the other reads."""
    side = "client" if is_client else "server"
    transit_ns = int(evidence.row[f"to_{side}_ns"] or 0)
    theirs = evidence.segments.filter((pl.col("from_client") != is_client) & (pl.col("payload_bytes") > 0)).select(
        end=(pl.col("seq") + pl.col("payload_bytes") - 1).cum_max(), ts_ns=pl.col("ts_ns") + transit_ns
    )
    writing: list[Action] = []
    own: Message | None = None
    anchor_ns = begin_ns(evidence) + (0 if is_client else transit_ns)
    heard = 0
    for message in both:
        if message.from_client != is_client:
            continue
        if own is not None:
            writing += _behind(own)
            anchor_ns = own.first_ns if own.is_small else own.last_ns
        there = theirs.filter(pl.col("ts_ns") <= message.first_ns)
        if len(there) and there["end"][-1] > heard:
            heard = there["end"][-1]
            writing.append(Heard(heard))
            anchor_ns = max(anchor_ns, there["ts_ns"][-1])
        writing += _thought(message.first_ns - anchor_ns)
        writing += _written(message)
        own, anchor_ns = message, message.first_ns
    reader = _Reader(evidence, is_client=is_client)
    total = theirs["end"][-1] if len(theirs) else 0
    other_ns, closed_ns = (_fin_ns(evidence, from_client=way) for way in (not is_client, is_client))
    after_other = closed_ns is None or (other_ns is not None and other_ns < closed_ns)
    ending: list[Action] = [Heard(total)] if after_other else []
    ending += [step for step in _ending(evidence, is_client=is_client, own=own, anchor_ns=anchor_ns) if not isinstance(step, Read)]
    return (*writing, *ending), (*reader.steps(total), Read())


# Sockets and path


def _socket(evidence: Evidence, tasks: tuple[Task, ...], *, is_client: bool) -> End:
    """The options that the capture shows of one end's socket."""
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
        bound_bytes=bound,
        receive_buffer_bytes=_asked(row, side, other) if window else None,
        window_bytes=window,
        congestion="bbr" if paced else "cubic",
    )


def _in_calls(task: Task, bound_bytes: int, full_bytes: int) -> Task:
    """What a program wrote that kept to a bound: no call is beyond it; those that do not show are taken to be of a full segment."""
    call = min(full_bytes, bound_bytes)
    return tuple(
        replace(step, call_bytes=call) if isinstance(step, Write) and (step.call_bytes or step.size_bytes) > bound_bytes else step
        for step in task
    )


def _reading_of(tasks: tuple[Task, ...]) -> Task:
    return tasks[-1]


def _asked(row: Any, side: str, other: str) -> int | None:  # noqa: ANN401  (a row of connections)
    """What SO_RCVBUF was asked for; None where the kernel let the buffer grow by itself.

    Linux offers it in its first segment, cut to whole segments of the MSS that it heard: of what it may have been, the power of two.
    """
    first, largest, mss = row[f"{side}_syn_window_bytes"], row[f"{side}_max_window_bytes"], row[f"{other}_mss_bytes"] or 1
    if not first:
        return int(largest)
    if largest > GROWN_BY * first:
        return None
    power = 1 << (first - 1).bit_length()
    return int(power if power < first + mss else first + mss // 2)


def _between(evidence: Evidence, doubts: list[str]) -> Between:
    row = evidence.row
    offered = [row[f"{side}_mss_bytes"] for side in ("client", "server") if row[f"{side}_mss_bytes"]]
    ipv6 = ":" in str(row["client_addr"])
    largest = max(row["client_max_segment_bytes"] or 0, row["server_max_segment_bytes"] or 0)
    mss = min(offered) if offered else largest
    loopback = bool(row["same_host"]) or (mss >= LOOPBACK_MSS_FROM and evidence.round_trip_ns <= LOOPBACK_MOST_NS)
    way_ns = 0 if loopback else evidence.round_trip_ns // 2
    forward, backward = (_way(evidence, way_ns, from_client=way, doubts=doubts) for way in (True, False))
    mtu = min(mss + IP_TCP_BYTES[ipv6], TUNNEL_MTU_BYTES + 1 if loopback else TUNNEL_MTU_BYTES)
    used = {name: all(row[f"{side}_{key}"] for side in ("client", "server")) for name, key in _BOTH_WANT.items()} if offered else {}
    return Between(forward, backward, max(mtu, LEAST_IPV4_MTU), loopback, ipv6, **used)


_BOTH_WANT: Final = {"timestamps": "timestamps", "sack": "sack_permitted"}


def _way(evidence: Evidence, delay_ns: int, *, from_client: bool, doubts: list[str]) -> Way:
    side, at = ("client" if from_client else "server"), evidence.row["vantage"]
    way = Way(delay_ns, _rate_bps(evidence, from_client=from_client))
    share = loss_share(evidence, from_client=from_client)
    if not share and not _handshake_lost(evidence, from_client=from_client):
        return way
    if at in {side, "unknown", "middle"}:
        return replace(way, lost=lost_packets(evidence, from_client=from_client))
    doubts.append(f"which packets of the {side} were lost does not show behind the path: {share:.1%} are drawn at random instead")
    return replace(way, loss_share=min(share, 0.5))


def _handshake_lost(evidence: Evidence, *, from_client: bool) -> bool:
    return int(evidence.row[f"{'client' if from_client else 'server'}_syn_segments"] or 0) > 1


def _rate_bps(evidence: Evidence, *, from_client: bool) -> int | None:
    """The bottleneck's rate, where bytes are seen to drain through one: frames, as the relay counts them."""
    side = "client" if from_client else "server"
    row = evidence.row
    if evidence.share("network", from_client=from_client) < NETWORK_SHARE or not row[f"{side}_drained_ns"] or not _queued(row, side):
        return None
    payload_bps = row[f"{side}_drained_bytes"] * 8e9 / row[f"{side}_drained_ns"]
    full = row[f"{side}_full_segment_bytes"] or 0
    header = 14 + IP_TCP_BYTES[":" in str(row["client_addr"])] + (12 if row["client_timestamps"] else 0)
    return round(payload_bps * (full + header) / full) if full else None


def _queued(row: Any, side: str) -> bool:  # noqa: ANN401  (a row of connections)
    """Whether round trips grew: without a queue nothing drains, and what looks like a rate is a window a round trip."""
    usual, least = row[f"{side}_rtt_p50_ns"], row[f"{side}_rtt_min_ns"]
    return usual is None or least is None or usual >= QUEUED_TIMES * least


def _doubts(evidence: Evidence, *, turns: bool) -> Iterator[str]:
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
