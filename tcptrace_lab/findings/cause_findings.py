"""Makes findings from the ledger: what costs time, with evidence and remedies, the most expensive first.

A cause in one direction becomes a finding if it takes a large enough share of the direction's active time. The rules contain the texts
(`causes.rule.Advice`); this module inserts the numbers of the capture.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import polars as pl

from tcptrace_lab import schema
from tcptrace_lab.causes.rule import Case
from tcptrace_lab.causes.texts import congestion_marks, special_cases
from tcptrace_lab.connections import host_names, rates
from tcptrace_lab.findings import (
    bottleneck,
    deadlock,
    failed_attempts,
    path_findings,
    path_mtu,
    path_outage,
    shared_line,
    small_packets,
    stopped_answering,
)
from tcptrace_lab.findings.costs import Cost, advice_of, advising_rules, largest
from tcptrace_lab.findings.evidence import Inside, evidence, frames_of, kind_of, longest_and_stalls, without_waits
from tcptrace_lab.findings.finding import Finding, severity_of
from tcptrace_lab.findings.one_cause import OF_LOSS, finding_of, gain_of
from tcptrace_lab.ledger import late_acks
from tcptrace_lab.schema import SIDES
from tcptrace_lab.text.numbers import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from tcptrace_lab.causes import Rule
    from tcptrace_lab.engine.reread import Judged

Direction: TypeAlias = tuple[int, bool]
"""A direction: number of the connection, and whether the client is the sender."""

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
    "sack_permitted",
    *congestion_marks.COLUMNS,
)

_OF_RECEIVER = ("max_window_bytes", "data_segments", "stack_guess")
"""Columns of `schema.CONNECTIONS` that the texts of findings need, without the prefix of the sender (`_OF_SENDER`) or receiver
(`_OF_RECEIVER`)."""

_HANDSHAKE = (
    *("syn_to_synack_ns", "synack_to_ack_ns"),
    *("client_syn_segments", "server_syn_segments", "server_first_departure_frame", "server_first_departure_is_syn"),
)

_DIRECTION = ("conn", "from_client")

_RATES = ("reached_share", "bound_bps", "bound_by", "drain_bps", "read_bps", "link_bound_bps")
"""Columns of `schema.RATES` that the texts of findings need."""


class Advised(NamedTuple):
    """All findings of a capture, with their waits.

    Attributes:
        findings: most expensive first. Findings that cost bytes but no time come last.
        longest: rows of `schema.LEDGER` of the connections that lose time: the longest waits of each direction, in time order.
        stalls: rows of `schema.STALLS` of these connections: the longest stalls of each direction, in time order.
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
    advising = advising_rules()
    failed = failed_attempts.groups(connections)
    costs = largest(accounts, connections, advising)
    small = small_packets.findings(segments, connections)
    if not costs and not failed:
        none = (kept.no_rows() for kept in (schema.LEDGER, schema.STALLS, schema.RATES))
        return Advised((*path_findings.findings(segments, connections), *small), *none)
    conns = sorted({*(cost.conn for cost in costs), *(group.conn for group in failed)})
    asked = dict.fromkeys((*special_cases.COLUMNS, *host_names.COLUMNS, *_HANDSHAKE, *_of_sides()))
    here = pl.col("conn").is_in(conns)
    some = connections.filter(here).collect()
    judged = details(conns)
    of_rates = rates.table(some)
    known = _known(some[["conn", *asked]], judged.places.filter(here), of_rates)
    costs = [cost for cost in costs if (cost.conn, cost.from_client) in known]
    costs = [cost for cost in costs if cost.cause not in OF_LOSS or _lost_segments(known[cost.conn, cost.from_client])]
    faulty = {(cost.conn, cost.from_client) for cost in costs if advice_of(advising[cost.cause]).is_a_fault}
    away = {direction_key for direction_key in faulty if not known[direction_key]["near_sender"]}
    for busy in (shared_line.busy_ns(connections, away), bottleneck.busy_ns(connections, segments, faulty)):
        for direction_key, busy_ns in busy.items():
            known[direction_key]["line_busy_ns"] = max(busy_ns, known[direction_key].get("line_busy_ns", 0))
    directions = {(cost.conn, cost.from_client, cost.cause) for cost in costs} | {
        (group.conn, True, failed_attempts.CAUSE) for group in failed
    }
    longest = judged.waits.filter(here)
    kinds = {kind_of(row): row for row in judged.kinds.iter_rows(named=True)}
    outages = path_outage.found(segments, connections, {cost.conn for cost in costs if cost.cause in path_outage.CAUSES}, longest)
    inside = path_outage.covered(outages, longest)
    of_outages = _of_outages(outages, inside, costs)
    costs = list(_without(costs, inside, advising))
    kinds |= {kind: without_waits(kinds[kind], longest, [place for _, place in waits]) for kind, waits in inside.items()}
    waits = evidence(longest, directions, inside)
    zero = {(cost.conn, cost.from_client) for cost in costs if cost.cause == "zero-window"}
    for cost in costs:
        direction = known[cost.conn, cost.from_client]
        if cost.cause == "receiver-window" and (cost.conn, cost.from_client) in zero and special_cases.opens_late(waits[cost.kind]):
            direction["cases"] |= {Case.SLOW_READER}
            direction["read_bps"] = direction["read_bps"] or 8 * NS_PER_S * direction["unique_bytes"] / cost.active_ns
    again = {(cost.conn, cost.from_client) for cost in costs if cost.cause in OF_LOSS}
    again = {direction_key for direction_key in again if known[direction_key]["max_retransmits"] >= path_mtu.MIN_SENT - 1}
    if again:
        resent = path_mtu.retransmits(segments, again)
        silent_ns = stopped_answering.silent_ns(resent, again)
        fin_frames = stopped_answering.fin_frames(segments, {silent for silent in silent_ns if known[silent]["peer_unseen"]})
        for direction_key, ns in silent_ns.items():
            known[direction_key] |= {"silent_ns": ns, "fin_frame": fin_frames.get(direction_key)}
        for direction_key, large in path_mtu.found(segments, again, resent).items():
            known[direction_key] |= {"too_large": large, "cases": known[direction_key]["cases"] | {Case.TOO_LARGE}}
    locked = deadlock.findings(
        _late(costs), judged.locks, {direction_key: direction["receiver_stack"] for direction_key, direction in known.items()}
    )
    free = [cost for cost in costs if cost.cause == late_acks.CAUSE and (cost.conn, cost.from_client) not in locked]
    costs = list(_effective(costs, _gains_of_late_acks(free, longest, segments), advising))
    made = [
        finding_of(cost, advising[cost.cause], kinds[cost.kind], waits.get(cost.kind, ()), known[cost.conn, cost.from_client])
        for cost in costs
        if cost.cause not in deadlock.CAUSES or (cost.conn, cost.from_client) not in locked
    ]
    for group in failed:
        own = waits.get((group.conn, True, failed_attempts.CAUSE), ())
        made.append(failed_attempts.finding(group, frames_of(own if group.count == 1 else own[:1])))
    costly = sorted([*made, *locked.values(), *of_outages], key=lambda finding: -(finding.cost_ns or 0))
    all_findings = (*costly, *path_findings.findings(segments, connections, costly), *small)
    return Advised(all_findings, *longest_and_stalls(longest, some, directions), of_rates)


