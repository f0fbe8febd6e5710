"""The transfers that this package makes: of known causes by the lab's own programs, and by real ones. Each takes one to three seconds."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl

from tcptrace_lab.lab.experiment import Experiment, run
from tcptrace_lab.lab.hosts.applications import BoundedBulk, Bulk, Exchanges, Mixture, PeriodicWriter, SlowReader
from tcptrace_lab.lab.hosts.sockets import SocketOptions
from tcptrace_lab.lab.kernel_ledger.ledger import write_ledger
from tcptrace_lab.lab.kernel_ledger.real_applications import PYTHON, SSH, SSHD, Real, nginx_settings, ssh_keys
from tcptrace_lab.lab.kernel_ledger.trace import COSTS, tracing
from tcptrace_lab.lab.known_causes import transfers
from tcptrace_lab.lab.known_causes.transfers import path
from tcptrace_lab.lab.networks.network import Medium
from tcptrace_lab.lab.networks.path import PathModel

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tcptrace_lab.lab.hosts.applications import OneConnection

TEN_MBPS, FIFTY_MBPS = 10_000_000, 50_000_000


def _lab(medium: Medium, program: OneConnection, **options: object) -> Experiment:
    return Experiment(medium, program, SocketOptions(**options))  # type: ignore[arg-type]


def _medium(round_trip_s: float, **forward: object) -> Medium:
    """A path for real programs, with the kernel's own memory limits; what is said of `forward` holds from server to client, too."""
    delay_only = PathModel(delay_s=round_trip_s / 2)
    either = replace(delay_only, **forward)  # type: ignore[arg-type]
    return Medium("tap", transfers.ETHERNET, forward=either, backward=either)


KNOWN: Mapping[str, Experiment] = {
    "window-16k-10ms": _lab(path(0.010), Bulk(1_500_000, 30_000), receive_buffer_bytes=16_384),
    "window-64k-40ms": _lab(path(0.040), Bulk(2_000_000, 30_000), receive_buffer_bytes=65_536),
    "window-32k-20ms-jumbo": _lab(path(0.020, transfers.JUMBO), Bulk(2_000_000, 180_000), receive_buffer_bytes=32_768),
    "window-32k-20ms-bbr": _lab(path(0.020), Bulk(1_500_000, 30_000), receive_buffer_bytes=32_768, congestion_control="bbr"),
    "send-buffer-16k-20ms": _lab(path(0.020, room=True), BoundedBulk(800_000, 16_384, 2_048), nodelay=True),
    "send-buffer-so-sndbuf-bbr": _lab(path(0.030, room=True), Bulk(1_500_000), send_buffer_bytes=16_384, congestion_control="bbr"),
    "nagle-100-100-20ms": _lab(path(0.020), Exchanges((100, 100), 100, 25)),
    "nagle-100-100-veth": _lab(Medium("veth", transfers.ETHERNET), Exchanges((100, 100), 100, 25)),
    "nodelay-server-thinks": _lab(path(0.010), Exchanges((100, 100), 100, 25, 0.03), nodelay=True),
    "both-think": _lab(path(0.020, room=True), Exchanges((400,), 6_000, 15, 0.06, 0.03), nodelay=True),
    "slow-reader-32k": _lab(path(0.010), SlowReader(200_000, 32_768, 0.3), receive_buffer_bytes=32_768),
    "writer-20k-every-50ms": _lab(path(0.010, room=True), PeriodicWriter(20_000, 30, 0.05), nodelay=True),
    "writer-4k-every-5ms-20ms": _lab(path(0.020, room=True), PeriodicWriter(4_000, 300, 0.005), nodelay=True),
    "loss-2-percent-reno": _lab(path(0.020, room=True, loss_rate=0.02, seed=11), Bulk(1_000_000), congestion_control="reno"),
    "loss-1-percent-cubic": _lab(path(0.020, room=True, loss_rate=0.01, seed=5), Bulk(1_200_000)),
    "loss-40-in-a-row-reno": _lab(path(0.020, room=True, lost=frozenset(range(40, 80))), Bulk(1_500_000), congestion_control="reno"),
    "outage-and-timeouts": _lab(path(0.020, room=True, lost=frozenset(range(100, 117))), Bulk(600_000), receive_buffer_bytes=16_384),
    "line-10mbps-endless-queue": _lab(path(0.020, room=True, rate_bps=TEN_MBPS), Bulk(2_500_000)),
    "line-10mbps-short-queue": _lab(path(0.020, room=True, rate_bps=TEN_MBPS, queue_bytes=30_000), Bulk(2_000_000)),
    "line-10mbps-bbr": _lab(path(0.020, room=True, rate_bps=TEN_MBPS), Bulk(2_000_000), congestion_control="bbr"),
    "slow-start-150ms": _lab(path(0.150, room=True), Bulk(1_000_000)),
    "slow-start-then-send-buffer": _lab(path(0.050, room=True), BoundedBulk(3_000_000, 131_072, 8_192), nodelay=True),
    "writer-then-window": _lab(path(0.020), Mixture((PeriodicWriter(8_000, 15, 0.06), Bulk(600_000))), receive_buffer_bytes=24_000),
}
"""By the lab's programs; what they are made for is in their names."""

