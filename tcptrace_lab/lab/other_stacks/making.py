"""Makes transfers of another TCP stack.

The stack runs on a tun device. The client's host routes packets between the stack and the relay. The peer is Linux, behind the relay.
"""

from __future__ import annotations

import json
import platform
import shutil
import socket
import subprocess
import threading
import time
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from os import close, set_blocking
from random import Random
from typing import TYPE_CHECKING, Any

import polars as pl

from tcptrace_lab.errors import LabFailed, TcptraceLabError
from tcptrace_lab.lab.capturing.capture import capturing
from tcptrace_lab.lab.corpus import manifest, paths
from tcptrace_lab.lab.corpus.drawn import DEVELOPMENT, part_of_path
from tcptrace_lab.lab.corpus.middle import write_middle
from tcptrace_lab.lab.corpus.programs.program import PORT
from tcptrace_lab.lab.corpus.running import ENDS, SETTLE_S, SUBNET
from tcptrace_lab.lab.experiment import SNAPLEN_BYTES, in_real_time
from tcptrace_lab.lab.kernel_ledger.ledger import write_ledger
from tcptrace_lab.lab.kernel_ledger.trace import EVENTS, tracing
from tcptrace_lab.lab.networks.network import CLIENT_IPV4, SERVER_IPV4, Point, open_tun
from tcptrace_lab.lab.other_stacks.scripts import JUMBO_KINDS
from tcptrace_lab.lab.other_stacks.truth import events

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tcptrace_lab.lab.networks.network import Medium, Network
    from tcptrace_lab.lab.other_stacks.scripts import Script
    from tcptrace_lab.lab.other_stacks.stacks import Stack

TUN = "stack"
ROUTER_IPV4 = "192.0.2.3"
"""Address of the client's host, which is the router between the stack and the relay."""
LONGEST_S, PATIENCE_S = 4.0, 5.0
"""After `LONGEST_S`, the stack's program begins no further step. `PATIENCE_S` is a reserve in timeouts."""
RECORDS, PEER_CHUNK = "stack-records.jsonl", 65_536
NO_CONTROL, PEERS_CONTROL = "none", "cubic"
"""A stack without congestion control, and the congestion control of its Linux peer."""


@dataclass(frozen=True, slots=True)
class Planned:
    """The settings of one transfer."""

    stack: Stack
    name: str
    seed: int
    number: int
    kind: str
    path: str
    medium: Medium
    congestion_control: str
    script: Script


def planned(stack: Stack, seed: int, number: int) -> Planned:
    """Return transfer `number` of a seed. The kinds alternate. The path is drawn from the path families of the development part."""
    chance = Random(f"{stack.name} {seed} {number}")  # noqa: S311  (repeatable)
    kind = list(stack.kinds)[number % len(stack.kinds)]
    path = "jumbo-frames" if kind in JUMBO_KINDS else chance.choice([name for name in paths.PATHS if part_of_path(name) == DEVELOPMENT])
    medium = paths.drawn(path, chance)
    script = stack.kinds[kind](medium.forward.rate_bps, chance)
    if stack.settings is not None:
        script = stack.settings(kind, script, chance)
    return Planned(
        stack, f"{stack.name}-{seed}-{number:04}-{kind}", seed, number, kind, path, medium, chance.choice(stack.controls), script
    )


def make(stack: Stack, folder: Path, seed: int, numbers: range) -> Iterator[str]:
    """Make the transfers that the manifest of the stack's part does not contain yet. Yield one line of text about each."""
    part = folder / stack.part
    part.mkdir(parents=True, exist_ok=True)
    there = {entry["name"] for entry in manifest.entries(part)}
    for plan in (planned(stack, seed, number) for number in numbers):
        if plan.name in there:
            continue
        try:
            entry = _make_one(plan, part / plan.name)
        except (TcptraceLabError, OSError) as error:
            shutil.rmtree(part / plan.name, ignore_errors=True)
            yield f"{plan.name} on {plan.path}: {error}"
            continue
        manifest.append(part, entry)
        yield f"{plan.name} on {plan.path}: {entry['duration_s']:.1f} s, {entry['tracer_records']:,} records"


def _make_one(plan: Planned, folder: Path) -> dict[str, Any]:
    folder.mkdir(parents=True, exist_ok=True)
    clock_ns = time.time_ns() - time.monotonic_ns()
    program = plan.stack.program()
    with in_real_time(), ExitStack() as stack:
        network = stack.enter_context(plan.medium.network())
        fd = _route_to_stack(stack, network, plan.medium.mtu_bytes)
        peers_control = PEERS_CONTROL if plan.congestion_control == NO_CONTROL else plan.congestion_control
        network.server.run("ip", "route", "replace", SUBNET, "dev", network.interface, "congctl", peers_control)
        listener = stack.enter_context(_listener(network, plan.script))
        stack.enter_context(tracing(network, folder))
        captures = {}
        for end in ENDS:
            captured = capturing(network.points[end], folder / f"{end}.pcapng", snaplen_bytes=SNAPLEN_BYTES)
            captures[end] = stack.enter_context(captured)
        peer = threading.Thread(target=_serve, args=(listener, plan.script), name="peer", daemon=True)
        peer.start()
        begun_s = time.monotonic()
        _run(program, fd, folder, plan)
        duration_s = time.monotonic() - begun_s
        time.sleep(SETTLE_S)
    _add_records(folder, plan)
    write_ledger(folder)
    assert network.relay is not None  # noqa: S101  (every path of the corpus has one)
    frames = {end: (capture.dumpcap.received_and_dropped or (0, 0))[0] for end, capture in captures.items()}
    frames["middle"] = write_middle(folder, network.relay, plan.medium, clock_ns)
    return _entry(plan, frames, duration_s, pl.scan_parquet(folder / EVENTS).select(pl.len()).collect().item())


