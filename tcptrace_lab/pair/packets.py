"""A capture's segments → its packets as they can be known again in another capture: by numbers that a NAT leaves alone."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

import polars as pl

from tcptrace_lab.errors import UsageError
from tcptrace_lab.pair.store import MOST_PIECES
from tcptrace_lab.schema import SIDES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any, Protocol

    class Captured(Protocol):
        """What is needed of the `Analysis` of each capture."""

        @property
        def name(self) -> str:
            """The capture's name."""

        @property
        def capture(self) -> Mapping[str, Any]:
            """The "capture" object of the JSON."""

        @property
        def connections(self) -> pl.LazyFrame:
            """`schema.CONNECTIONS`."""

        @property
        def segments(self) -> pl.LazyFrame:
            """`schema.SEGMENTS`."""


MOST_PACKETS = 2_000_000
"""Segments of one capture that are laid beside the other's: at so many in each, 690 MB to 1.05 GB were measured (many connections; one)."""

SEQ_SPACE = 1 << 32
SYN, FIN, RST = 0x02, 0x01, 0x04
CONTROLS = SYN | FIN | RST
"""Flags by which a packet is known again; the others may be changed on the way (PSH and CWR by offload, ECE by routers' marks)."""

ABSENT = -1
"""Stands for a number that a packet does not have: keys with nulls would not join."""

TIMESTAMP_BYTES = 12
"""The timestamps option with its padding (RFC 7323, appendix A): so much less payload fits into a segment."""

_IDENTITY_COLUMNS = ("conn", "from_client", "seq", "payload_bytes", "flags", "ttl", "kind")
_COLUMNS = (
    *("frame", "ts_ns", "conn", "from_client", "seq", "ack", "payload_bytes", "flags"),
    *("tsval", "ip_id", "kind", "rtt_ns", "sack_blocks"),
)

SYSTEMATIC_SHARE = 0.2
"""A capture that holds packets twice holds nearly all of them twice, half of its segments: where fewer than this share are second copies,
the path made them (a heuristic)."""


def _made_by_capture(captured: Captured) -> pl.Expr:
    """Which segments are second copies that the capture made; one capture alone cannot tell them from those of the path."""
    copies = pl.col("kind").cast(pl.String) == "capture_duplicate"
    share = captured.segments.select(copies.mean()).collect().item()
    return copies if share is not None and share >= SYSTEMATIC_SHARE else pl.lit(value=False)


def identities(captured: Captured) -> pl.DataFrame:
    """What tells the connections of a capture from one another, and their place.

    Returns:
        In capture order `conn from_client seq length controls ttl`: `seq` is the 32-bit number. Second copies that the
        capture made are left out.

    Raises:
        UsageError: there are more than `MOST_PACKETS`.
    """
    own = pl.when("from_client").then("client_isn").otherwise("server_isn")
    wanted = ["conn", "from_client", _wire_number("seq", own).cast(pl.UInt32).alias("seq"), _LENGTH, _CONTROLS, "ttl"]
    return pl.concat(list(_batches(captured, _IDENTITY_COLUMNS, wanted)))


def packets(captured: Captured) -> Iterator[pl.DataFrame]:
    """The segments of a capture with their numbers as on the wire, some at a time, the first of them perhaps none.

    Yields:
        In capture order `frame ts_ns conn from_client start length controls acked ack tsval ip_id sacked rtt_ns`: `start` and `acked` are
        offsets in the streams, `ack` the 32-bit number, `sacked` stands for the SACK blocks, counted from the acknowledgment. What a
        packet lacks is `ABSENT`, but for `acked` and `rtt_ns` (null). Second copies that the capture made are left out.

    Raises:
        UsageError: there are more than `MOST_PACKETS`, or the capture stores no times.
    """
    other = pl.when("from_client").then("server_isn").otherwise("client_isn")
    wanted = [
        *("frame", "ts_ns", "conn", "from_client"),
        pl.col("seq").alias("start"),
        _LENGTH,
        _CONTROLS,
        pl.col("ack").alias("acked"),
        _wire_number("ack", other).fill_null(ABSENT).alias("ack"),
        pl.col("tsval").cast(pl.Int64).fill_null(ABSENT),
        pl.col("ip_id").cast(pl.Int32).fill_null(ABSENT),
        _sacked().fill_null(ABSENT).alias("sacked"),
        "rtt_ns",
    ]
    for rows in _batches(captured, _COLUMNS, wanted):
        if rows["ts_ns"].null_count():
            raise UsageError("the capture stores no times", where=str(captured.capture["path"]), remedy="two captures are compared by time")
        yield rows


_LENGTH = pl.col("payload_bytes").cast(pl.Int32).alias("length")
_CONTROLS = (pl.col("flags") & CONTROLS).cast(pl.UInt8).alias("controls")


