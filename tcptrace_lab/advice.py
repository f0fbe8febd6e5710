"""The ledger → findings: what costs time, most expensive first, with its proof and its remedy.

A cause of one direction becomes a finding where it holds a share of that direction's life worth a line. The words are the rules'
(`rules.rule.Advice`); here they get this capture's numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from tcptrace_lab import (
    advice_words,
    attempts,
    deadlock,
    directions,
    fingerprint,
    ledger,
    numbers,
    path_findings,
    path_mtu,
    rates,
    rules,
    schema,
    small_packets,
    stalls,
)
from tcptrace_lab.errors import RuleUnusable
from tcptrace_lab.findings import FINDING_IDS, Finding, Severity, severity_of
from tcptrace_lab.ordered import beside
from tcptrace_lab.rules import cases
from tcptrace_lab.rules.rule import Case, Confidence
from tcptrace_lab.schema import SIDES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from tcptrace_lab.rules import Advice, Rule

MOST = 50
"""Findings made of one capture, the most expensive ones."""

EVIDENCE_WAITS = 10
"""Waits whose frames are named as evidence, the longest: the ends of each, and what else proves it (`rules.proof`)."""

LONGEST, LONG_PART = 300, 1000
"""Waits that are kept of each direction: the longest, if they are a thousandth of its life or more."""

_KIND = ("conn", "from_client", "cause")
_WAIT = tuple(name for name in schema.LEDGER.names if name not in _KIND)

RECEIVERS_OWN = frozenset({"receiver-window", "zero-window"})
"""Causes that slow down what drains a queue, too, so that its rate then bounds nothing."""

_SENT = tuple(f"{side}_{name}" for side in SIDES for name in ("unique_bytes", "max_resends"))

_HANDSHAKE = (
    *("syn_to_synack_ns", "synack_to_ack_ns"),
    *("client_syn_segments", "server_syn_segments", "server_first_departure_frame", "server_first_departure_is_syn"),
)

_WINDOW = ("unacked_before_bytes", "usable_before_bytes")
"""In flight, and the room beside it: the window that the sender knew of."""

_OF_READER = frozenset({Case.SLOW_READER})

_OF_LOSS = frozenset({"timeout", "loss-recovery"})
"""Causes of which segments that are too large for the path may be to blame."""

PROVED_BY = 3
"""So many waits of one kind prove what one is only consistent with (rule book B, 5)."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Time that one cause holds of one direction's life."""

    conn: int
    from_client: bool
    cause: str
    ns: int
    life_ns: int

    @property
    def share(self) -> float:
        """Of the life, 0 to 1."""
        return self.ns / self.life_ns


@dataclass(frozen=True, slots=True)
class Judged:
    """What is found in a capture.

    Attributes:
        findings: most expensive first; those that cost bytes and no time last.
        longest: rows of `schema.LEDGER` of the connections that lose time: the longest of each direction, in order of time.
        stalls: rows of `schema.STALLS` of the same connections, likewise.
    """

    findings: tuple[Finding, ...]
    longest: pl.DataFrame
    stalls: pl.DataFrame


