"""Ledger → findings: what costs time, most expensive first, with evidence and remedy.

A cause in one direction becomes a finding if its share of the direction's active time is large enough. The rules supply the words
(`causes.rule.Advice`); this module fills in the numbers of the capture.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import polars as pl

from tcptrace_lab import causes, schema
from tcptrace_lab.causes.rule import Case, Confidence
from tcptrace_lab.causes.texts import special_cases
from tcptrace_lab.connections import capture_quality, rates
from tcptrace_lab.engine.sorting import beside
from tcptrace_lab.errors import RuleUnusable
from tcptrace_lab.findings import (
    advice_values,
    deadlock,
    failed_attempts,
    path_findings,
    path_mtu,
    path_outage,
    shared_line,
    small_packets,
    stopped_answering,
)
from tcptrace_lab.findings.finding import FINDING_IDS, Finding, Severity, severity_of
from tcptrace_lab.ledger import stalls
from tcptrace_lab.schema import SIDES
from tcptrace_lab.text import numbers

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from tcptrace_lab.causes import Advice, Rule
    from tcptrace_lab.engine.reread import Judged

MOST = 50
"""Maximum number of findings for one capture: the most expensive ones."""

EVIDENCE_WAITS = 10
"""Number of waits, longest first, whose frames are listed as evidence: the ends of each, and the frames that its proof names
(`causes.texts.proof`)."""

LONGEST, LONG_PART = 300, 1000
"""Maximum number of waits kept per direction: the longest, if each is at least a thousandth of the connection's life."""

Inside: TypeAlias = "Mapping[tuple[int, bool, str], Sequence[tuple[int, int]]]"
"""Waits within outages, by direction and cause: length and `place` of each (`path_outage.covered`)."""

Direction: TypeAlias = tuple[int, bool]
"""A direction: number of the connection, and whether the client is the sender."""

_RANKED = ["conn", "from_client", "cause", "start_ns", "end_ns", "place", "place_in_cause"]

RECEIVERS_OWN = frozenset({"receiver-window", "zero-window"})
"""Causes at the receiver that also slow down the draining of a queue. If one occurs, the drain rate does not bound the path."""

_OF_SENDER = (
    "unique_bytes",
    "max_retransmits",
    "retransmitted_segments",
    "max_in_flight_bytes",
    "level_flight_bytes",
    "rtt_max_ns",
    "missing_segments",
    "small_delayed_run",
    "small_delayed_over_full",
)
_OF_RECEIVER = ("max_window_bytes", "data_segments", "stack_guess")
"""Columns of `schema.CONNECTIONS` that the texts need, without the prefix of the endpoint: first those of the sender, then those of the
receiver."""

_HANDSHAKE = (
    *("syn_to_synack_ns", "synack_to_ack_ns"),
    *("client_syn_segments", "server_syn_segments", "server_first_departure_frame", "server_first_departure_is_syn"),
)

_DIRECTION = ("conn", "from_client")
_RATES = ("reached_share", "bound_bps", "bound_by", "drain_bps", "read_bps", "link_bound_bps")
"""Columns of `schema.RATES` that the texts need."""

_WINDOW = ("flight_before_bytes", "usable_window_before_bytes")
"""Columns whose sum is the receive window that the sender knew: bytes in flight, and the usable window."""

_OF_READER = frozenset({Case.SLOW_READER})

_OF_LOSS = frozenset({"timeout", "loss-recovery"})
"""Causes that segments too large for the path may explain."""

PROVED_BY = 3
"""From this many waits of one kind on, a cause is proved; a single wait is only consistent with it (docs/how-it-decides.md, 2.4)."""


LEAST_SURE_SHARE = 0.5
"""A finding is more than possible if at least this share of its time has no other explanation: the majority decides (a heuristic)."""


class Cost(NamedTuple):
    """Time that one cause takes in one direction."""

    conn: int
    from_client: bool
    cause: str
    ns: int
    active_ns: int

    @property
    def kind(self) -> tuple[int, bool, str]:
        """Direction and cause."""
        return self.conn, self.from_client, self.cause

    @property
    def share(self) -> float:
        """Share of the active time, 0 to 1."""
        return self.ns / self.active_ns


class _Sum(NamedTuple):
    """One column of `schema.ACCOUNTS`: the time of a cause in one direction, with the advice for a finding."""

    side: str
    from_client: bool
    cause: str
    advice: Advice


