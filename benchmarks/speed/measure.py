"""Measures whole processes: wall time, processor time and peak memory. The commands run in turn, round after round.

This module imports nothing big. On Linux, the peak memory of a child starts with the memory of its parent, until the child executes another
program. So the parent must stay small.
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
    """The standard output of a command: its beginning, and the total number of lines."""

    head: str
    lines: int


Check: TypeAlias = Callable[[Printed], str | None]
"""A function that checks the output of a command. It returns what is wrong, or None."""

_LIMIT_S: Final = 900.0
"""Time limit of a command in seconds. A command that takes longer is killed and counts as failed."""
_SLOW_S: Final = 40.0
"""A command with a longer warm-up (s) gets only one counted run. A scatter of a few percent does not matter for such a command."""
_HEAD_BYTES: Final = 4096
_PIECE_BYTES: Final = 1 << 20
_KIB: Final = 1024
"""The unit of `ru_maxrss` on Linux, in bytes."""


@dataclass(frozen=True)
class Command:
    """A command that is measured.

    Attributes:
        tool: name of the tool in the table.
        capture: kind of the capture that the command reads.
        arguments: program and arguments.
        packets: number of packets that the command reads.
        of_packets: number of packets in the whole capture. It is larger than `packets` if the command reads only a prefix.
        check: function that checks the output of the warm-up.
    """

    tool: str
    capture: str
    arguments: tuple[str, ...]
    packets: int
    of_packets: int
    check: Check


@dataclass
class Measured:
    """The measurements of one command, with one element per counted run."""

    command: Command
    wall_s: list[float] = field(default_factory=list)
    cpu_s: list[float] = field(default_factory=list)
    peak_bytes: list[int] = field(default_factory=list)
    failure: str | None = None
    warm_up_s: float = 0.0

    @property
    def works(self) -> bool:
        """Whether the command worked and was measured."""
        return self.failure is None and bool(self.wall_s)

    @property
    def scale(self) -> float:
        """The factor by which the times of a prefix are multiplied."""
        return self.command.of_packets / self.command.packets

    @property
    def wall_median_s(self) -> float:
        """Median wall time in seconds, scaled to the whole capture."""
        return statistics.median(self.wall_s) * self.scale

    @property
    def cpu_median_s(self) -> float:
        """Median of user and system time in seconds, scaled to the whole capture."""
        return statistics.median(self.cpu_s) * self.scale

    @property
    def packets_per_s(self) -> float:
        """Packets per second of wall time. The wall time includes the start of the process."""
        return self.command.of_packets / self.wall_median_s

    @property
    def peak_max_bytes(self) -> int:
        """Largest resident set of all runs in bytes. It includes the mapped pages of the capture."""
        return max(self.peak_bytes)


@dataclass(frozen=True)
class _Run:
    wall_s: float
    cpu_s: float
    peak_bytes: int
    printed: Printed
    failure: str | None


def measure(commands: list[Command], runs: int, progress: Callable[[str], None]) -> list[Measured]:
    """Measure the commands in `runs` rounds: A B C, A B C, and so on.

    A warm-up of each command comes first. Its output is read and checked. In the counted runs, the output goes to /dev/null.
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
    """Return the environment of the commands.

    It lacks PYTHONDONTWRITEBYTECODE, so that Python keeps the bytecode of the warm-up, as on the machines of users.
    """
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def _run(arguments: tuple[str, ...], *, read: bool) -> _Run:
    """Run a command once, until it ends or reaches the time limit."""
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
    """Read a pipe to its end, and keep only the beginning."""
    head, lines = b"", 0
    with pipe:
        while piece := pipe.read1(_PIECE_BYTES):  # type: ignore[attr-defined]  # Popen's pipes are BufferedReader
            lines += piece.count(b"\n")
            head += piece[: _HEAD_BYTES - len(head)]
    return Printed(head.decode(errors="replace"), lines)
