"""The verdict on a capture: one sentence that says where the time went, and how much which change would save.

It describes one direction of one connection, and says why it chose this one (`Verdict.why`). It chooses the direction with the most
expensive fault, where the faults of a direction with little data count less (`MIN_WEIGHT`). Without any fault, it chooses the direction
with most data. A share is always a share of this direction's active time. Three fixed phrases state the confidence: *X took 91%* (proved),
*most likely X took 59%* (consistent), *possibly X took 40%* (possible). The rule of a cause supplies its words (`Rule.lost_to`,
`Advice.cure`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import polars as pl

from tcptrace_lab import causes
from tcptrace_lab.causes import Confidence
from tcptrace_lab.causes.rule import WORTH_NS, WORTH_SHARE, Case, Clause
from tcptrace_lab.causes.texts import special_cases
from tcptrace_lab.connections import capture_quality
from tcptrace_lab.connections.behaviour import refused
from tcptrace_lab.findings import cause_findings, deadlock
from tcptrace_lab.findings.finding import Severity, gain_ns
from tcptrace_lab.schema import CAUSES, SIDES
from tcptrace_lab.text import numbers
from tcptrace_lab.udp import without_tcp

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tcptrace_lab.findings.finding import Finding

OF_LOSSES: Final = frozenset({"loss-recovery", "congestion-window", "timeout"})
"""Causes that belong together: a loss is repaired, and then the reduced congestion window slows the sender down."""

OF_READER: Final = cause_findings.RECEIVERS_OWN
"""Causes that are one fault if the receiving application reads slowly: the window is zero or too small."""

LOST_TO_READER: Final = Clause("small or zero receive window: the application on {receiver} was reading slowly")
LOST_TO_LOSSES: Final = "packet loss (loss recovery and a reduced congestion window)"
LOST_TO_NO_LOSSES: Final = "spurious retransmits (needless recovery and a reduced congestion window)"
"""Phrases for several of these causes together. The last one applies if segments were retransmitted although none was lost."""

MIN_WEIGHT: Final = 0.1
"""Minimum weight of a direction's faults in the choice (a heuristic). The weight is the square root of its data, divided by that of the
largest direction: a direction with a hundredth of the data, or less, counts a tenth."""

WORTH_SAVING: Final = 0.01
"""Minimum share of the active time that is worth saving (a heuristic)."""

_GRADES: Final = {Confidence.PROVED: "", Confidence.CONSISTENT: "most likely ", Confidence.POSSIBLE: "possibly "}
_BY_CERTAINTY: Final = (Confidence.PROVED, Confidence.CONSISTENT, Confidence.POSSIBLE)


class Analysed(Protocol):
    """The parts of an `Analysis` that a verdict needs."""

    @property
    def capture(self) -> Mapping[str, Any]:
        """The "capture" object of the JSON."""

    @property
    def connections(self) -> pl.LazyFrame:
        """Rows of `schema.CONNECTIONS`."""

    @property
    def accounts(self) -> pl.LazyFrame:
        """Rows of `schema.ACCOUNTS`."""

    @property
    def flows(self) -> pl.LazyFrame:
        """Rows of `schema.FLOWS`."""

    @property
    def findings(self) -> Sequence[Any]:
        """Findings, most expensive first."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on a capture.

    Attributes:
        sentence: one sentence, with a full stop.
        conn, from_client: the direction that it describes; None if it describes none. cost_ns: cost of the fault in that direction; None
        without a fault. life_ns: duration of that direction; None if it describes none. active_ns: the part of `life_ns` in which the
        direction was not idle; None if it describes none. findings: the findings that it is based on. causes: what the sentence says took
        most of the time: one cause, or those that belong together; empty if it names none. confidence: how sure the sentence is of that;
        None if it names no cause. why: the reason for choosing that direction, in a few words; empty if it describes none. row, account:
        rows of `schema.CONNECTIONS` and `schema.ACCOUNTS` of that connection; empty without one.
    """

    sentence: str
    conn: int | None = None
    from_client: bool | None = None
    cost_ns: int | None = None
    life_ns: int | None = None
    active_ns: int | None = None
    findings: tuple[Finding, ...] = ()
    causes: frozenset[str] = frozenset()
    confidence: Confidence | None = None
    why: str = ""
    row: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    account: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """The verdict under the keys of the published JSON."""
        return {
            "sentence": self.sentence,
            "connection": self.conn,
            "from_client": self.from_client,
            "chosen_because": self.why or None,
            "cost_s": None if self.cost_ns is None else self.cost_ns / numbers.NS_PER_S,
            "life_s": None if self.life_ns is None else self.life_ns / numbers.NS_PER_S,
            "active_s": None if self.active_ns is None else self.active_ns / numbers.NS_PER_S,
            "findings": [finding.id for finding in self.findings],
        }


class _Direction(NamedTuple):
    """One direction: the row of its connection, its time by cause, and its findings."""

    row: Mapping[str, Any]
    from_client: bool
    ns: Mapping[str, int]
    findings: tuple[Finding, ...]

    @property
    def life_ns(self) -> int:
        return sum(self.ns.values())

    @property
    def active_ns(self) -> int:
        return self.life_ns - self.ns.get("idle", 0)

    @property
    def time(self) -> str:
        """`45 s`, or `45 s active time (65 s idle)`: the time that shares refer to."""
        idle_ns, active = self.ns.get("idle", 0), numbers.duration(self.active_ns)
        return f"{active} active time ({numbers.duration(idle_ns)} idle)" if idle_ns else active

    @property
    def main_cause(self) -> str:
        """The cause with most time.

        The times of all causes that follow from packet loss are added up. If their sum is largest, the largest of these causes is returned.
        """
        own = {cause: ns for cause, ns in self.ns.items() if cause not in {*OF_LOSSES, "idle"}}
        lost = {cause: ns for cause, ns in self.ns.items() if cause in OF_LOSSES}
        best = max(own, key=lambda cause: own[cause], default="idle")
        return max(lost, key=lambda cause: lost[cause]) if sum(lost.values()) > own.get(best, 0) else best

    @property
    def main_causes(self) -> frozenset[str]:
        """The main cause; if it follows from packet loss, all causes that do."""
        return OF_LOSSES if self.main_cause in OF_LOSSES else frozenset({self.main_cause})

    @property
    def confidence_of_main(self) -> Confidence:
        """Confidence that this cause took most time: that of its finding, or else that of its waits."""
        confidences = [one.confidence for one in self.findings if one.causes == {self.main_cause}]
        return max(confidences, key=_BY_CERTAINTY.index, default=self.confidence_of(self.main_cause))

    def confidence_of(self, cause: str) -> Confidence:
        """Return the confidence of the waits with this cause."""
        rule = causes.of_cause(cause)
        doubted = rule.doubt is not None and rule.doubt.of_all is not None and rule.doubt.of_all(self._own)
        return Confidence.POSSIBLE if doubted else rule.confidence

    @property
    def before_close(self) -> _Direction | None:
        """The direction without the time after the first FIN and without idle time; None if nothing worth a finding remains."""
        rest = {cause: ns for cause, ns in self.ns.items() if cause not in {"close", "idle"}}
        one = self._replace(ns=rest)
        return one if one.life_ns >= WORTH_NS and one.main_cause != "unknown" else None

    @property
    def curable(self) -> str | None:
        """The cause with most time among those with a `cure` but no advice, if it is large enough and not just possible."""
        worth = [
            cause for cause, ns in self.ns.items() if ns >= max(WORTH_NS, WORTH_SHARE * self.active_ns) and causes.of_cause(cause).cure
        ]
        return max(
            (cause for cause in worth if self.confidence_of(cause) != Confidence.POSSIBLE), key=lambda cause: self.ns[cause], default=None
        )

    def _own(self, name: str) -> int:
        return int(self.row[f"{'client' if self.from_client else 'server'}_{name}"])

    def fill_in(self, words: str) -> str:
        """Fill in the addresses of both hosts, and which is client and which is server."""
        sender, receiver = ("client", "server") if self.from_client else ("server", "client")
        words = words.replace("{sending}", sender).replace("{receiving}", receiver)
        return words.replace("{sender}", self.row[f"{sender}_addr"]).replace("{receiver}", self.row[f"{receiver}_addr"])

    def phrase(self, lost_to: str, ns: int, sure: Confidence, where: str) -> str:
        """`X took 91% of 531 ms`, or for a `Clause`: `the application was not sending for 91% of 531 ms`."""
        verb = "for" if isinstance(lost_to, Clause) else "took"
        words = f"{_GRADES[sure]}{lost_to}"  # capitalize before the addresses are filled in, because addresses keep their case
        return f"{self.fill_in(words[:1].upper() + words[1:])} {verb} {numbers.share(ns / self.active_ns)} of {self.time}{where}"

    @property
    def cases(self) -> frozenset[Case]:
        return special_cases.of(self.row, "client" if self.from_client else "server")


def sentence(analysis: Analysed) -> str:
    """Return the sentence of the verdict."""
    return of(analysis).sentence


def of(analysis: Analysed) -> Verdict:
    """Return the verdict on a capture. It reads a few rows of the tables."""
    faults = [one for one in analysis.findings if one.severity != Severity.INFO and one.cost_ns and one.causes and one.conn is not None]
    if faults:
        sent = _Sent(analysis)
        together = _together(faults, sent)
        return _of_fault(analysis, together, _as_much(faults, together[0]), sent.why(together, faults))
    others = [one for one in analysis.findings if one.severity != Severity.INFO and one.cost_ns]
    if others:
        best = others[0]
        row, account = _rows(analysis, best.conn)
        return Verdict(f"{best.title}.", best.conn, best.from_client, best.cost_ns, findings=(best,), row=row, account=account)
    return _of_largest(analysis)


class _Sent:
    """How much data each direction sent, for the connections with the most expensive findings and for the whole capture."""

    def __init__(self, analysis: Analysed) -> None:
        """Query the sizes."""
        self._conns, *sides = analysis.connections.select("conn", *(f"{side}_unique_bytes" for side in SIDES)).collect().get_columns()
        self._sides = dict(zip(SIDES.values(), sides, strict=True))
        self.all_bytes = sum(int(side.sum() or 0) for side in sides)
        self.largest_bytes = max(int(side.max() or 0) for side in sides)  # type: ignore[arg-type]

    def by(self, conn: int, *, from_client: bool) -> int:
        """Bytes that this direction sent, each once."""
        return int(self._sides[from_client][int(self._conns.index_of(conn) or 0)] or 0)

    def weight(self, fault: Finding) -> float:
        """Weight of a fault: by the data of its direction, or by that of its connection if both directions spend this time together."""
        if fault.conn is None or not self.largest_bytes:
            return 1.0
        own = [self.by(fault.conn, from_client=from_client) for from_client in SIDES.values() if _is_of(fault, from_client)]
        return max(math.sqrt(max(own) / self.largest_bytes), MIN_WEIGHT)

    def why(self, chosen: Sequence[Finding], faults: Sequence[Finding]) -> str:
        """`most fixable time (477 ms) and most data (400 kB of 413 kB)`."""
        conn, from_client, cost_ns = chosen[0].conn, bool(chosen[0].from_client), _cost_ns(chosen)
        sent = 0 if conn is None else self.by(conn, from_client=from_client)
        lost: dict[tuple[int | None, bool | None], int] = {}
        for fault in faults:
            lost[fault.conn, fault.from_client] = lost.get((fault.conn, fault.from_client), 0) + (fault.cost_ns or 0)
        is_most = lost[conn, chosen[0].from_client] == max(lost.values())
        words = f"{'most ' if is_most else ''}fixable time ({numbers.duration(cost_ns)})"
        return f"{words} and {self.data(sent)}" if sent else words

    def data(self, sent: int) -> str:
        """`most data (400 kB of 413 kB)`."""
        return f"{'most ' if sent == self.largest_bytes else ''}data ({numbers.size(sent)} of {numbers.size(self.all_bytes)})"


def _is_of(fault: Finding, from_client: bool) -> bool:  # noqa: FBT001  (a direction, as everywhere)
    """Whether a fault costs this direction time: it is a fault of this direction, or its causes cost both directions the same time."""
    advices = [causes.of_cause(cause).advice for cause in fault.causes]
    return fault.from_client == from_client or any(advice is not None and advice.of_client_alone for advice in advices)


def _together(faults: Sequence[Finding], sent: _Sent) -> tuple[Finding, ...]:
    """Return the findings on the fault with the largest weight, in the direction where it has that weight; most expensive first."""
    total: dict[frozenset[str], float] = {}
    directions: dict[tuple[frozenset[str], int | None, bool | None], list[Finding]] = {}
    for fault in faults:
        family = _family(fault)
        total[family] = total.get(family, 0.0) + (fault.cost_ns or 0) * sent.weight(fault)
        directions.setdefault((family, fault.conn, fault.from_client), []).append(fault)
    best = max(total, key=lambda each: total[each])
    own = [found for (family, *_), found in directions.items() if family == best]
    heaviest = max(own, key=lambda found: _cost_ns(found) * sent.weight(found[0]))
    return tuple(heaviest)


def _totals(faults: Iterable[Finding]) -> dict[frozenset[str], int]:
    """Return the cost of each family of faults, in the order in which the families first appear."""
    total: dict[frozenset[str], int] = {}
    for fault in faults:
        total[_family(fault)] = total.get(_family(fault), 0) + (fault.cost_ns or 0)
    return total


def _family(fault: Finding) -> frozenset[str]:
    if fault.causes & OF_LOSSES:
        return OF_LOSSES
    return OF_READER if Case.SLOW_READER in fault.cases else fault.causes


def _cost_ns(faults: Iterable[Finding]) -> int:
    return sum(fault.cost_ns or 0 for fault in faults)


def _as_much(faults: Sequence[Finding], best: Finding) -> str:
    """Name another fault that costs the whole capture as much. Only the order of findings decides which of the two comes first."""
    total = _totals(faults)
    other = next((one for one in faults if _family(one) != _family(best) and total[_family(one)] == total[_family(best)]), None)
    return f"; another problem costs as much: {other.title}" if other else ""


def _of_fault(analysis: Analysed, faults: tuple[Finding, ...], as_much: str, why: str) -> Verdict:
    """Return the verdict on a fault. `as_much` names another fault of equal cost, or is empty; `why`: see `Verdict`."""
    first = faults[0]
    row, account = _rows(analysis, first.conn)
    if first.connections > 1:
        more = _more(analysis, _family(first), first) + as_much
        title = f"{first.title}{more}."
        named = (_family(first), first.confidence)
        return Verdict(title, first.conn, first.from_client, first.cost_ns, None, None, faults, *named, why, row, account)
    direction, other = (_direction(analysis, row, account, from_client=of) for of in (bool(first.from_client), not first.from_client))
    cost_ns, active_ns = _cost_ns(faults), direction.active_ns
    lost_to, cure = _words(faults, direction)
    sure = max((one.confidence for one in faults), key=_BY_CERTAINTY.index)
    where, more = _where(analysis, direction), _more(analysis, _family(first), first) + as_much
    saved = f"; {cure} saves {_saving(gain_ns(faults) or 0, active_ns)}" if cure else ""
    own_ns = max((ns for cause, ns in direction.ns.items() if cause not in _family(first)), default=0)
    if own_ns <= cost_ns or _is_a_fault(direction.main_cause):
        words, named = f"{direction.phrase(lost_to, cost_ns, sure, where)}{saved}{more}.", (_family(first), sure)
    else:
        words = f"{_most(direction, other, where)}; {_fixable(direction, cost_ns, lost_to)}{saved}{more}."
        named = direction.main_causes, direction.confidence_of_main
    return Verdict(words, first.conn, first.from_client, cost_ns, direction.life_ns, active_ns, faults, *named, why, row, account)


def _saving(ns: int, active_ns: int) -> str:
    """Return how much a cure saves; the path needs the rest of the time for the data."""
    return f"up to {numbers.duration(ns)}" if ns >= WORTH_SAVING * active_ns else "almost nothing: the path needs this time for the data"


def _fixable(direction: _Direction, ns: int, lost_to: str) -> str:
    """`14% is fixable: a full send buffer on 10.0.0.1`."""
    return f"{numbers.share(ns / direction.active_ns)} is fixable: {direction.fill_in(lost_to)}"


def _most(direction: _Direction, other: _Direction, where: str) -> str:
    """Return the phrase for the cause that took most of the direction's time. If that is `peer`, `other` shows what the peer did."""
    rule = causes.of_cause(direction.main_cause)
    if direction.main_cause == "idle":
        return f"All of {numbers.duration(direction.ns['idle'])}{where} was idle"
    ns = direction.ns[direction.main_cause]
    if direction.main_cause == "close" and (before := direction.before_close) is not None:
        lost_to = causes.of_cause(before.main_cause).lost_to or CAUSES[before.main_cause]
        closing = f"Closing the connection took {numbers.duration(ns)} of {direction.time}{where}"
        words = before.phrase(lost_to, before.ns[before.main_cause], before.confidence_of_main, "")
        return f"{closing}; before that, {words[:1].lower()}{words[1:]}"
    if direction.main_cause == "unknown":
        return f"The capture does not show what took {numbers.share(ns / direction.active_ns)} of {direction.time}{where}"
    words = direction.phrase(rule.lost_to or CAUSES[direction.main_cause], ns, direction.confidence_of_main, where)
    return f"{words}{_meanwhile(other, ns)}" if direction.main_cause == "peer" else words