class Advised(NamedTuple):
    """All findings of a capture, with their waits.

    Attributes:
        findings: most expensive first; those that cost bytes but no time come last.
        longest: rows of `schema.LEDGER` of the connections that lose time: the longest of each direction, in time order.
        stalls: rows of `schema.STALLS` of these connections: the longest of each direction, in time order.
        rates: rows of `schema.RATES` of these connections.
    """

    findings: tuple[Finding, ...]
    longest: pl.DataFrame
    stalls: pl.DataFrame
    rates: pl.DataFrame


def findings(
    accounts: pl.LazyFrame, segments: pl.LazyFrame, connections: pl.LazyFrame, details: Callable[[Iterable[int]], Judged]
) -> Advised:
    """Find what costs time in a capture.

    Args:
        accounts: rows of `schema.ACCOUNTS`.
        segments: rows of `schema.SEGMENTS`; read again for connections whose findings need it.
        connections: rows of `schema.CONNECTIONS`.
        details: returns the evidence for findings on some connections (`Tables.details`).
    """
    advising = _advising()
    failed = failed_attempts.groups(connections)
    costs = _largest(accounts, connections, advising)
    small = small_packets.findings(segments, connections)
    if not costs and not failed:
        none = (kept.no_rows() for kept in (schema.LEDGER, schema.STALLS, schema.RATES))
        return Advised((*path_findings.findings(segments, connections), *small), *none)
    conns = sorted({*(cost.conn for cost in costs), *(group.conn for group in failed)})
    asked = dict.fromkeys((*special_cases.COLUMNS, *_HANDSHAKE, *_of_sides()))
    here = pl.col("conn").is_in(conns)
    some = connections.filter(here).collect()
    judged = details(conns)
    of_rates = rates.table(some)
    known = _known(some[["conn", *asked]], judged.places.filter(here), of_rates)
    costs = [cost for cost in costs if (cost.conn, cost.from_client) in known]
    costs = [cost for cost in costs if cost.cause not in _OF_LOSS or _lost_segments(known[cost.conn, cost.from_client])]
    away = {(cost.conn, cost.from_client) for cost in costs if _advice(advising[cost.cause]).is_a_fault}
    away = {direction_key for direction_key in away if not known[direction_key]["near_sender"]}
    for direction_key, busy_ns in shared_line.busy_ns(connections, away).items():
        known[direction_key]["line_busy_ns"] = busy_ns
    directions = {(cost.conn, cost.from_client, cost.cause) for cost in costs} | {
        (group.conn, True, failed_attempts.CAUSE) for group in failed
    }
    longest = judged.waits.filter(here)
    kinds = {_kind(row): row for row in judged.kinds.iter_rows(named=True)}
    outages = path_outage.found(segments, connections, {cost.conn for cost in costs if cost.cause in path_outage.CAUSES}, longest)
    inside = path_outage.covered(outages, longest)
    of_outages = _of_outages(outages, inside, costs)
    costs = list(_without(costs, inside, advising))
    kinds |= {kind: _others(kinds[kind], longest, [place for _, place in waits]) for kind, waits in inside.items()}
    waits = _evidence(longest, directions, inside)
    for kind, share in _sure_shares(longest, inside).items():
        if kind in kinds:
            kinds[kind] = {**kinds[kind], "sure_share": share}
    again = {(cost.conn, cost.from_client) for cost in costs if cost.cause in _OF_LOSS}
    again = {direction_key for direction_key in again if known[direction_key]["max_retransmits"] >= path_mtu.MIN_SENT - 1}
    for direction_key, silent_ns in stopped_answering.silent_ns(segments, again).items():
        known[direction_key] |= {"silent_ns": silent_ns}
    for direction_key, large in path_mtu.found(segments, again).items():
        known[direction_key] |= {"too_large": large, "cases": known[direction_key]["cases"] | {Case.TOO_LARGE}}
    locked = deadlock.findings(
        _late(costs), judged.locks, {direction_key: direction["receiver_stack"] for direction_key, direction in known.items()}
    )
    made = [
        _finding(cost, advising[cost.cause], kinds[cost.kind], waits.get(cost.kind, ()), known[cost.conn, cost.from_client])
        for cost in costs
        if cost.cause not in deadlock.CAUSES or (cost.conn, cost.from_client) not in locked
    ]
    for group in failed:
        own = waits.get((group.conn, True, failed_attempts.CAUSE), ())
        made.append(failed_attempts.finding(group, _frames(own if group.count == 1 else own[:1])))
    costly = sorted([*made, *locked.values(), *of_outages], key=lambda finding: -(finding.cost_ns or 0))
    all_findings = (*costly, *path_findings.findings(segments, connections, costly), *small)
    return Advised(all_findings, *_longest(longest, some, directions), of_rates)


