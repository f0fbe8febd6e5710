"""Makes the finding on one cause in one direction: the texts of the rule, the numbers of the capture, and the confidence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcptrace_lab.causes.rule import Case, Confidence
from tcptrace_lab.findings import (
    advice_values,
    failed_attempts,
    path_mtu,
)
from tcptrace_lab.findings.costs import Cost, advice_of
from tcptrace_lab.findings.evidence import frames_of
from tcptrace_lab.findings.finding import Finding, Severity, severity_of
from tcptrace_lab.ledger import late_acks, stalls
from tcptrace_lab.text import numbers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from tcptrace_lab.causes import Rule
    from tcptrace_lab.causes.rule import Doubt

RECEIVERS_OWN = frozenset({"receiver-window", "zero-window"})
"""Causes at the receiver that also slow down the draining of a queue. With such a cause, the drain rate is not a bound of the path."""

_WINDOW = ("flight_before_bytes", "usable_window_before_bytes")
"""Columns whose sum is the receive window that the sender knew: bytes in flight, and the usable window."""

_OF_READER = frozenset({Case.SLOW_READER})

OF_LOSS = frozenset({"timeout", "loss-recovery"})
"""Causes of waits. If segments are too large for the path, waits with these causes can follow."""

NOT_LOST = frozenset({Case.NEEDLESS, Case.TOO_LARGE, Case.STOPPED_ANSWERING})
"""Special cases in which texts name neither the place of the losses nor SACK: nothing was lost, only large segments were lost, or a host
stopped answering."""

NO_SACK = (
    " The connection does not use SACK: the sender does not learn which segments arrived after a lost one, so it retransmits them, too. "
    "Without SACK, a receiver may also discard them."
)
USE_SACK = "enable SACK at both hosts (RFC 2018)"
"""Text and remedy for losses if a SYN does not permit SACK."""

PROVED_BY = 3
"""Number of waits of one kind that prove a cause. A single wait is only consistent with the cause (docs/how-it-decides.md, 2.4)."""

ENOUGH_OF_TIME = 0.5
"""If proved waits take at least this share of a finding's time, the finding is proved. If proved and consistent waits together take this
share, the finding is consistent (a heuristic)."""


def finding_of(
    cost: Cost, rule: Rule, kind: Mapping[str, Any], waits: Sequence[Mapping[str, Any]], direction: Mapping[str, Any]
) -> Finding:
    """Return the finding on one cause in one direction.

    Args:
        cost: the time that the cause takes.
        rule: the rule of the cause.
        kind: the direction's row of `schema.KINDS_OF_WAITS` for this cause.
        waits: the longest waits with this cause, longest first: rows of `schema.LONGEST`.
        direction: values of the direction that the texts need.
    """
    stopped = cost.cause == "timeout" and 2 * direction.get("silent_ns", 0) >= cost.ns
    closed = (Case.PEER_CLOSED,) if direction.get("fin_frame") else ()
    own_cases = frozenset({Case.STOPPED_ANSWERING, *closed}) if stopped else frozenset()
    rule = rule.for_cases(direction["cases"] | own_cases)
    advice = advice_of(rule)
    min_ns = max((ns for ns in _on_path(cost, direction) if ns is not None), default=None)
    savable_ns = None if min_ns is None else max(cost.active_ns - min_ns, 0)
    large: path_mtu.TooLarge | None = direction.get("too_large") if cost.cause in OF_LOSS else None
    longest_ns = max((wait["end_ns"] - wait["start_ns"] for wait in waits), default=None)
    words = advice_values.of(
        cost.ns, cost.share, kind=kind, longest_ns=longest_ns, direction=direction, windows=_windows(waits), large=large
    )
    confidence = _confidence(rule, kind, direction)
    blind = cost.cause in OF_LOSS and bool(direction["without_sack"]) and not (direction["cases"] | own_cases) & NOT_LOST
    doubt = _doubt(rule, kind, direction) if confidence is not Confidence.PROVED else None
    return Finding(
        id=advice.finding,
        severity=_severity(cost, rule),
        confidence=confidence if large is None else large.confidence,
        conn=cost.conn,
        from_client=cost.from_client,
        cost_ns=cost.ns,
        cost_share=cost.share,
        title=advice.title.format_map(words),
        mechanism=advice.mechanism.format_map(words) + _without_effect(cost, kind) + (NO_SACK if blind else ""),
        evidence_frames=tuple(
            sorted(
                {
                    *frames_of(waits),
                    *_frames_beside(waits, rule),
                    *_answer(cost, direction),
                    *([direction["fin_frame"]] if stopped and closed else []),
                }
            )
        ),
        limits=f"{' '.join([advice.limits, *([doubt.limits] if doubt else [])])} Would be disproved by: {rule.refuted_by}.",
        remedy=tuple(one.format_map(words) for one in (*advice.remedy, *([USE_SACK] if blind else ()), *(doubt.remedy if doubt else ()))),
        predicted_gain=_gain(cost, savable_ns) if advice.is_a_fault else None,
        source=rule.source,
        causes=frozenset({cost.cause}),
        cases=own_cases
        | frozenset({Case.TOO_LARGE} if large else ())
        | (_OF_READER & direction["cases"] if cost.cause in RECEIVERS_OWN else frozenset()),
        savable_ns=savable_ns,
        longest_ns=longest_ns,
    )


def _without_effect(cost: Cost, kind: Mapping[str, Any]) -> str:
    """Return a sentence on the total time of waits for late ACKs, if a part of this time delayed no later segment."""
    if cost.cause != late_acks.CAUSE or cost.ns >= kind["ns"]:
        return ""
    return f" These waits took {numbers.duration(kind['ns'])} in all. The rest delayed nothing: other ACKs released what followed."


def _on_path(cost: Cost, direction: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """Return two times that the path needs for the data: by its queue's drain rate, and by its line rate. None: unknown."""
    return None if cost.cause in RECEIVERS_OWN else direction["on_path_ns"], direction.get("line_busy_ns")


