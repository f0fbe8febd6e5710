"""Whole processes, measured: wall time, processor time, peak memory; each command in turn, round after round.

This module imports nothing big on purpose: Linux counts the peak of the parent's memory into a child that was started
from it (until it executes another program), so the parent must stay small.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import IO, Final, TypeAlias


@dataclass(frozen=True)
class Printed:
    """What a command wrote to its standard output: the beginning, and how many lines in all."""

    head: str
    lines: int


Check: TypeAlias = Callable[[Printed], str | None]
"""Looks at what a command printed; says what is wrong with it, or None."""

_LIMIT_S: Final = 900.0
"""A command that runs longer is ended, and counts as failed."""
_SLOW_S: Final = 40.0
"""A command whose warm-up takes longer than this is run only once after it: a few percent of scatter do not matter there."""
_HEAD_BYTES: Final = 4096
_PIECE_BYTES: Final = 1 << 20
_KIB: Final = 1024
"""Unit of `ru_maxrss` on Linux."""


@dataclass(frozen=True)
class Command:
    """A command to be measured.

    Attributes:
        tool: what it is, in the table.
        capture: kind of the capture it reads.
        arguments: program and arguments.
        packets: how many it reads.
        of_packets: how many the whole capture has; larger than `packets` where only a prefix is read.
        check: applied to the output of the warm-up run.
    """

    tool: str
    capture: str
    arguments: tuple[str, ...]
    packets: int
    of_packets: int
    check: Check


@dataclass
class Measured:
    """What came out: one element per counted run."""

    command: Command
    wall_s: list[float] = field(default_factory=list)
    cpu_s: list[float] = field(default_factory=list)
    peak_bytes: list[int] = field(default_factory=list)
    failure: str | None = None
    warm_up_s: float = 0.0

    @property
    def works(self) -> bool:
        """True if there is anything to show."""
        return self.failure is None and bool(self.wall_s)

    @property
    def scale(self) -> float:
        """What the times of a prefix are multiplied by."""
        return self.command.of_packets / self.command.packets

    @property
    def wall_median_s(self) -> float:
        """Median wall time, scaled to the whole capture."""
        return statistics.median(self.wall_s) * self.scale

    @property
    def cpu_median_s(self) -> float:
        """Median user + system time, scaled to the whole capture."""
        return statistics.median(self.cpu_s) * self.scale

    @property
    def packets_per_s(self) -> float:
        """Packets per second of wall time, starting the process included."""
        return self.command.of_packets / self.wall_median_s

    @property
    def peak_max_bytes(self) -> int:
        """Largest resident set of any run; mapped pages of the capture count."""
        return max(self.peak_bytes)


@dataclass(frozen=True)
class _Run:
    wall_s: float
    cpu_s: float
    peak_bytes: int
    printed: Printed
    failure: str | None


def measure(commands: list[Command], runs: int, progress: Callable[[str], None]) -> list[Measured]:
    """One warm-up of each command, whose output is checked, then `runs` counted rounds: A B C, A B C, and so on.

    Output is read during the warm-up and goes to /dev/null in the counted runs.
    """
    all_measured = [Measured(command) for command in commands]
    for measured in all_measured:
        progress(f"warm-up: {measured.command.capture}, {measured.command.tool}")
        warm_up = _run(measured.command.arguments, read=True)
        measured.warm_up_s = warm_up.wall_s
        measured.failure = warm_up.failure or measured.command.check(warm_up.printed)
    for number in range(1, runs + 1):
        for measured in all_measured:
            if measured.failure is None and (number == 1 or measured.warm_up_s <= _SLOW_S):
                progress(f"run {number} of {runs}: {measured.command.capture}, {measured.command.tool}")
                run = _run(measured.command.arguments, read=False)
                measured.wall_s.append(run.wall_s)
                measured.cpu_s.append(run.cpu_s)
                measured.peak_bytes.append(run.peak_bytes)
                measured.failure = run.failure
    return all_measured


def _environment() -> dict[str, str]:
    """Python keeps the bytecode of the warm-up, as on the machines of users, even if PYTHONDONTWRITEBYTECODE is set here."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def _run(arguments: tuple[str, ...], *, read: bool) -> _Run:
    """Runs a command once, to its end or to the limit."""
    with tempfile.TemporaryFile() as errors:
        started = time.perf_counter()
        out = subprocess.PIPE if read else subprocess.DEVNULL
        process = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, stdout=out, stderr=errors, env=_environment())
        limit = threading.Timer(_LIMIT_S, process.kill)
        limit.start()
        printed = _read(process.stdout) if process.stdout else Printed("", 0)
        _, status, usage = os.wait4(process.pid, 0)
        wall_s = time.perf_counter() - started
        limit.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        failure = None
        if process.returncode:
            errors.seek(0)
            said = errors.read().decode(errors="replace").strip().splitlines() or ["no message"]
            failure = f"exit {process.returncode}: {said[-1]}"
    return _Run(wall_s, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * _KIB, printed, failure)


def _read(pipe: IO[bytes]) -> Printed:
    """Reads a pipe to its end and keeps only its beginning."""
    head, lines = b"", 0
    with pipe:
        while piece := pipe.read1(_PIECE_BYTES):  # type: ignore[attr-defined]  # Popen's pipes are BufferedReader
            lines += piece.count(b"\n")
            head += piece[: _HEAD_BYTES - len(head)]
    return Printed(head.decode(errors="replace"), lines)