def findings(accounts: pl.LazyFrame, segments: pl.LazyFrame, connections: pl.LazyFrame, departures: pl.LazyFrame | None = None) -> Judged:
    """Judge a capture.

    Args:
        accounts: rows of `schema.ACCOUNTS`.
        segments: rows of `schema.SEGMENTS`; read again, of connections with findings that need it.
        connections: rows of `schema.CONNECTIONS`.
        departures: those of the segments that ended a wait, with `ledger.columns_read`, if they are at hand by themselves; read again, of
            the connections that have findings.
    """
    advising = _advising()
    costs = _largest(accounts, connections, advising)
    failed = attempts.groups(connections)
    small = small_packets.findings(segments, connections)
    if not costs and not failed:
        return Judged(
            (*path_findings.findings(segments, connections), *small),
            *(pl.DataFrame(schema=kept.polars_schema()) for kept in (schema.LEDGER, schema.STALLS)),
        )
    wanted = pl.col("conn").is_in(sorted({*(cost.conn for cost in costs), *(group.conn for group in failed)}))
    some = connections.filter(wanted).collect().lazy()
    kinds, longest, stalled, long = _waits((segments if departures is None else departures).filter(wanted), some)
    ways = [(cost.conn, cost.from_client, cost.cause) for cost in costs] + [(group.conn, True, attempts.CAUSE) for group in failed]
    longest = _with_evidence(longest, kinds, ways)
    shown = _shown(long, longest)
    of_rates = rates.table(some).select(
        "conn", "from_client", "reached_share", "bound_bps", "bound_by", "drain_bps", "read_bps", "line_bound_bps"
    )
    facts = directions.of(some).join(of_rates, on=["conn", "from_client"], how="left")
    asked = dict.fromkeys((*cases.COLUMNS, *_SENT, *_HANDSHAKE))
    of_connection = {row["conn"]: row for row in some.select("conn", *asked, **fingerprint.columns()).collect().iter_rows(named=True)}
    known = {
        (row["conn"], row["from_client"]): row | _own(of_connection[row["conn"]], row) for row in facts.collect().iter_rows(named=True)
    }
    again = {(cost.conn, cost.from_client) for cost in costs if cost.cause in _OF_LOSS}
    again = {way for way in again if known[way]["max_resends"] >= path_mtu.LEAST_SENT - 1}
    for way, large in path_mtu.found(segments, again).items():
        known[way] |= {"too_large": large, "cases": known[way]["cases"] | {Case.TOO_LARGE}}
    locked = deadlock.findings(
        _late(costs), segments.filter(wanted), some, {way: direction["receiver_stack"] for way, direction in known.items()}
    )
    made = [
        _finding(cost, advising[cost.cause], kinds, longest, shown, known[cost.conn, cost.from_client])
        for cost in costs
        if cost.cause not in deadlock.CAUSES or (cost.conn, cost.from_client) not in locked
    ]
    for group in failed:
        waits = _of(longest, group.conn, from_client=True, cause=attempts.CAUSE)
        made.append(attempts.finding(group, _frames(waits if group.count == 1 else waits.head(1))))
    costly = sorted([*made, *locked.values()], key=lambda finding: -(finding.cost_ns or 0))
    return Judged((*costly, *path_findings.findings(segments, connections, costly), *small), longest, stalled)


def _advising() -> dict[str, Rule]:
    """Causes that are worth a finding, and the rule that tells of each."""
    found = {cause: rule for cause in schema.CAUSES if (rule := rules.of_cause(cause)).advice is not None}
    for where, rule in rules.others().items():
        if rule.advice is not None and rule.advice.finding not in FINDING_IDS:
            remedy = f"one of {', '.join(FINDING_IDS)}"
            raise RuleUnusable(f"there is no finding {rule.advice.finding!r}", where=where, remedy=remedy)
    return found


def _own(connection: Mapping[str, Any], direction: Mapping[str, Any]) -> dict[str, Any]:
    """What a connection says of one of its directions: the special cases that hold, and the time that its data need."""
    side = next(side for side, from_client in SIDES.items() if from_client == direction["from_client"])
    (other,) = SIDES.keys() - {side}
    told = {name: connection[name] for name in _HANDSHAKE}
    told["max_resends"] = connection[f"{side}_max_resends"] or 0
    told["receiver_stack"] = connection[f"{other}_stack_guess"]
    return told | {"cases": cases.of(connection, side), "on_path_ns": rates.on_path_ns(direction, connection[f"{side}_unique_bytes"])}


def _late(costs: Iterable[Cost]) -> dict[tuple[int, bool], tuple[int, int]]:
    """Of each direction, the time that waits for late ACKs cost, and its life."""
    late: dict[tuple[int, bool], tuple[int, int]] = {}
    for cost in costs:
        if cost.cause in deadlock.CAUSES:
            way = cost.conn, cost.from_client
            late[way] = late.get(way, (0, 0))[0] + cost.ns, cost.life_ns
    return late


def _waits(segments: pl.LazyFrame, connections: pl.LazyFrame) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame, Sequence[pl.DataFrame]]:
    """How many waits each cause has in each direction, with their median, and the longest waits of each direction, with proof and without.

    Returns:
        `conn from_client cause waits sure_waits median_ns most`, the last the longest of each kind, and rows of `schema.LEDGER` and of
        `schema.STALLS` in order of time; and the departures that are `stalls.LONG`.
    """
    long: list[pl.DataFrame] = []
    spans = ledger.collected(segments, connections, lambda rows: long.append(rows.filter(stalls.LONG))).lazy()
    spans = spans.with_columns(ns=pl.col("end_ns") - pl.col("start_ns"))
    kinds = spans.group_by("conn", "from_client", "cause").agg(
        waits=pl.len(),
        sure_waits=(pl.col("confidence") != str(Confidence.POSSIBLE)).sum(),
        median_ns=pl.col("ns").median(),
        most=pl.struct(*_WAIT).top_k_by(["ns", "start_ns"], EVIDENCE_WAITS, reverse=[False, True]),
    )
    life = connections.select("conn", life_ns=pl.col("last_ts_ns") - pl.col("first_ts_ns"))
    longest = spans.join(life, on="conn").filter(pl.col("ns") * LONG_PART >= pl.col("life_ns")).drop("life_ns")
    stalled = stalls.stalls(pl.concat(long).lazy() if long else segments, connections)
    told = kinds.collect()  # one after the other: each takes as much memory as all intervals
    return told, _longest(longest.collect(), schema.LEDGER), _longest(stalled.collect(), schema.STALLS), long