def _wire_number(offset: str, isn: pl.Expr) -> pl.Expr:
    return (pl.col(offset) + isn) % SEQ_SPACE


def _batches(captured: Captured, columns: tuple[str, ...], wanted: list[Any]) -> Iterator[pl.DataFrame]:
    """Some columns of all segments but the capture's copies, made of a batch at a time; the first has no rows."""
    isns = captured.connections.select("conn", *(pl.col(f"{side}_isn").cast(pl.Int64) for side in SIDES)).collect()
    chosen = captured.segments.select(columns).filter(~_made_by_capture(captured)).head(MOST_PACKETS + 1)
    count = 0
    for batch in chain([chosen.collect_schema().to_frame()], chosen.collect_batches(maintain_order=True)):
        count += batch.height
        if count > MOST_PACKETS:
            remedy = "name one connection of the first with --connection, or cut the captures"
            raise UsageError(f"more than {MOST_PACKETS:,} segments to lay side by side", where=str(captured.capture["path"]), remedy=remedy)
        yield batch.join(isns, on="conn", how="left", maintain_order="left").select(wanted)


def _sacked() -> pl.Expr:
    """A number for the SACK blocks that is the same in every capture; null without the option."""
    words = (pl.col("sack_blocks") - pl.col("ack")).cast(pl.List(pl.String)).list.join(",")
    return pl.when(pl.col("sack_blocks").is_not_null()).then(words.hash(seed=0) % (1 << 62)).cast(pl.Int64)


def piece_bytes(first: pl.DataFrame, second: pl.DataFrame) -> pl.DataFrame:
    """How long a packet on the wire can be at most, per pair of connections: what is longer was joined by offload.

    Args:
        first: rows of `schema.CONNECTIONS` of the first capture.
        second: those of the second, the same pair in the same row.

    Returns:
        `piece`: by the MSS of both SYNs; where no SYN was captured, by the smaller of the longest segments in either capture.
    """
    offers = [table[f"{side}_mss_bytes"].alias(f"{place}{side}") for place, table in (("a", first), ("b", second)) for side in SIDES]
    stamped = pl.any_horizontal(pl.lit(first["client_timestamps"] & first["server_timestamps"]).fill_null(value=False))
    longest = [
        pl.max_horizontal(pl.lit(table["client_max_segment_bytes"]), pl.lit(table["server_max_segment_bytes"])) for table in (first, second)
    ]
    agreed = pl.min_horizontal(*(series.name for series in offers)) - pl.when(stamped).then(TIMESTAMP_BYTES).otherwise(0)
    return pl.DataFrame(offers).select(pl.coalesce(agreed, pl.min_horizontal(*longest)).clip(1).alias("piece"))


def cut(rows: pl.DataFrame) -> pl.DataFrame:
    """Segments longer than `piece` (a column) as the packets that the wire carried; the column is gone afterwards.

    The card numbers them on (IP identification) and puts FIN on the last; the times stay those of the whole.

    Raises:
        UsageError: they would be more than `MOST_PIECES`.
    """
    long = pl.col("length") > pl.col("piece")
    joined = rows.filter(long)
    if joined.is_empty():
        return rows.drop("piece")
    pieces = joined.select(((pl.col("length").cast(pl.Int64) + pl.col("piece") - 1) // pl.col("piece")).sum()).item()
    if pieces > MOST_PIECES:
        raise UsageError(f"offload joined more than {MOST_PIECES:,} packets", remedy="name one connection of the first with --connection")
    whole = rows.filter(~long | pl.col("piece").is_null()).with_columns(part=pl.lit(0, dtype=pl.Int64))
    parts = joined.with_columns(part=pl.int_ranges(0, (pl.col("length") + pl.col("piece") - 1) // pl.col("piece"))).explode("part")
    passed = pl.col("part") * pl.col("piece")
    left = pl.col("length") - passed
    cut_rows = parts.with_columns(
        start=pl.col("start") + passed,
        length=pl.min_horizontal(left, "piece").cast(pl.Int32),
        ip_id=pl.when(pl.col("ip_id") == ABSENT).then(ABSENT).otherwise((pl.col("ip_id") + pl.col("part")) % (1 << 16)).cast(pl.Int32),
        controls=pl.when(left <= pl.col("piece")).then("controls").otherwise(pl.col("controls") & (CONTROLS ^ FIN)).cast(pl.UInt8),
        rtt_ns=pl.when(left <= pl.col("piece")).then("rtt_ns"),
    )
    return pl.concat([whole, cut_rows.select(whole.columns)]).sort("frame", "part", maintain_order=True).drop("piece", "part")
