"""Finds path outages: times in which no packet gets through in either direction, although a host has data to send.

If the segments of a host get no answer, the host retransmits them when its timers expire, and each timeout doubles the next timeout. The
capture shows one of three things while the peer is silent:

- near the sender: segments and at least one retransmit by a timer, all without an answer;
- away from the sender: no segment, then a retransmit by timer of bytes that the peer had ACKed before, so the ACKs were lost;
- away from the sender: no segment, then data whose IP ID skips numbers, so the segments with these numbers were lost before the capture
  point.

Other faults look different:

- an application that pauses: nothing is unanswered;
- a stopped application: its kernel still ACKs;
- a zero window: the peer announces it;
- a capture gap: the ACKs cover bytes that the capture lacks;
- a segment too large for the path: smaller segments pass;
- random losses: at the loss rate of the connection, chance hardly produces that many losses in a row.

A packet of the silent host on another connection disproves an outage.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from tcptrace_lab.causes import Confidence
from tcptrace_lab.schema import SIDES
from tcptrace_lab.text import numbers

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

FINDING = "path-outage"

CAUSES = frozenset({"timeout", "loss-recovery"})
"""The causes to which the ledger assigns the waits within an outage."""

CURE = "a path without outages"
"""The cure in the words of the verdict (`causes.Advice.cure`)."""

SOURCE = "RFC 6298, 5.4 to 5.7; RFC 8985, 7; RFC 5681, 3.1"

MOST = 20
"""Maximum number of silences that are examined. The longest silences are chosen."""

MIN_SILENCE_NS = 500_000_000
MIN_RTTS = 3
"""Minimum length of a silence, in ns and in base RTTs (heuristics). Linux's minimum RTO is 200 ms, so a timer expires more than once in 500
ms."""

TIMER_NS = 300_000_000
"""Time by which the first retransmission timeout of current stacks exceeds the RTT: 200 ms for Linux, 300 ms for Windows."""

TWO_TIMEOUTS = 2.5
"""Length of a silence, in initial RTOs, in which the timer expires twice (a heuristic). The second expiration comes at most three initial
RTOs after the segment was sent (RFC 6298, 5.5), or two initial RTOs if an earlier segment started the timer."""

MIN_EVENTS = 3
"""Minimum number of separate unanswered transmissions of a connection. Three of a kind are no coincidence (docs/how-it-decides.md, 2.4)."""

APART_NS = 50_000_000
"""Transmissions within this time, or within an RTT, are one event, because one full queue can lose them all (a heuristic)."""

MAX_CHANCE = 0.01
"""Maximum number of equally long loss series that chance produces at the connection's loss rate (a heuristic). If chance produces more, the
connection alone is not enough evidence of an outage."""

BEFORE_NS, AFTER_NS = 1_000_000_000, 2_000_000_000
"""Segments are read from `BEFORE_NS` before a silence (for lost ACKs) to `AFTER_NS` after the silence (for retransmits)."""

SAME_SHARE = 0.5
"""Two connections are silent together if their silences overlap for at least this share of the shorter silence (a heuristic)."""

MAX_SKIPPED = 4_096
"""Largest step of the IP ID that counts lost segments. A larger step means that the sender restarted its numbering (a heuristic)."""

EVIDENCE_FRAMES = 20

_NOT_DATA = frozenset({"keepalive", "zero_window_probe", "capture_duplicate", "network_duplicate"})
_COLUMNS = (
    *("conn", "from_client", "frame", "ts_ns", "seq", "ack", "payload_bytes", "flags", "window_bytes", "ip_id"),
    *("kind", "retransmit_trigger", "acked_unseen_bytes", "tsval"),
)
_SYN_RST = 2 | 4
_TIMERS = frozenset({"timeout", "tail_probe"})
_OF_SENDER = ("data_segments", "retransmitted_segments", "missing_segments")


class Direction(NamedTuple):
    """The direction whose data did not get through: the connection, and whether the client is the sender."""

    conn: int
    from_client: bool


@dataclass(frozen=True, slots=True)
class Outage:
    """A silence that an outage of the path explains.

    Attributes:
        direction: the direction whose sender had data to send.
        sender, receiver: addresses of the two hosts; `receiver` is the silent host.
        from_ns, to_ns: times of the receiver's last packet before the silence, and of the receiver's first packet after the silence.
        least_ns: time from the first to the last unanswered transmission; None if the capture does not show them.
        sent: number of unanswered data segments in the capture.
        timers: number of these segments that a timer sent.
        skipped: number of segments that the sender's IP IDs show to be lost before the capture point.
        undelivered_acks: number of ACKs of the receiver that did not reach the sender.
        both: whether packets of both hosts were lost.
        late: whether all of the data had arrived when the peer answered: the data was delayed, not lost.
        sure: whether this connection alone is enough evidence of the outage.
        frames: evidence.
        others: silences at the same time in other directions.
    """

    direction: Direction
    sender: str
    receiver: str
    from_ns: int
    to_ns: int
    least_ns: int | None
    sent: int
    timers: int
    skipped: int
    undelivered_acks: int
    both: bool
    late: bool
    sure: bool
    frames: tuple[int, ...]
    others: tuple[Outage, ...] = field(default=())

    @property
    def silent_ns(self) -> int:
        """Length of the silence."""
        return self.to_ns - self.from_ns

    @property
    def members(self) -> tuple[Outage, ...]:
        """This silence, and the silences at the same time in other directions."""
        return (self, *self.others)

    @property
    def connections(self) -> int:
        """Number of connections that were silent at the same time."""
        return len({one.direction.conn for one in self.members})

    @property
    def confidence(self) -> Confidence:
        """The confidence that the path failed.

        An outage is proved only if peers on several hosts are silent and the capture contains the data that they did not answer. A single
        silent host is possibly suspended.
        """
        seen = {one.receiver for one in self.members if one.sent} if len({one.sender for one in self.members}) == 1 else set()
        if len(seen) > 1:
            return Confidence.PROVED
        alone = any(one.both or (one.sent and not one.late) for one in self.members if one.sure)
        return Confidence.CONSISTENT if self.connections > 1 or alone else Confidence.POSSIBLE

    @property
    def lost_to(self) -> str:
        """The cause in the words of the verdict (`causes.Rule.lost_to`)."""
        return f"a path outage ({numbers.duration(self.silent_ns)} without a packet from {{receiver}}, from {utc(self.from_ns)})"

    def title(self) -> str:
        """Return the title of the finding: when the outage happened, how long it lasted, and on how many connections."""
        least = f"{numbers.duration(self.least_ns)} to " if self.least_ns and self.least_ns < self.silent_ns else "up to "
        many = f" on {self.connections:,} connections" if self.connections > 1 else ""
        return f"Path outage at {utc(self.from_ns)}: no packet got through for {least}{numbers.duration(self.silent_ns)}{many}"

    def mechanism(self) -> str:
        """Return sentences on how the capture shows the outage, and why the outage costs time."""
        words = [self._seen()]
        if others := [one for one in self.others if one.direction.conn != self.direction.conn]:
            listed = ", ".join(str(conn) for conn in sorted({one.direction.conn for one in others})[:10])
            words.append(f"Silent at the same time: connection{'s' if len(others) > 1 else ''} {listed}.")
        words.append(
            "Each timeout doubles the next, so the sender notices late that the path is back. A shorter minimum RTO is no cure: it only "
            "shortens the wait after the outage."
        )
        return " ".join(words)

    def _seen(self) -> str:
        silence = f"For {numbers.duration(self.silent_ns)} nothing came from {self.receiver}"
        if self.sent:
            by_timer = f", {self.timers:,} of them sent by a timer," if self.timers else ""
            arrived = "; all had arrived when the answer came" if self.late else ""
            return f"{silence}: {numbers.counted(self.sent, 'segment')} of {self.sender}{by_timer} got no answer{arrived}."
        lost = []
        if self.undelivered_acks:
            lost.append(
                f"{numbers.counted(self.undelivered_acks, 'ACK')} of {self.receiver} did not reach {self.sender}, which sent the data again"
            )
        if self.skipped:
            lost.append(f"{numbers.counted(self.skipped, 'segment')} of {self.sender} are missing before the capture point (IP IDs)")
        return f"For {numbers.duration(self.silent_ns)} the connection was silent; then {'; '.join(lost)}."

    def limits(self) -> str:
        """Return sentences on what the capture does not show about the outage."""
        one_way = "" if any(one.both for one in self.members) else ", and so does a path that fails in one direction only"
        host = (
            f"A host that was suspended as a whole looks the same{one_way}. An application that stopped looks different, because its "
            "kernel still sends ACKs. "
        )
        return (
            "The capture does not show which part of the path failed. "
            f"{'' if self.confidence is Confidence.PROVED else host}Would be disproved by: a packet from {self.receiver} during the "
            "silence; ACKs of data that is missing from the capture (a gap in the capture, not in the path)."
        )

    def remedy(self) -> tuple[str, ...]:
        """Return the remedies, the best first."""
        return (
            (
                f"look at the link at that time ({utc(self.from_ns)}): Wi-Fi roaming or loss of signal, a route change, a flapping link, a "
                "failover of a firewall, VPN or load balancer"
            ),
            "capture at the other end as well, and compare both (analyze --pair): the path is broken where the packets stop",
        )


def utc(ts_ns: int) -> str:
    """Return a time in UTC with milliseconds: `2024-01-31 12:00:00.123 UTC`."""
    return f"{numbers.utc(ts_ns)[: len('2024-01-31 12:00:00.123')]} UTC"


class Silence(NamedTuple):
    """An interval in which the receiver of a direction sent nothing."""

    direction: Direction
    from_ns: int
    to_ns: int


def found(segments: pl.LazyFrame, connections: pl.LazyFrame, conns: Collection[int], waits: pl.DataFrame) -> tuple[Outage, ...]:
    """Return the outages of some connections, longest first.

    Args:
        segments: rows of `schema.SEGMENTS`; read for these connections, and for others between their hosts.
        connections: rows of `schema.CONNECTIONS`.
        conns: connections that lose time to timeouts or loss recovery.
        waits: rows of `schema.LONGEST`, at least those of these connections.
    """
    if not conns:
        return ()
    silences = _silences(segments, conns, waits)
    if not silences:
        return ()
    hosts = _hosts(connections, {one.direction.conn for one in silences})
    rows = _rows(segments, silences)
    tried = [_outage(one, hosts[one.direction.conn], _near(rows, one)) for one in silences]
    kept = [one for one in tried if one is not None]
    return _together([one for one in kept if not _disproved(one, segments, connections)] if kept else [])


def covered(outages: Iterable[Outage], waits: pl.DataFrame) -> dict[tuple[int, bool, str], list[tuple[int, int]]]:
    """Return the waits that lie mostly within an outage: (length in ns, place) by direction and cause."""
    spans: dict[tuple[int, bool], list[tuple[int, int]]] = {}
    for outage in outages:
        for one in outage.members:
            spans.setdefault((one.direction.conn, one.direction.from_client), []).append((one.from_ns, one.to_ns))
    columns = ("conn", "from_client", "cause", "start_ns", "end_ns", "place")
    inside: dict[tuple[int, bool, str], list[tuple[int, int]]] = {}
    for conn, from_client, cause, start_ns, end_ns, place in waits[list(columns)].rows() if spans else ():
        for from_ns, to_ns in spans.get((conn, from_client), ()) if cause in CAUSES else ():
            shared_ns = min(end_ns, to_ns) - max(start_ns, from_ns)
            if place is not None and shared_ns > 0 and 2 * shared_ns >= end_ns - start_ns:
                inside.setdefault((conn, from_client, cause), []).append((end_ns - start_ns, place))
                break
    return inside


def _silences(segments: pl.LazyFrame, conns: Collection[int], waits: pl.DataFrame) -> list[Silence]:
    """Return the longest silences of a host in which its peer had data to send: the peer's timer expired, or the ledger shows a loss."""
    col = pl.col
    is_timer = (col("retransmit_trigger").cast(pl.String) == "timeout").fill_null(value=False)
    rows = (
        segments.filter(col("conn").is_in(sorted(conns)) & (is_timer | (col("since_previous_ns") >= MIN_SILENCE_NS)))
        .select("conn", "from_client", "ts_ns", "since_previous_ns", timer=is_timer)
        .collect()
        .rows()
    )
    busy: dict[Direction, list[tuple[int, int]]] = {}
    for conn, from_client, ts_ns, _, timer in rows:
        if timer:
            busy.setdefault(Direction(conn, from_client), []).append((ts_ns, ts_ns))
    lost = waits.filter(waits["cause"].cast(pl.String).is_in(list(CAUSES)))
    for conn, from_client, start_ns, end_ns in lost[["conn", "from_client", "start_ns", "end_ns"]].rows():
        if end_ns - start_ns >= MIN_SILENCE_NS:
            busy.setdefault(Direction(conn, from_client), []).append((start_ns, end_ns))
    silent = [
        Silence(direction, ts_ns - since_ns, ts_ns)
        for conn, from_client, ts_ns, since_ns, _ in rows
        if ts_ns is not None and since_ns is not None and since_ns >= MIN_SILENCE_NS
        for direction in (Direction(conn, not from_client),)
        if any(start_ns < ts_ns and end_ns > ts_ns - since_ns for start_ns, end_ns in busy.get(direction, ()))
    ]
    return sorted(silent, key=lambda one: (one.from_ns - one.to_ns, one))[:MOST]


