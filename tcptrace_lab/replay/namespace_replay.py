"""Runs a schedule in private network namespaces and captures it. The path has the schedule's delay, rate, loss and MTU.

No packet leaves the machine. When this process ends, dumpcap ends, and the kernel removes the namespaces.
"""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tcptrace_lab.errors import LabFailed
from tcptrace_lab.lab.capturing.capture import capturing
from tcptrace_lab.lab.experiment import SNAPLEN_BYTES, in_real_time
from tcptrace_lab.lab.known_causes.transfers import LARGEST_TAP
from tcptrace_lab.lab.networks.network import LOOPBACK_MTU_BYTES, Kind, Medium
from tcptrace_lab.lab.networks.path import BITS_PER_BYTE, PathModel
from tcptrace_lab.replay.schedule import End
from tcptrace_lab.replay.socket_replay import Done, TimeLimitExceeded, connect, prepared, serve
from tcptrace_lab.text.numbers import NS_PER_S

if TYPE_CHECKING:
    from pathlib import Path

    from tcptrace_lab.lab.networks.network import Network
    from tcptrace_lab.replay.schedule import Between, PathDirection, Schedule

NEAR_NS: Final = 1_000_000
"""If the RTT of the path is shorter, a veth pair replaces the relay, because the relay adds about 0.1 ms of its own."""

PORT, CLIENT_PORT = 5001, 40_001
GRACE_S: Final = 15.0
SLOWEST: Final = 3.0
"""The time limit of a replay is this factor times the original's duration, plus `GRACE_S`, plus an allowance for the path."""
MAX_ROUNDS: Final = 20
"""The time limit allows this many round trips for handshake, slow start and close. Slow start sends 0.5 GB in 15 round trips."""

_CALIBRATION_NS: Final = 1_000_000
_CALIBRATIONS: Final = 8


@dataclass(frozen=True, slots=True)
class Played:
    """Result of a replay.

    Attributes:
        capture: the capture file.
        client, server: results of both ends.
    """

    capture: Path
    client: Done
    server: Done


def play(schedule: Schedule, capture: Path, *, timeout_s: float | None = None, at: str = "client") -> Played:
    """Run a schedule between two network namespaces, and capture it.

    Args:
        schedule: what both ends do, and the path.
        capture: pcapng file to create.
        timeout_s: limit for the transfer; None: `patience_s`.
        at: the end at which to capture: `client` or `server`.

    Raises:
        LabFailed: rights are missing, or a kernel feature failed.
        EndFailed: the connection failed.
        MissingTool: dumpcap, ip, ethtool or setpriv is not installed.
        UsageError: the kernel refuses a socket option.
    """
    limit_s = timeout_s or patience_s(schedule)
    with in_real_time(), ExitStack() as stack:
        network = stack.enter_context(medium(schedule.path).network())
        kept = stack.enter_context(
            capturing(network.points[at], capture, snaplen_bytes=SNAPLEN_BYTES, lifetime_s=round(limit_s + 2 * GRACE_S))
        )
        client, server = _both(schedule, network, limit_s)
        kept.await_end(1)
    return Played(capture, client, server)


def expected_s(schedule: Schedule) -> float:
    """Return the expected duration: the original's duration or the total pauses of the applications, whichever is longer."""
    thinking_s = sum(end.thinking_ns for end in schedule.ends()) / NS_PER_S
    captured_s = schedule.source.get("duration_s", 0.0)
    return max(thinking_s, float(captured_s) if isinstance(captured_s, (int, float)) else 0.0)


def patience_s(schedule: Schedule) -> float:
    """Return the time limit of a replay. The limit allows for a path with a longer delay and a lower rate than the path of the original."""
    path, ends = schedule.path, schedule.ends()
    rounds = MAX_ROUNDS + sum(len(task) for end in ends for task in end.tasks)
    waiting_s = rounds * sum(link.delay_ns for link in path.directions) / NS_PER_S
    draining_s = sum(
        end.written_bytes * BITS_PER_BYTE / link.rate_bps
        for end, link in zip(ends, path.directions, strict=True)
        if link.rate_bps is not None
    )
    return expected_s(schedule) * SLOWEST + GRACE_S + waiting_s + draining_s