NOT_THE_PEERS: Final = frozenset({"idle", "peer", "network", "close", "unknown"})
"""Causes that do not explain why the other direction had to wait."""


def _meanwhile(other: _Direction, ns: int) -> str:
    """Return what `other` did most of the time for which this one waited, as `: the application on 10.0.0.2 (server) was not sending`."""
    own = {cause: spent for cause, spent in other.ns.items() if cause not in NOT_THE_PEERS}
    best = max(own, key=lambda cause: own[cause])
    if own[best] < ns / 2:
        return ""
    lost_to = causes.of_cause(best).lost_to or CAUSES[best]
    return f": {other.fill_in(lost_to)}" if isinstance(lost_to, Clause) else f", mostly because of {other.fill_in(lost_to)}"


def _words(faults: tuple[Finding, ...], direction: _Direction) -> tuple[str, str]:
    """Return what took the time (addresses not yet filled in, see `_Way.fill_in`), and what fixes it."""
    first = faults[0]
    if first.id == deadlock.FINDING:
        return deadlock.LOST_TO, direction.fill_in(deadlock.CURE)
    if first.lost_to:
        return first.lost_to, direction.fill_in(first.cure)
    (cause,) = first.causes
    rule = causes.of_cause(cause).for_cases(direction.cases | first.cases)
    lost_to = _of_several(faults, direction, rule) if len(faults) > 1 else rule.lost_to or CAUSES[cause]
    return lost_to, direction.fill_in(rule.advice.cure) if rule.advice else ""


