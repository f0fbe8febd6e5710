"""Runs tshark for tests.

Each query runs once per session. `tcptrace_lab.verify.tshark` reads the output.
"""

from __future__ import annotations

import functools
import re
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from tcptrace_lab.verify import tshark
from tcptrace_lab.verify.analyzers import Refused
from tcptrace_lab.verify.tshark import PREFERENCES
from tests.support import needs

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

__all__ = ["PREFERENCES", "Opinion", "frames", "opinion", "time_ns"]


@dataclass(frozen=True, slots=True)
class Opinion:
    """tshark's output for one capture.

    Attributes:
        packets: frames, TCP or not.
        segments: one row per TCP segment with a complete fixed header.
        cut_headers: frames that are truncated before the flags of their TCP header.
    """

    packets: int
    segments: pl.DataFrame
    cut_headers: tuple[int, ...]

    @property
    def connections(self) -> int:
        """Return the number of streams, as Wireshark counts them."""
        highest = self.segments["conn"].max()
        return 0 if highest is None else int(str(highest)) + 1


@functools.cache
def opinion(path: Path) -> Opinion:
    """Return the segments of the capture `path` in tshark's output. tshark runs once per session for each capture.

    Raises:
        subprocess.CalledProcessError: tshark refuses the file. If the file is truncated, tshark returns the packets that it can read.
    """
    needs.program("tshark")
    tally = tshark.Tally()
    batches = [pl.DataFrame(schema=tshark.SCHEMA)]
    try:
        batches.extend(tshark.segments(str(path), tally))
    except Refused as refusal:
        if not tally.packets:
            raise subprocess.CalledProcessError(1, "tshark", stderr=refusal.words) from refusal
    return Opinion(tally.packets, pl.concat(batches), tuple(tally.cut_headers))


def frames(path: Path, names: Sequence[str]) -> Iterator[Mapping[str, str]]:
    """Yield the fields `names` of each frame, as tshark prints them.

    Several values of one field are separated by commas.
    """
    needs.program("tshark")
    for line in tshark.fields(str(path), names):
        yield dict(zip(names, line.split("\t"), strict=True))


def time_ns(text: str) -> int | None:
    """Return the value of `frame.time_epoch` in nanoseconds, as `verify.tshark.nanoseconds` reads it.

    None if the time is missing or does not fit into 64 bits.
    """
    found = re.match(r"(-?)(\d+)(?:\.(\d+))?", text)
    if found is None:
        return None
    sign, whole, part = found.groups(default="0")
    value = (int(whole) * 10**9 + int(part)) * (-1 if sign == "-" else 1)
    return value if -(2**63) <= value < 2**63 else None
