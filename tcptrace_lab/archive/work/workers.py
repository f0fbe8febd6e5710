"""Runs tasks in local worker processes. Each worker has a limited number of tasks, and limited memory.

Processes are spawned, not forked, because Polars and the engine use threads, which do not survive a fork. If a worker dies, its task is
tried once more after all other tasks, and the other workers continue. A worker that exceeds its memory limit is killed, and its task is not
tried again. If the run itself is killed, the kernel kills its workers (PR_SET_PDEATHSIG). Only files in the archive's folder `tmp` can
remain.
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

from tcptrace_lab.archive.work.task import Analyze
from tcptrace_lab.engine import memory
from tcptrace_lab.errors import TcptraceLabError
from tcptrace_lab.process import interrupts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from multiprocessing.context import SpawnProcess

    from tcptrace_lab.archive.work.task import Result, Task

TASKS_PER_WORKER = 500
"""A worker is replaced after this many tasks, because libraries keep some memory after each task. A new worker costs 1.5 s of CPU time."""

MEMORY_BYTES = 2_000_000_000
"""A worker is killed if its resident memory exceeds this size. The analysis of a capture of any size needs at most 1.5 GB."""

LOOK_S = 0.2
"""Interval between checks of the workers' memory."""

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
    """A pool of worker processes. As a context manager, it kills the processes when the `with` block ends.

    Attributes:
        jobs: number of concurrent workers.
        memory_bytes: resident memory above which a worker is killed.
        tasks_per_worker: number of tasks after which a worker is replaced.
        peak_bytes: largest resident memory observed in any worker.
    """

    jobs: int
    memory_bytes: int = MEMORY_BYTES
    tasks_per_worker: int = TASKS_PER_WORKER
    peak_bytes: int = 0
    _workers: list[_Worker] = field(default_factory=list)
    _undoing: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    def __enter__(self) -> Self:
        """Return this pool. Worker processes start with the first tasks."""
        self._undoing.enter_context(interrupts.undoing(self._kill))
        return self

    def __exit__(self, *_: object) -> None:
        """Kill the workers, even if they are busy."""
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
        """Yield results as tasks finish. Raises OutputUnwritable, and other task errors that must end the run."""
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
                        waiting.append(task)  # retry last, because possibly all workers together used too much memory
                        continue
                    result = task.lost(reason)
                yield result
            self._look()

    def _hand_out(self, waiting: deque[Task]) -> None:
        free = [worker for worker in self._workers if worker.task is None]
        while waiting and (free or len(self._workers) < self.jobs):
            worker = free.pop() if free else self._started()
            worker.task = waiting.popleft()
            worker.left -= 1
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the worker died while it was idle: `_received` detects this
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
        """Return the result that a worker sent; None if the worker died. An error that the worker sent is raised."""
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
        for worker in self._workers:
            if worker.task is not None and self._is_too_large(worker):
                worker.too_large = True
                worker.process.kill()

    def _is_too_large(self, worker: _Worker) -> bool:
        resident = 0 if worker.process.pid is None else _resident_bytes(worker.process.pid)
        self.peak_bytes = max(self.peak_bytes, resident)
        return resident > self.memory_bytes


def _resident_bytes(pid: int) -> int:
    """Return the resident memory of a process in bytes; 0 if the process has ended, or the system has no /proc."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * _PAGE_BYTES
    except (OSError, IndexError):
        return 0


def _work(pipe: Connection, parent: int, threads: int) -> None:
    """Main function of a worker process: receive tasks and send results until the pipe closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the main process receives SIGINT as well, and kills its workers
    _end_with(parent)
    os.environ.setdefault("POLARS_MAX_THREADS", str(threads))
    memory.bound()
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
        except Exception as error:  # noqa: BLE001  (a bug triggered by one capture must not end the run)
            result = _defect(task, error)
        try:
            pipe.send(result)
        except BrokenPipeError:
            return


def _defect(task: Task, error: Exception) -> Result:
    reason = f"internal error: {type(error).__name__}: {error}".replace("\n", " ")
    return task.lost(reason)


def _plain(error: TcptraceLabError) -> TcptraceLabError:
    """Return the error without cause, context and traceback, so that it can be pickled."""
    error.__cause__ = error.__context__ = error.__traceback__ = None
    return error


def _end_with(parent: int) -> None:
    """Ask the kernel to kill this process when its parent dies. This works on Linux. Elsewhere, a worker ends after its task."""
    import ctypes  # noqa: PLC0415

    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(0)
