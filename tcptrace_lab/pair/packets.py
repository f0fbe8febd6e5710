"""Converts a capture's segments into packets that can be recognized in another capture, by header fields that NAT leaves unchanged."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

import polars as pl

from tcptrace_lab.errors import UsageError
from tcptrace_lab.pair.packet_store import MAX_PIECES
from tcptrace_lab.schema import SIDES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from tcptrace_lab.schema.captured import Captured

MAX_PACKETS = 2_000_000
"""Maximum number of segments per capture.

If each capture has this many segments, pairing takes 690 MB of memory with many connections, and 1.05 GB with a single one.
"""

SEQ_SPACE = 1 << 32
SYN, FIN, RST = 0x02, 0x01, 0x04
CONTROLS = SYN | FIN | RST
"""Flags that identify a packet. The path can change other flags: offload changes PSH and CWR, and router marks lead to ECE."""

ABSENT = -1
"""Value of a field that a packet does not have. Null cannot be used, because null keys do not join."""

TIMESTAMP_BYTES = 12
"""Size of the timestamps option with padding (RFC 7323, appendix A). It reduces the payload of a segment."""

_IDENTITY_COLUMNS = ("conn", "from_client", "seq", "payload_bytes", "flags", "ttl", "kind")
_COLUMNS = (
    *("frame", "ts_ns", "conn", "from_client", "seq", "ack", "payload_bytes", "flags"),
    *("tsval", "ip_id", "kind", "rtt_ns", "sack_blocks"),
)

SYSTEMATIC_SHARE = 0.2
"""If less than this share of the segments are duplicates, the path created the duplicates (a heuristic).

A capture that records packets twice does so for nearly all packets. Then half of its segments are duplicates.
"""


def _made_by_capture(captured: Captured) -> pl.Expr:
    """Return a condition that selects the duplicates that the capture made. It selects none if the path made the duplicates.

    Only the share of duplicates distinguishes the two cases.
    """
    copies = pl.col("kind").cast(pl.String) == "capture_duplicate"
    share = captured.segments.select(copies.mean()).collect().item()
    return copies if share is not None and share >= SYSTEMATIC_SHARE else pl.lit(value=False)


def identities(captured: Captured) -> pl.DataFrame:
    """Return the fields that identify the connections and the capture point of a capture.

    Returns:
        `conn from_client seq length controls ttl` in capture order. `seq` is the 32-bit sequence number of the header. Duplicates that the
        capture made are left out.

    Raises:
        UsageError: more than `MAX_PACKETS` segments.
    """
    own = pl.when("from_client").then("client_isn").otherwise("server_isn")
    wanted = ["conn", "from_client", _wire_number("seq", own).cast(pl.UInt32).alias("seq"), _LENGTH, _CONTROLS, "ttl"]
    return pl.concat(list(_batches(captured, _IDENTITY_COLUMNS, wanted)))


def packets(captured: Captured) -> Iterator[pl.DataFrame]:
    """Yield the segments of a capture with the fields that identify a packet, in batches; the first batch is empty.

    Yields:
        `frame ts_ns conn from_client start length controls acked ack tsval ip_id sacked rtt_ns` in capture order. `start` and `acked` are
        stream offsets. `ack` is the 32-bit acknowledgment number. `sacked` is a hash of the SACK blocks relative to `ack`. A missing field
        is `ABSENT`, except that missing `acked` and `rtt_ns` are null. Duplicates that the capture made are left out.

    Raises:
        UsageError: more than `MAX_PACKETS` segments, or the capture has no timestamps.
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
    """Compute the columns of all segments except duplicates that the capture made, batch by batch. The first batch has no rows."""
    isns = captured.connections.select("conn", *(pl.col(f"{side}_isn").cast(pl.Int64) for side in SIDES)).collect()
    chosen = captured.segments.select(columns).filter(~_made_by_capture(captured)).head(MAX_PACKETS + 1)
    count = 0
    for batch in chain([chosen.collect_schema().to_frame()], chosen.collect_batches(maintain_order=True)):
        count += batch.height
        if count > MAX_PACKETS:
            remedy = "name one connection of the first with --connection, or cut the captures"
            raise UsageError(f"more than {MAX_PACKETS:,} segments to compare", where=str(captured.capture["path"]), remedy=remedy)
        yield batch.join(isns, on="conn", how="left", maintain_order="left").select(wanted)


def _sacked() -> pl.Expr:
    """Return a hash of the SACK blocks relative to the acknowledgment number; null without SACK blocks.

    The hash is equal in both captures.
    """
    words = (pl.col("sack_blocks") - pl.col("ack")).cast(pl.List(pl.String)).list.join(",")
    return pl.when(pl.col("sack_blocks").is_not_null()).then(words.hash(seed=0) % (1 << 62)).cast(pl.Int64)


def piece_bytes(first: pl.DataFrame, second: pl.DataFrame) -> pl.DataFrame:
    """Return the maximum payload of a packet on the wire, per pair of connections. Offload (TSO, GRO) merges packets to longer segments.

    Args:
        first: rows of `schema.CONNECTIONS` of the first capture.
        second: rows of the second capture, with the partner in the same row.

    Returns:
        `piece` in bytes, from the MSS options of the SYNs. If no SYN was captured, the longest segment of each capture is determined, and
        the smaller one is returned.
    """
    offers = [table[f"{side}_mss_bytes"].alias(f"{place}{side}") for place, table in (("a", first), ("b", second)) for side in SIDES]
    stamped = pl.any_horizontal(pl.lit(first["client_timestamps"] & first["server_timestamps"]).fill_null(value=False))
    longest = [
        pl.max_horizontal(pl.lit(table["client_max_segment_bytes"]), pl.lit(table["server_max_segment_bytes"])) for table in (first, second)
    ]
    agreed = pl.min_horizontal(*(series.name for series in offers)) - pl.when(stamped).then(TIMESTAMP_BYTES).otherwise(0)
    return pl.DataFrame(offers).select(pl.coalesce(agreed, pl.min_horizontal(*longest)).clip(1).alias("piece"))


def cut(rows: pl.DataFrame) -> pl.DataFrame:
    """Split segments that are longer than the column `piece` into the packets on the wire, and drop this column.

    A network card numbers the packets of a segment consecutively (IP identification), and sets FIN only on the last one. This function does
    so, too. All packets of a segment get the time of the segment.

    Raises:
        UsageError: more than `MAX_PIECES` packets.
    """
    long = pl.col("length") > pl.col("piece")
    joined = rows.filter(long)
    if joined.is_empty():
        return rows.drop("piece")
    pieces = joined.select(((pl.col("length").cast(pl.Int64) + pl.col("piece") - 1) // pl.col("piece")).sum()).item()
    if pieces > MAX_PIECES:
        raise UsageError(f"offload joined more than {MAX_PIECES:,} packets", remedy="name one connection of the first with --connection")
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
