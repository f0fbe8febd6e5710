"""Tasks on the workers of a Dask cluster. The workers must have this program, and reach the captures and the archive.

What a lost worker had is given to another (Dask does so, a few times), and then once more by us; after that the capture is given up, as it
is when a process of this machine dies with it twice.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from tcptrace_lab.archive.work.task import Analyze, Hashed
from tcptrace_lab.errors import MissingTool, TcptraceLabError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tcptrace_lab.archive.work.task import Result, Task

PATIENCE_S = 10
"""Time in which a scheduler must answer."""

TRIES = 2

AHEAD = 64
"""Tasks that the scheduler has for each thread of its workers: a hundred thousand at once would only fill its memory."""


def carry_out(task: Task) -> Result | TcptraceLabError:
    """What a worker of the cluster does. An error of ours that ends the run comes back as a value, so that Dask does not try again."""
    try:
        return task.run()
    except TcptraceLabError as error:
        error.__cause__ = error.__context__ = error.__traceback__ = None
        return error


@dataclass(slots=True)
class Cluster:
    """A cluster; a context manager.

    Attributes:
        address: of its scheduler.
        peak_bytes: not known of workers elsewhere.
    """

    address: str
    peak_bytes: int = 0
    _client: Any = field(default=None)

    def __enter__(self) -> Self:
        """Connect. Raises MissingTool without Dask, UsageError where nobody answers."""
        try:
            from distributed import Client  # noqa: PLC0415  (only a cluster needs it)
        except ImportError as error:
            raise MissingTool("Dask is not installed", where="--scheduler", remedy="pip install 'tcptrace-lab[archive]'") from error
        try:
            self._client = Client(self.address, timeout=PATIENCE_S, set_as_default=False)
        except (OSError, TimeoutError, ValueError) as error:
            raise UsageError("no scheduler answers", where=self.address, remedy="start one with dask scheduler") from error
        return self

    def __exit__(self, *_: object) -> None:
        """Disconnect; what is not done is given up."""
        self._client.close()

    def run(self, tasks: Iterable[Task]) -> Iterator[Result]:
        """Results of tasks, as they come. Raises what a task raised, which ends the run; UsageError where there are no workers."""
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
        """What became of a task; None to try it again."""
        error = future.exception()
        if error is None:
            result: Result | TcptraceLabError = future.result()
            if isinstance(result, TcptraceLabError):
                raise result
            return result
        if tried < TRIES:
            return None
        reason = f"its worker was lost: {type(error).__name__}" if "Killed" in type(error).__name__ else f"{type(error).__name__}: {error}"
        return task.lost(reason) if isinstance(task, Analyze) else Hashed(task.path, reason=reason)
