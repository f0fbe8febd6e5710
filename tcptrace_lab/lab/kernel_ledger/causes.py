"""Translates the gates of the kernel's ledger to causes of `schema.CAUSES`.

Each row of the ledger gets accepted causes, and exact causes. Only the gate that opened last determines the exact causes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tcptrace_lab.lab.kernel_ledger import both_ends, gates
from tcptrace_lab.lab.kernel_ledger.ledger import DISORDER, GROWING
from tcptrace_lab.text.numbers import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

MIN_IDLE_NS = NS_PER_S
"""Shortest pause that can count as idle. The engine has the same limit."""

NOT_COMPARED = frozenset({gates.HANDSHAKE, gates.CLOSING, gates.OPEN, both_ends.SENT_ALL})
"""Gates whose time is not compared: handshake, close, times with all gates open, and times after the last write.

While all gates are open, the kernel is working.
"""

_PLAIN = {
    gates.TIMEOUT: "timeout",
    gates.TAIL_PROBE: "timeout",
    gates.RECOVERY: "loss-recovery",
    gates.PACING: "pacing",
    gates.ZERO_WINDOW: "zero-window",
    gates.RECEIVER_WINDOW: "receiver-window",
    gates.DEFERRED_BY_WINDOW: "receiver-window",
    gates.CORK: "application",
    gates.SMALL_QUEUE: "network",
    gates.SEND_BUFFER: "send-buffer",
    gates.OWN_BOUND: "send-buffer",
}
_ALSO = {
    "timeout": {"loss-recovery"},
    "loss-recovery": {"timeout"},
    "zero-window": {"receiver-window"},
    "nagle": {"nagle-delayed-ack"},
    "nagle-delayed-ack": {"nagle"},
    "slow-start": {"congestion-window"},
    "congestion-window": {"slow-start"},
}
"""Causes that are accepted in addition to a cause."""


_OPENED_BY_ACKS = frozenset(
    {gates.CONGESTION_WINDOW, gates.RECEIVER_WINDOW, gates.DEFERRED_BY_WINDOW, gates.DEFERRED_BY_CONGESTION_WINDOW, gates.SEND_BUFFER}
)
"""Gates that an ACK opens.

If the receiver delayed this ACK, the cause `delayed-ack` is also accepted. If the ACK was in a queue of the path, `network` is also
accepted.
"""


_BEHIND_A_QUEUE = frozenset(
    {gates.NAGLE, gates.RECEIVER_WINDOW, gates.DEFERRED_BY_WINDOW, gates.DEFERRED_BY_CONGESTION_WINDOW, gates.SEND_BUFFER, gates.OWN_BOUND}
)
"""Gates whose delay does not matter while the path has a queue, because a packet that leaves the sender earlier only waits longer in the
queue.

The cause `network` is then also accepted.
"""


@dataclass(frozen=True, slots=True)
class AllowedCauses:
    """The right causes for a time span, according to the kernel's ledger.

    Attributes:
        group: short name of the gate that opened last, for tables.
        accepted: causes that are right.
        exact: causes that follow from the gate that opened last.
        strict: as `accepted`, but without `network` for times in which the sending application had not yet written.
    """

    group: str
    accepted: frozenset[str]
    exact: frozenset[str]
    strict: frozenset[str]


GROUPS = {
    gates.TIMEOUT: "loss",
    gates.TAIL_PROBE: "loss",
    gates.RECOVERY: "loss",
    gates.PACING: "pacing",
    gates.CONGESTION_WINDOW: "congestion window",
    gates.DEFERRED_BY_CONGESTION_WINDOW: "congestion window",
    gates.ZERO_WINDOW: "window",
    gates.RECEIVER_WINDOW: "window",
    gates.DEFERRED_BY_WINDOW: "window",
    gates.NAGLE: "Nagle",
    gates.CORK: "cork",
    gates.SMALL_QUEUE: "small queue",
    gates.SEND_BUFFER: "send buffer",
    gates.OWN_BOUND: "send buffer",
    both_ends.OWN_TURN: "nothing to send",
    both_ends.PEER_TURN: "nothing to send",
    both_ends.PEER_HELD: "nothing to send",
    both_ends.PEER_IN_TRANSIT: "nothing to send",
}


def allowed_causes(closed: Sequence[str], last: Sequence[str], context: Collection[str], lasted_ns: int) -> AllowedCauses | None:
    """Return the causes that are right for a row of the kernel's ledger, or None if the row is not compared.

    Args:
        closed: all closed gates of the row.
        last: the gates that opened last.
        context: further conditions at that time.
        lasted_ns: duration of the row.
    """
    if not last or any(gate in NOT_COMPARED for gate in closed):
        return None
    every = {cause for gate in closed for cause in _causes(gate, context)}
    exact = frozenset(_causes(gate, context)[0] for gate in last)
    accepted = every | {also for cause in every for also in _ALSO.get(cause, ())}
    if DISORDER in context:
        accepted |= {"loss-recovery"}
    if both_ends.ACK_HELD in context and not _OPENED_BY_ACKS.isdisjoint(closed):
        accepted |= {"delayed-ack"}
    if both_ends.ACK_QUEUE in context and not _OPENED_BY_ACKS.isdisjoint(closed):
        accepted |= {"network"}
    if both_ends.QUEUE in context and not _BEHIND_A_QUEUE.isdisjoint(closed):
        accepted |= {"network"}
    if {both_ends.OWN_TURN, both_ends.PEER_TURN}.issuperset(closed) and lasted_ns >= MIN_IDLE_NS and both_ends.UNACKED not in context:
        accepted |= {"idle"}
    strict = accepted - {"network"} if both_ends.OWN_TURN in closed else accepted
    return AllowedCauses(GROUPS[last[0]], frozenset(accepted), exact, frozenset(strict))


def _causes(gate: str, context: Collection[str]) -> tuple[str, ...]:
    """Return the causes that are right for a gate, with the exact cause in front."""
    if gate == gates.PACING and both_ends.PACED_AS_LINE in context:
        return "pacing", "network"
    if gate in _PLAIN:
        return (_PLAIN[gate],)
    if gate == gates.NAGLE:
        return ("nagle-delayed-ack" if both_ends.ACK_HELD in context else "nagle",)
    if gate in {gates.CONGESTION_WINDOW, gates.DEFERRED_BY_CONGESTION_WINDOW}:
        # While packets wait in the path's queue, the bottleneck, not the window, limits the rate.
        of_window = "slow-start" if GROWING in context else "congestion-window"
        return ("network", of_window) if both_ends.QUEUE in context else (of_window,)
    return _nothing(gate, context)


def _nothing(turn: str, context: Collection[str]) -> tuple[str, ...]:
    """Return the causes if nothing is unsent.

    The cause is the application that writes next. While this application waits for bytes in transit, the cause is `network`.
    """
    in_transit, in_round_trip = both_ends.IN_TRANSIT in context, both_ends.ROUND_TRIP in context
    if turn == both_ends.OWN_TURN:  # this application does not wait for bytes in transit, because it writes next
        return ("application", "network") if in_transit or in_round_trip else ("application",)
    if turn == both_ends.PEER_IN_TRANSIT or in_transit:
        return "network", "peer"
    return ("peer", "network") if in_round_trip or turn == both_ends.PEER_HELD else ("peer",)
