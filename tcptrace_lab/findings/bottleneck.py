"""Computes how long a bottleneck was busy with the data of several connections, from the order of their segments.

One line carries several connections if their segments never follow each other faster than the line can carry them. While the line is full,
it delays all of these connections, no matter which of them fills it. In a capture behind the bottleneck, the arriving data show the rate of
the line. In a capture before the bottleneck, the returning ACKs show this rate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from tcptrace_lab.schema import SIDES

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

MOST, MOST_SEGMENTS = 1_000, 500_000
"""Maximum number of connections of a host that are considered, those with most data first, and maximum number of their segments."""

RUN, MIN_RUNS = 4, 50
"""Number of segments in a run, and minimum number of runs (heuristics). The duration of each run is measured. A shorter run would measure
the capture's clock; a longer run would often extend beyond a burst."""

FASTEST_SHARE = 0.05
"""The fastest runs show the rate of the line. They are the runs that together carry this share of the bytes (a heuristic). A smaller share
would depend on chance, such as interrupt coalescing. A wrong rate is usually too high, so that the busy time is too short."""

CEILING_SHARE, CEILING = 0.25, 1.15
"""If a line limits the runs, many of them are about as fast as the fastest run. So the slowest run in the fastest quarter of the bytes must
take at most 15% more time per byte than the fastest run (heuristics). Applications and paced senders show no such ceiling."""

OF_RTT = 2
"""A run must take less than the shortest RTT divided by this (a heuristic). A sender that waits for ACKs sends a fixed number of segments
per RTT, so runs of a whole RTT would show this rate and not the rate of a line."""

FULL_SHARE, MOST_AT_ONCE = 0.9, 3
"""A run counts if each segment has at least `FULL_SHARE` of the largest size, or each ACK covers at most `MOST_AT_ONCE` of the largest
segments. Small segments come at the pace of an application. An ACK of more data, as after a loss, covers data that arrived long before."""

SAME_LINE_SHARE = 0.8
"""Connections of other hosts share the line if they raise the measured rate of the line by at most a quarter (a heuristic)."""

PARTS, MOST_PARTS, LEAST_FILLED, MOST_FILLED = 10, 8, 0.8, 1.2
"""If the data of many connections are mixed, the order of the ACKs differs from the order of the data, so short runs of ACKs show no rate.
The rate measured between two hosts is then used, if all connections together fill a line of this rate: in at least `MOST_PARTS` of `PARTS`
equal parts of the time, the line is busy for `LEAST_FILLED` to `MOST_FILLED` of the part (heuristics). Connections on different lines fill
such a line only by chance."""

OTHERS_SHARE = 0.1
"""A second direction is considered if it sends at least this share of the first direction's data in the same time (a heuristic)."""

HEADER_BYTES = 54
"""Bytes of the Ethernet, IPv4 and TCP headers without options: the minimum that a segment adds to its data on the line."""

Direction = tuple[int, bool]


class _Sent(NamedTuple):
    """One direction: its hosts, the times and sizes of its data, and the RTT of the connection's handshake."""

    direction: Direction
    sender: str
    receiver: str
    first_ns: int
    last_ns: int
    payload_bytes: int
    segments: int
    rtt_ns: int | None


