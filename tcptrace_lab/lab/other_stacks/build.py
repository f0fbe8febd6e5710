"""Compiles the programs that contain a TCP stack, on first use and after a change of their sources.

The programs are stored in the checkout's `build/` folder.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from tcptrace_lab.errors import LabFailed, MissingTool

if TYPE_CHECKING:
    from collections.abc import Sequence

HERE = Path(__file__).parent
BUILT = Path(__file__).parents[3] / "build" / "other_stacks"


def gvisor() -> Path:
    """Return the path of the program with gVisor's netstack. Compile the program if needed.

    Raises:
        MissingTool: Go is not installed.
        LabFailed: the program does not compile, or its modules cannot be downloaded.
    """
    sources = HERE / "gvisor"
    program = _program(sources, ("go.mod", "go.sum", "main.go"))
    if not program.exists():
        _compile(sources, "go", ["build", "-o", str(program), "."], "install Go 1.26 or newer")
    return program


def smoltcp() -> Path:
    """Return the path of the program with smoltcp. Compile the program if needed.

    Raises:
        MissingTool: Cargo is not installed.
        LabFailed: the program does not compile, or its crates cannot be downloaded.
    """
    sources = HERE / "smoltcp"
    program = _program(sources, ("Cargo.toml", "Cargo.lock", *(f"src/{name}.rs" for name in ("main", "device", "records", "steps"))))
    if not program.exists():
        target = BUILT / "smoltcp-target"
        _compile(sources, "cargo", ["build", "--quiet", "--release", "--locked", "--target-dir", str(target)], "install Rust 1.91 or newer")
        shutil.copy2(target / "release" / "smoltcp-transfer", program)
    return program


def _program(sources: Path, names: Sequence[str]) -> Path:
    contents = b"".join((sources / name).read_bytes() for name in names)
    return BUILT / f"{sources.name}-{hashlib.sha256(contents).hexdigest()[:16]}"


def _compile(sources: Path, tool: str, arguments: Sequence[str], remedy: str) -> None:
    compiler = shutil.which(tool)
    if compiler is None:
        raise MissingTool("not installed", where=tool, remedy=remedy)
    BUILT.mkdir(parents=True, exist_ok=True)
    done = subprocess.run([compiler, *arguments], cwd=sources, capture_output=True, text=True, check=False)
    if done.returncode:
        raise LabFailed(f"{tool} build: {done.stderr.strip()[-400:]}", where=str(sources))