def _of_several(faults: tuple[Finding, ...], direction: _Direction, rule: causes.Rule) -> str:
    """Return the phrase for several findings of one family."""
    if _family(faults[0]) == OF_READER:
        return LOST_TO_READER
    if faults[0].cases & {Case.TOO_LARGE, Case.STOPPED_ANSWERING}:
        return rule.lost_to
    return LOST_TO_NO_LOSSES if Case.NEEDLESS in direction.cases else LOST_TO_LOSSES


def _where(analysis: Analysed, direction: _Direction) -> str:
    """Return the phrase that names the connection, if the capture has several."""
    if analysis.capture["connections"] <= 1:
        return ""
    ends = " → ".join(direction.row[f"{side}_addr"] for side in (list(SIDES) if direction.from_client else reversed(list(SIDES))))
    return f" in connection {direction.row['conn']} ({ends})"


def _more(analysis: Analysed, family: frozenset[str], first: Finding) -> str:
    """Return text on the other connections with findings of this family of faults: their number and the time that they lose.

    Findings of severity `info` do not count. The text is empty if there are no other connections.
    """
    others = [
        one
        for one in analysis.findings
        if one.severity != Severity.INFO and one.causes and _family(one) == family and one.conn not in {None, first.conn}
    ]
    count = sum({one.conn: one.connections for one in others}.values())
    if not count:
        return ""
    return f"; {count:,} more connection{'s lose' if count > 1 else ' loses'} {numbers.duration(_cost_ns(others))} for the same reason"