def _of_sides() -> Iterator[str]:
    """Yield the columns of both endpoints that the texts of findings need."""
    return (f"{side}_{name}" for side in SIDES for name in dict.fromkeys((*_OF_SENDER, *_OF_RECEIVER)))


def _known(rows: pl.DataFrame, places: pl.DataFrame, of_rates: pl.DataFrame) -> dict[Direction, dict[str, Any]]:
    """Return the values of each direction that the texts of findings need."""
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


def _own(connection: Mapping[str, Any], direction: Mapping[str, Any]) -> dict[str, Any]:
    """Return a direction with values of its connection, the special cases that apply, and the time that the path needs for its data.

    `answered` is true if the peer answers as in a request-response dialogue: it sends data at least half as often as small segments wait
    for an ACK. `numbered` is true if the IP ID of the sender's packets increases by one per packet.
    """
    side = next(side for side, from_client in SIDES.items() if from_client == direction["from_client"])
    (other,) = SIDES.keys() - {side}
    facts = {name: connection[name] for name in _HANDSHAKE} | host_names.roles(connection, side)
    facts |= {name: connection[f"{side}_{name}"] for name in _OF_SENDER} | {"max_window_bytes": connection[f"{other}_max_window_bytes"]}
    facts["max_retransmits"] = facts["max_retransmits"] or 0
    facts["numbered"] = facts["missing_segments"] is not None
    facts["answered"] = 2 * connection[f"{other}_data_segments"] >= facts["small_delayed_run"] + facts["small_delayed_over_full"]
    facts["without_sack"] = False in (connection[f"{side}_sack_permitted"], connection[f"{other}_sack_permitted"])
    facts["peer_unseen"] = connection[f"{other}_segments"] == 0
    facts["receiver_stack"] = connection[f"{other}_stack_guess"]
    on_path_ns = rates.on_path_ns(direction, connection[f"{side}_unique_bytes"])
    return {**direction, **facts, "cases": special_cases.of(connection, side), "on_path_ns": on_path_ns}


