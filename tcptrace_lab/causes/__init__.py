"""The texts for each cause of waiting, one module per cause.

The engine (`rust/src/ledger/`) decides which cause a wait has; this package only describes the causes. Another Python package can add a
`Rule` through the entry point `tcptrace_lab.rules`. A rule of another package selects waits by a condition and assigns one of
`schema.CAUSES` to them (docs/rules.md, `tcptrace_lab.ledger.other_rules`). If the rule has texts (`Rule.advice`), these texts replace our
texts for that cause.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, distributions, entry_points
from typing import TYPE_CHECKING

from tcptrace_lab.causes import (
    application,
    close,
    congestion_window,
    delayed_ack,
    handshake,
    idle,
    loss_recovery,
    nagle,
    nagle_delayed_ack,
    network,
    pacing,
    peer,
    receiver_window,
    send_buffer,
    slow_start,
    timeout,
    unknown,
    zero_window,
)
from tcptrace_lab.causes.rule import Advice, Confidence, Doubt, Rule
from tcptrace_lab.causes.texts import proof
from tcptrace_lab.errors import RuleUnusable
from tcptrace_lab.schema import CAUSES

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["OURS", "Advice", "Confidence", "Doubt", "Rule", "advising", "of_cause", "others", "proof", "worth"]

ENTRY_POINT = "tcptrace_lab.rules"
_REMEDY = "fix the rule, or uninstall its package"

_RULES = (
    application.RULE,
    close.RULE,
    congestion_window.RULE,
    delayed_ack.RULE,
    handshake.RULE,
    idle.RULE,
    loss_recovery.RULE,
    nagle.RULE,
    nagle_delayed_ack.RULE,
    network.RULE,
    pacing.RULE,
    peer.RULE,
    receiver_window.RULE,
    send_buffer.RULE,
    slow_start.RULE,
    timeout.RULE,
    unknown.RULE,
    zero_window.RULE,
)

OURS: Mapping[str, Rule] = {rule.cause: rule for rule in _RULES}
"""Name of each cause in `schema.CAUSES` → our own rule."""


@cache
def others() -> Mapping[str, Rule]:
    """Return the rules of other packages, sorted by entry point.

    The keys name the entry points in error messages.

    Raises:
        RuleUnusable: an entry point cannot be loaded, or is not a rule with a condition and a known cause.
    """
    if not any(ENTRY_POINT in (package.read_text("entry_points.txt") or "") for package in distributions()):
        return {}  # a text search takes half as long as parsing the entry points of all packages
    points = sorted(entry_points(group=ENTRY_POINT), key=lambda point: point.name)
    return {f"entry point {point.name} = {point.value}": _loaded(point) for point in points}


def _loaded(point: EntryPoint) -> Rule:
    where = f"entry point {point.name} = {point.value}"
    try:
        rule = point.load()
    except Exception as error:  # the module of another package can raise any exception
        raise RuleUnusable(f"a rule cannot be loaded: {type(error).__name__}: {error}", where=where, remedy=_REMEDY) from error
    if not isinstance(rule, Rule):
        raise RuleUnusable(f"{type(rule).__name__} is not a tcptrace_lab.causes.Rule", where=where, remedy=_REMEDY)
    if rule.cause not in CAUSES:
        raise RuleUnusable(f"unknown cause {rule.cause!r}: use one of {', '.join(CAUSES)}", where=where, remedy=_REMEDY)
    if rule.holds is None:
        raise RuleUnusable("the rule has no condition (holds)", where=where, remedy=_REMEDY)
    return rule


@cache
def of_cause(cause: str) -> Rule:
    """Return the rule with the texts of a cause: the first rule of another package that has advice, otherwise our own rule."""
    theirs = (rule for rule in others().values() if rule.cause == cause and rule.advice is not None)
    return next(theirs, OURS[cause])


@cache
def advising() -> Mapping[str, Advice]:
    """Return the advice of each cause that can have a finding."""
    advices = {cause: of_cause(cause).advice for cause in CAUSES}
    return {cause: advice for cause, advice in advices.items() if advice is not None}


@cache
def worth() -> tuple[tuple[int, int, float, bool, bool], ...]:
    """Return how much time of each cause is worth a finding, as tuples for the engine (`reread.Worth`)."""
    if others():  # the engine does not know which waits the rules of other packages will select
        return tuple((place, 1, 0.0, False, False) for place in range(len(CAUSES)))
    places = {cause: place for place, cause in enumerate(CAUSES)}
    return tuple(
        (places[cause], advice.worth_ns, advice.worth_share, advice.of_client_alone, advice.of_data_alone)
        for cause, advice in advising().items()
    )
