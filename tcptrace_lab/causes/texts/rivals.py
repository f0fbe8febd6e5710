"""Texts for rivals: causes that explain a wait of unknown cause equally well. One text names them, another says what would tell them apart.

The column `rivals` of `schema.LEDGER` contains the names of at least two causes, separated by `|`, or null.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

NAMES: Final = {
    "application": "an application that was not sending",
    "nagle": "Nagle's algorithm",
    "send-buffer": "a full send buffer",
    "receiver-window": "a full receive window",
    "congestion-window": "the congestion window",
    "pacing": "pacing",
}
"""Cause → its words in a text, for each cause that may be a rival (`rust/src/ledger/gates/ambiguous.rs`)."""

_TOLD_APART: Final = {
    "nagle": "a run with TCP_NODELAY on {sender} shows whether Nagle's algorithm is the cause",
    "receiver-window": "a capture from the start of the connection shows the window scale",
}
_BY_THE_KERNEL: Final = "TCP_INFO on {sender} during the transfer (Linux: ss -ti) tells them apart"
"""No kernel counts the segments that Nagle's algorithm delays (docs/how-it-decides.md, 2.8). TCP_INFO shows the other causes: congestion
window, pacing rate, and whether the application or a buffer limits the sender."""


def names_of(rivals: str | None) -> tuple[str, ...]:
    """Split a value of a column `rivals` into the names of its causes."""
    return tuple(rivals.split("|")) if rivals else ()


def either(rivals: Sequence[str]) -> str:
    """Return the rivals in words: `either Nagle's algorithm or a full send buffer`."""
    words = [NAMES[cause] for cause in rivals]
    return f"either {', '.join(words[:-1])} or {words[-1]}"


def told_apart_by(rivals: Sequence[str]) -> str:
    """Return a clause on what would tell the rivals apart; `{sender}` in it is a placeholder for an address."""
    return next((words for cause, words in _TOLD_APART.items() if cause in rivals), _BY_THE_KERNEL)