def _route_to_stack(stack: ExitStack, network: Network, mtu_bytes: int) -> int:
    """Create a tun device on which the stack has the client's address.

    The client's host gets another address, and routes between the stack and the relay.
    """
    client = network.client
    fd = open_tun(Point(client, TUN), "tun")
    set_blocking(fd, False)
    stack.callback(close, fd)
    client.run("ip", "address", "add", f"{ROUTER_IPV4}/24", "dev", network.interface)
    client.run("ip", "address", "delete", f"{CLIENT_IPV4}/24", "dev", network.interface)
    client.run("ip", "address", "replace", f"{ROUTER_IPV4}/24", "dev", network.interface)
    client.run("ip", "link", "set", TUN, "mtu", str(mtu_bytes), "up")
    client.run("ip", "route", "replace", f"{CLIENT_IPV4}/32", "dev", TUN)
    client.sysctl("net.ipv4.ip_forward", 1)
    return fd


def _listener(network: Network, script: Script) -> socket.socket:
    with network.server.entered():
        listener = socket.socket()
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, int(not script.peer_nagle))
    if script.peer_send_buffer_bytes:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, script.peer_send_buffer_bytes)
    if script.peer_buffer_bytes:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, script.peer_buffer_bytes)
    listener.bind((SERVER_IPV4, PORT))
    listener.listen(1)
    listener.settimeout(PATIENCE_S)
    return listener


def _serve(listener: socket.socket, script: Script) -> None:
    with suppress(OSError):
        connection, _ = listener.accept()
        with connection:
            connection.settimeout(LONGEST_S + PATIENCE_S)
            for step in script.there * script.times:
                connection.sendall(bytes(step.write))
                left = step.read
                while left and (got := connection.recv(min(left, PEER_CHUNK))):
                    left -= len(got)
                time.sleep(step.sleep_ms / 1_000)
            while connection.recv(PEER_CHUNK):
                if script.peer_delays_acks:
                    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 0)


def _run(program: Path, fd: int, folder: Path, plan: Planned) -> None:
    script = plan.script
    words = {
        "local": [int(word) for word in CLIENT_IPV4.split(".")],
        "remote": [int(word) for word in SERVER_IPV4.split(".")],
        "port": PORT,
        "mtu_bytes": plan.medium.mtu_bytes,
        "congestion_control": plan.congestion_control,
        "nagle": script.nagle,
        "send_buffer_bytes": script.send_buffer_bytes,
        "receive_buffer_bytes": script.receive_buffer_bytes,
        "ack_delay_ms": script.ack_delay_ms,
        "timestamps": script.timestamps,
        "times": script.times,
        "longest_s": LONGEST_S,
        "steps": [asdict(step) for step in script.here],
    }
    command = ["setpriv", "--pdeathsig", "KILL", str(program), str(fd), str(folder / RECORDS)]  # in real time, as a kernel's stack is
    try:
        done = subprocess.run(
            command,
            input=json.dumps(words),
            capture_output=True,
            text=True,
            pass_fds=(fd,),
            timeout=LONGEST_S + 2 * PATIENCE_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise LabFailed("the stack's program does not end", where=plan.name) from error
    if done.returncode:
        raise LabFailed(f"the stack's program fails: {done.stderr.strip()[-300:]}", where=plan.name)


def _add_records(folder: Path, plan: Planned) -> None:
    with (folder / RECORDS).open() as lines:
        own = events(lines, CLIENT_IPV4, SERVER_IPV4, PORT, plan.stack.sender(plan.script.nagle))
    pl.concat([pl.read_parquet(folder / EVENTS), own]).sort("time_ns", maintain_order=True).write_parquet(
        folder / EVENTS, compression="zstd"
    )
    (folder / RECORDS).unlink()


def _entry(plan: Planned, frames: dict[str, int], duration_s: float, records: int) -> dict[str, Any]:
    ends = (
        " ".join(f"write {step.write} read {step.read} sleep {step.sleep_ms} ms;" for step in steps)
        for steps in (plan.script.here, plan.script.there)
    )
    client, server = (f"{plan.script.times} times: {words}" for words in ends)
    settings = (f"{name} {value}" for name, value in asdict(plan.script).items() if name not in {"times", "here", "there"})
    return {
        "schema_version": manifest.SCHEMA_VERSION,
        "name": plan.name,
        "part": plan.stack.part,
        "seed": plan.seed,
        "number": plan.number,
        "program": f"{plan.stack.name}-{plan.kind}",
        "family": plan.stack.name,
        "server": server,
        "client": f"{client} {', '.join(settings)}",
        "path": plan.path,
        "mtu_bytes": plan.medium.mtu_bytes,
        "forward": plan.medium.forward.describe(),
        "backward": plan.medium.backward.describe(),
        "congestion_control": plan.congestion_control,
        "paused": None,
        "is_complete": duration_s < LONGEST_S,
        "duration_s": round(duration_s, 3),
        "frames": frames,
        "tracer_records": records,
        "kernel": platform.release(),
    }
