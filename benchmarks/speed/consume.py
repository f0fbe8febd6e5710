"""The segments table of a capture, produced and consumed: `python benchmarks/speed/consume.py frames|small|drain|everything CAPTURE`.

`frames` takes it as Polars frames of about a million rows, one at a time, as a program in Python would; `small` as frames of 16,384, which
stay in a core's cache; `drain` has the engine build the same Arrow batches and drops them inside, so that what is left is the engine alone.
`everything` drains all that the engine knows: what held each departure back, and the rows of connections, too.
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
"""The segments table, all that was captured and every verdict; but not what held departures back (`wait_ns` and the columns behind it)."""


def frames(engine: Engine, rows_at_once: int) -> int:
    """Takes all segments as Polars frames of about this many rows; returns their number."""
    import polars as pl  # noqa: PLC0415  (`drain` does without, and its start is measured)

    total = 0
    while rows := len(pl.DataFrame(engine.segments(rows_at_once))):
        total += rows
    return total


def main() -> None:
    """Consumes one capture and says how much there was."""
    how, path = sys.argv[1:]
    engine = Engine([path]) if how == "everything" else Engine([path], columns=_COLUMNS, summaries=False)
    rows = frames(engine, _ROWS_AT_ONCE[how]) if how in _ROWS_AT_ONCE else engine.drain()
    print(f"{rows} segments, {engine.info()['connections']} connections")


if __name__ == "__main__":
    main()
