"""Why a departure waited: one file per cause, tested in the order that is written here.

The order is the rule book's (B): what a capture shows plainly comes first, what is left when nothing else holds comes last; what
Nagle's rule explains no better than a full buffer is unknown before others can claim it. A wait for
which no rule holds is the program's, the other side's and the network's, split by what arrived meanwhile (`ledger`).

Others add rules by the entry point `tcptrace_lab.rules`: a `Rule`, which is tested before the ones here (docs/rules.md). Its cause is one
of `schema.CAUSES`: every instant has one of these, whoever tells it. Where it has an advice, its words are those told of that cause.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING

from tcptrace_lab.errors import RuleUnusable
from tcptrace_lab.rules import (
    application,
    close,
    congestion_window,
    delayed_ack,
    handshake,
    loss_recovery,
    nagle,
    nagle_delayed_ack,
    network,
    pacing,
    peer,
    proof,
    receiver_window,
    send_buffer,
    slow_start,
    timeout,
    unknown,
    zero_window,
)
from tcptrace_lab.rules.rule import Advice, Confidence, Doubt, Rule
from tcptrace_lab.schema import CAUSES

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Advice", "Confidence", "Doubt", "Rule", "in_order", "of_cause", "others", "proof"]

ENTRY_POINT = "tcptrace_lab.rules"
_REMEDY = "mend the rule, or uninstall its package"

ORDER = (
    handshake.RULE,
    close.RULE,
    timeout.RULE,
    zero_window.RULE,
    receiver_window.RULE,
    loss_recovery.RULE,
    nagle_delayed_ack.RULE,
    nagle.RULE,
    unknown.RULE,
    delayed_ack.RULE,
    network.RULE,
    congestion_window.RULE,
    send_buffer.RULE,
    slow_start.RULE,
    pacing.RULE,
    peer.RULE,
    application.RULE,
)


@cache
def in_order() -> tuple[Rule, ...]:
    """All rules, those of others first.

    Raises:
        RuleUnusable: an entry point gives no rule, or one for a cause that there is not.
    """
    return (*(others().values()), *ORDER)


@cache
def others() -> Mapping[str, Rule]:
    """The rules of others, in the order of their entry points' names: what they are told as where they cannot be used → the rule.

    Raises:
        RuleUnusable: as for `in_order`.
    """
    points = sorted(entry_points(group=ENTRY_POINT), key=lambda point: point.name)
    return {f"entry point {point.name} = {point.value}": _loaded(point) for point in points}


def _loaded(point: EntryPoint) -> Rule:
    where = f"entry point {point.name} = {point.value}"
    try:
        rule = point.load()
    except Exception as error:  # whatever a module of others raises
        raise RuleUnusable(f"a rule cannot be loaded: {type(error).__name__}: {error}", where=where, remedy=_REMEDY) from error
    if not isinstance(rule, Rule):
        raise RuleUnusable(f"{type(rule).__name__} is no tcptrace_lab.rules.Rule", where=where, remedy=_REMEDY)
    if rule.cause not in CAUSES:
        raise RuleUnusable(f"there is no cause {rule.cause!r}: one of {', '.join(CAUSES)}", where=where, remedy=_REMEDY)
    if rule.holds is None:
        raise RuleUnusable("the rule says of no wait that it holds", where=where, remedy=_REMEDY)
    return rule


@cache
def of_cause(cause: str) -> Rule:
    """The rule whose words are told of a cause: the first that has an advice, those of others before ours; else ours."""
    alike = [rule for rule in in_order() if rule.cause == cause]
    return next((rule for rule in alike if rule.advice is not None), alike[-1])
