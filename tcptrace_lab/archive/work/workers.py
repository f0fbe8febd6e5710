"""Tasks in processes of this machine, a bounded number of tasks and bytes of memory each.

Processes are spawned, not forked: Polars and the engine have threads, which a fork would lose. A worker that dies, or is ended because it
takes too much memory, costs the task that it had, tried once more by itself; the others go on. When the run is ended from outside, however,
its workers end with it (PR_SET_PDEATHSIG), and leave at most a file in the archive's `tmp`.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
from collections import deque
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import TYPE_CHECKING, Self

from tcptrace_lab.archive.work.task import Analyze, Hashed
from tcptrace_lab.engine import memory
from tcptrace_lab.errors import TcptraceLabError
from tcptrace_lab.process import interrupts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from multiprocessing.context import SpawnProcess

    from tcptrace_lab.archive.work.task import Result, Task

TASKS_PER_WORKER = 500
"""Tasks after which a worker is replaced, so that what libraries keep does not add up. A new one takes 1.5 s of processor time."""

MEMORY_BYTES = 2_000_000_000
"""Resident memory at which a worker is ended. A capture of any size takes at most 1.5 GB."""

LOOK_S = 0.2
"""Time between looks at the memory of workers."""

_PR_SET_PDEATHSIG = 1
"""prctl(2)."""

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_TRIES = 2


@dataclass(slots=True)
class _Worker:
    process: SpawnProcess
    pipe: Connection
    left: int
    task: Task | None = None
    too_large: bool = False


@dataclass(slots=True)
class Pool:
    """Worker processes; a context manager, which ends them.

    Attributes:
        jobs: workers at a time.
        memory_bytes: resident memory at which a worker is ended.
        tasks_per_worker: tasks after which a worker is replaced.
        peak_bytes: the most resident memory that one was seen with.
    """

    jobs: int
    memory_bytes: int = MEMORY_BYTES
    tasks_per_worker: int = TASKS_PER_WORKER
    peak_bytes: int = 0
    _workers: list[_Worker] = field(default_factory=list)
    _undoing: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    def __enter__(self) -> Self:
        """Itself; the workers start with the first tasks."""
        self._undoing.enter_context(interrupts.undoing(self._kill))
        return self

    def __exit__(self, *_: object) -> None:
        """End the workers, whatever they do."""
        self._undoing.close()
        self._kill()
        for worker in self._workers:
            worker.pipe.close()
        self._workers.clear()

    def _kill(self) -> None:
        for worker in self._workers:
            worker.process.kill()
        for worker in self._workers:
            worker.process.join()

    def run(self, tasks: Iterable[Task]) -> Iterator[Result]:
        """Results of tasks, as they come. Raises what a task raised, which ends the run."""
        waiting = deque(tasks)
        tries: dict[Task, int] = {}
        while waiting or any(worker.task for worker in self._workers):
            self._hand_out(waiting)
            ready = wait([worker.pipe for worker in self._workers if worker.task is not None], LOOK_S)
            for worker in [each for each in self._workers if each.pipe in ready]:
                task, result = worker.task, self._received(worker)
                if task is None:
                    continue
                if result is None:
                    tries[task] = tries.get(task, 0) + 1
                    reason = self._end(worker)
                    if tries[task] < _TRIES and not worker.too_large:
                        waiting.append(task)  # behind all others: it may be the sum that was too large
                        continue
                    result = task.lost(reason) if isinstance(task, Analyze) else Hashed(task.path, reason=reason)
                yield result
            self._look()

    def _hand_out(self, waiting: deque[Task]) -> None:
        free = [worker for worker in self._workers if worker.task is None]
        while waiting and (free or len(self._workers) < self.jobs):
            worker = free.pop() if free else self._started()
            worker.task = waiting.popleft()
            worker.left -= 1
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it died while it waited: `_received` finds out
                worker.pipe.send(worker.task)

    def _started(self) -> _Worker:
        ours, theirs = multiprocessing.Pipe()
        context = multiprocessing.get_context("spawn")
        threads = max(1, (os.cpu_count() or 1) // self.jobs)
        process = context.Process(target=_work, args=(theirs, os.getpid(), threads), name="tcptrace-lab worker", daemon=True)
        process.start()
        theirs.close()
        worker = _Worker(process, ours, self.tasks_per_worker)
        self._workers.append(worker)
        return worker

    def _received(self, worker: _Worker) -> Result | None:
        """What a worker sent of its task; None if it died. Raises what it raised."""
        try:
            result: Result | BaseException = worker.pipe.recv()
        except (EOFError, ConnectionResetError):
            return None
        worker.task = None
        if isinstance(result, BaseException):
            raise result
        if worker.left <= 0 or self._is_too_large(worker):
            worker.pipe.close()
            worker.process.join()
            self._workers.remove(worker)
        return result

    def _end(self, worker: _Worker) -> str:
        """Put a dead worker away; why it died."""
        worker.process.join()
        worker.pipe.close()
        self._workers.remove(worker)
        if worker.too_large:
            return f"it needs more than {self.memory_bytes / 1e9:.3g} GB of memory"
        code = worker.process.exitcode or 0
        if code < 0:
            name = signal.Signals(-code).name
            return f"its worker was killed by {name}" + (", possibly because memory ran out" if name == "SIGKILL" else "")
        return f"its worker ended with code {code}"

    def _look(self) -> None:
        """End workers that have grown too large with their task."""
        for worker in self._workers:
            if worker.task is not None and self._is_too_large(worker):
                worker.too_large = True
                worker.process.kill()

    def _is_too_large(self, worker: _Worker) -> bool:
        """Whether a worker takes more memory than it may."""
        resident = 0 if worker.process.pid is None else _resident_bytes(worker.process.pid)
        self.peak_bytes = max(self.peak_bytes, resident)
        return resident > self.memory_bytes


def _resident_bytes(pid: int) -> int:
    """Of a process; 0 where that is not told (it is gone, or there is no /proc)."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * _PAGE_BYTES
    except (OSError, IndexError):
        return 0


def _work(pipe: Connection, parent: int, threads: int) -> None:
    """A worker's life: tasks come, results go, until the pipe ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the run gets it, too, and ends its workers
    _end_with(parent)
    os.environ.setdefault("POLARS_MAX_THREADS", str(threads))
    while True:
        try:
            task: Task = pipe.recv()
        except EOFError:
            return
        try:
            with memory.at_hand(task.paths) if isinstance(task, Analyze) else contextlib.nullcontext():
                result: Result | BaseException = task.run()
        except TcptraceLabError as error:
            result = _plain(error)
        except Exception as error:  # noqa: BLE001  (a defect that one capture shows is that capture's; the run goes on)
            result = _defect(task, error)
        try:
            pipe.send(result)
        except BrokenPipeError:
            return


def _defect(task: Task, error: Exception) -> Result:
    reason = f"internal error: {type(error).__name__}: {error}".replace("\n", " ")
    return task.lost(reason) if isinstance(task, Analyze) else Hashed(task.path, reason=reason)


def _plain(error: TcptraceLabError) -> TcptraceLabError:
    """An error that can be sent: with its words alone."""
    error.__cause__ = error.__context__ = error.__traceback__ = None
    return error


def _end_with(parent: int) -> None:
    """Have the kernel end this process when the run ends, however it ends (Linux; elsewhere a worker ends with its task)."""
    import ctypes  # noqa: PLC0415

    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(0)