def _advising() -> dict[str, Rule]:
    """Return the causes that are worth a finding, each with its rule."""
    for where, rule in causes.others().items():
        if rule.advice is not None and rule.advice.finding not in FINDING_IDS:
            remedy = f"use one of {', '.join(FINDING_IDS)}"
            raise RuleUnusable(f"unknown finding {rule.advice.finding!r}", where=where, remedy=remedy)
    return {cause: causes.of_cause(cause) for cause in causes.advising()}


def _of_sides() -> Iterator[str]:
    """Yield the columns of both endpoints that the texts need."""
    return (f"{side}_{name}" for side in SIDES for name in dict.fromkeys((*_OF_SENDER, *_OF_RECEIVER)))


def _known(rows: pl.DataFrame, places: pl.DataFrame, of_rates: pl.DataFrame) -> dict[Direction, dict[str, Any]]:
    """Return what the texts need about each direction: its capture point, its rates (`schema.RATES`), and values of its connection."""
    paces = {_direction_of(row): row for row in of_rates[[*_DIRECTION, *_RATES]].to_dicts()}
    of_connection = {row["conn"]: row for row in rows.to_dicts()}
    unknown = dict.fromkeys(_RATES)
    return {
        _direction_of(place): _own(
            of_connection[place["conn"]], place | {name: paces.get(_direction_of(place), unknown)[name] for name in _RATES}
        )
        for place in places.to_dicts()
    }


def _direction_of(row: Mapping[str, Any]) -> Direction:
    return row["conn"], row["from_client"]


def _kind(row: Mapping[str, Any]) -> tuple[int, bool, str]:
    return row["conn"], row["from_client"], row["cause"]


def _own(connection: Mapping[str, Any], direction: Mapping[str, Any]) -> dict[str, Any]:
    """Return a direction with values of its connection, the special cases that hold, and the time that its data need on the path.

    `answered`: the peer sent data at least half as often as small segments waited for an ACK, as in a request-response dialogue.
    `numbered`: the sender numbers its packets one by one (IP ID).
    """
    side = next(side for side, from_client in SIDES.items() if from_client == direction["from_client"])
    (other,) = SIDES.keys() - {side}
    facts = {name: connection[name] for name in _HANDSHAKE}
    facts |= {name: connection[f"{side}_{name}"] for name in _OF_SENDER} | {"max_window_bytes": connection[f"{other}_max_window_bytes"]}
    facts["max_retransmits"] = facts["max_retransmits"] or 0
    facts["numbered"] = facts["missing_segments"] is not None
    facts["answered"] = 2 * connection[f"{other}_data_segments"] >= facts["small_delayed_run"] + facts["small_delayed_over_full"]
    facts["receiver_stack"] = connection[f"{other}_stack_guess"]
    on_path_ns = rates.on_path_ns(direction, connection[f"{side}_unique_bytes"])
    return {**direction, **facts, "cases": special_cases.of(connection, side), "on_path_ns": on_path_ns}


def _lost_segments(direction: Mapping[str, Any]) -> int:
    """Return the number of segments that a direction retransmitted; if none, the number lost before the capture point (by IP ID)."""
    return int(direction["retransmitted_segments"] or direction["missing_segments"] or 0)


def _late(costs: Iterable[Cost]) -> dict[tuple[int, bool], tuple[int, int]]:
    """Return, per direction, the time that waits for late ACKs cost, and the active time."""
    late: dict[tuple[int, bool], tuple[int, int]] = {}
    for cost in costs:
        if cost.cause in deadlock.CAUSES:
            direction_key = cost.conn, cost.from_client
            late[direction_key] = late.get(direction_key, (0, 0))[0] + cost.ns, cost.active_ns
    return late


