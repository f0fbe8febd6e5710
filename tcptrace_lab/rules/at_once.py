"""How a receiver is made to acknowledge at once: no option does so in all stacks, and the marks of a SYN hint at the receiver's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

PLACE: Final = "{at_once}"
"""Stands for `words` in the remedy of a rule (`Advice.remedy`)."""

CURE: Final = "disabling delayed ACKs on {receiver},"
"""As the subject of "… would help", whatever its stack."""

SWITCHES: Final[Mapping[str, str]] = {
    "Linux": "TCP_QUICKACK, set again after every read",
    "Windows": "SIO_TCP_SET_ACK_FREQUENCY of 1 on the socket, or TcpAckFrequency of 1 for the interface in the registry",
    "Apple": "sysctl net.inet.tcp.delayed_ack=0",
    "FreeBSD": "sysctl net.inet.tcp.delayed_ack=0",
    "OpenBSD": "sysctl net.inet.tcp.ackonpush=1, for the last segment of a write",
    "Solaris": "tcp_deferred_acks_max of 1, and tcp_local_dacks_max on the same network",
}
"""Family, as `fingerprint` names it → its switch. tcp(7) of Linux; `mstcpip.h` and KB 328890 (Windows); tcp(4) of FreeBSD, and
`tcp_delack_enabled` of XNU; sysctl(2) of OpenBSD; the tunable parameters of Solaris: its sockets have no such option, nor have those of
macOS, FreeBSD and OpenBSD."""

NAMED: Final = ("Linux", "Windows", "FreeBSD")
"""What is said where the family is not known: the stacks that most receivers have."""


def words(family: str | None) -> str:
    """The remedy for a receiver of this family, by its SYN; None: not known, and a switch is said to be its family's alone."""
    if family is None:
        switch = "; ".join(f"{name}: {SWITCHES[name]}" for name in NAMED)
    else:
        switch = f"possibly {family}, from its SYN: {SWITCHES[family]}"
    return f"disable delayed ACKs at the receiver ({switch})"
