"""The verdict on a capture: one sentence that says where the time went, what to change, and how much time the change would save.

The verdict describes one direction of one connection. `choice` picks the direction with the most expensive fault. A fault counts less if
its direction has little data. `faultless` picks the direction with most data if there is no fault, or only a small fault in a direction
with little data. `Verdict.why` states the reason for the choice.

All shares are shares of the direction's active time. Three fixed phrases state the confidence: *X took 91%* (proved), *most likely X took
59%* (consistent), *possibly X took 40%* (possible). The words come from the rule of the cause (`Rule.lost_to`, `Advice.cure`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcptrace_lab.findings.finding import Severity
from tcptrace_lab.verdict.choice import Sent, as_much, heaviest
from tcptrace_lab.verdict.direction import rows_of
from tcptrace_lab.verdict.faultless import of_largest
from tcptrace_lab.verdict.faults import of_fault
from tcptrace_lab.verdict.result import Verdict

if TYPE_CHECKING:
    from tcptrace_lab.verdict.result import Analysed

__all__ = ["Verdict", "of", "sentence"]


def sentence(analysis: Analysed) -> str:
    """Return the verdict as a sentence."""
    return of(analysis).sentence


def of(analysis: Analysed) -> Verdict:
    """Return the verdict on a capture. Only a few rows of the tables are read."""
    faults = [one for one in analysis.findings if one.severity != Severity.INFO and one.cost_ns and one.causes and one.conn is not None]
    if faults:
        sent = Sent(analysis)
        together = heaviest(faults, sent)
        return of_fault(analysis, together, as_much(faults, together[0]), sent, sent.why(together, faults))
    others = [one for one in analysis.findings if one.severity != Severity.INFO and one.cost_ns]
    if others:
        best = others[0]
        row, account = rows_of(analysis, best.conn)
        return Verdict(f"{best.title}.", best.conn, best.from_client, best.cost_ns, findings=(best,), row=row, account=account)
    return of_largest(analysis)
