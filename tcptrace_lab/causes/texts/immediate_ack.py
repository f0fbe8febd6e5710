"""How to make a receiver acknowledge at once. No option does this in all stacks; the receiver's SYN suggests which stack it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

PLACE: Final = "{at_once}"
"""Placeholder for `words` in the remedy of a rule (`Advice.remedy`)."""

CURE: Final = "disabling delayed ACKs on {receiver},"
"""Subject of "… would help", for any stack."""

SWITCHES: Final[Mapping[str, str]] = {
    "Linux": "TCP_QUICKACK, set again after every read",
    "Windows": "SIO_TCP_SET_ACK_FREQUENCY of 1 on the socket, or TcpAckFrequency of 1 for the interface in the registry",
    "Apple": "sysctl net.inet.tcp.delayed_ack=0",
    "FreeBSD": "sysctl net.inet.tcp.delayed_ack=0",
    "OpenBSD": "sysctl net.inet.tcp.ackonpush=1, for the last segment of a write",
    "Solaris": "tcp_deferred_acks_max of 1, and tcp_local_dacks_max on the same network",
}
"""Stack family (`fingerprint`) → its setting. Sources: tcp(7) of Linux; `mstcpip.h` and KB 328890 (Windows); tcp(4) of FreeBSD, and
`tcp_delack_enabled` of XNU; sysctl(2) of OpenBSD; the tunable parameters of Solaris. Sockets of Solaris, macOS, FreeBSD and OpenBSD have no
such option."""

NAMED: Final = ("Linux", "Windows", "FreeBSD")
"""Families that are listed if the receiver's is unknown: the stacks of most receivers."""


def words(family: str | None) -> str:
    """Return the remedy for a receiver of this family (from its SYN). With None it lists the settings of common families."""
    if family is None:
        switch = "; ".join(f"{name}: {SWITCHES[name]}" for name in NAMED)
    else:
        switch = f"possibly {family}, from its SYN: {SWITCHES[family]}"
    return f"disable delayed ACKs at the receiver ({switch})"
