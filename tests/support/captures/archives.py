"""Helpers for tests of archives: they make small captures and read archives.

Each capture is a short transfer with its own addresses and times.
"""

from __future__ import annotations

import hashlib
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tcptrace_lab.archive.run import Batch, Means, batch
from tests.support import packets

if TYPE_CHECKING:
    from collections.abc import Callable

ONE = Means(jobs=1)

PATIENCE_S = 60

HOUR_NS = 3_600_000_000_000

_TEXT = """
    host C 10.0.0.{host}:{port} isn 1000
    0.000 C > S  S   0:0(0)             win 64240 <mss 1460, sackOK>
    0.010 S > C  S.  0:0(0)      ack 1  win 65160 <mss 1460, sackOK>
    0.011 C > S  .               ack 1
    0.020 C > S  P.  1:101(100)  ack 1
    {answer:.3f} S > C  .   1:1461      ack 101
    {later:.3f} S > C  P.  1461:{end}   ack 101
    {acked:.3f} C > S  .               ack {end}
"""


def capture(path: Path, number: int, *, slow: float = 0.0, hours: int = 0) -> Path:
    """Write a capture of a request and its answer, and return its path.

    The answer is `slow` seconds late. `number` gives the capture its own addresses. The capture starts `hours` hours after the first
    capture.
    """
    answer = 0.030 + slow
    text = _TEXT.format(
        host=number % 3 + 1, port=30_000 + number, answer=answer, later=answer + 0.001, acked=answer + 0.041, end=1500 + number
    )
    frames = packets.frames(text)
    shifted = [replace(frame, ts_ns=frame.ts_ns + hours * HOUR_NS + number) for frame in frames]
    packets.write_pcap(path, shifted)
    return path


def handshake(path: Path, number: int, time_s: float) -> Path:
    """Write a capture of a connection whose handshake takes `time_s`, and return its path.

    The client is 10.0.0.1. `number` makes the capture unique.
    """
    text = _TEXT.format(host=1, port=30_000 + number, answer=0.030 + time_s, later=0.031 + time_s, acked=0.071 + time_s, end=1500)
    for plain in ("0.010", "0.011", "0.020"):
        text = text.replace(f"    {plain} ", f"    {float(plain) - 0.010 + time_s:.6f} ")
    packets.write_pcap(path, [replace(frame, ts_ns=frame.ts_ns + number * HOUR_NS) for frame in packets.frames(text)])
    return path


def folder_of(path: Path, count: int) -> Path:
    """Make a folder with `count` captures from two different months."""
    path.mkdir()
    for number in range(count):
        capture(path / f"c{number:02}.pcap", number, slow=number % 4 / 10, hours=number * 100)
    return path


def made(sources: Path | list[Path], output: Path, *, reports: bool = False, apart: bool = False, baseline: Path | None = None) -> Batch:
    """Make an archive with one worker. By default, it has no reports."""
    named = [sources] if isinstance(sources, Path) else sources
    return batch(named, output, means=ONE, reports=reports, apart=apart, baseline=baseline)


def digest(data: bytes) -> str:
    """Return the SHA-256 of `data`, as hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def tables(archive: Path) -> dict[str, str]:
    """Map each file of the archive's dataset, and the archive's index page, to a hash."""
    files = sorted([*(path for path in (archive / "tables").rglob("*") if path.is_file()), archive / "index.html"])
    return {path.relative_to(archive).as_posix(): digest(path.read_bytes()) for path in files}


def parts(archive: Path) -> set[str]:
    """Return the names of the captures that have a file in the folder `parts`."""
    walked = os.walk(archive / "parts")  # pathlib's glob fails if another process removes a folder at that time
    return {Path(name).stem for _, _, names in walked for name in names if name.endswith(".part")}


def until(condition: Callable[[], bool]) -> None:
    """Wait until `condition` is true. Another process makes it true."""
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.005)
