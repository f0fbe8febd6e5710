"""Runs tasks on the workers of a Dask cluster. Workers need this program, and access to the captures and the archive.

If a worker is lost, Dask gives its task to another worker, a few times at most. If all these workers are lost, the run submits the task
once more. If this attempt also fails, the run reports the capture as lost.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from tcptrace_lab.errors import MissingTool, TcptraceLabError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tcptrace_lab.archive.work.task import Result, Task

PATIENCE_S = 10
"""Timeout of the connection to the scheduler."""

TRIES = 2

AHEAD = 64
"""Number of tasks per worker thread that are submitted at a time. More tasks would only fill the scheduler's memory."""


def carry_out(task: Task) -> Result | TcptraceLabError:
    """Run a task on a cluster worker. An error that must end the run is returned, not raised, so that Dask does not retry the task."""
    try:
        return task.run()
    except TcptraceLabError as error:
        error.__cause__ = error.__context__ = error.__traceback__ = None
        return error


@dataclass(slots=True)
class Cluster:
    """A connection to a Dask cluster, closed when the `with` block ends.

    Attributes:
        address: address of the scheduler.
        peak_bytes: always 0, because the memory of remote workers is unknown.
    """

    address: str
    peak_bytes: int = 0
    _client: Any = field(default=None)

    def __enter__(self) -> Self:
        """Connect. Raises MissingTool if Dask is not installed, UsageError if no scheduler answers."""
        try:
            from distributed import Client  # noqa: PLC0415  (only a cluster needs Dask)
        except ImportError as error:
            raise MissingTool("Dask is not installed", where="--scheduler", remedy="pip install 'tcptrace-lab[archive]'") from error
        try:
            self._client = Client(self.address, timeout=PATIENCE_S, set_as_default=False)
        except (OSError, TimeoutError, ValueError) as error:
            raise UsageError("no scheduler answers", where=self.address, remedy="start one with dask scheduler") from error
        return self

    def __exit__(self, *_: object) -> None:
        """Disconnect. Unfinished tasks are abandoned."""
        self._client.close()

    def run(self, tasks: Iterable[Task]) -> Iterator[Result]:
        """Yield results as tasks finish. Raises UsageError if the cluster has no workers, and any task error that must end the run."""
        from distributed import as_completed  # noqa: PLC0415

        threads = sum(self._client.nthreads().values())
        if not threads:
            raise UsageError("the cluster has no workers", where=self.address, remedy="start some with dask worker")
        waiting = iter(tasks)
        going: dict[str, tuple[Task, int]] = {}
        coming = as_completed(loop=self._client.loop)

        def submit(task: Task, tried: int) -> None:
            future = self._client.submit(carry_out, task, pure=False)
            going[future.key] = task, tried
            coming.add(future)

        for _, task in zip(range(AHEAD * threads), waiting, strict=False):
            submit(task, 1)
        for future in coming:
            task, tried = going.pop(future.key)
            result = self._of(future, task, tried)
            if result is None:
                submit(task, tried + 1)
                continue
            for another in waiting:
                submit(another, 1)
                break
            yield result

    @staticmethod
    def _of(future: Any, task: Task, tried: int) -> Result | None:  # noqa: ANN401  (Dask publishes no types)
        """Return the result of a task; None if the run must submit the task again."""
        error = future.exception()
        if error is None:
            result: Result | TcptraceLabError = future.result()
            if isinstance(result, TcptraceLabError):
                raise result
            return result
        if tried < TRIES:
            return None
        reason = f"its worker was lost: {type(error).__name__}" if "Killed" in type(error).__name__ else f"{type(error).__name__}: {error}"
        return task.lost(reason)