def _shown(long: Sequence[pl.DataFrame], waits: pl.DataFrame) -> dict[int, dict[str, Any]]:
    """The departure that ended one of some waits, if it is `long` → the frames beside it that proofs name, and the window it waited at."""
    columns = sorted({*_WINDOW, *(value.frame for rule in rules.in_order() for value in rule.proof if value.frame)})
    ended = waits["frame_after"].drop_nulls().implode()
    kept = [rows.filter(pl.col("frame").is_in(ended)).select("frame", *columns) for rows in long]
    return {row["frame"]: row for rows in kept for row in rows.iter_rows(named=True)}


def _longest(waits: pl.DataFrame, kept: schema.Table) -> pl.DataFrame:
    """The longest waits of each direction, in order of time."""
    place = pl.int_range(pl.len()).over("conn", "from_client")  # not a rank, which would tell equal ones apart by chance
    ranked = waits.sort(pl.col("end_ns") - pl.col("start_ns"), "start_ns", descending=[True, False])
    return _in_order(ranked.filter(place < LONGEST), kept)


def _with_evidence(longest: pl.DataFrame, kinds: pl.DataFrame, ways: Sequence[tuple[int, bool, str]]) -> pl.DataFrame:
    """The waits, and with them the longest of each `_KIND` in `ways`, so that many short ones have evidence, too."""
    named = pl.DataFrame(ways, schema=_KIND, orient="row").cast({name: kinds.schema[name] for name in _KIND})
    most = kinds.join(named, on=_KIND, how="semi").select(*_KIND, "most").explode("most").unnest("most")
    return _in_order(pl.concat([longest, most.select(longest.columns)]).unique(), schema.LEDGER)


def _in_order(waits: pl.DataFrame, kept: schema.Table) -> pl.DataFrame:
    """Waits by direction and time, in the columns of their table."""
    return waits.select(kept.names).sort("conn", "from_client", "start_ns", descending=[False, True, False])


def _largest(accounts: pl.LazyFrame, connections: pl.LazyFrame, advising: Mapping[str, Rule]) -> list[Cost]:
    carried = {f"{side}_carried": pl.col(f"{side}_payload_bytes") > 0 for side in SIDES}
    life_ns = pl.col("last_ts_ns") - pl.col("first_ts_ns")
    life = connections.select("conn", **carried, failed=attempts.FAILED, life_ns=life_ns)
    best: list[Cost] = []
    for batch in beside(accounts, life, "conn"):
        best = sorted([*best, *_costs(batch, advising)], key=lambda cost: (-cost.ns, cost.conn, not cost.from_client))[:MOST]
    return best


def _costs(rows: pl.DataFrame, advising: Mapping[str, Rule]) -> Iterator[Cost]:
    for side, from_client in SIDES.items():
        for cause, rule in advising.items():
            advice = _advice(rule)
            if advice.of_client_alone and not from_client:
                continue
            ns = pl.col(f"{side}_{cause.replace('-', '_')}_ns")
            asked = rows.filter(~pl.col("failed")) if cause == attempts.CAUSE else rows
            asked = asked.filter(f"{side}_carried") if advice.of_data_alone else asked
            worth = asked.filter((ns >= advice.worth_ns) & (ns >= advice.worth_share * pl.col("life_ns")))
            for conn, cost_ns, life_ns in (
                worth.select("conn", ns, "life_ns").top_k(MOST, by=[ns, "conn"], reverse=[False, True]).iter_rows()
            ):
                yield Cost(conn, from_client, cause, cost_ns, life_ns)


def _here(conn: int, *, from_client: bool, cause: str) -> pl.Expr:
    return (pl.col("conn") == conn) & (pl.col("from_client") == from_client) & (pl.col("cause") == cause)


def _of(waits: pl.DataFrame, conn: int, *, from_client: bool, cause: str) -> pl.DataFrame:
    """The waits of one cause in one direction, the longest first."""
    length = pl.col("end_ns") - pl.col("start_ns")
    return waits.filter(_here(conn, from_client=from_client, cause=cause)).sort(length, "start_ns", descending=[True, False])


def _advice(rule: Rule) -> Advice:
    if rule.advice is None:
        raise ValueError(f"the rule for {rule.cause} has no advice")
    return rule.advice


