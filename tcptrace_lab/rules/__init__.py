"""Why a departure waited: one file per cause, tested in the order that is written here.

The order is the rule book's (B): what a capture shows plainly comes first, what is left when nothing else holds comes last; what
Nagle's rule explains no better than a full buffer is unknown before others can claim it. A wait for
which no rule holds is the program's, the other side's and the network's, split by what arrived meanwhile (`ledger`).

Others add rules by the entry point `tcptrace_lab.rules`: a `Rule`, which is tested before the ones here.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import entry_points

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
    receiver_window,
    send_buffer,
    slow_start,
    timeout,
    unknown,
    zero_window,
)
from tcptrace_lab.rules.rule import Advice, Confidence, Doubt, Rule

__all__ = ["Advice", "Confidence", "Doubt", "Rule", "in_order"]

ENTRY_POINT = "tcptrace_lab.rules"

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
    """All rules, those of others first."""
    others = tuple(point.load() for point in sorted(entry_points(group=ENTRY_POINT), key=lambda point: point.name))
    return others + ORDER