def busy_ns(connections: pl.LazyFrame, segments: pl.LazyFrame, directions: Collection[Direction]) -> dict[Direction, int]:
    """Return how long the bottleneck was busy while each of these directions sent. The data of all connections on the bottleneck counts.

    Args:
        connections: rows of `schema.CONNECTIONS`.
        segments: rows of `schema.SEGMENTS`; read once, and only if some of the directions overlap with others.
        directions: number of the connection, and whether the client sends.

    Returns:
        ns per direction. A direction is left out if it does not overlap with others, or if nothing shows the rate of a common line.
    """
    groups = _groups(connections, directions) if directions else {}
    wanted = {sent for of_direction in groups.values() for group in of_direction for sent in group}
    if not wanted or sum(sent.segments for sent in wanted) > MOST_SEGMENTS:
        return {}
    here = pl.col("conn").is_in(sorted({sent.direction[0] for sent in wanted}))
    rows = segments.filter(here).select("conn", "from_client", "ts_ns", "payload_bytes", "acked_bytes").collect()
    passed = _passed(rows)
    lines: dict[tuple[int, frozenset[Direction]], _Line] = {}
    busy = {}
    for own, of_direction in groups.items():
        times: list[int] = []
        for number, events in enumerate(passed):
            pair: float | None = None
            for group in of_direction:
                key = number, frozenset(sent.direction for sent in group)
                if key not in lines:
                    lines[key] = _Line.of(events, group)
                line = lines[key]
                rate = line.ns_per_byte
                pair = pair or (rate if group is of_direction[0] else None)
                if pair is not None and (line.is_filled(own, pair) if rate is None else rate >= SAME_LINE_SHARE * pair):
                    times.append(line.busy_ns(own, rate or pair))
        if times:
            busy[own.direction] = min(max(times), own.last_ns - own.first_ns)
    return busy


