"""Compile the program of a stack on first use, and again after a change of its sources, into the checkout's `build/` folder."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path

from tcptrace_lab.errors import LabFailed, MissingTool

SOURCES = Path(__file__).parent / "gvisor"
BUILT = Path(__file__).parents[3] / "build" / "other_stacks"


def gvisor() -> Path:
    """The program with gVisor's netstack.

    Raises: MissingTool: Go is not installed. LabFailed: it does not compile, or its modules cannot be downloaded.
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
