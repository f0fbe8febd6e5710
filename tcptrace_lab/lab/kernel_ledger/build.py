"""Compiles the tracer on first use, and again if its sources or the kernel change. It is stored in the checkout's `build/` folder."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from pathlib import Path

from tcptrace_lab.errors import LabFailed, MissingTool

SOURCES = Path(__file__).parent
BUILT = Path(__file__).parents[3] / "build" / "kernel_ledger"
KERNEL_TYPES = Path("/sys/kernel/btf/vmlinux")
PACKAGES = "install clang, bpftool, libbpf-dev and libelf-dev (apt-get install)"
_ARCHITECTURES = {"x86_64": "x86"}
"""libbpf's name of the architecture. The tracer uses a system call number of x86-64, so it supports no other architecture."""


def tracer() -> Path:
    """Return the path of the tracer. Compile the tracer if needed.

    Raises:
        MissingTool: clang, bpftool or libbpf is not installed.
        LabFailed: the kernel has no type information (BTF), the machine is of another architecture, or a source does not compile.
    """
    program = BUILT / f"tracer-{_key()}"
    if not program.exists():
        BUILT.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=BUILT) as scratch:
            _compile(Path(scratch)).replace(program)
    return program


def _key() -> str:
    if not KERNEL_TYPES.exists():
        raise LabFailed(
            "the kernel has no type information (BTF)", where=str(KERNEL_TYPES), remedy="use a kernel with CONFIG_DEBUG_INFO_BTF"
        )
    contents = b"".join((SOURCES / name).read_bytes() for name in ("tracer.h", "snapshot.h", "tracer.bpf.c", "tracer.c"))
    return hashlib.sha256(contents + platform.release().encode()).hexdigest()[:16]


def _compile(scratch: Path) -> Path:
    architecture = _ARCHITECTURES.get(platform.machine())
    if architecture is None:
        raise LabFailed("the tracer supports only x86-64", where=platform.machine())
    for tool in ("clang", "bpftool"):
        if _found(tool) is None:
            raise MissingTool("not installed", where=tool, remedy=PACKAGES)
    if not Path("/usr/include/bpf/libbpf.h").exists():
        raise MissingTool("not installed", where="libbpf", remedy=PACKAGES)
    included = [f"-I{scratch}", f"-I{SOURCES}"]
    _write(scratch / "vmlinux.h", "bpftool", "btf", "dump", "file", str(KERNEL_TYPES), "format", "c")
    bpf = ["-O2", "-g", "-target", "bpf", "-mcpu=v3", f"-D__TARGET_ARCH_{architecture}", "-Wall", "-Werror"]
    _run("clang", *bpf, *included, "-c", str(SOURCES / "tracer.bpf.c"), "-o", str(scratch / "tracer.bpf.o"))
    _write(scratch / "tracer.skel.h", "bpftool", "gen", "skeleton", str(scratch / "tracer.bpf.o"), "name", "tracer_bpf")
    program = scratch / "tracer"
    _run("clang", "-O2", "-Wall", "-Werror", *included, str(SOURCES / "tracer.c"), "-o", str(program), "-lbpf", "-lelf", "-lz")
    return program


def _found(tool: str) -> str | None:
    """Return the path of a tool. Debian installs bpftool in a folder that is only in root's PATH."""
    return shutil.which(tool, path=os.environ.get("PATH", os.defpath) + os.pathsep + "/usr/sbin")


def _run(tool: str, *arguments: str) -> bytes:
    done = subprocess.run([_found(tool) or tool, *arguments], capture_output=True, check=False)
    if done.returncode:
        raise LabFailed(f"{tool} failed: {done.stderr.decode(errors='replace').strip()[-400:]}", where=arguments[-1], remedy=PACKAGES)
    return done.stdout


def _write(path: Path, tool: str, *arguments: str) -> None:
    path.write_bytes(_run(tool, *arguments))
