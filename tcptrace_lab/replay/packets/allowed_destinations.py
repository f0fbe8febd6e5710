"""Checks where frames can go: only to interfaces inside this machine, its own addresses, and networks that the user allows."""

from __future__ import annotations

import fcntl
import ipaddress
import socket
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from tcptrace_lab.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

Network: TypeAlias = "ipaddress.IPv4Network | ipaddress.IPv6Network"

SYSFS: Final = Path("/sys/class/net")
ARPHRD_ETHER, ARPHRD_LOOPBACK, ARPHRD_NONE = 1, 772, 0xFFFE  # linux/if_arp.h
SIOCETHTOOL, ETHTOOL_GDRVINFO = 0x8946, 3  # linux/sockios.h, linux/ethtool.h
SIOCGIFHWADDR, SIOCGIFMTU = 0x8927, 0x8921  # linux/sockios.h
VIRTUAL_DRIVERS: Final = frozenset({"veth", "tun", "dummy"})
"""Drivers of interfaces that do not lead to a physical network by themselves. TAP interfaces use the driver `tun`, too."""


def checked(name: str, *, any_interface: bool) -> tuple[int, int]:
    """Check that frames can be sent on an interface. Return its hardware type (ARPHRD_) and MTU.

    Raises:
        UsageError: the interface does not exist, or accepts neither Ethernet frames nor IP packets. If `any_interface` is False, the error
            is also raised for an interface that possibly leads out of this machine.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        request = struct.pack("16s24x", name.encode()[:15])
        try:
            hardware = struct.unpack_from("=H", fcntl.ioctl(asking, SIOCGIFHWADDR, request), 16)[0]
            mtu = struct.unpack_from("=i", fcntl.ioctl(asking, SIOCGIFMTU, request), 16)[0]
        except OSError as error:
            raise UsageError(f"no interface {name!r}", remedy="ip link lists them") from error
        kind = "loopback" if hardware == ARPHRD_LOOPBACK else _driver(asking, name)
    if hardware not in {ARPHRD_ETHER, ARPHRD_LOOPBACK, ARPHRD_NONE}:
        raise UsageError(f"{name} takes neither Ethernet frames nor IP packets", remedy="use a veth, tun or tap interface")
    if kind not in {"loopback", *VIRTUAL_DRIVERS} and not any_interface:
        raise UsageError(
            f"{name} ({kind or 'of an unknown driver'}) may leave this machine",
            remedy="use lo, veth, tun, tap or dummy, or add --any-interface",
        )
    return hardware, mtu


def _driver(asking: socket.socket, name: str) -> str:
    """Return the driver's name as in `ethtool -i`; for a dummy interface its link kind; empty if the kernel returns nothing."""
    info = bytearray(struct.pack("=I", ETHTOOL_GDRVINFO).ljust(196, b"\0"))
    import ctypes  # noqa: PLC0415

    buffer = (ctypes.c_char * len(info)).from_buffer(info)
    try:
        fcntl.ioctl(asking, SIOCETHTOOL, struct.pack("16sP16x", name.encode()[:15], ctypes.addressof(buffer)))
    except OSError:
        return ""
    return bytes(info[4:36]).partition(b"\0")[0].decode(errors="replace")


def own_networks() -> list[Network]:
    """Return the addresses of this network namespace, the loopback networks, and the documentation networks (RFC 5737, RFC 3849)."""
    found: list[Network] = [ipaddress.ip_network(text) for text in _ALWAYS]
    table = Path("/proc/net/fib_trie").read_text(encoding="ascii")
    address = ""
    for line in table.splitlines():
        word = line.split()
        if line.lstrip().startswith("|--"):
            address = word[1]
        elif "/32 host LOCAL" in line:
            found.append(ipaddress.ip_network(address))
    place = Path("/proc/net/if_inet6")
    lines = place.read_text(encoding="ascii").splitlines() if place.exists() else []
    return [*found, *(ipaddress.ip_network(ipaddress.IPv6Address(bytes.fromhex(line.split()[0]))) for line in lines)]


_ALWAYS: Final = ("127.0.0.0/8", "::1/128", "192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32")


def networks(texts: Iterable[str]) -> list[Network]:
    """Parse the networks that the user allows. Raises UsageError."""
    found: list[Network] = []
    for text in texts:
        try:
            found.append(ipaddress.ip_network(text, strict=False))
        except ValueError as error:
            raise UsageError(f"--allow: {text!r} is not a network", remedy="write it as 10.0.0.0/8 or fd00::/8") from error
    return found


class Destinations:
    """Checks whether a destination address is allowed. Results are cached."""

    def __init__(self, allowed: Iterable[Network]) -> None:
        self._allowed = list(allowed)
        self._known: dict[bytes, bool] = {}

    def may(self, destination: bytes) -> bool:
        """Return whether sending frames to this address of 4 or 16 bytes is allowed."""
        known = self._known.get(destination)
        if known is None:
            address = ipaddress.ip_address(destination)
            known = any(address.version == network.version and address in network for network in self._allowed)
            if len(self._known) < MAX_REMEMBERED:
                self._known[destination] = known
        return known


MAX_REMEMBERED: Final = 65_536