def _of_outages(outages: Iterable[path_outage.Outage], inside: Inside, costs: Sequence[Cost]) -> list[Finding]:
    """Return the findings on outages of the path. Each costs the waits of its first direction that it covers."""
    active_ns = {(cost.conn, cost.from_client): cost.active_ns for cost in costs}
    found = []
    for outage in outages:
        direction = tuple(outage.direction)
        covered = {cause: waits for (*where, cause), waits in inside.items() if tuple(where) == direction}
        lost_ns = min(sum(ns for waits in covered.values() for ns, _ in waits), outage.silent_ns)
        if not lost_ns or direction not in active_ns:
            continue
        found.append(
            Finding(
                id=path_outage.FINDING,
                severity=severity_of(lost_ns / active_ns[direction]),
                confidence=outage.confidence,
                conn=outage.direction.conn,
                from_client=outage.direction.from_client,
                cost_ns=lost_ns,
                cost_share=lost_ns / active_ns[direction],
                title=outage.title(),
                mechanism=outage.mechanism(),
                evidence_frames=outage.frames,
                limits=outage.limits(),
                remedy=outage.remedy(),
                predicted_gain=_gain_of(lost_ns, active_ns[direction]),
                source=path_outage.SOURCE,
                causes=frozenset(covered),
                connections=outage.connections,
                lost_to=outage.lost_to,
                cure=path_outage.CURE,
                is_of_waits=False,
            )
        )
    return found


def _without(costs: Iterable[Cost], inside: Inside, advising: Mapping[str, Rule]) -> Iterator[Cost]:
    """Yield the costs without the waits within outages, where the rest is still worth a finding."""
    for cost in costs:
        rest = cost._replace(ns=cost.ns - sum(ns for ns, _ in inside.get(cost.kind, ())))
        advice = _advice(advising[cost.cause])
        if rest.ns == cost.ns or (rest.ns >= advice.worth_ns and rest.share >= advice.worth_share):
            yield rest


def _others(kind: Mapping[str, Any], waits: pl.DataFrame, places: Collection[int]) -> dict[str, Any]:
    """Return a row of `schema.KINDS_OF_WAITS` without some waits.

    If not all of the other waits are known, the median is that of the longest ones.
    """
    here = (waits["conn"] == kind["conn"]) & (waits["from_client"] == kind["from_client"]) & (waits["cause"] == kind["cause"])
    others = waits.filter(here & waits["place_in_cause"].is_not_null() & ~waits["place"].is_in(list(places)))
    lengths_ns = others["end_ns"] - others["start_ns"]
    count = kind["waits"] - len(places)
    median_ns = lengths_ns.median() if count <= len(lengths_ns) else kind["median_ns"]
    return {**kind, "waits": count, "sure_waits": min(kind["sure_waits"], count), "median_ns": median_ns or 0.0}


def _evidence(
    waits: pl.DataFrame, kinds: Collection[tuple[int, bool, str]], inside: Inside
) -> dict[tuple[int, bool, str], list[dict[str, Any]]]:
    """Return the longest waits of each of these kinds (rows of `schema.LONGEST`) outside of outages, longest first."""
    found: dict[tuple[int, bool, str], list[dict[str, Any]]] = {}
    proving = waits.filter(waits["place_in_cause"] < EVIDENCE_WAITS).to_dicts()
    for row in sorted(proving, key=lambda row: row["place_in_cause"]):
        if _kind(row) in kinds and not any(row["place"] == place for _, place in inside.get(_kind(row), ())):
            found.setdefault(_kind(row), []).append(row)
    return found


