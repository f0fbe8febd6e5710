"""Transfers with known causes, made with the lab's own programs. Each transfer takes one to three seconds."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import polars as pl

from tcptrace_lab.lab.experiment import Experiment, run
from tcptrace_lab.lab.hosts.applications import BoundedBulk, Bulk, Exchanges, Mixture, PeriodicWriter, SlowReader
from tcptrace_lab.lab.hosts.sockets import SocketOptions
from tcptrace_lab.lab.kernel_ledger.ledger import write_ledger
from tcptrace_lab.lab.kernel_ledger.trace import COSTS, tracing
from tcptrace_lab.lab.known_causes import transfers
from tcptrace_lab.lab.known_causes.transfers import path
from tcptrace_lab.lab.networks.network import Medium

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tcptrace_lab.lab.hosts.applications import OneConnection

TEN_MBPS = 10_000_000


def _lab(medium: Medium, program: OneConnection, **options: object) -> Experiment:
    return Experiment(medium, program, SocketOptions(**options))  # type: ignore[arg-type]


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
    "loss-2-percent-reno": _lab(path(0.020, room=True, loss_share=0.02, seed=11), Bulk(1_000_000), congestion_control="reno"),
    "loss-1-percent-cubic": _lab(path(0.020, room=True, loss_share=0.01, seed=5), Bulk(1_200_000)),
    "loss-40-in-a-row-reno": _lab(path(0.020, room=True, lost=frozenset(range(40, 80))), Bulk(1_500_000), congestion_control="reno"),
    "outage-and-timeouts": _lab(path(0.020, room=True, lost=frozenset(range(100, 117))), Bulk(600_000), receive_buffer_bytes=16_384),
    "line-10mbps-endless-queue": _lab(path(0.020, room=True, rate_bps=TEN_MBPS), Bulk(2_500_000)),
    "line-10mbps-short-queue": _lab(path(0.020, room=True, rate_bps=TEN_MBPS, queue_bytes=30_000), Bulk(2_000_000)),
    "line-10mbps-bbr": _lab(path(0.020, room=True, rate_bps=TEN_MBPS), Bulk(2_000_000), congestion_control="bbr"),
    "slow-start-150ms": _lab(path(0.150, room=True), Bulk(1_000_000)),
    "slow-start-then-send-buffer": _lab(path(0.050, room=True), BoundedBulk(3_000_000, 131_072, 8_192), nodelay=True),
    "writer-then-window": _lab(path(0.020), Mixture((PeriodicWriter(8_000, 15, 0.06), Bulk(600_000))), receive_buffer_bytes=24_000),
}
"""Experiments by name. A name describes the purpose of the transfer."""


def make(name: str, folder: Path) -> dict[str, Any]:
    """Make a transfer and store its files in a folder: captures of both ends, the kernel's events, and the kernel's ledger.

    Return the cost of tracing.

    Raises:
        MissingTool, LabFailed: the transfer could not be made.
    """
    folder.mkdir(parents=True, exist_ok=True)
    run(KNOWN[name], folder, tracing)
    write_ledger(folder)
    records = pl.scan_parquet(folder / "kernel-events.parquet").select(pl.len()).collect().item()
    costs: dict[str, Any] = json.loads((folder / COSTS).read_text())
    return costs | {"records": records}
