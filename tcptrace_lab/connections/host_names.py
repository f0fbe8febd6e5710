"""Names of a connection's hosts and endpoints in texts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

COLUMNS: Final = ("client_addr", "client_port", "server_addr", "server_port")
"""Columns of `schema.CONNECTIONS` that name the endpoints."""

ROLES: Final = ("sender", "sending", "receiver", "receiving")
"""Placeholders for both hosts of a direction: the address of each host, and whether it is the client or the server."""


def host(connection: Mapping[str, Any], side: str) -> str:
    """Return the address of `side`. The port is added if both endpoints have the same address, as on a loopback interface."""
    same = connection["client_addr"] == connection["server_addr"]
    return endpoint(connection, side) if same else str(connection[f"{side}_addr"])


def roles(connection: Mapping[str, Any], side: str) -> dict[str, str]:
    """Return a value for each placeholder in `ROLES`, for the direction whose sender is `side`."""
    other = "server" if side == "client" else "client"
    return dict(zip(ROLES, (host(connection, side), side, host(connection, other), other), strict=True))


def endpoint(connection: Mapping[str, Any], side: str) -> str:
    """Return an endpoint as text: `10.0.0.1:80`, `[2001:db8::1]:80`."""
    address, port = connection[f"{side}_addr"], connection[f"{side}_port"]
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
