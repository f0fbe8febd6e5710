"""Private networks: anonymous namespaces connected by loopback, a veth pair or the relay. Traffic never leaves these namespaces.

    client eth0 ═══ eth0 server                                               veth
    client eth0 ── relay ── eth0 server                                       tap, tun
    client eth0 ═══ near ∥ wire ── relay ── wire ∥ near ═══ eth0 server       tap with offloads (∥ is a bridge in a namespace of its own)

Only a file descriptor keeps a namespace alive. The kernel removes the namespace and its interfaces when the descriptor is closed, or when
the process dies for any reason. So no cleanup is needed. The addresses are those that RFC 5737 and RFC 3849 reserve for documentation.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import shutil
import struct
import subprocess
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tcptrace_lab.errors import LabFailed, MissingTool
from tcptrace_lab.lab.networks.path import STRAIGHT, PathModel
from tcptrace_lab.lab.networks.relay import Relay

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Kind = Literal["lo", "veth", "tap", "tun"]

CLONE_NEWNET = 0x40000000  # linux/sched.h
TUNSETIFF = 0x400454CA  # linux/if_tun.h
IFF_TUN, IFF_TAP, IFF_NO_PI = 0x0001, 0x0002, 0x1000  # linux/if_tun.h
LOOPBACK_MTU_BYTES = 65_536  # the kernel's default for lo
INTERFACE = "eth0"
# Interfaces in a bridge's namespace: one towards the host, one towards the relay, and the bridge itself.
NEAR_INTERFACE, WIRE_INTERFACE, BRIDGE = "near", "wire", "bridge"
CLIENT_IPV4, SERVER_IPV4 = "192.0.2.1", "192.0.2.2"
CLIENT_IPV6, SERVER_IPV6 = "2001:db8::1", "2001:db8::2"
CLIENT_MAC, SERVER_MAC = "02:00:00:00:00:01", "02:00:00:00:00:02"
# Offloads with which the card or driver splits or merges segments, or computes checksums. Without offloads, each captured frame is a frame
# on the wire.
OFFLOADS = ("tx", "rx", "sg", "tso", "gso", "gro")

AS_ROOT = "run it as root, because it builds network namespaces"

_libc = ctypes.CDLL(None, use_errno=True)


class NetworkError(LabFailed):
    """A network could not be created."""


class Namespace:
    """An anonymous network namespace. `entered` moves the calling thread into the namespace."""

    def __init__(self) -> None:
        home_fd = _open_own_namespace()
        try:
            _check(_libc.unshare(CLONE_NEWNET), "unshare(CLONE_NEWNET)")
            self._fd = _open_own_namespace()
            _check(_libc.setns(home_fd, CLONE_NEWNET), "setns")
        finally:
            os.close(home_fd)

    @property
    def path(self) -> str:
        """Return a file path with which other programs can open this namespace while this process runs."""
        return f"/proc/{os.getpid()}/fd/{self._fd}"

    def close(self) -> None:
        """Release the namespace."""
        os.close(self._fd)

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Enter the namespace during the block. Sockets, devices and child processes of this thread are then created in the namespace."""
        home_fd = _open_own_namespace()
        try:
            _check(_libc.setns(self._fd, CLONE_NEWNET), "setns")
            try:
                yield
            finally:
                _check(_libc.setns(home_fd, CLONE_NEWNET), "setns")
        finally:
            os.close(home_fd)

    def run(self, *command: str) -> None:
        """Run a command in the namespace. Raise `NetworkError` with the command's message if it fails."""
        if shutil.which(command[0]) is None:
            raise MissingTool("not installed", where=command[0], remedy="install iproute2 and ethtool")
        with self.entered():
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            words = done.stderr.strip() or done.stdout.strip()
            raise NetworkError(f"{' '.join(command)}: {words}", remedy=AS_ROOT if os.strerror(errno.EPERM) in words else "")

    def sysctl(self, name: str, value: int | str) -> None:
        """Set a kernel setting of this namespace, e.g. `net.ipv4.tcp_timestamps`."""
        with self.entered():
            Path("/proc/sys", name.replace(".", "/")).write_text(str(value))


