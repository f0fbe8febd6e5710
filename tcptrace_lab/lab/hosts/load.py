"""Loads a host with compute-bound processes.

These processes compete with the applications for the processors, as in Abrams and Chen's experiments.
"""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tcptrace_lab.lab.capturing.dumpcap import require

if TYPE_CHECKING:
    from collections.abc import Iterator

_COMPUTE = "while True: pass"
_READY = "print(flush=True)\n"


@contextmanager
def loaded(per_processor: int) -> Iterator[list[int]]:
    """Run `per_processor` busy processes per available processor during the block.

    If this process ends, the kernel kills the busy processes. Their ids are yielded when all of them are running.

    Raises:
        MissingTool: setpriv is not installed.
    """
    if per_processor:
        require(("setpriv",))
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for processor in sorted(os.sched_getaffinity(0)):
            for _ in range(per_processor):
                code = f"import os\nos.sched_setaffinity(0, {{{processor}}})\n{_READY}{_COMPUTE}"
                command = ["setpriv", "--pdeathsig", "KILL", sys.executable, "-I", "-S", "-c", code]
                processes.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE))
        for process in processes:
            assert process.stdout is not None  # noqa: S101  (it is a pipe)
            process.stdout.readline()
        yield [process.pid for process in processes]
    finally:
        for process in processes:
            process.kill()
        for process in processes:
            process.wait()
            if process.stdout is not None:
                process.stdout.close()