def _of_largest(analysis: Analysed) -> Verdict:
    """Return the verdict without a fault: what took most time in the direction with most data."""
    capture = analysis.capture
    if not capture["connections"]:
        return Verdict(without_tcp.sentence(capture, analysis.flows))
    if capture["first_ts_ns"] is None:
        return Verdict("This capture has no timestamps, so it cannot show where the time went.")
    data = pl.max_horizontal(*(f"{side}_unique_bytes" for side in SIDES))
    timed = analysis.connections.filter(~capture_quality.has_jumped()) if _has_jumped(capture) else analysis.connections
    most = timed.select("conn", data=data).top_k(1, by=["data", "conn"], reverse=[False, True])
    chosen = most.collect()["conn"].to_list()  # select the connection first: a full row takes 3 KB
    rows = analysis.connections.filter(pl.col("conn").is_in(chosen)).collect()
    if rows.is_empty() and _has_jumped(capture):
        return Verdict("The clock of this capture jumped while its connections lasted, so it cannot show where the time went.")
    if rows.is_empty() or not sum(rows[f"{side}_payload_bytes"][0] or 0 for side in SIDES):
        return _without_data(analysis)
    row = rows.row(0, named=True)
    account = _account(analysis, row["conn"])
    sent = _Sent(analysis)
    directions = [_direction(analysis, row, account, from_client=from_client) for from_client in SIDES.values()]
    other, direction = sorted(directions, key=lambda each: row["client_unique_bytes" if each.from_client else "server_unique_bytes"])
    if not direction.life_ns:
        return Verdict("This capture covers no time in which a sender could wait.")
    listed = [one for one in direction.findings if one.causes == {direction.main_cause}]
    words = f"{_most(direction, other, _where(analysis, direction))}; {_advice(row, direction, directions, listed)}."
    named = direction.main_causes, direction.confidence_of_main
    return Verdict(
        words,
        row["conn"],
        direction.from_client,
        None,
        direction.life_ns,
        direction.active_ns,
        tuple(listed),
        *named,
        sent.data(sent.by(row["conn"], from_client=direction.from_client)),
        row,
        account,
    )