@dataclass(frozen=True, slots=True)
class Point:
    """A point where frames can be captured."""

    space: Namespace
    interface: str


@dataclass(frozen=True, slots=True)
class Network:
    """Two connected hosts, each with a namespace, an address and an interface. On loopback, both hosts share one namespace.

    Attributes:
        points: capture points by name: `client` and `server`. Hosts with offloads also have `client-wire` and `server-wire`, where packets
            are as on the wire.
    """

    client: Namespace
    server: Namespace
    client_address: str
    server_address: str
    interface: str
    points: Mapping[str, Point]
    relay: Relay | None = None


@dataclass(frozen=True, slots=True)
class Medium:
    """The settings of a network.

    Attributes:
        kind: `lo`; `veth` (a pair of Ethernet interfaces); `tap` (Ethernet through the relay); `tun` (raw IP through the relay).
        mtu_bytes: MTU: size of the largest IP packet.
        offloads: True if the (virtual) card does segmentation, receive coalescing and checksums. Only veth and tap support this.
        ipv6: True for IPv6. Otherwise, IPv6 is disabled, so that there are no packets of neighbour discovery.
        forward, backward: the relay's paths from client to server, and from server to client.
        sysctls: kernel settings of both hosts.
    """

    kind: Kind
    mtu_bytes: int
    offloads: bool = False
    ipv6: bool = False
    forward: PathModel = STRAIGHT
    backward: PathModel = STRAIGHT
    sysctls: tuple[tuple[str, int | str], ...] = ()

    @contextmanager
    def network(self) -> Iterator[Network]:
        """Create the network. It is removed at the end of the block, also after an error.

        Raises:
            NetworkError: permission is denied, or the kernel or a program rejects a part of the network.
        """
        with ExitStack() as stack:
            client = _namespace(stack)
            if self.kind == "lo":
                self._prepare(client)
                address, point = "::1" if self.ipv6 else "127.0.0.1", Point(client, "lo")
                yield Network(client, client, address, address, "lo", {"client": point, "server": point})
                return
            server = _namespace(stack)
            points = {"client": Point(client, INTERFACE), "server": Point(server, INTERFACE)}
            relay = None
            if self.kind == "veth":
                _join(points["client"], points["server"])
            else:
                wires = points
                if self.kind == "tap" and self.offloads:
                    wires = {end: self._bridged(_namespace(stack), points[end]) for end in points}
                near_fd, far_fd = (self._open_wire(stack, wires[end]) for end in ("client", "server"))
                relay = Relay(near_fd, far_fd, forward=self.forward, backward=self.backward)
                if wires is not points:
                    points |= {f"{end}-wire": wire for end, wire in wires.items()}
            self._prepare(client)
            self._prepare(server)
            self._address(client, CLIENT_IPV4, CLIENT_IPV6, CLIENT_MAC)
            self._address(server, SERVER_IPV4, SERVER_IPV6, SERVER_MAC)
            self._introduce(client, SERVER_IPV4, SERVER_IPV6, SERVER_MAC)
            self._introduce(server, CLIENT_IPV4, CLIENT_IPV6, CLIENT_MAC)
            if relay is not None:
                stack.enter_context(relay.running())
            addresses = (CLIENT_IPV6, SERVER_IPV6) if self.ipv6 else (CLIENT_IPV4, SERVER_IPV4)
            yield Network(client, server, *addresses, INTERFACE, points, relay)

    def _bridged(self, space: Namespace, end: Point) -> Point:
        """Attach a bridge to a host's interface.

        Large packets leave the bridge towards the returned point. There, the kernel segments them, as a network card would.
        """
        space.sysctl("net.ipv6.conf.all.disable_ipv6", 1)
        space.sysctl("net.ipv6.conf.default.disable_ipv6", 1)
        _join(Point(space, NEAR_INTERFACE), end)
        space.run("ip", "link", "add", BRIDGE, "type", "bridge", "stp_state", "0", "forward_delay", "0", "mcast_snooping", "0")
        return Point(space, WIRE_INTERFACE)

    def _open_wire(self, stack: ExitStack, wire: Point) -> int:
        """Create a TUN or TAP interface at `wire`.

        If there is a bridge, attach the interface to it. Return the descriptor for the relay.
        """
        fd = open_tun(wire, "tap" if self.kind == "tap" else "tun")
        stack.callback(os.close, fd)
        if wire.interface == WIRE_INTERFACE:
            for interface in (NEAR_INTERFACE, WIRE_INTERFACE):
                wire.space.run("ip", "link", "set", interface, "mtu", str(self.mtu_bytes), "master", BRIDGE, "up")
            wire.space.run("ip", "link", "set", BRIDGE, "up")
        return fd

    def _prepare(self, end: Namespace) -> None:
        """Apply the kernel settings.

        Unused IPv6 is disabled before an interface comes up, because IPv6 sends packets immediately.
        """
        end.sysctl("net.ipv6.conf.all.disable_ipv6", 0 if self.ipv6 else 1)
        end.sysctl("net.ipv6.conf.default.disable_ipv6", 0 if self.ipv6 else 1)
        for name, value in self.sysctls:
            end.sysctl(name, value)
        end.run("ip", "link", "set", "lo", "up")

    def _address(self, end: Namespace, ipv4: str, ipv6: str, mac: str) -> None:
        if self.kind != "tun":
            end.run("ip", "link", "set", INTERFACE, "address", mac)
        end.run("ip", "link", "set", INTERFACE, "mtu", str(self.mtu_bytes))
        if self.kind == "veth" or self.offloads:
            setting = "on" if self.offloads else "off"
            end.run("ethtool", "-K", INTERFACE, *(word for offload in OFFLOADS for word in (offload, setting)))
        end.run("ip", "link", "set", INTERFACE, "up")
        if self.ipv6:
            end.run("ip", "address", "add", f"{ipv6}/64", "dev", INTERFACE, "nodad")
        else:
            end.run("ip", "address", "add", f"{ipv4}/24", "dev", INTERFACE)

    def _introduce(self, end: Namespace, ipv4: str, ipv6: str, mac: str) -> None:
        """Add a static neighbour entry for the other host. Otherwise ARP or neighbour discovery would delay segments and add frames."""
        if self.kind != "tun":
            neighbour = ipv6 if self.ipv6 else ipv4
            end.run("ip", "neighbour", "add", neighbour, "lladdr", mac, "dev", INTERFACE, "nud", "permanent")


