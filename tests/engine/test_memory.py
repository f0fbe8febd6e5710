"""The command configures how its libraries allocate and free memory."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import polars as pl

from tcptrace_lab.engine import memory

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

SETTING, AFFINITY = "POLARS_IDEAL_MORSEL_SIZE", "POLARS_ENGINE_AFFINITY"


def test_what_the_user_has_set_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SETTING, "77")
    monkeypatch.setenv("_RJEM_MALLOC_CONF", "")
    memory.bound()
    assert (os.environ[SETTING], os.environ["_RJEM_MALLOC_CONF"]) == ("77", "")


def test_the_command_bounds_memory_before_polars_is_there() -> None:
    script = (
        "import os, sys; from tcptrace_lab.engine import memory; real = memory.bound\n"
        "def bound():\n    print('polars' in sys.modules); real(); print(os.environ['POLARS_IDEAL_MORSEL_SIZE'].isdigit())\n"
        "memory.bound = bound; sys.argv = ['tcptrace-lab', '--version']\n"
        "from tcptrace_lab.cli import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines()[:2] == ["False", "True"]


def test_only_small_plain_files_are_taken_for_at_hand(tmp_path: Path) -> None:
    plain, packed, large = tmp_path / "plain", tmp_path / "packed", tmp_path / "large"
    plain.write_bytes(bytes(100))
    packed.write_bytes(gzip.compress(bytes(100)))
    large.write_bytes(bytes(memory.SMALL_BYTES))
    os.mkfifo(tmp_path / "pipe")
    before = os.environ.get(AFFINITY)
    others = ([plain, packed], [plain, large], [tmp_path / "pipe"], [tmp_path / "none"])
    for paths, engine in (([plain], "in-memory"), *((paths, before) for paths in others)):
        with memory.at_hand([str(path) for path in paths]):
            assert os.environ.get(AFFINITY) == engine
        assert os.environ.get(AFFINITY) == before


def test_rows_of_small_files_come_at_once_and_others_in_batches(tmp_path: Path) -> None:
    (tmp_path / "plain").write_bytes(bytes(100))
    rows = pl.DataFrame({"number": range(10)})
    with memory.at_hand([str(tmp_path / "plain")]):
        (whole,) = memory.batches(rows.lazy(), 3)
    assert whole.equals(rows)
    batches = list(memory.batches(rows.lazy(), 3))
    assert max(batch.height for batch in batches) <= 3
    assert pl.concat(batches).equals(rows)


def test_pages_that_were_freed_are_given_back() -> None:
    """325 MB are allocated on the heap in pieces of 65,000 bytes, and all pieces but the last are freed.

    The last piece keeps the heap from shrinking by itself.
    """
    script = """
import ctypes
import polars as pl

from tcptrace_lab.engine import memory

def resident():
    with open("/proc/self/statm", encoding="ascii") as pages:
        return int(pages.read().split()[1]) * 4096

c = ctypes.CDLL(None)
c.malloc.restype, c.free.argtypes = ctypes.c_void_p, (ctypes.c_void_p,)
blocks = [c.malloc(65_000) for _ in range(5_000)]
for block in blocks:
    ctypes.memset(block, 1, 65_000)
last = blocks.pop()
for block in blocks:
    c.free(block)
before = resident()
memory.give_back()
print(before - resident())
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert int(done.stdout) > 300_000_000
