"""Compiles the program that contains a TCP stack, on first use and after a change of its sources.

The program is stored in the checkout's `build/` folder.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

from tcptrace_lab.errors import LabFailed, MissingTool

SOURCES = Path(__file__).parent / "gvisor"
BUILT = Path(__file__).parents[3] / "build" / "other_stacks"


def gvisor() -> Path:
    """Return the path of the program with gVisor's netstack. Compile the program if needed.

    Raises:
        MissingTool: Go is not installed.
        LabFailed: the program does not compile, or its modules cannot be downloaded.
    """
    contents = b"".join((SOURCES / name).read_bytes() for name in ("go.mod", "go.sum", "main.go"))
    program = BUILT / f"gvisor-{hashlib.sha256(contents).hexdigest()[:16]}"
    if not program.exists():
        go = shutil.which("go")
        if go is None:
            raise MissingTool("not installed", where="go", remedy="install Go 1.26 or newer")
        BUILT.mkdir(parents=True, exist_ok=True)
        done = subprocess.run([go, "build", "-o", program, "."], cwd=SOURCES, capture_output=True, text=True, check=False)
        if done.returncode:
            raise LabFailed(f"go build: {done.stderr.strip()[-400:]}", where=str(SOURCES))
    return program