def _has_jumped(capture: Mapping[str, Any]) -> bool:
    return any(reason["name"] == capture_quality.CLOCK_JUMP for reason in capture["quality"]["reasons"])


def _advice(row: Mapping[str, Any], direction: _Direction, directions: Sequence[_Direction], listed: Sequence[Finding]) -> str:
    """Return what to do if no finding is a fault: in the described direction, or else in the other one."""
    if direction.main_cause == "unknown" and row["clock_tick_ns"] is not None:
        return f"its clock ticks only every {numbers.duration(row['clock_tick_ns'])}: capture with a finer one"
    if _lacks_start(row, direction):
        return "start the capture before the connection opens"
    rule = causes.of_cause(direction.main_cause)
    if rule.cure and direction.confidence_of_main != Confidence.POSSIBLE:
        return f"{direction.fill_in(rule.cure)} would help"
    for each in sorted(directions, key=lambda each: each is not direction):
        if each.curable:
            curable = causes.of_cause(each.curable)
            return f"{_fixable(each, each.ns[each.curable], curable.lost_to)}; {each.fill_in(curable.cure)} would help"
    if direction.main_cause == "unknown":
        side = "client" if direction.from_client else "server"
        at_sender = row["vantage"] == side or row["vantage_known_by"] == "loopback"
        return "no TCP problem found in the rest" if at_sender else direction.fill_in("a capture at {sender} would show more")
    cure = rule.advice.cure if listed and rule.advice else ""
    return "no TCP problem found" + (f"; {direction.fill_in(cure)} would help" if cure else "")


