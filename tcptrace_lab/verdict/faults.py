"""The verdict on a capture with a fault: the share of the time that the fault took, and what fixes it."""

from __future__ import annotations

from tcptrace_lab.findings.finding import Finding, gain_ns
from tcptrace_lab.verdict.choice import Sent, cost_ns_of, family_of
from tcptrace_lab.verdict.direction import BY_CERTAINTY, GRADES, direction_of, is_a_fault, rows_of
from tcptrace_lab.verdict.faultless import of_largest
from tcptrace_lab.verdict.phrases import fault_words, fixable, main_phrase, other_connections, saving, where_phrase
from tcptrace_lab.verdict.result import Analysed, Verdict


def of_fault(analysis: Analysed, faults: tuple[Finding, ...], as_much: str, sent: Sent, why: str) -> Verdict:
    """Return the verdict on a fault.

    If the fault did not take most time in its direction, and its direction carries little data, the fault is only the second part of the
    verdict. The first part is about the direction with most data.

    Args:
        analysis: the analysis of the capture.
        faults: findings on one family of faults, in one direction.
        as_much: text on another fault of equal cost; can be empty.
        sent: the data of all directions.
        why: see `Verdict`.
    """
    first = faults[0]
    row, account = rows_of(analysis, first.conn)
    if first.connections > 1:
        more = other_connections(analysis, family_of(first), first) + as_much
        title = f"{first.title}{more}."
        named = (family_of(first), first.confidence)
        return Verdict(title, first.conn, first.from_client, first.cost_ns, None, None, faults, *named, why, row, account)
    direction, other = (direction_of(analysis, row, account, from_client=of) for of in (bool(first.from_client), not first.from_client))
    cost_ns, active_ns = cost_ns_of(faults), direction.active_ns
    lost_to, cure = fault_words(faults, direction)
    confidence = max((one.confidence for one in faults), key=BY_CERTAINTY.index)
    sure = direction.as_largest(family_of(first), confidence)
    where, more = where_phrase(analysis, direction), other_connections(analysis, family_of(first), first) + as_much
    saved = f"; {cure} saves {saving(gain_ns(faults) or 0, active_ns)}" if cure else ""
    own_ns = max((ns for cause, ns in direction.active.items() if cause not in family_of(first)), default=0)
    if own_ns <= cost_ns or is_a_fault(direction.main_cause):
        words, named = f"{direction.phrase(lost_to, cost_ns, sure, where, faults)}{saved}{more}.", (family_of(first), sure)
    elif sent.is_little(first):
        within = f"{where.lstrip()}, " if where else ""
        share = fixable(direction, cost_ns, lost_to, direction.time)
        return of_largest(analysis, f"{within}{GRADES[confidence]}{share}{saved}{more}", faults)
    else:
        words = f"{main_phrase(direction, other, where)}; {GRADES[confidence]}{fixable(direction, cost_ns, lost_to)}{saved}{more}."
        named = direction.main_causes, direction.confidence_of_main
    return Verdict(words, first.conn, first.from_client, cost_ns, direction.life_ns, active_ns, faults, *named, why, row, account)