def _finding(
    cost: Cost,
    rule: Rule,
    kinds: pl.DataFrame,
    longest: pl.DataFrame,
    shown: Mapping[int, Mapping[str, Any]],
    direction: Mapping[str, Any],
) -> Finding:
    rule = rule.told(direction["cases"])
    advice = _advice(rule)
    here = _here(cost.conn, from_client=cost.from_client, cause=cost.cause)
    (kind,) = kinds.filter(here).iter_rows(named=True)
    waits = _of(longest, cost.conn, from_client=cost.from_client, cause=cost.cause)
    least_ns = None if cost.cause in RECEIVERS_OWN else direction["on_path_ns"]
    savable_ns = None if least_ns is None else max(cost.life_ns - least_ns, 0)
    large: path_mtu.TooLarge | None = direction.get("too_large") if cost.cause in _OF_LOSS else None
    windows = _windows(waits, shown)
    words = advice_words.of(cost.ns, cost.share, kind=kind, direction=direction, windows=windows, large=large)
    confidence = _confidence(rule, kind["sure_waits"], direction)
    doubt = rule.doubt if confidence is not Confidence.PROVED and kind["sure_waits"] < kind["waits"] else None
    return Finding(
        id=advice.finding,
        severity=_severity(cost, rule),
        confidence=confidence if large is None else large.confidence,
        conn=cost.conn,
        from_client=cost.from_client,
        cost_ns=cost.ns,
        cost_share=cost.share,
        title=advice.title.format_map(words),
        mechanism=advice.mechanism.format_map(words),
        evidence_frames=tuple(sorted({*_frames(waits), *_frames_beside(waits, rule, shown), *_answer(cost, direction)})),
        limits=f"{' '.join([advice.limits, *([doubt.limits] if doubt else [])])} Refuted by: {rule.refuted_by}.",
        remedy=tuple(one.format_map(words) for one in (*advice.remedy, *(doubt.remedy if doubt else ()))),
        predicted_gain=_gain(cost, savable_ns) if advice.is_a_fault else None,
        source=rule.source,
        causes=frozenset({cost.cause}),
        cases=frozenset({Case.TOO_LARGE} if large else ())
        | (_OF_READER & direction["cases"] if cost.cause in RECEIVERS_OWN else frozenset()),
        savable_ns=savable_ns,
    )


def _gain(cost: Cost, savable_ns: int | None) -> str:
    """What a remedy can bring, in words."""
    of = f"of {numbers.duration(cost.life_ns)}"
    if savable_ns is None or cost.ns <= savable_ns:
        return f"at most {numbers.duration(cost.ns)} {of}: the time that goes if this cause does"
    return f"at most {numbers.duration(savable_ns)} {of}: the rest of the data take on the path"


def _frames(waits: pl.DataFrame) -> tuple[int, ...]:
    ends = waits.head(EVIDENCE_WAITS).select(pl.concat_list("frame_before", "frame_after").explode()).to_series().drop_nulls()
    return tuple(ends.unique().sort().to_list())


def _answer(cost: Cost, direction: Mapping[str, Any]) -> tuple[int, ...]:
    """The frame of the server's first SYN-ACK, of the handshake: it ends no wait of the client's."""
    told = cost.cause == attempts.CAUSE and direction["server_first_departure_is_syn"]
    return (direction["server_first_departure_frame"],) if told else ()


def _frames_beside(waits: pl.DataFrame, rule: Rule, shown: Mapping[int, Mapping[str, Any]]) -> Iterator[int]:
    """Those that the rule's proof names beside the ends of the waits, as far as they are known."""
    columns = [value.frame for value in rule.proof if value.frame]
    for ended in waits.head(EVIDENCE_WAITS)["frame_after"]:
        yield from (frame for name in columns if (frame := shown.get(ended, {}).get(name)) is not None)


def _windows(waits: pl.DataFrame, shown: Mapping[int, Mapping[str, Any]]) -> list[int]:
    """The windows that the sender knew of in the waits that are evidence, as far as they are known."""
    rows = (shown.get(ended, {}) for ended in waits.head(EVIDENCE_WAITS)["frame_after"])
    return [sum(row[name] for name in _WINDOW) for row in rows if all(row.get(name) is not None for name in _WINDOW)]


def _severity(cost: Cost, rule: Rule) -> Severity:
    if not _advice(rule).is_a_fault:
        return Severity.INFO
    return severity_of(cost.share)


def _confidence(rule: Rule, sure_waits: int, direction: Mapping[str, Any]) -> Confidence:
    """By the waits that nothing else explains as well: what proves the cause proves it of those that others explain, too."""
    if rule.proved_by_repetition and sure_waits >= PROVED_BY:
        return Confidence.PROVED
    if rule.doubt is None or sure_waits:
        return rule.confidence
    return Confidence.CONSISTENT if rule.doubt.consistent_if and direction[rule.doubt.consistent_if] else Confidence.POSSIBLE
