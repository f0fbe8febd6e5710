"""The ledger of exchanges that begin with a handshake."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from tests.support.ledgers import judged_text

if TYPE_CHECKING:
    from pathlib import Path

    from tcptrace_lab.engine.segments import Tables

MS = 1_000_000

OPENED = """
    0.000 C > S  S   0:0(0)        win 64240 <mss 1460, sackOK, wscale 7>
    0.020 S > C  S.  0:0(0) ack 1  win 65160 <mss 1460, sackOK, wscale 7>
    0.020 C > S  .          ack 1  win 502
"""


def tables(tmp_path: Path, text: str) -> Tables:
    return judged_text(tmp_path, OPENED + text)


def causes(found: Tables, *, from_client: bool = True) -> list[tuple[str, float]]:
    """Return `(cause, milliseconds)` for each interval of one direction.

    Adjacent intervals with equal causes are joined.
    """
    intervals = found.ledger.sort("start_ns").collect()
    own = intervals.filter(pl.col("from_client") == from_client)
    joined = own.group_by(pl.col("cause").rle_id(), maintain_order=True).agg(
        pl.col("cause").first().alias("name"), ms=(pl.col("end_ns").last() - pl.col("start_ns").first()) / MS
    )
    return [(name, ms) for name, ms in joined.select("name", "ms").iter_rows()]


def lasted(found: Tables, cause: str) -> list[float]:
    """Return the milliseconds of each interval of the client's direction with this cause."""
    return [ms for name, ms in causes(found) if name == cause]