_CURL = ("curl", "-sS", "-o", "/dev/null", "http://{address}:{port}/file.bin")
_IPERF = (("iperf3", "-s", "-p", "{port}"), ("iperf3", "-c", "{address}", "-p", "{port}"))
_REDIS = ("redis-server", "--port", "{port}", "--bind", "{address}", "--save", "", "--dir", "{folder}", "--protected-mode", "no")
_REDIS_LOAD = ("redis-benchmark", "-h", "{address}", "-p", "{port}", "-c", "1", "-t", "set", "-q")
_LINE = {"rate_bps": FIFTY_MBPS, "queue_bytes": 200_000}
_HTTP = (PYTHON, "-m", "http.server", "{port}", "--bind", "{address}")
_NGINX = ("nginx", "-c", "{folder}/nginx.conf", "-e", "stderr")

REAL: Mapping[str, Real] = {
    "python-http-curl": Real(_medium(0.020, **_LINE), _HTTP, _CURL, file_bytes=5_000_000),
    "python-http-curl-limited": Real(_medium(0.020, **_LINE), _HTTP, (*_CURL, "--limit-rate", "1M"), file_bytes=2_500_000),
    "nginx-curl-bbr": Real(_medium(0.030, **_LINE), _NGINX, _CURL, "bbr", file_bytes=5_000_000, prepare=nginx_settings()),
    "nginx-limit-rate-curl": Real(_medium(0.020, **_LINE), _NGINX, _CURL, file_bytes=1_500_000, prepare=nginx_settings("limit_rate 700k;")),
    "iperf3-cubic": Real(_medium(0.020, **_LINE), _IPERF[0], (*_IPERF[1], "-n", "6M")),
    "iperf3-reverse-loss": Real(_medium(0.010, loss_rate=0.01, seed=3), _IPERF[0], (*_IPERF[1], "-n", "2M", "-R")),
    "iperf3-4mbps": Real(_medium(0.020, **_LINE), _IPERF[0], (*_IPERF[1], "-b", "4M", "-t", "2")),
    "iperf3-bbr-window": Real(_medium(0.030, **_LINE), _IPERF[0], (*_IPERF[1], "-n", "2M", "-w", "64K"), "bbr"),
    "redis-set": Real(_medium(0.010, **_LINE), _REDIS, (*_REDIS_LOAD, "-n", "150", "-d", "100")),
    "redis-pipeline": Real(_medium(0.010, **_LINE), _REDIS, (*_REDIS_LOAD, "-n", "3000", "-P", "50", "-d", "1000")),
    "ssh-cat": Real(
        _medium(0.020, **_LINE),
        SSHD,
        ("ssh", *SSH, "-p", "{port}", "root@{address}", "cat", "{file}"),
        file_bytes=3_000_000,
        prepare=ssh_keys,
    ),
    "scp-upload": Real(
        _medium(0.020, **_LINE),
        SSHD,
        ("scp", *SSH, "-P", "{port}", "{file}", "root@{address}:{folder}/copy"),
        file_bytes=3_000_000,
        prepare=ssh_keys,
    ),
}
"""By programs that run everywhere, over lines of their own."""

EVERY: Mapping[str, Experiment | Real] = {**KNOWN, **REAL}


def make(name: str, folder: Path) -> dict[str, Any]:
    """Make a transfer into a folder: captures of both ends, the kernel's events and its ledger. Returns what the tracer cost.

    Raises:
        MissingTool, LabFailed: it could not be made.
    """
    folder.mkdir(parents=True, exist_ok=True)
    transfer = EVERY[name]
    if isinstance(transfer, Real):
        transfer.run(folder, tracing)
    else:
        run(transfer, folder, tracing)
    write_ledger(folder)
    records = pl.scan_parquet(folder / "kernel-events.parquet").select(pl.len()).collect().item()
    costs: dict[str, Any] = json.loads((folder / COSTS).read_text())
    return costs | {"records": records}