def _both(schedule: Schedule, network: Network, limit_s: float) -> tuple[Done, Done]:
    """Run both ends, each in its own network namespace: the server in a new thread, the client in this thread."""
    listening = threading.Event()
    results: dict[str, Done] = {}
    failures: list[BaseException] = []

    def server() -> None:
        try:
            with network.server.entered():
                results["server"] = serve(schedule.server, (network.server_address, PORT), limit_s, lambda _: listening.set(), limit_s)
        except BaseException as error:  # noqa: BLE001  (raised again in the main thread)
            failures.append(error)
        finally:
            listening.set()

    thread = threading.Thread(target=server, name="server", daemon=True)
    thread.start()
    listening.wait(limit_s)
    try:
        if not failures:
            with network.client.entered():
                results["client"] = connect(schedule.client, (network.server_address, PORT), limit_s, (network.client_address, CLIENT_PORT))
    except LabFailed as error:
        failures.append(error)
    thread.join(limit_s)
    if failures:
        # The end that reaches the deadline closes the connection. The other end possibly reports this close first.
        raise next((failure for failure in failures if isinstance(failure, TimeLimitExceeded)), failures[0])
    if thread.is_alive():
        raise LabFailed(f"the server did not finish within {limit_s:.0f} s")
    return results["client"], results["server"]


def medium(path: Between) -> Medium:
    """Choose how to build the path: loopback, a veth pair, or the relay between two tun or tap interfaces.

    Raises:
        MissingTool, LabFailed: the relay cannot be calibrated.
    """
    plain = all(link.rate_bps is None and not link.lost and not link.loss_share for link in path.directions)
    sysctls = (("net.ipv4.tcp_timestamps", int(path.timestamps)), ("net.ipv4.tcp_sack", int(path.sack)))
    if path.loopback and plain:
        return Medium("lo", LOOPBACK_MTU_BYTES, ipv6=path.ipv6, sysctls=sysctls)
    mtu = min(path.mtu_bytes, LOOPBACK_MTU_BYTES - 1)
    if plain and path.base_rtt_ns < NEAR_NS:
        return Medium("veth", mtu, ipv6=path.ipv6, sysctls=sysctls)
    kind: Kind = "tap" if mtu <= LARGEST_TAP else "tun"
    own_ns = relay_ns() if path.base_rtt_ns >= NEAR_NS else 0
    forward, backward = (_model(link, own_ns) for link in path.directions)
    return Medium(kind, mtu, ipv6=path.ipv6, forward=forward, backward=backward, sysctls=sysctls)


def _model(link: PathDirection, own_ns: int) -> PathModel:
    return PathModel(
        delay_s=max(0, link.delay_ns - own_ns) / NS_PER_S, rate_bps=link.rate_bps, lost=frozenset(link.lost), loss_share=link.loss_share
    )


_relay_ns: list[int] = []


def relay_ns() -> int:
    """Return the one-way delay in ns that the relay itself adds on this machine.

    The relay's delay is measured once, and subtracted from the path's delay.
    """
    if not _relay_ns:
        path = PathModel(delay_s=_CALIBRATION_NS / NS_PER_S)
        with in_real_time(), Medium("tap", 1500, forward=path, backward=path).network() as network:
            took = min(_handshake_ns(network, number) for number in range(_CALIBRATIONS))
        _relay_ns.append(max(0, (took - 2 * _CALIBRATION_NS) // 2))
    return _relay_ns[0]


def _handshake_ns(network: Network, number: int) -> int:
    end = End(((),))
    with network.server.entered():
        listener = prepared(end, ipv6=False, timeout_s=GRACE_S)
    with network.client.entered():
        client = prepared(end, ipv6=False, timeout_s=GRACE_S)
    with listener, client:
        listener.bind((network.server_address, PORT + number))
        listener.listen(1)
        start_ns = time.monotonic_ns()
        client.connect((network.server_address, PORT + number))
        return time.monotonic_ns() - start_ns
