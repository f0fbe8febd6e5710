"""Runs the tracer during a transfer. The tracer's records are written to a Parquet file next to the captures."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tcptrace_lab.errors import LabFailed
from tcptrace_lab.lab.kernel_ledger.build import tracer
from tcptrace_lab.lab.kernel_ledger.events import read_records

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tcptrace_lab.lab.networks.network import Network

EVENTS, COSTS = "kernel-events.parquet", "kernel-tracer.json"
PATIENCE_S = 20.0
"""Maximum time for the tracer to attach, and to write its records (a choice)."""


@dataclass(slots=True)
class Trace:
    """The result of tracing a transfer.

    Attributes:
        events: file with the events.
        costs: the tracer's own counts: lost records, and the runs and nanoseconds of each BPF program.
    """

    events: Path
    costs: dict[str, Any]


@contextmanager
def tracing(network: Network, directory: Path) -> Iterator[Trace]:
    """Trace the connections of a network's two ends during the block.

    Raises:
        MissingTool: a program that compiles the tracer is not installed.
        LabFailed: the kernel does not support tracing, permissions are missing, or records were lost.
    """
    inodes = sorted({os.stat(end.path).st_ino for end in (network.client, network.server)})  # noqa: PTH116  (the path of a descriptor; a Path object would not help)
    raw = directory / "kernel-records.raw"
    command = [str(tracer()), str(raw), *map(str, inodes)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    trace = Trace(directory / EVENTS, {})
    try:
        _line(process)
        yield trace
        process.send_signal(signal.SIGINT)
        trace.costs.update(_line(process))
        process.wait(PATIENCE_S)
        if trace.costs["lost_records"]:
            raise LabFailed(f"the tracer lost {trace.costs['lost_records']} records", where=str(raw), remedy="trace a shorter transfer")
        read_records(raw, trace.costs["clock_offset_ns"]).write_parquet(trace.events, compression="zstd")
        (directory / COSTS).write_text(json.dumps(trace.costs, indent=1) + "\n")
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()
        raw.unlink(missing_ok=True)


def _line(process: subprocess.Popen[bytes]) -> dict[str, Any]:
    assert process.stdout is not None  # noqa: S101  (it is a pipe)
    assert process.stderr is not None  # noqa: S101
    readable, _, _ = select.select([process.stdout], [], [], PATIENCE_S)
    line = process.stdout.readline() if readable else b""
    if line:
        words: dict[str, Any] = json.loads(line)
        return words
    process.kill()
    messages = process.stderr.read().decode(errors="replace").strip().splitlines()
    remedy = "run it as root, on a kernel that allows BPF programs with BTF"
    raise LabFailed(f"the kernel cannot be traced: {messages[-1] if messages else 'the tracer gives no reason'}", remedy=remedy)
