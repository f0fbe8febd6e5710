"""Two segment tables of one capture, compared column by column: the engine's and tshark's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl
from packets import SEQ_SPACE
from tshark import SCALE_UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Mapping

ACK_FLAG = 16
FLAG_BITS = 0x1FF
"""The nine flags; tshark shows the three reserved bits beside them."""
ECN_CE = 3


@dataclass(frozen=True, slots=True)
class Differs:
    """How often a column differs, and in which frame first."""

    rows: int
    first_frame: int


def differences(ours: pl.DataFrame, theirs: pl.DataFrame) -> dict[str, Differs]:
    """Columns in which the segments of one capture differ; empty where both agree.

    Args:
        ours: the engine's segments (`schema.SEGMENTS`).
        theirs: `tshark.Opinion.segments`.

    Sequence numbers are compared modulo 2^32, connections by their order of first appearance, and windows where both sides claim to
    know them; who knows is the column `window_known` (a window of 0 is known without its scale). Frames that only one of the two has
    are the columns `frame_only_ours` and `frame_only_theirs`.
    """
    both = _ours(ours).join(_theirs(theirs), on="frame", how="inner", maintain_order="left")
    for column in ("conn", "their_conn"):
        both = _by_first_appearance(both, column)
    found = {
        "frame_only_ours": ours.join(theirs, on="frame", how="anti").select("frame"),
        "frame_only_theirs": theirs.join(ours, on="frame", how="anti").select("frame"),
    }
    for column, equal in _RULES.items():
        found[column] = both.filter(~equal).select("frame")
    return {column: Differs(rows.height, int(rows["frame"][0])) for column, rows in found.items() if rows.height}


def count_differences(ours: Mapping[str, int], theirs: Mapping[str, int]) -> dict[str, tuple[int, int]]:
    """Figure → (ours, theirs), where they are not the same."""
    return {name: (ours[name], theirs[name]) for name in theirs if ours[name] != theirs[name]}


def _same(column: str) -> pl.Expr:
    """Equal, or missing on both sides."""
    return pl.col(column).eq_missing(pl.col(f"their_{column}"))


_RULES: dict[str, pl.Expr] = {
    "ts_ns": _same("ts_ns"),
    "conn": _same("conn"),
    "seq": _same("seq"),
    "ack": _same("ack"),
    "payload_bytes": _same("payload_bytes"),
    "flags": _same("flags"),
    "window_known": pl.col("window_bytes").is_not_null()
    == (pl.col("their_scale").ne_missing(SCALE_UNKNOWN) | (pl.col("their_field") == 0)),
    "window_bytes": _same("window_bytes") | pl.col("window_bytes").is_null() | pl.col("their_scale").eq_missing(SCALE_UNKNOWN),
    "sack_blocks": _same("sack_blocks"),
    "tsval": _same("tsval"),
    "tsecr": _same("tsecr"),
    "ip_id": _same("ip_id"),
    "ttl": _same("ttl"),
    "ect": _same("ect"),
    "ce": _same("ce"),
}
"""Column → what must hold in every row."""


def _ours(segments: pl.DataFrame) -> pl.DataFrame:
    """The engine's columns as they are compared."""
    return segments.select(
        "frame",
        "ts_ns",
        "conn",
        pl.col("seq") % SEQ_SPACE,
        pl.col("ack") % SEQ_SPACE,
        "payload_bytes",
        pl.col("flags").cast(pl.Int64),
        "window_bytes",
        pl.col("sack_blocks").list.eval(pl.element() % SEQ_SPACE),
        *(pl.col(name).cast(pl.Int64) for name in ("tsval", "tsecr", "ip_id", "ttl", "ect")),
        "ce",
    )


def _theirs(segments: pl.DataFrame) -> pl.DataFrame:
    """Tshark's columns under the engine's names, with `their_` before them."""
    columns = {
        "ts_ns": pl.col("ts_ns"),
        "conn": pl.col("conn"),
        "seq": pl.col("seq"),
        "ack": pl.when(pl.col("flags") & ACK_FLAG != 0).then("ack"),
        "payload_bytes": pl.col("payload_bytes"),
        "flags": pl.col("flags") & FLAG_BITS,
        "window_bytes": pl.col("window_bytes"),
        "scale": pl.col("scale"),
        "field": pl.col("window_field"),
        "sack_blocks": pl.col("sack_blocks"),
        "tsval": pl.col("tsval"),
        "tsecr": pl.col("tsecr"),
        "ip_id": pl.col("ip_id"),
        "ttl": pl.col("ttl"),
        "ect": pl.col("ecn"),
        "ce": pl.col("ecn") == ECN_CE,
    }
    return segments.select("frame", *(column.alias(f"their_{name}") for name, column in columns.items()))


def _by_first_appearance(rows: pl.DataFrame, column: str) -> pl.DataFrame:
    """`rows` with the values of `column` renumbered from 0 in the order in which they first appear."""
    first_row = pl.col("row").min().over(column)
    return rows.with_row_index("row").with_columns((first_row.rank("dense").cast(pl.Int64) - 1).alias(column)).drop("row")