def _lost_segments(direction: Mapping[str, Any]) -> int:
    """Return the number of retransmits in a direction; without retransmits, the number of losses before the capture point (by IP ID)."""
    return int(direction["retransmitted_segments"] or direction["missing_segments"] or 0)


def _late(costs: Iterable[Cost]) -> dict[tuple[int, bool], tuple[int, int]]:
    """Return the cost of all waits for late ACKs in each direction, and the active time of the direction."""
    late: dict[tuple[int, bool], tuple[int, int]] = {}
    for cost in costs:
        if cost.cause in deadlock.CAUSES:
            direction_key = cost.conn, cost.from_client
            late[direction_key] = late.get(direction_key, (0, 0))[0] + cost.ns, cost.active_ns
    return late


def _of_outages(outages: Iterable[path_outage.Outage], inside: Inside, costs: Sequence[Cost]) -> list[Finding]:
    """Return the findings on outages of the path. An outage costs the waits that it covers in its first direction."""
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
                predicted_gain=gain_of(lost_ns, active_ns[direction]),
                source=path_outage.SOURCE,
                causes=frozenset(covered),
                connections=outage.connections,
                lost_to=outage.lost_to,
                cure=path_outage.CURE,
                is_of_waits=False,
            )
        )
    return found


def _gains_of_late_acks(costs: Sequence[Cost], longest: pl.DataFrame, segments: pl.LazyFrame) -> dict[tuple[int, bool, str], int]:
    """Return how much earlier each of these directions would have ended without its late ACKs (`late_acks.gain_ns`)."""
    if not costs:
        return {}
    waits = {
        cost: longest.filter((longest["conn"] == cost.conn) & (longest["from_client"] == cost.from_client)).to_dicts() for cost in costs
    }
    asked = {frame for own in waits.values() for frame in late_acks.frames(own)}
    here = pl.col("conn").is_in({cost.conn for cost in costs}) & pl.col("frame").is_in(asked)
    acks_ns = dict(segments.filter(here).select("frame", "ts_ns").collect().iter_rows())
    return {cost.kind: late_acks.gain_ns(own, acks_ns, cost.ns) for cost, own in waits.items()}


def _effective(costs: Iterable[Cost], gains: Mapping[tuple[int, bool, str], int], advising: Mapping[str, Rule]) -> Iterator[Cost]:
    """Yield the costs, each at most as large as its gain. Costs that are then too small for a finding are omitted."""
    for cost in costs:
        less = cost._replace(ns=min(cost.ns, gains.get(cost.kind, cost.ns)))
        if less.ns == cost.ns or _is_worth(less, advising):
            yield less


def _without(costs: Iterable[Cost], inside: Inside, advising: Mapping[str, Rule]) -> Iterator[Cost]:
    """Yield the costs without the waits within outages. Costs that are then too small for a finding are left out."""
    for cost in costs:
        rest = cost._replace(ns=cost.ns - sum(ns for ns, _ in inside.get(cost.kind, ())))
        if rest.ns == cost.ns or _is_worth(rest, advising):
            yield rest


def _is_worth(cost: Cost, advising: Mapping[str, Rule]) -> bool:
    """Return whether a cost is large enough for a finding."""
    advice = advice_of(advising[cost.cause])
    return cost.ns >= advice.worth_ns and cost.share >= advice.worth_share
