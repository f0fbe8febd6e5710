"""The phrases of a verdict: what took the time, what is fixable, how much time a fix saves, and in which connection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tcptrace_lab import causes
from tcptrace_lab.causes.rule import Case, Clause, Confidence
from tcptrace_lab.causes.texts import rivals, silence
from tcptrace_lab.connections import loss_before_capture
from tcptrace_lab.findings import deadlock, one_cause
from tcptrace_lab.findings.costs import MOST
from tcptrace_lab.findings.finding import Finding, Severity
from tcptrace_lab.schema import CAUSES
from tcptrace_lab.text import numbers
from tcptrace_lab.verdict.choice import OF_READER, cost_ns_of, family_of

if TYPE_CHECKING:
    from tcptrace_lab.verdict.direction import Direction
    from tcptrace_lab.verdict.result import Analysed

LOST_TO_READER: Final = Clause("small or zero receive window: the application on {receiver} was reading slowly")

LOST_TO_LOSSES: Final = "packet loss (loss recovery and a reduced congestion window)"

LOST_TO_NO_LOSSES: Final = "spurious retransmits (needless recovery and a reduced congestion window)"
"""What took the time, for several causes of one family. `LOST_TO_NO_LOSSES` is used if all retransmits were spurious."""

WORTH_SAVING: Final = 0.01
"""Minimum share of the active time that is worth saving (a heuristic)."""

NOT_THE_PEERS: Final = frozenset({"idle", "peer", "network", "close", "unknown"})
"""Causes in the peer's direction that do not explain why this direction waited for the peer."""


def saving(ns: int, active_ns: int) -> str:
    """Return how much time a cure saves. The time that the path needs for the data cannot be saved."""
    return f"up to {numbers.duration(ns)}" if ns >= WORTH_SAVING * active_ns else "almost nothing: the path needs this time for the data"


def fixable(direction: Direction, ns: int, lost_to: str, time: str = "") -> str:
    """Return the fixable share, with the time of which it is a share: `14% of 1.2 s is fixable: a full send buffer on 10.0.0.1`."""
    of_time = f" of {time}" if time else ""
    return f"{numbers.share(ns / direction.active_ns)}{of_time} is fixable: {direction.fill_in(lost_to)}"


def main_phrase(direction: Direction, other: Direction, where: str) -> str:
    """Return the phrase for the cause that took most of the direction's time.

    If this cause is `peer`, the phrase also says what delayed the peer, from `other` (the opposite direction). If the peer's application
    was silent for nearly all of the time (`silence.SAME`), the phrase names only the silence.
    """
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
        either = f": {rivals.either(direction.rivals)}" if direction.rivals else ""
        return f"The capture does not show what took {numbers.share(ns / direction.active_ns)} of {direction.time}{where}{either}"
    lost_to, found = rule.lost_to or CAUSES[direction.main_cause], direction.found(direction.main_cause)
    if direction.main_cause != "peer":
        return direction.phrase(lost_to, ns, direction.confidence_of_main, where, found)
    silent = [one for one in other.found("application") if one.confidence != Confidence.POSSIBLE]
    if silent and silence.is_same(other.ns["application"], ns):
        not_sending = Clause(other.fill_in(causes.of_cause("application").lost_to))
        return direction.phrase(not_sending, ns, direction.confidence_of_main, where, silent)
    return f"{direction.phrase(lost_to, ns, direction.confidence_of_main, where)}{_meanwhile(other, ns)}"


def _meanwhile(other: Direction, ns: int) -> str:
    """Return what delayed the peer for at least half of the time `ns`: `: the application on 10.0.0.2 (server) was not sending`."""
    own = {cause: spent for cause, spent in other.ns.items() if cause not in NOT_THE_PEERS}
    best = max(own, key=lambda cause: own[cause])
    if own[best] < ns / 2:
        return ""
    lost_to = causes.of_cause(best).lost_to or CAUSES[best]
    return f": {other.fill_in(lost_to)}" if isinstance(lost_to, Clause) else f", mostly because of {other.fill_in(lost_to)}"


def fault_words(faults: tuple[Finding, ...], direction: Direction) -> tuple[str, str]:
    """Return what took the time, and what fixes it. The first text still contains placeholders for `Direction.fill_in`."""
    first = faults[0]
    if first.id == deadlock.FINDING:
        return deadlock.LOST_TO, direction.fill_in(deadlock.CURE)
    if first.lost_to:
        return first.lost_to, direction.fill_in(first.cure)
    (cause,) = first.causes
    rule = causes.of_cause(cause).for_cases(direction.cases | first.cases)
    lost_to = _of_several(faults, direction, rule) if len(faults) > 1 else rule.lost_to or CAUSES[cause]
    if cause in one_cause.OF_LOSS and not (direction.cases | first.cases) & one_cause.NOT_LOST:
        lost_to = with_place(lost_to, loss_before_capture.place(direction.row, "client" if direction.from_client else "server"))
    return lost_to, direction.fill_in(rule.advice.cure) if rule.advice else ""


def with_place(lost_to: str, place: str) -> str:
    """Add where the losses were (`loss_before_capture.place`): `packet loss before the capture point (loss recovery and …)`."""
    if not place:
        return lost_to
    if lost_to == LOST_TO_LOSSES:
        return lost_to.replace("packet loss", f"packet loss {place}", 1)
    return f"{lost_to[:-1]}; losses {place})" if lost_to.endswith(")") else f"{lost_to} (losses {place})"


def _of_several(faults: tuple[Finding, ...], direction: Direction, rule: causes.Rule) -> str:
    """Return the phrase for several findings of one family of faults."""
    if family_of(faults[0]) == OF_READER:
        return LOST_TO_READER
    if faults[0].cases & {Case.TOO_LARGE, Case.STOPPED_ANSWERING}:
        return rule.lost_to
    return LOST_TO_NO_LOSSES if Case.NEEDLESS in direction.cases else LOST_TO_LOSSES


def where_phrase(analysis: Analysed, direction: Direction) -> str:
    """Return the phrase that names the connection; empty if the capture has only one connection."""
    if analysis.capture["connections"] <= 1:
        return ""
    return direction.fill_in(f" in connection {direction.row['conn']} ({{sender}} → {{receiver}})")


def other_connections(analysis: Analysed, family: frozenset[str], first: Finding) -> str:
    """Return text on other connections with findings of this family of faults: their number, and the time that they lose.

    Findings of severity `info` do not count. If the capture has more findings than are reported, the text says "at least". The text is
    empty if there are no other connections.
    """
    others = [
        one
        for one in analysis.findings
        if one.severity != Severity.INFO and one.causes and family_of(one) == family and one.conn not in {None, first.conn}
    ]
    count = sum({one.conn: one.connections for one in others}.values())
    if not count:
        return ""
    is_cut = sum(bool(one.causes) for one in analysis.findings) >= MOST
    words = f"{count:,} more connection{'s lose' if count > 1 else ' loses'} {numbers.duration(cost_ns_of(others))} for the same reason"
    return f"; at least {words}" if is_cut else f"; {words}"