def _lacks_start(row: Mapping[str, Any], direction: _Direction) -> bool:
    """Whether the cause that took most time is unknown and no captured SYN shows window scale, MSS and RTT."""
    return direction.main_cause == "unknown" and not any(row[f"{side}_syn_segments"] for side in SIDES)


def _without_data(analysis: Analysed) -> Verdict:
    counts = analysis.connections.select(all=pl.len(), refused=refused(pl.col).sum()).collect()
    turned_away, count = counts["refused"][0], analysis.capture["connections"]
    if not counts["all"][0]:
        return Verdict(f"None of the {count:,} connections in this capture was selected.")
    if turned_away:
        listed = f"{turned_away:,} of {count:,} {'was' if turned_away == 1 else 'were'} refused (RST in answer to the SYN)"
        return Verdict(f"No connection carried data; {listed}.")
    return Verdict("No connection in this capture carried data.")


def _rows(analysis: Analysed, conn: int | None) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Return the attributes `row` and `account` of a `Verdict` on this connection."""
    if conn is None:
        return {}, {}
    row = analysis.connections.filter(pl.col("conn") == conn).collect().row(0, named=True)
    return row, _account(analysis, conn)


def _account(analysis: Analysed, conn: int) -> Mapping[str, Any]:
    """Return the connection's row of `schema.ACCOUNTS`; empty if it has none."""
    rows = analysis.accounts.filter(pl.col("conn") == conn).collect()
    return rows.row(0, named=True) if rows.height else {}


def _direction(analysis: Analysed, row: Mapping[str, Any], account: Mapping[str, Any], *, from_client: bool) -> _Direction:
    side = next(name for name, of_client in SIDES.items() if of_client == from_client)
    ns = {cause: account.get(f"{side}_{cause.replace('-', '_')}_ns") or 0 for cause in CAUSES}
    return _Direction(
        row, from_client, ns, tuple(one for one in analysis.findings if (one.conn, one.from_client) == (row["conn"], from_client))
    )


def _is_a_fault(cause: str) -> bool:
    advice = causes.of_cause(cause).advice
    return advice is not None and advice.is_a_fault
