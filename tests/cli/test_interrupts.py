"""At any point of its work, a command ends immediately after Ctrl-C, without a message and without files left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command import PROGRAM, TIME_LIMIT_S
from tests.support.places import ROOT

CAPTURE = ROOT / "captures" / "ethernet-loss.pcapng"

PARTS = 6
"""Number of places in the capture at which the command is interrupted."""


def left(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir() if entry.name != "fifo")


@pytest.mark.parametrize("part", range(PARTS))
def test_an_interrupt_while_a_pipe_stays_silent_ends_the_command_quietly(tmp_path: Path, part: int) -> None:
    """The writer keeps the pipe open, so the input of the command never ends. The command must still end."""
    content = CAPTURE.read_bytes()
    os.mkfifo(tmp_path / "fifo")
    command = (str(PROGRAM), "analyze", "fifo", "-o", "report.html")
    with (
        subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process,
        (tmp_path / "fifo").open("wb") as fifo,  # blocks until the command has opened the fifo, too
    ):
        fifo.write(content[: len(content) * part // PARTS])
        fifo.flush()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=TIME_LIMIT_S)
    assert (process.returncode, out, err) == (130, b"", b"")
    assert left(tmp_path) == []


WRITING = """
from tcptrace_lab.process import interrupts, output, temporary
interrupts.end_the_program()
with output.opened("out.csv") as stream, temporary.folder() as folder:
    stream.write(b"half of it")
    stream.flush()
    print(folder, flush=True)
    input()
"""


def test_an_interrupt_while_results_are_written_leaves_no_part_of_them(tmp_path: Path) -> None:
    (tmp_path / "out.csv").write_text("precious")
    with subprocess.Popen(
        [sys.executable, "-c", WRITING], cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        folder = Path(process.stdout.readline().decode().strip())
        assert folder.is_dir()
        assert len(left(tmp_path)) == 2
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=TIME_LIMIT_S)
    assert (process.returncode, out, err) == (130, b"", b"")
    assert left(tmp_path) == ["out.csv"]
    assert (tmp_path / "out.csv").read_text() == "precious"
    assert not folder.exists()


CALLED_BACK = """
import os, signal
import polars as pl
from tcptrace_lab.process import interrupts
interrupts.end_the_program()
def interrupted(rows):
    os.kill(os.getpid(), signal.SIGINT)
    return rows
pl.DataFrame({"a": [1]}).with_columns(pl.col("a").map_batches(interrupted, return_dtype=pl.Int64))
"""


def test_an_interrupt_in_a_callback_of_a_library_is_no_defect(tmp_path: Path) -> None:
    """Polars panics and prints a message if a callback raises KeyboardInterrupt. The command must end as after any other interrupt."""
    done = subprocess.run([sys.executable, "-c", CALLED_BACK], cwd=tmp_path, capture_output=True, timeout=TIME_LIMIT_S, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")
