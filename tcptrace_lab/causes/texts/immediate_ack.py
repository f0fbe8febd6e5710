"""How to make a receiver send its ACKs at once.

Each TCP stack has its own setting for immediate ACKs. The SYN of the receiver suggests which stack it has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

PLACE: Final = "{at_once}"
"""Placeholder in `Advice.remedy` for the text that `words` returns."""

CURE: Final = "disabling delayed ACKs on {receiver},"
"""Cure for a receiver with any stack, as the subject of "… would help"."""

SWITCHES: Final[Mapping[str, str]] = {
    "Linux": "TCP_QUICKACK, set again after every read",
    "Windows": "SIO_TCP_SET_ACK_FREQUENCY = 1 on the socket, or TcpAckFrequency = 1 for the interface in the registry",
    "Apple": "sysctl net.inet.tcp.delayed_ack=0",
    "FreeBSD": "sysctl net.inet.tcp.delayed_ack=0",
    "OpenBSD": "sysctl net.inet.tcp.ackonpush=1, which ACKs the last segment of a write at once",
    "Solaris": "tcp_deferred_acks_max = 1, and tcp_local_dacks_max = 1 for senders on the same network",
}
"""Stack family (`fingerprint`) → its setting for immediate ACKs. Sources: tcp(7) of Linux; `mstcpip.h` and KB 328890 (Windows); tcp(4) of
FreeBSD, and `tcp_delack_enabled` of XNU; sysctl(2) of OpenBSD; the tunable parameters of Solaris. Solaris, macOS, FreeBSD and OpenBSD
have no socket option for immediate ACKs."""

NAMED: Final = ("Linux", "Windows", "FreeBSD")
"""The most common families. If the receiver's family is unknown, the remedy lists their settings."""


def words(family: str | None) -> str:
    """Return the remedy for a receiver whose SYN suggests this stack family.

    If the family is None, the remedy lists the settings of the most common families.
    """
    if family is None:
        switch = "; ".join(f"{name}: {SWITCHES[name]}" for name in NAMED)
    else:
        switch = f"its SYN suggests {family}: {SWITCHES[family]}"
    return f"disable delayed ACKs at the receiver ({switch})"