def _namespace(stack: ExitStack) -> Namespace:
    space = Namespace()
    stack.callback(space.close)
    return space


def _join(one: Point, other: Point) -> None:
    one.space.run("ip", "link", "add", one.interface, "type", "veth", "peer", "name", other.interface, "netns", other.space.path)


def open_tun(point: Point, kind: Literal["tap", "tun"]) -> int:
    """Create a TUN or TAP interface at a point. The returned descriptor reads and writes the interface's frames."""
    flags = (IFF_TAP if kind == "tap" else IFF_TUN) | IFF_NO_PI
    with point.space.entered():
        try:
            fd = os.open("/dev/net/tun", os.O_RDWR | os.O_CLOEXEC)
        except OSError as error:
            raise NetworkError(f"cannot open a {kind} interface: {error.strerror}", where="/dev/net/tun") from error
    try:
        fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH22x", point.interface.encode(), flags))
    except OSError as error:
        os.close(fd)
        remedy = AS_ROOT if error.errno == errno.EPERM else ""
        raise NetworkError(f"cannot make a {kind} interface: {error.strerror}", remedy=remedy) from error
    return fd


def _open_own_namespace() -> int:
    return os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)


def _check(result: int, what: str) -> None:
    if result:
        number = ctypes.get_errno()
        raise NetworkError(f"{what}: {os.strerror(number)}", remedy=AS_ROOT if number == errno.EPERM else "")
