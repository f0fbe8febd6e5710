"""Compares the engine's segment table of a capture with tshark's table, column by column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from tcptrace_lab.verify.fields import DIFFERS, Partners
from tcptrace_lab.verify.pairing import joined

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Differs:
    """How many values of a column differ, and the first frame with such a value."""

    rows: int
    first_frame: int


def differences(ours: pl.DataFrame, theirs: pl.DataFrame) -> dict[str, Differs]:
    """Return the columns that differ between two segment tables of one capture. The result is empty if both tables agree.

    Args:
        ours: the engine's segments (`schema.SEGMENTS`).
        theirs: `tshark.Opinion.segments`.

    The columns `frame_only_ours` and `frame_only_theirs` count frames that only one of the two tables has.
    """
    both = Partners().named(joined(ours, theirs))
    shared = pl.col("ours") & pl.col("theirs")
    tests = {"frame_only_ours": ~pl.col("theirs"), "frame_only_theirs": ~pl.col("ours")}
    tests |= {name: shared & differs for name, differs in DIFFERS.items()}
    found = {name: both.filter(test)["frame"] for name, test in tests.items()}
    return {name: Differs(len(frames), int(frames[0])) for name, frames in found.items() if len(frames)}


def count_differences(ours: Mapping[str, int], theirs: Mapping[str, int]) -> dict[str, tuple[int, int]]:
    """Map each figure that differs to (our value, the other program's value)."""
    return {name: (ours[name], theirs[name]) for name in theirs if ours[name] != theirs[name]}
