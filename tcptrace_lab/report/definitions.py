"""The terms that a page uses, with their meanings, collected from `schema`, the rules and the severity scale of findings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcptrace_lab import schema
from tcptrace_lab.causes import of_cause
from tcptrace_lab.findings.finding import SEVERITIES
from tcptrace_lab.report.parts import statistics
from tcptrace_lab.text.numbers import share

if TYPE_CHECKING:
    from tcptrace_lab.report.data_types import Definition

CONFIDENCES = {
    "proved": "the frames show the cause; no other cause is possible",
    "consistent": "the cause explains the frames, and nothing contradicts it; another cause is not excluded",
    "possible": "the cause explains the frames, but another cause explains them equally well, or the capture has defects",
}
"""Confidence of a finding → its meaning."""


def words() -> dict[str, list[Definition]]:
    """Return the definitions below each heading."""
    rules = {cause: of_cause(cause) for cause in schema.CAUSES}
    causes: list[Definition] = [_word(cause, means, rules[cause].refuted_by, rules[cause].source) for cause, means in schema.CAUSES.items()]
    return {
        "Why a direction did not send its next byte": causes,
        "Confidence of a finding": [_word(word, means) for word, means in CONFIDENCES.items()],
        "Severity of a finding": _severities(),
        "Timers that end waits": [_word(word, means) for word, means in schema.STALL_TIMERS.items()],
        "Figures of a direction": [
            _word(statistics.label(column), "; ".join(filter(None, (column.meaning, column.limits))))
            for column in (*schema.STATISTICS, *schema.SPREADS)
        ],
    }


def _word(word: str, means: str, refuted_by: str = "", source: str = "") -> Definition:
    return {"word": word, "means": means, "refuted_by": refuted_by, "source": source}


def _severities() -> list[Definition]:
    """Return the definition of each severity: the minimum share of the direction's active time that a problem takes."""
    scale = [
        _word(str(severity), f"takes {share(least)} or more of its direction's active time" if least else "takes less")
        for least, severity in SEVERITIES
    ]
    return [*scale, _word("info", "time that the application or the path needs: no TCP problem")]
