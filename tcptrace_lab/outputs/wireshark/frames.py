"""Writes the table that the Wireshark post-dissector reads: one record of 16 bytes per frame, in frame order.

The post-dissector finds a record by the frame number, so that Wireshark reads only the records of the frames that it shows. The table takes
as much space as the packet record headers of a pcap file. It is written through a memory map, so that memory does not grow with the
capture.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from tcptrace_lab.engine import memory
from tcptrace_lab.ledger.departures import departures
from tcptrace_lab.schema import CAUSES
from tcptrace_lab.text.numbers import NS_PER_S

if TYPE_CHECKING:
    from pathlib import Path

    from tcptrace_lab.analysis import Analysis

RECORD: Final = np.dtype([("wait_s", "<u4"), ("wait_ns", "<u4"), ("at_us", "<u4"), ("cause", "<u2"), ("findings", "<u2")])
"""Fields of a record. `wait_s` and `wait_ns`: the wait before the frame. `at_us`: the frame's time since the start of the capture (µs,
modulo 2^32). `cause`: number of the wait's cause (1: the first of `schema.CAUSES`). `findings`: number of the frame's set of findings
(see `Sets`). 0 means none."""

FORMAT: Final = "<I4I4I4I2I2"
"""The format of `RECORD` for `Struct` in Wireshark's Lua."""

MAX_SETS: Final = 0xFFFF
NS_PER_US: Final = 1_000


class Sets:
    """Numbers the sets of findings that frames have, from 1. A set consists of positions in `Analysis.findings`."""

    def __init__(self) -> None:
        """Start with no sets."""
        self._numbers: dict[tuple[int, ...], int] = {(): 0}

    def number(self, findings: tuple[int, ...]) -> int:
        """Return the number of a set; 0 if the set is empty, or if all numbers are in use."""
        if findings not in self._numbers and len(self._numbers) > MAX_SETS:
            return 0
        return self._numbers.setdefault(findings, len(self._numbers))

    @property
    def all(self) -> list[tuple[int, ...]]:
        """All sets, the empty set first."""
        return list(self._numbers)


def write(analysis: Analysis, path: Path) -> Sets:
    """Write the table.

    Args:
        analysis: the analysis of the capture.
        path: the file to write.

    Returns:
        The sets of findings that the records name.

    Raises:
        OSError: the file cannot be written.
    """
    frames, sets = analysis.capture["packets"], Sets()
    with path.open("wb") as file:
        file.truncate(max(frames, 1) * RECORD.itemsize)
    table = np.memmap(path, dtype=RECORD, mode="r+", shape=(max(frames, 1),))
    start_ns = analysis.capture["first_ts_ns"] or 0
    covered = _covered(analysis, sets)
    for rows in memory.batches(departures(analysis.ledger)):
        _add(table, rows.join(covered, on=("conn", "from_client", "cause"), how="left", maintain_order="left"), start_ns)
    _add_evidence(table, analysis, sets, start_ns)
    table.flush()
    return sets


def _covered(analysis: Analysis, sets: Sets) -> pl.DataFrame:
    """Return, for each direction and cause, the number of the set of findings that cover its waits."""
    found: dict[tuple[int, bool, str], tuple[int, ...]] = {}
    for position, finding in enumerate(analysis.findings):
        if finding.conn is None or finding.connections > 1:
            continue
        for from_client in (True, False) if finding.from_client is None else (finding.from_client,):
            for cause in finding.causes:
                key = finding.conn, from_client, cause
                found[key] = (*found.get(key, ()), position)
    rows = [(*key, sets.number(positions)) for key, positions in found.items()]
    types: dict[str, pl.DataType | type[pl.DataType]] = {
        "conn": pl.UInt32,
        "from_client": pl.Boolean,
        "cause": pl.Enum(list(CAUSES)),
        "findings": pl.UInt16,
    }
    return pl.DataFrame(rows, schema=types, orient="row")


def _add(table: np.memmap[tuple[int], np.dtype[np.void]], rows: pl.DataFrame, start_ns: int) -> None:
    """Add departures. If a frame contains several segments, the segment with the longest wait is kept."""
    rows = rows.filter(pl.col("frame").is_between(1, len(table))).sort("wait_ns", nulls_last=False, maintain_order=True)
    records = np.zeros(len(rows), dtype=RECORD)
    wait_ns = rows["wait_ns"].fill_null(0).clip(0).to_numpy()
    records["wait_s"], records["wait_ns"] = np.divmod(wait_ns, NS_PER_S)
    records["at_us"] = ((rows["ts_ns"].fill_null(start_ns).to_numpy() - start_ns) // NS_PER_US) & 0xFFFF_FFFF
    records["cause"] = rows["cause"].to_physical().cast(pl.UInt16).to_numpy() + 1
    records["findings"] = rows["findings"].fill_null(0).to_numpy()
    at = rows["frame"].to_numpy().astype(np.int64) - 1
    longer = _wait_ns(records) >= _wait_ns(table[at])
    table[at[longer]] = records[longer]


def _wait_ns(records: np.ndarray[tuple[int], np.dtype[np.void]]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    seconds: np.ndarray[tuple[int], np.dtype[np.int64]] = records["wait_s"].astype(np.int64)
    waits: np.ndarray[tuple[int], np.dtype[np.int64]] = seconds * NS_PER_S + records["wait_ns"]
    return waits


def _add_evidence(table: np.memmap[tuple[int], np.dtype[np.void]], analysis: Analysis, sets: Sets, start_ns: int) -> None:
    """Add the findings to the frames that are evidence for them, including frames without a departure."""
    of_frame: dict[int, list[int]] = {}
    for position, finding in enumerate(analysis.findings):
        for frame in finding.evidence_frames:
            if 1 <= frame <= len(table):
                of_frame.setdefault(frame, []).append(position)
    wanted = analysis.segments.select("frame", "ts_ns").filter(pl.col("frame").is_in(list(of_frame)))
    times = dict(wanted.collect().iter_rows()) if of_frame else {}
    for frame, positions in of_frame.items():
        record = table[frame - 1]
        known = sets.all[record["findings"]]
        record["findings"] = sets.number(tuple(sorted({*known, *positions})))
        if not record["cause"] and times.get(frame) is not None:
            record["at_us"] = ((times[frame] - start_ns) // NS_PER_US) & 0xFFFF_FFFF
