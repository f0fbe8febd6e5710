"""Words for a direction's wait for its peer. Headline, cards and bars use these words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

SAME: Final = 0.9
"""If the peer's application was silent for at least this share of the wait for its messages, texts treat the wait and the silence as one (a
heuristic)."""


def is_same(application_ns: int, peer_ns: int) -> bool:
    """Return whether the peer's application was silent for nearly all of the time in which this direction waited for the peer."""
    return application_ns >= SAME * peer_ns


def name(cause: str, account: Mapping[str, Any], side: str) -> str:
    """Return the name of a cause in the bar of a direction: `slow-start`, `peer (the server's application was not sending)`.

    Args:
        cause: key of `schema.CAUSES`.
        account: row of `schema.ACCOUNTS`.
        side: the sender of the direction, `client` or `server`.
    """
    if cause != "peer":
        return cause
    other = "server" if side == "client" else "client"
    if is_same(account[f"{other}_application_ns"] or 0, account[f"{side}_peer_ns"] or 0):
        return f"{cause} (the {other}'s application was not sending)"
    return f"{cause} (waiting for the {other})"
