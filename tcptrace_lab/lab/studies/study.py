"""Performs a declared experiment.

The points are grouped by network. Each transfer is captured at both hosts, TCP_INFO is sampled, and the captures are analyzed. Points with
one network are in the same captures. Each repetition performs all points once, so that changes on the machine affect all points equally.
Each transfer is described three times, independently: by its applications (`transfer_kinds`), by the kernel (`samples`) and by our analysis
of the captures (`capture_figures`).
"""

from __future__ import annotations

import json
import os
import platform
import time
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

import polars as pl

from tcptrace_lab.errors import LabFailed
from tcptrace_lab.lab.capturing.capture import capturing
from tcptrace_lab.lab.capturing.dumpcap import require
from tcptrace_lab.lab.experiment import in_real_time
from tcptrace_lab.lab.hosts.endpoints import Ends
from tcptrace_lab.lab.hosts.files import require_ftp
from tcptrace_lab.lab.hosts.load import loaded
from tcptrace_lab.lab.hosts.samples import Samples
from tcptrace_lab.lab.hosts.sockets import SocketOptions
from tcptrace_lab.lab.hosts.transfer_kinds import perform
from tcptrace_lab.lab.networks.network import Medium
from tcptrace_lab.lab.networks.path import PathModel
from tcptrace_lab.lab.studies.capture_figures import figures_by_run
from tcptrace_lab.lab.studies.results import document, rows_of
from tcptrace_lab.text.numbers import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tcptrace_lab.lab.hosts.transfer_kinds import Measured
    from tcptrace_lab.lab.networks.network import Kind
    from tcptrace_lab.lab.studies.experiment_file import Declared, Point

LIFETIME_S = 3_600
"""Maximum run time of dumpcap. The limit applies even if this process is killed."""
FILTER = "tcp or udp"
VANTAGES = ("client", "server")
MARK_PATIENCE_S = 2.0
UNDISTURBED_PACKETS = 3
"""Number of packets at the start (handshake and first data) without random fates. A lost SYN costs a second and shows nothing else."""

Progress = "Callable[[str, float | None], None]"


@dataclass(frozen=True, slots=True)
class Run:
    """One transfer, with its number, point, repetition, and measurements or error."""

    number: int
    point: int
    repetition: int
    group: int
    measured: Measured | None
    failure: str = ""


