"""Texts for rivals: several causes that explain one wait equally well, so that the cause of the wait is unknown.

The column `rivals` of `schema.LEDGER` joins the names of at least two causes with `|`, or is null.
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
"""Name of each cause that can be a rival (`rust/src/ledger/gates/ambiguous.rs`) → its words in a text."""

_TOLD_APART: Final = {
    "nagle": "a run with TCP_NODELAY on {sender} shows whether Nagle's algorithm is the cause",
    "receiver-window": "a capture from the start of the connection shows the window scale",
}
_BY_THE_KERNEL: Final = "TCP_INFO on {sender} during the transfer (Linux: ss -ti) tells them apart"
"""What distinguishes all other rivals. TCP_INFO shows the congestion window, the pacing rate, and whether the application or a buffer
limits the sender. No kernel counts the segments that Nagle's algorithm delays (docs/how-it-decides.md, 2.8)."""


def names_of(rivals: str | None) -> tuple[str, ...]:
    """Split a value of the column `rivals` into the names of the causes."""
    return tuple(rivals.split("|")) if rivals else ()


def either(rivals: Sequence[str]) -> str:
    """Return the rivals in words: `either Nagle's algorithm or a full send buffer`."""
    words = [NAMES[cause] for cause in rivals]
    return f"either {', '.join(words[:-1])} or {words[-1]}"


def told_apart_by(rivals: Sequence[str]) -> str:
    """Return a clause on what would show which rival is the cause. Its placeholder `{sender}` stands for an address."""
    return next((words for cause, words in _TOLD_APART.items() if cause in rivals), _BY_THE_KERNEL)
