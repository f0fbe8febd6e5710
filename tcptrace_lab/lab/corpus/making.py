"""Makes the transfers of a seed, several at a time. Each transfer has its own process and network."""

from __future__ import annotations

import platform
import shutil
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

import polars as pl

from tcptrace_lab.errors import TcptraceLabError
from tcptrace_lab.lab.corpus import manifest
from tcptrace_lab.lab.corpus.drawn import PARTS, Drawn
from tcptrace_lab.lab.corpus.middle import write_middle
from tcptrace_lab.lab.corpus.programs import PROGRAMS
from tcptrace_lab.lab.corpus.running import run
from tcptrace_lab.lab.kernel_ledger.ledger import write_ledger
from tcptrace_lab.lab.kernel_ledger.trace import EVENTS, tracing

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


def make(wanted: Sequence[Drawn], folder: Path, at_a_time: int) -> Iterator[str]:
    """Make the transfers that are not yet in the manifests. Yield one line of text about each transfer.

    Each part of the corpus has its own folder. If a transfer fails, or its program is not installed, it is reported and skipped.
    """
    for part in PARTS:
        (folder / part).mkdir(parents=True, exist_ok=True)
    there = {entry["name"] for part in PARTS for entry in manifest.entries(folder / part)}
    todo = [one for one in wanted if one.name not in there]
    for program in dict.fromkeys(one.program for one in todo):
        if missing := PROGRAMS[program].missing():
            yield f"{program} is skipped: {', '.join(missing)} not installed (apt-get install {PROGRAMS[program].packages})"
            todo = [one for one in todo if one.program != program]
    with ProcessPoolExecutor(at_a_time, get_context("spawn")) as pool:
        running = {pool.submit(make_one, one, folder / one.part / one.name): one for one in todo}
        for number, done in enumerate(as_completed(running), start=1):
            one = running[done]
            try:
                entry = done.result()
            except (TcptraceLabError, OSError) as error:
                shutil.rmtree(folder / one.part / one.name, ignore_errors=True)
                yield f"{one.name} on {one.path}: {error}"
                continue
            manifest.append(folder / one.part, entry)
            yield f"{number}/{len(running)} {one.name} on {one.path}: {entry['duration_s']:.1f} s, {entry['tracer_records']:,} records"


def make_one(one: Drawn, folder: Path) -> dict[str, Any]:
    """Make one transfer with all its files. Return the transfer's line for the manifest.

    Raises:
        MissingTool, LabFailed: the transfer could not be made.
    """
    folder.mkdir(parents=True, exist_ok=True)
    clock_ns = time.time_ns() - time.monotonic_ns()
    ran = run(PROGRAMS[one.program], one.medium, one.congestion_control, one.paused, folder, tracing, one.competitors)
    write_ledger(folder)
    assert ran.network.relay is not None  # noqa: S101  (every path of the corpus has one)
    frames = ran.frames | {"middle": write_middle(folder, ran.network.relay, one.medium, clock_ns)}
    records = pl.scan_parquet(folder / EVENTS).select(pl.len()).collect().item()
    return entry_of(one, is_complete=ran.is_complete, duration_s=ran.duration_s, frames=frames, records=records)


def entry_of(one: Drawn, *, is_complete: bool, duration_s: float, frames: dict[str, int], records: int) -> dict[str, Any]:
    """Return the manifest line of a transfer."""
    program = PROGRAMS[one.program]
    return {
        "schema_version": manifest.SCHEMA_VERSION,
        "name": one.name,
        "part": one.part,
        "seed": one.seed,
        "number": one.number,
        "program": one.program,
        "family": program.family,
        "server": program.server,
        "client": program.client,
        "path": one.path,
        "mtu_bytes": one.medium.mtu_bytes,
        "forward": one.medium.forward.describe(),
        "backward": one.medium.backward.describe(),
        "congestion_control": one.congestion_control,
        "paused": one.paused and asdict(one.paused),
        "competing": [{"program": name, "is_other_host": is_other_host} for name, is_other_host in one.competing],
        "is_complete": is_complete,
        "duration_s": round(duration_s, 3),
        "frames": frames,
        "tracer_records": records,
        "kernel": platform.release(),
    }