def perform_all(declared: Declared, folder: Path, progress: Callable[[str, float | None], None] | None = None) -> dict[str, Any]:
    """Perform an experiment, write its results into `folder`, and return the document of results.

    `folder` gets `captures/`, `runs.parquet` (one row per transfer), `tcp_info.parquet` (one row per reading), `results.json` (the
    document) and `experiment.toml` (the declaration).

    Args:
        declared: the experiment.
        folder: an empty or new folder.
        progress: called with the current activity and the completed share.

    Raises:
        LabFailed: permission is denied, or the network or a capture failed.
        MissingTool: a program is not installed.
    """
    require()
    points = declared.points
    if any(point["transfer.kind"] == "ftp" for point in points):
        require_ftp()
    (folder / "captures").mkdir(parents=True, exist_ok=True)
    (folder / "experiment.toml").write_text(declared.text, encoding="utf-8")
    calm = not any(point["hosts.load"] for point in points)
    groups = _grouped(points)
    tell = _Telling(progress, len(points) * _repetitions(points))
    runs: list[Run] = []
    readings: list[dict[str, Any]] = []
    dropped: dict[str, int] = {}
    for number, members in enumerate(groups):
        group = _Group(number, [(index, points[index]) for index in members], folder / "captures")
        with in_real_time() if calm else nullcontext():
            group.perform(tell, first=len(runs))
        runs += group.runs
        readings += [reading.row() for reading in group.samples.readings]
        dropped |= group.dropped
        tell.words(f"analyzing captures {number + 1} of {len(groups)}")
    found = {
        number: figures_by_run(
            {vantage: _path(folder / "captures", number, vantage) for vantage in VANTAGES}, [run for run in runs if run.group == number]
        )
        for number in range(len(groups))
    }
    rows = rows_of(runs, points, found)
    rows.write_parquet(folder / "runs.parquet")
    pl.DataFrame(readings, infer_schema_length=None).write_parquet(folder / "tcp_info.parquet")
    result = document(declared, points, rows, _environment(calm=calm), dropped)
    (folder / "results.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return result


class _Telling:
    """Reports progress."""

    def __init__(self, progress: Callable[[str, float | None], None] | None, total: int) -> None:
        self._progress, self._total, self._done = progress, total, 0

    def words(self, what: str) -> None:
        if self._progress is not None:
            self._progress(what, min(self._done / self._total, 1.0))

    def transfer(self, point: Point) -> None:
        self.words(f"transfer {self._done + 1} of {self._total}: {point.label}")
        self._done += 1


def _repetitions(points: list[Point]) -> int:
    return max(int(point["run.repetitions"]) for point in points)


def _grouped(points: list[Point]) -> list[list[int]]:
    """Return groups of indexes of points. All points of a group use one network and its captures."""
    groups: dict[tuple[object, ...], list[int]] = {}
    for index, point in enumerate(points):
        shared = tuple(point[name] for name in _SHARED)
        groups.setdefault(shared, []).append(index)
    return list(groups.values())


_SHARED = (
    *("path.medium", "path.mtu", "path.delay", "path.rate", "path.queue", "path.loss", "path.loss_back", "path.duplicate"),
    *("path.reorder", "path.reorder_by", "path.seed", "path.ipv6", "hosts.load", "run.sample", "run.snaplen", "run.repetitions"),
)


class _Group:
    """Points on one network."""

    def __init__(self, number: int, members: list[tuple[int, Point]], folder: Path) -> None:
        self._number, self._members, self._folder = number, members, folder
        first = members[0][1]
        self._first = first
        self.samples = Samples(int(first["run.sample"]))
        self.runs: list[Run] = []
        self.dropped: dict[str, int] = {}

    def perform(self, tell: _Telling, first: int) -> None:
        """Perform all repetitions of all points. Runs are numbered from `first`."""
        ports, sampled = count(), int(self._first["run.repetitions"])
        with ExitStack() as stack:
            network = stack.enter_context(medium(self._first).network())
            stack.enter_context(loaded(int(self._first["hosts.load"])))
            with ExitStack() as running:
                captures = [
                    running.enter_context(
                        capturing(
                            network.points[vantage],
                            _path(self._folder, self._number, vantage),
                            snaplen_bytes=int(self._first["run.snaplen"]),
                            capture_filter=FILTER,
                            lifetime_s=LIFETIME_S,
                            drops_allowed=True,
                        )
                    )
                    for vantage in VANTAGES
                ]
                running.enter_context(self.samples.running())
                for repetition in range(sampled):
                    for index, point in self._members:
                        tell.transfer(point)
                        self.samples.run = first + len(self.runs)
                        ends = Ends(network, options(point), self.samples, ports)
                        self.runs.append(self._once(self.samples.run, index, repetition, point, ends))
                try:
                    ends.mark(lambda token: all(capture.shows(token, MARK_PATIENCE_S) for capture in captures))
                except TimeoutError as error:
                    raise LabFailed(str(error), where=str(self._folder), remedy="check free disk space") from error
            self.dropped = {f"{capture.path.name}": capture.dropped for capture in captures if capture.dropped}

    def _once(self, number: int, index: int, repetition: int, point: Point, ends: Ends) -> Run:
        try:
            measured = perform(point, ends)
        except LabFailed:
            raise
        except (OSError, EOFError) as error:
            failure = f"{type(error).__name__}: {error}"
            return Run(number, index, repetition, self._number, None, failure)
        return Run(number, index, repetition, self._number, measured)


def _path(folder: Path, group: int, vantage: str) -> Path:
    return folder / f"{group:03}-{vantage}.pcapng"


def medium(point: Point) -> Medium:
    """Return the network settings of a point."""
    kind: dict[str, Kind] = {"loopback": "lo", "veth": "veth", "tap": "tap", "tun": "tun"}
    delay_s, rate, queue = int(point["path.delay"]) / NS_PER_S, point["path.rate"], point["path.queue"]
    reorder_delay_s, seed = int(point["path.reorder_by"]) / NS_PER_S, int(point["path.seed"])
    there = PathModel(
        delay_s=delay_s,
        rate_bps=rate,
        queue_bytes=queue,
        loss_share=float(point["path.loss"]),
        seed=seed,
        duplicate_share=float(point["path.duplicate"]),
        reorder_share=float(point["path.reorder"]),
        reorder_delay_s=(reorder_delay_s, reorder_delay_s),
        undisturbed_packets=UNDISTURBED_PACKETS,
    )
    back = PathModel(
        delay_s=delay_s,
        rate_bps=rate,
        queue_bytes=queue,
        loss_share=float(point["path.loss_back"]),
        seed=seed + 1,
        undisturbed_packets=UNDISTURBED_PACKETS,
    )
    return Medium(kind[str(point["path.medium"])], int(point["path.mtu"]), ipv6=bool(point["path.ipv6"]), forward=there, backward=back)


def options(point: Point) -> SocketOptions:
    """Return the socket options of a point."""
    return SocketOptions(
        congestion_control=str(point["sockets.congestion"]),
        nodelay=bool(point["sockets.nodelay"]),
        send_buffer_bytes=point["sockets.send_buffer"] or point["sockets.buffers"],
        receive_buffer_bytes=point["sockets.receive_buffer"] or point["sockets.buffers"],
        both_ends=True,
    )


def _environment(*, calm: bool) -> dict[str, Any]:
    return {
        "kernel": f"{platform.system()} {platform.release()}",
        "processors": len(os.sched_getaffinity(0)),
        "real_time_priority": calm and os.geteuid() == 0,
        "ended_utc": time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime()),
    }
