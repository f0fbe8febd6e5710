"""Compares header fields: the engine's columns with tshark's columns, for each row of a joined table (`pairing`).

Sequence numbers are compared modulo 2^32, and connections by their partners (`Partners`). Windows are compared only if both tools know the
scale. The item `window_known` compares whether a tool knows the scale. A window of 0 is known even without the scale.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from tcptrace_lab.verify.tshark import SCALE_UNKNOWN
from tcptrace_lab.verify.wireshark_model import ACK, SEQ_SPACE

if TYPE_CHECKING:
    from collections.abc import Mapping

FLAG_BITS = 0x1FF
"""Mask of the nine flags; tshark's value also contains the three reserved bits."""

ECN_CE = 3

OURS: Mapping[str, pl.Expr] = {
    "ts_ns": pl.col("ts_ns"),
    "conn": pl.col("partner"),
    "seq": pl.col("seq") % SEQ_SPACE,
    "ack": pl.col("ack") % SEQ_SPACE,
    "payload_bytes": pl.col("payload_bytes"),
    "flags": pl.col("flags").cast(pl.Int64),
    "window_known": pl.col("window_bytes").is_not_null(),
    "window_bytes": pl.col("window_bytes"),
    "sack_blocks": pl.col("sack_blocks").list.eval(pl.element() % SEQ_SPACE),
    "tsval": pl.col("tsval").cast(pl.Int64),
    "tsecr": pl.col("tsecr").cast(pl.Int64),
    "ip_id": pl.col("ip_id").cast(pl.Int64),
    "ttl": pl.col("ttl").cast(pl.Int64),
    "ect": pl.col("ect").cast(pl.Int64),
    "ce": pl.col("ce"),
}
"""The engine's value for each item. `partner` is tshark's stream for the engine's connection."""

THEIRS: Mapping[str, pl.Expr] = {
    "ts_ns": pl.col("their_ts_ns"),
    "conn": pl.col("their_conn"),
    "seq": pl.col("their_seq"),
    "ack": pl.when(pl.col("their_flags") & ACK != 0).then("their_ack"),
    "payload_bytes": pl.col("their_payload_bytes"),
    "flags": pl.col("their_flags") & FLAG_BITS,
    "window_known": pl.col("their_scale").ne_missing(SCALE_UNKNOWN) | (pl.col("their_window_field") == 0),
    "window_bytes": pl.col("their_window_bytes"),
    "sack_blocks": pl.col("their_sack_blocks"),
    "tsval": pl.col("their_tsval"),
    "tsecr": pl.col("their_tsecr"),
    "ip_id": pl.col("their_ip_id"),
    "ttl": pl.col("their_ttl"),
    "ect": pl.col("their_ecn"),
    "ce": pl.col("their_ecn") == ECN_CE,
}
"""tshark's value for each item."""

_COMPARED = {name: pl.col("frame").is_not_null() for name in OURS} | {
    "window_bytes": pl.col("window_bytes").is_not_null() & pl.col("their_scale").ne_missing(SCALE_UNKNOWN)
}
"""Condition that selects the rows in which an item is compared."""

DIFFERS: Mapping[str, pl.Expr] = {name: _COMPARED[name] & OURS[name].ne_missing(THEIRS[name]) for name in OURS}
"""Condition that selects the rows in which an item differs, among the rows that both tools have."""


def compared(name: str) -> pl.Expr:
    """Return the condition that selects the rows in which an item is compared."""
    return _COMPARED[name]


class Partners:
    """Maps our connections to tshark's streams. The first segment that both tools report determines the stream of a connection."""

    def __init__(self) -> None:
        """Start without any segment."""
        self._stream_of: dict[int, int] = {}
        self._taken: set[int] = set()

    def named(self, both: pl.DataFrame) -> pl.DataFrame:
        """Add the column `partner`: tshark's stream for our connection; null if there is none."""
        pairs = both.filter(pl.col("ours") & pl.col("theirs")).select("conn", "their_conn").unique(maintain_order=True)
        for conn, stream in pairs.iter_rows():
            if conn not in self._stream_of and stream not in self._taken:
                self._stream_of[conn] = stream
                self._taken.add(stream)
        partner = (
            pl.col("conn")
            .cast(pl.Int64)
            .replace_strict(list(self._stream_of), list(self._stream_of.values()), default=None, return_dtype=pl.Int64)
        )
        return both.with_columns(partner.alias("partner") if self._stream_of else pl.lit(None, pl.Int64).alias("partner"))