def _hosts(connections: pl.LazyFrame, conns: Collection[int]) -> dict[int, dict[str, Any]]:
    """Return the addresses of these connections, and the counts and RTTs of both hosts."""
    names = [f"{side}_{name}" for side in SIDES for name in ("addr", "rtt_min_ns", *_OF_SENDER)]
    rows = connections.filter(pl.col("conn").is_in(sorted(conns))).select("conn", *names).collect()
    return {row["conn"]: row for row in rows.iter_rows(named=True)}


def _rows(segments: pl.LazyFrame, silences: Sequence[Silence]) -> list[dict[str, Any]]:
    """Return the segments of these connections around their silences."""
    col = pl.col
    around = pl.any_horizontal(
        *((col("conn") == one.direction.conn) & col("ts_ns").is_between(one.from_ns - BEFORE_NS, one.to_ns + AFTER_NS) for one in silences)
    )
    wanted = segments.filter(around).select(_COLUMNS).with_columns(col("kind", "retransmit_trigger").cast(pl.String))
    return wanted.collect().sort("frame").to_dicts()


def _near(rows: Sequence[dict[str, Any]], one: Silence) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the sender's data and the peer's segments around a silence."""
    here = [row for row in rows if row["conn"] == one.direction.conn and one.from_ns - BEFORE_NS <= row["ts_ns"] <= one.to_ns + AFTER_NS]
    own = [row for row in here if row["from_client"] == one.direction.from_client]
    return own, [row for row in here if row["from_client"] != one.direction.from_client]


def _outage(one: Silence, host: Mapping[str, Any], near: tuple[list[dict[str, Any]], list[dict[str, Any]]]) -> Outage | None:
    """Return the outage that explains a silence; None if something else can explain it."""
    own, peers = near
    before = [row for row in peers if row["ts_ns"] <= one.from_ns]
    after = [row for row in peers if row["ts_ns"] >= one.to_ns]
    side, other = ("client", "server") if one.direction.from_client else ("server", "client")
    rtts_ns = [host[f"{each}_rtt_min_ns"] for each in (side, other) if host[f"{each}_rtt_min_ns"]]
    rtt_ns = sum(rtts_ns)  # the capture point divides the path, so the RTT is at most the sum of both halves
    if not before or not after or one.to_ns - one.from_ns < MIN_RTTS * rtt_ns:
        return None
    first = after[0]
    if first["flags"] & _SYN_RST or first["ack"] is None or before[-1]["window_bytes"] == 0:
        return None
    if any(row["acked_unseen_bytes"] for row in after[:MIN_EVENTS]):
        return None  # the capture has a gap
    data = [row for row in own if row["payload_bytes"] and row["kind"] not in _NOT_DATA]
    inside = [row for row in data if before[-1]["frame"] < row["frame"] < first["frame"]]
    if not inside:
        return None
    names = {"sender": host[f"{side}_addr"], "receiver": host[f"{other}_addr"], "from_ns": one.from_ns, "to_ns": one.to_ns}
    seen = _seen_unanswered(inside, first, rtt_ns) or _unseen(
        one, inside, own, before, rtt_ns, counts_ids=bool(host[f"{side}_missing_segments"])
    )
    if seen is None:
        return None
    events, figures = seen
    both = figures["both"] or any(row["retransmit_trigger"] in _TIMERS for row in after if row["ts_ns"] < one.to_ns + MIN_SILENCE_NS)
    sure = events >= MIN_EVENTS and _chance(host, side, events, data, one) <= MAX_CHANCE
    return Outage(direction=one.direction, **names, **figures | {"both": both, "sure": sure})


def _seen_unanswered(inside: Sequence[dict[str, Any]], first: Mapping[str, Any], rtt_ns: int) -> tuple[int, dict[str, Any]] | None:
    """Return the number of separate unanswered transmissions, and the figures of the outage; None if no timer sent any of them."""
    timers = [row for row in inside if row["retransmit_trigger"] == "timeout"]
    if not timers:
        return None
    lost = [row for row in inside if row["ts_ns"] < timers[-1]["ts_ns"]]
    by_timer = [row for row in lost if row["retransmit_trigger"] in _TIMERS]
    if not by_timer or inside[-1]["payload_bytes"] < min(row["payload_bytes"] for row in lost):
        return None
    events, last_ns = 0, -APART_NS
    for row in lost:
        if row["ts_ns"] - last_ns >= max(APART_NS, rtt_ns):
            events, last_ns = events + 1, row["ts_ns"]
    end = max(row["seq"] + row["payload_bytes"] for row in lost)
    frames = {lost[0]["frame"], *(row["frame"] for row in by_timer), timers[-1]["frame"], first["frame"]}
    return events, {
        "least_ns": lost[-1]["ts_ns"] - lost[0]["ts_ns"],
        "sent": len(lost),
        "timers": len(by_timer),
        "skipped": 0,
        "undelivered_acks": 0,
        "both": any(row["kind"] == "spurious" for row in lost),
        "late": first["ack"] >= end,
        "frames": tuple(sorted(frames))[:EVIDENCE_FRAMES],
    }


def _unseen(
    one: Silence,
    inside: Sequence[dict[str, Any]],
    own: Sequence[dict[str, Any]],
    before: Sequence[dict[str, Any]],
    rtt_ns: int,
    *,
    counts_ids: bool,
) -> tuple[int, dict[str, Any]] | None:
    """Return the number of lost transmissions and the figures of the outage, from a capture away from the sender.

    Such a capture shows no segment during the outage. The result is None if nothing shows that packets were lost. The sender's timer must
    have expired twice: the first retransmit was lost, and the second ended the silence.
    """
    back = inside[0]
    earlier = [row for row in own if row["frame"] < back["frame"]]
    if not earlier or back["tsval"] is None:
        return None
    silent_ns = back["ts_ns"] - max(earlier[-1]["ts_ns"], one.from_ns)
    if silent_ns < max(MIN_SILENCE_NS, TWO_TIMEOUTS * (rtt_ns + TIMER_NS)):
        return None
    end = back["seq"] + back["payload_bytes"]
    is_timer = back["retransmit_trigger"] == "timeout"
    undelivered_acks = [row for row in before if row["ack"] is not None and row["ack"] >= end] if is_timer else []
    skipped = _skipped(earlier[-1], back) if counts_ids else 0
    if not undelivered_acks and not skipped:
        return None
    frames = {earlier[-1]["frame"], before[-1]["frame"], back["frame"], *(row["frame"] for row in undelivered_acks)}
    return 1 + bool(undelivered_acks) + bool(skipped), {
        "least_ns": None,
        "sent": 0,
        "timers": 0,
        "skipped": skipped,
        "undelivered_acks": len(undelivered_acks),
        "both": bool(undelivered_acks and skipped),
        "late": False,
        "frames": tuple(sorted(frames))[-EVIDENCE_FRAMES:],
    }


def _skipped(last: Mapping[str, Any], back: Mapping[str, Any]) -> int:
    """Return the number of IP IDs between two segments of the sender; 0 if the step is too large to be a count of its packets."""
    if not last["ip_id"] or not back["ip_id"]:
        return 0
    passed = (back["ip_id"] - last["ip_id"]) % 65_536 - 1
    return passed if 0 < passed < MAX_SKIPPED else 0


def _chance(host: Mapping[str, Any], side: str, events: int, data: Sequence[dict[str, Any]], one: Silence) -> float:
    """Return the number of series of `events` consecutive losses that chance produces, at the loss rate outside of the silence."""
    top = max((row["seq"] + row["payload_bytes"] for row in data if row["ts_ns"] < one.to_ns), default=0)
    mine = [row for row in data if row["ts_ns"] > one.from_ns and row["seq"] < top]
    again = sum(row["kind"] not in {"new", "out_of_order"} for row in mine)
    lost = max((host[f"{side}_retransmitted_segments"] or 0) - again, 0)
    sent = max((host[f"{side}_data_segments"] or 0) - len(mine), lost)
    return max(sent, 1) * ((lost + 1) / (sent + 2)) ** events


def _disproved(outage: Outage, segments: pl.LazyFrame, connections: pl.LazyFrame) -> bool:
    """Return whether the silent host sent a packet to the same host on another connection during the silence."""
    col, margin_ns = pl.col, outage.silent_ns // 4
    ends = (outage.sender, outage.receiver)
    pair = (
        connections.filter(
            col("client_addr").is_in(ends)
            & col("server_addr").is_in(ends)
            & (col("first_ts_ns") < outage.to_ns)
            & (col("last_ts_ns") > outage.from_ns)
            & (col("conn") != outage.direction.conn)
        )
        .select("conn", is_client=col("client_addr") == outage.receiver)
        .collect()
        .rows()
    )
    if not pair:
        return False
    sent = pl.any_horizontal(*((col("conn") == conn) & (col("from_client") == is_client) for conn, is_client in pair))
    inner = col("ts_ns").is_between(outage.from_ns + margin_ns, outage.to_ns - margin_ns)
    return not segments.filter(sent & inner).select("frame").head(1).collect().is_empty()


def _together(outages: Sequence[Outage]) -> tuple[Outage, ...]:
    """Join silences that share a host and most of their interval.

    A silence without enough evidence of its own counts only if another connection was silent at the same time.
    """
    groups: list[list[Outage]] = []
    for one in sorted(outages, key=lambda one: (not one.sure, -one.silent_ns)):
        group = next((group for group in groups if _is_same(group[0], one)), None)
        if group is None:
            groups.append([one])
        else:
            group.append(one)
    joined = [replace(first, others=tuple(rest)) for first, *rest in groups]
    return tuple(sorted((one for one in joined if one.sure or one.connections > 1), key=lambda one: -one.silent_ns))


def _is_same(one: Outage, other: Outage) -> bool:
    shared_ns = min(one.to_ns, other.to_ns) - max(one.from_ns, other.from_ns)
    shares_host = bool({one.sender, one.receiver} & {other.sender, other.receiver})
    return shares_host and shared_ns >= SAME_SHARE * min(one.silent_ns, other.silent_ns)