def _gain(cost: Cost, savable_ns: int | None) -> str:
    """Return a phrase that says how much time a remedy can save."""
    if savable_ns is None or cost.ns <= savable_ns:
        return gain_of(cost.ns, cost.active_ns)
    return f"at most {numbers.duration(savable_ns)} of {numbers.duration(cost.active_ns)}: the path needs the rest for the data"


def gain_of(cost_ns: int, active_ns: int) -> str:
    """Return a phrase which says that fixing a cause saves at most its cost."""
    return f"at most {numbers.duration(cost_ns)} of {numbers.duration(active_ns)}: upper bound if this is fixed"


def _answer(cost: Cost, direction: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the frame of the server's first SYN-ACK for a handshake finding, because no wait of the client ends with this frame."""
    is_shown = cost.cause == failed_attempts.CAUSE and direction["server_first_departure_is_syn"]
    return (direction["server_first_departure_frame"],) if is_shown else ()


def _shown(waits: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Yield the waits that are long enough to be described with the sender's state at that time."""
    return (wait for wait in waits if (wait["wait_ns"] or 0) >= stalls.MIN_STALL_NS)


def _frames_beside(waits: Iterable[Mapping[str, Any]], rule: Rule) -> Iterator[int]:
    """Yield the known frames that the rule's proof names, without the frames at the ends of waits."""
    columns = [value.frame for value in rule.proof if value.frame]
    return (wait[name] for wait in _shown(waits) for name in columns if wait[name] is not None)


def _windows(waits: Iterable[Mapping[str, Any]]) -> list[int]:
    """Return the receive windows in bytes that the sender knew before these waits. Waits with an unknown window are skipped."""
    known = (wait for wait in _shown(waits) if all(wait[name] is not None for name in _WINDOW))
    return [sum(wait[name] for name in _WINDOW) for wait in known]


def _severity(cost: Cost, rule: Rule) -> Severity:
    if not advice_of(rule).is_a_fault:
        return Severity.INFO
    return severity_of(cost.share)


def _confidence(rule: Rule, kind: Mapping[str, Any], direction: Mapping[str, Any]) -> Confidence:
    """Return the confidence of a finding on one cause (`ENOUGH_OF_TIME`). `kind` is a row of `schema.KINDS_OF_WAITS`."""
    if rule.doubt and rule.doubt.of_all and rule.doubt.of_all(direction.__getitem__):
        return Confidence.POSSIBLE
    enough_ns = ENOUGH_OF_TIME * kind["ns"]
    if kind["proved_ns"] >= enough_ns:
        return Confidence.PROVED
    if kind["sure_ns"] >= enough_ns:
        return Confidence.PROVED if rule.proved_by_repetition and kind["sure_waits"] >= PROVED_BY else Confidence.CONSISTENT
    return Confidence.CONSISTENT if rule.doubt and rule.doubt.consistent_if and direction[rule.doubt.consistent_if] else Confidence.POSSIBLE


def _doubt(rule: Rule, kind: Mapping[str, Any], direction: Mapping[str, Any]) -> Doubt | None:
    """Return the doubt about the waits in `kind`, or about some of these waits; None if there is no doubt."""
    if rule.doubt is None:
        return None
    doubted = kind["sure_waits"] < kind["waits"] if rule.doubt.of_all is None else rule.doubt.of_all(direction.__getitem__)
    return rule.doubt if doubted else None
