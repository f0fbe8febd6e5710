"""Produces and consumes the segments table of a capture: `python benchmarks/speed/consume.py frames|small|drain|everything CAPTURE`.

- `frames` takes the table as Polars frames of about a million rows, one at a time, like a program in Python.
- `small` takes frames of 16,384 rows, which fit into the cache of a core.
- `drain` lets the engine build the same Arrow batches and drop them, so that only the engine is measured.
- `everything` also drains the connections and the causes of all departures.
"""

from __future__ import annotations

import sys
from typing import Final

from tcptrace_lab._core import Engine

_ROWS_AT_ONCE: Final = {"frames": 1_000_000, "small": 16_384}

_COLUMNS: Final = (
    *("frame", "ts_ns", "conn", "from_client", "seq", "ack", "payload_bytes", "captured_payload_bytes", "flags", "window_bytes"),
    *("sack_blocks", "tsval", "tsecr", "ip_id", "ttl", "ect", "ce"),
    *("kind", "evidence", "evidence_frame", "confidence", "retransmit_trigger", "transmission", "dsack", "reset_kind", "tfo", "ecn_signal"),
    *("in_flight_bytes", "usable_window_bytes", "since_previous_ns", "since_last_ack_ns", "since_last_data_ns"),
    *("released_by", "released_by_frame", "acked_bytes", "acked_unseen_bytes", "ack_lag_ns", "rtt_ns", "layers", "vpi", "vci", "cells"),
)
"""The columns of the segments table, with every verdict. The reasons of departures (`wait_ns` and the columns after it) are left out."""


def frames(engine: Engine, rows_at_once: int) -> int:
    """Take all segments as Polars frames of about `rows_at_once` rows. Return the number of segments."""
    import polars as pl  # noqa: PLC0415  (`drain` does not need Polars, and its start is measured)

    total = 0
    while rows := len(pl.DataFrame(engine.segments(rows_at_once))):
        total += rows
    return total


def main() -> None:
    """Consume one capture, and print the number of segments and connections."""
    how, path = sys.argv[1:]
    engine = Engine([path]) if how == "everything" else Engine([path], columns=_COLUMNS, summaries=False)
    rows = frames(engine, _ROWS_AT_ONCE[how]) if how in _ROWS_AT_ONCE else engine.drain()
    print(f"{rows} segments, {engine.info()['connections']} connections")


if __name__ == "__main__":
    main()
