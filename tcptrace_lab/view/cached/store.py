"""The tables of one capture in the cache, opened for reading. Only facts about the capture are kept in memory."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from tcptrace_lab import schema
from tcptrace_lab.view.cached import build, listing
from tcptrace_lab.view.cached.by_connection import Reader
from tcptrace_lab.view.cached.cache import DONE
from tcptrace_lab.view.problem import NotFound

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tcptrace_lab.view.cached.cache import Capture


class Store:
    """The tables of one capture.

    Attributes:
        capture: its files.
        folder: the folder in the cache, which the caller has locked.
        facts: what `build` wrote into `capture.json`.
        first_ts_ns: time of the first packet.
        segments, waits, notes: rows of `schema.SEGMENTS`, `schema.WAITS` and `schema.NOTES` by connection.
        listing: rows of `listing.SCHEMA`.
    """

    def __init__(self, capture: Capture, folder: Path) -> None:
        """Open the tables."""
        self.capture = capture
        self.folder = folder
        self.facts: dict[str, Any] = json.loads((folder / DONE).read_text())
        self.first_ts_ns: int = self.facts["capture"]["first_ts_ns"] or 0
        self.segments, self.waits, self.notes = (Reader(folder, name) for name in ("segments", "ledger", "notes"))
        self._connections = Reader(folder, build.CONNECTIONS)
        self.listing = pl.scan_parquet(folder / listing.FILE)
        self.transactions = pl.scan_parquet(folder / build.TRANSACTIONS)
        self.rates = pl.read_parquet(folder / build.RATES)

    @property
    def resolution_ns(self) -> int:
        """Resolution of the capture's clock."""
        return int(self.facts["capture"]["quality"]["resolution_ns"])

    def connection(self, conn: int) -> dict[str, Any]:
        """Return the row of `schema.CONNECTIONS` of one connection. Raises NotFound."""
        return self._row(conn, schema.CONNECTIONS.names)

    def account(self, conn: int) -> dict[str, Any]:
        """Return the row of `schema.ACCOUNTS` of one connection. Raises NotFound."""
        return self._row(conn, schema.ACCOUNTS.names)

    def _row(self, conn: int, columns: Sequence[str]) -> dict[str, Any]:
        rows = self._connections.of(conn).select(columns).collect()
        if rows.is_empty():
            raise NotFound(f"this capture has no connection {conn}")
        return rows.row(0, named=True)

    def connection_of_frame(self, frame: int) -> int:
        """Return the first connection that has a segment in this frame. Raises NotFound."""
        of_frames = np.load(self.folder / build.FRAMES, mmap_mode="r", allow_pickle=False)
        if not 0 < frame < len(of_frames) or not of_frames[frame]:
            raise NotFound(f"frame {frame} carries no TCP segment")
        return int(of_frames[frame]) - 1