class _Line(NamedTuple):
    """Data of a group of directions, in the order in which it passed the capture point, and the time per byte of the fastest runs."""

    events: pl.DataFrame
    ns_per_byte: float | None

    @classmethod
    def of(cls, events: pl.DataFrame, group: Sequence[_Sent]) -> _Line:
        mine = pl.DataFrame([sent.direction for sent in group], {"conn": pl.UInt32, "from_client": pl.Boolean}, orient="row")
        some = events.join(mine, on=["conn", "from_client"], how="semi", maintain_order="left")
        rtt_ns = min((sent.rtt_ns for sent in group if sent.rtt_ns), default=0)
        return cls(some, _ns_per_byte(some, rtt_ns // OF_RTT))

    def busy_ns(self, own: _Sent, ns_per_byte: float) -> int:
        """Return how long the line was busy with the data of the whole group while the direction `own` sent."""
        meanwhile = self.events.filter(pl.col("ts_ns").is_between(own.first_ns, own.last_ns))
        return round(ns_per_byte * int(meanwhile["line_bytes"].sum()))

    def is_filled(self, own: _Sent, ns_per_byte: float) -> bool:
        """Return whether the data of the whole group fill a line of this rate, in most parts of the time in which `own` sent (`PARTS`)."""
        part_ns = (own.last_ns - own.first_ns) / PARTS
        parts = (
            self.events.filter(pl.col("ts_ns").is_between(own.first_ns, own.last_ns, closed="left"))
            .group_by(part=((pl.col("ts_ns") - own.first_ns) / part_ns).floor())
            .agg(busy=pl.col("line_bytes").sum() * ns_per_byte / part_ns)
        )
        return int(parts["busy"].is_between(LEAST_FILLED, MOST_FILLED).sum()) >= MOST_PARTS


def _groups(connections: pl.LazyFrame, directions: Collection[Direction]) -> dict[_Sent, list[list[_Sent]]]:
    """Return, for each of these directions, the groups of directions that possibly share a line with it.

    There are three groups: all directions between its two hosts, all directions to its receiver, and all directions from its sender. A
    direction is left out if no other direction sends at the same time.
    """
    ends = [f"{side}_addr" for side in SIDES]
    own = ("first_data_ts_ns", "last_data_ts_ns", "payload_bytes", "data_segments")
    rtt_ns = (pl.col("syn_to_synack_ns") + pl.col("synack_to_ack_ns")).alias("rtt_ns")
    asked = connections.select("conn", *ends, rtt_ns, *(f"{side}_{name}" for side in SIDES for name in own))
    wanted = connections.filter(pl.col("conn").is_in(sorted({conn for conn, _ in directions}))).select(ends).collect()
    hosts = pl.concat([wanted[end] for end in ends]).unique().to_list()
    rows = asked.filter(pl.any_horizontal(pl.col(end).is_in(hosts) for end in ends)).collect()
    every = list(_sent(rows.iter_rows(named=True)))
    towards: dict[str, list[_Sent]] = {}
    away: dict[str, list[_Sent]] = {}
    for sent in sorted(every, key=lambda sent: -sent.payload_bytes):
        towards.setdefault(sent.receiver, []).append(sent)
        away.setdefault(sent.sender, []).append(sent)
    found = {}
    for sent in every:
        if sent.direction not in directions:
            continue
        wider = [towards[sent.receiver][:MOST], away[sent.sender][:MOST]]
        if any(_is_beside(other, sent) for group in wider for other in group):
            pair = [other for other in towards[sent.receiver] if other.sender == sent.sender][:MOST]
            found[sent] = [pair, *(group for group in wider if len(group) > len(pair))]
    return found


def _sent(rows: Iterable[dict[str, Any]]) -> Iterator[_Sent]:
    for row in rows:
        for side, from_client in SIDES.items():
            (other,) = SIDES.keys() - {side}
            times = row[f"{side}_first_data_ts_ns"], row[f"{side}_last_data_ts_ns"]
            if row[f"{side}_payload_bytes"] and None not in times:
                hosts = row[f"{side}_addr"], row[f"{other}_addr"]
                yield _Sent(
                    (row["conn"], from_client), *hosts, *times, row[f"{side}_payload_bytes"], row[f"{side}_data_segments"], row["rtt_ns"]
                )


def _is_beside(other: _Sent, own: _Sent) -> bool:
    """Return whether the direction `other` sent a considerable amount of data while the direction `own` sent."""
    if other.direction == own.direction:
        return False
    common_ns = min(own.last_ns, other.last_ns) - max(own.first_ns, other.first_ns)
    lasted_ns = max(other.last_ns - other.first_ns, 1)
    return common_ns > 0 and other.payload_bytes * common_ns >= OTHERS_SHARE * own.payload_bytes * lasted_ns


def _passed(rows: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return two tables in time order: the data that passed the capture point, and the data that ACKs acknowledged there."""
    conn, size = pl.col("conn"), pl.col("payload_bytes").cast(pl.Int64)
    largest = int(rows.select(size.max()).item() or 0)
    sent = rows.filter(size > 0).select(conn, "from_client", "ts_ns", line_bytes=size + HEADER_BYTES, is_full=size >= FULL_SHARE * largest)
    acked = pl.col("acked_bytes").cast(pl.Int64)
    is_full = acked.is_between(FULL_SHARE * largest, MOST_AT_ONCE * largest)
    got = rows.filter(acked > 0).select(conn, ~pl.col("from_client"), "ts_ns", line_bytes=acked, is_full=is_full)
    return sent.sort("ts_ns"), got.sort("ts_ns")


def _ns_per_byte(events: pl.DataFrame, longest_ns: int) -> float | None:
    """Return the time per byte of the fastest runs; None if the runs take longer than `longest_ns`, or show no common line."""
    runs = events.select(
        ns=pl.col("ts_ns") - pl.col("ts_ns").shift(RUN),
        line_bytes=pl.col("line_bytes").rolling_sum(RUN),
        is_full=pl.col("is_full").cast(pl.Int8).rolling_sum(RUN) == RUN,
    ).filter(pl.col("ns").is_not_null() & pl.col("is_full"))
    if runs.height < MIN_RUNS:
        return None
    runs = runs.with_columns(ns_per_byte=pl.col("ns") / pl.col("line_bytes")).sort("ns_per_byte")
    passed = runs["line_bytes"].cum_sum() / int(runs["line_bytes"].sum())
    fastest, ceiling = (runs.row(int((passed >= share).arg_max() or 0), named=True) for share in (FASTEST_SHARE, CEILING_SHARE))
    is_of_line = fastest["ns"] < longest_ns and ceiling["ns_per_byte"] <= CEILING * fastest["ns_per_byte"]
    return float(fastest["ns_per_byte"]) if is_of_line else None
