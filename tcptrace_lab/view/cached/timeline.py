"""The overview of a capture over time: bytes, open connections and time by cause, in a fixed number of bins.

The sums are stored cumulatively, so that every window and every number of columns takes equally long to read. The time by cause covers only
the main direction of each connection: the direction with more payload.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tcptrace_lab.schema import CAUSES

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl
    from numpy.typing import NDArray

BINS = 65_536
"""Number of bins of a capture. The finest column of the overview is one bin."""

_FILE = "timeline.npy"
_CLIENT, _SERVER, _OPEN, _FIRST_CAUSE = range(4)
_COLUMNS = _FIRST_CAUSE + len(CAUSES)


class Timeline:
    """Collects the sums while the tables of a capture are made. Times are in ns since the capture's first packet."""

    def __init__(self, first_ts_ns: int, duration_ns: int) -> None:
        """Start without rows."""
        self._first_ts_ns = first_ts_ns
        self.bin_ns = max(-(-(duration_ns + 1) // BINS), 1)
        self._sums = np.zeros((_COLUMNS, BINS + 1), np.int64)
        self._counts = np.zeros((len(CAUSES), BINS + 1), np.int64)

    def _bins(self, times_ns: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.clip(times_ns // self.bin_ns, 0, BINS - 1)

    def segments(self, rows: pl.DataFrame) -> None:
        """Add segments: `ts_ns from_client payload_bytes`."""
        timed = rows.filter(rows["ts_ns"].is_not_null() & (rows["payload_bytes"] > 0))
        bins = self._bins(timed["ts_ns"].to_numpy() - self._first_ts_ns)
        is_client, payload = timed["from_client"].to_numpy(), timed["payload_bytes"].to_numpy()
        for column, own in ((_CLIENT, is_client), (_SERVER, ~is_client)):
            # a slice of rows has fewer than 2⁵³ bytes, so that a float holds the sum exactly
            self._sums[column, 1:] += np.bincount(bins[own], payload[own], BINS).astype(np.int64)

    def waits(self, rows: pl.DataFrame) -> None:
        """Add intervals of the ledger: `start_ns end_ns cause`."""
        starts, ends = (rows[name].to_numpy() - self._first_ts_ns for name in ("start_ns", "end_ns"))
        causes = rows["cause"].to_physical().to_numpy()
        for times_ns, sign in ((starts, 1), (ends, -1)):
            bins = self._bins(times_ns)
            np.add.at(self._counts, (causes, bins + 1), sign)
            np.add.at(self._sums, (causes.astype(np.int64) + _FIRST_CAUSE, bins + 1), sign * times_ns)

    def connections(self, first_ns: NDArray[np.int64], last_ns: NDArray[np.int64]) -> None:
        """Add the lifetimes of connections."""
        for times_ns, sign in ((first_ns, 1), (last_ns, -1)):
            self._sums[_OPEN, 1:] += sign * np.bincount(self._bins(times_ns), minlength=BINS)

    def write(self, folder: Path) -> None:
        """Write the cumulative sums."""
        total = np.cumsum(self._sums, axis=1)
        edges_ns = np.arange(BINS + 1, dtype=np.int64) * self.bin_ns
        # The time of a cause up to a bin edge is the sum of (edge−start) over all intervals that have started, minus the sum of (edge−end)
        # over all intervals that have ended. The sums can overflow, but their differences are right.
        total[_FIRST_CAUSE:] = np.cumsum(self._counts, axis=1) * edges_ns - total[_FIRST_CAUSE:]
        np.save(folder / _FILE, total, allow_pickle=False)


def read(folder: Path, bin_ns: int, from_ns: int, to_ns: int, width: int) -> dict[str, Any]:
    """Return the overview of a window, in at most `width` columns of whole bins.

    Returns:
        `from_ns`, `to_ns` and `column_ns`. For each column: `client_bytes`, `server_bytes`, `open` (the number of open connections at the
        start or at the end of the column, whichever is larger), and `causes` (ns per cause; causes without time are left out).
    """
    total = np.load(folder / _FILE, mmap_mode="r", allow_pickle=False)
    first = min(max(from_ns // bin_ns, 0), BINS - 1)
    last = min(max(-(-to_ns // bin_ns), first + 1), BINS)
    step = max(-(-(last - first) // max(width, 1)), 1)
    edges = np.append(np.arange(first, last, step), last)
    sums = np.diff(total[:, edges], axis=1)
    opened = np.maximum(total[_OPEN, edges[:-1]], total[_OPEN, edges[1:]])
    causes = {cause: sums[_FIRST_CAUSE + place].tolist() for place, cause in enumerate(CAUSES) if sums[_FIRST_CAUSE + place].any()}
    return {
        "from_ns": int(edges[0] * bin_ns),
        "to_ns": int(edges[-1] * bin_ns),
        "column_ns": int(step * bin_ns),
        "client_bytes": sums[_CLIENT].tolist(),
        "server_bytes": sums[_SERVER].tolist(),
        "open": opened.tolist(),
        "causes": causes,
    }