def _longest(waits: pl.DataFrame, connections: pl.DataFrame, kinds: Collection[tuple[int, bool, str]]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the longest waits and the evidence waits of each direction (rows of `schema.LEDGER`), and its longest stalls.

    Both tables are in time order, with the client's direction before the server's.
    """
    lives_ns = {conn: (last or 0) - (first or 0) for conn, first, last in connections[["conn", "first_ts_ns", "last_ts_ns"]].rows()}
    kept = [
        ((conn, from_client, cause) in kinds and in_cause is not None and in_cause < EVIDENCE_WAITS)
        or (place is not None and place < LONGEST and (end_ns - start_ns) * LONG_PART >= lives_ns[conn])
        for conn, from_client, cause, start_ns, end_ns, place, in_cause in waits[_RANKED].rows()
    ]
    longest = waits[list(schema.LEDGER.names)].filter(pl.Series(kept, dtype=pl.Boolean))
    stalled = waits.filter(waits["place_in_stalls"] < LONGEST)
    listed = schema.STALLS.no_rows() if stalled.is_empty() else stalls.stalls(stalled)
    return longest.sort("conn", "from_client", "start_ns", descending=[False, True, False]), listed


def _largest(accounts: pl.LazyFrame, connections: pl.LazyFrame, advising: Mapping[str, Rule]) -> list[Cost]:
    """Return the costs that are worth a finding, largest first."""
    carried = {f"{side}_carried": pl.col(f"{side}_payload_bytes") > 0 for side in SIDES}
    life_ns = pl.when(~capture_quality.has_jumped()).then(pl.col("last_ts_ns") - pl.col("first_ts_ns"))  # not years
    life = connections.select("conn", **carried, failed=failed_attempts.FAILED, life_ns=life_ns)
    max_ns = pl.when(pl.col("life_ns").is_not_null()).then(
        pl.max_horizontal(_sum_column(side, cause) for side in SIDES for cause in advising)
    )
    min_ns = min(_advice(rule).worth_ns for rule in advising.values())
    sums = [_Sum(side, from_client, cause, _advice(rule)) for side, from_client in SIDES.items() for cause, rule in advising.items()]
    asked = {_sum_column(one.side, one.cause): one for one in sums if one.from_client or not one.advice.of_client_alone}
    best: list[Cost] = []
    for batch in beside(accounts, life, "conn"):
        costly = batch.with_columns(max_ns=max_ns).filter(pl.col("max_ns") >= min_ns)
        if costly.height > 1:
            costly = costly.sort("max_ns", descending=True)
        for some in costly.iter_slices(MOST):
            rows = some.filter(some["max_ns"] >= min_ns)
            if rows.is_empty():
                break
            costs = (cost for row in rows.iter_rows(named=True) for cost in _costs(row, asked))
            best = sorted([*best, *costs], key=lambda cost: (-cost.ns, cost.conn, not cost.from_client))[:MOST]
            if len(best) == MOST:
                min_ns = max(min_ns, best[-1].ns)
    return best


def _costs(row: Mapping[str, Any], asked: Mapping[str, _Sum]) -> Iterator[Cost]:
    """Yield the costs of one connection that are worth a finding. `row` holds its times; `asked` maps their columns to the sums."""
    for column, (side, from_client, cause, advice) in asked.items():
        ns = row[column]
        if (
            ns < advice.worth_ns
            or (advice.of_data_alone and not row[f"{side}_carried"])
            or (cause == failed_attempts.CAUSE and row["failed"])
        ):
            continue
        active_ns = row["life_ns"] - row[f"{side}_idle_ns"]
        if ns >= advice.worth_share * active_ns:
            yield Cost(row["conn"], from_client, cause, ns, active_ns)


def _sum_column(side: str, cause: str) -> str:
    """Return the name of the column of `schema.ACCOUNTS` with the time of a cause."""
    return f"{side}_{cause.replace('-', '_')}_ns"


def _advice(rule: Rule) -> Advice:
    if rule.advice is None:
        raise ValueError(f"the rule for {rule.cause} has no advice")
    return rule.advice


def _finding(cost: Cost, rule: Rule, kind: Mapping[str, Any], waits: Sequence[Mapping[str, Any]], direction: Mapping[str, Any]) -> Finding:
    needed = Case.NEEDLESS not in direction["cases"]  # else the receiver answered, and the capture lacks its segments
    stopped = needed and cost.cause == "timeout" and 2 * direction.get("silent_ns", 0) >= cost.ns
    own_cases = frozenset({Case.STOPPED_ANSWERING}) if stopped else frozenset()
    rule = rule.for_cases(direction["cases"] | own_cases)
    advice = _advice(rule)
    min_ns = max((ns for ns in _on_path(cost, direction) if ns is not None), default=None)
    savable_ns = None if min_ns is None else max(cost.active_ns - min_ns, 0)
    large: path_mtu.TooLarge | None = direction.get("too_large") if cost.cause in _OF_LOSS else None
    words = advice_values.of(cost.ns, cost.share, kind=kind, direction=direction, windows=_windows(waits), large=large)
    confidence = _confidence(rule, kind, direction)
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
        evidence_frames=tuple(sorted({*_frames(waits), *_frames_beside(waits, rule), *_answer(cost, direction)})),
        limits=f"{' '.join([advice.limits, *([doubt.limits] if doubt else [])])} Would be disproved by: {rule.refuted_by}.",
        remedy=tuple(one.format_map(words) for one in (*advice.remedy, *(doubt.remedy if doubt else ()))),
        predicted_gain=_gain(cost, savable_ns) if advice.is_a_fault else None,
        source=rule.source,
        causes=frozenset({cost.cause}),
        cases=own_cases
        | frozenset({Case.TOO_LARGE} if large else ())
        | (_OF_READER & direction["cases"] if cost.cause in RECEIVERS_OWN else frozenset()),
        savable_ns=savable_ns,
    )


def _on_path(cost: Cost, direction: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """Return how long the data need on the path, by the rate of its queue and by that of its line, where known."""
    return None if cost.cause in RECEIVERS_OWN else direction["on_path_ns"], direction.get("line_busy_ns")


def _gain(cost: Cost, savable_ns: int | None) -> str:
    """Return, as a phrase, how much a remedy can save."""
    if savable_ns is None or cost.ns <= savable_ns:
        return _gain_of(cost.ns, cost.active_ns)
    return f"at most {numbers.duration(savable_ns)} of {numbers.duration(cost.active_ns)}: the path needs the rest for the data"


def _gain_of(cost_ns: int, active_ns: int) -> str:
    return f"at most {numbers.duration(cost_ns)} of {numbers.duration(active_ns)}: upper bound if this is fixed"


def _frames(waits: Iterable[Mapping[str, Any]]) -> tuple[int, ...]:
    """Return the frames at the ends of these waits."""
    ends = {wait[name] for wait in waits for name in ("frame_before", "frame_after")}
    return tuple(sorted(ends - {None}))


def _answer(cost: Cost, direction: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the frame of the server's first SYN-ACK for a handshake finding: no wait of the client ends with it."""
    is_shown = cost.cause == failed_attempts.CAUSE and direction["server_first_departure_is_syn"]
    return (direction["server_first_departure_frame"],) if is_shown else ()


def _shown(waits: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Yield the waits that are long enough to be described with the sender's state at that time."""
    return (wait for wait in waits if (wait["wait_ns"] or 0) >= stalls.MIN_STALL_NS)


def _frames_beside(waits: Iterable[Mapping[str, Any]], rule: Rule) -> Iterator[int]:
    """Yield the known frames that the rule's proof names, apart from the ends of the waits."""
    columns = [value.frame for value in rule.proof if value.frame]
    return (wait[name] for wait in _shown(waits) for name in columns if wait[name] is not None)


def _windows(waits: Iterable[Mapping[str, Any]]) -> list[int]:
    """Return the receive windows that the sender knew during these waits, where known."""
    known = (wait for wait in _shown(waits) if all(wait[name] is not None for name in _WINDOW))
    return [sum(wait[name] for name in _WINDOW) for wait in known]


def _severity(cost: Cost, rule: Rule) -> Severity:
    if not _advice(rule).is_a_fault:
        return Severity.INFO
    return severity_of(cost.share)


def _sure_shares(waits: pl.DataFrame, inside: Inside) -> dict[tuple[int, bool, str], float]:
    """Return, for each kind of wait, the share of its time that has no other explanation, over the waits that are kept (`longest`)."""
    sums: dict[tuple[int, bool, str], list[int]] = {}
    columns = ("conn", "from_client", "cause", "place", "start_ns", "end_ns", "confidence")
    for conn, from_client, cause, place, start_ns, end_ns, confidence in waits[list(columns)].rows():
        kind = conn, from_client, cause
        if not any(place == other for _, other in inside.get(kind, ())):
            of_kind = sums.setdefault(kind, [0, 0])
            of_kind[confidence != Confidence.POSSIBLE] += end_ns - start_ns
    return {kind: sure_ns / (sure_ns + other_ns) for kind, (other_ns, sure_ns) in sums.items() if sure_ns + other_ns}


def _confidence(rule: Rule, kind: Mapping[str, Any], direction: Mapping[str, Any]) -> Confidence:
    """Return the confidence from the waits that have no other explanation (`kind`: a row of `schema.KINDS_OF_WAITS`, `sure_share`).

    One of them is enough where a wait alone proves its cause. Otherwise, they have to be at least half of the time.
    """
    sure = kind["sure_waits"]
    if sure and rule.confidence is Confidence.PROVED:
        return Confidence.PROVED
    if sure and kind.get("sure_share", 1) >= LEAST_SURE_SHARE:
        return Confidence.PROVED if rule.proved_by_repetition and sure >= PROVED_BY else rule.confidence
    return Confidence.CONSISTENT if rule.doubt and rule.doubt.consistent_if and direction[rule.doubt.consistent_if] else Confidence.POSSIBLE
