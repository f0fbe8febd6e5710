"""Segments → application messages: runs of bytes in one direction, each with its duration, its stalls, its ACK and its answer.

A message ends where the direction of the dialogue changes: the next bytes of this endpoint acknowledge data of the peer, and all of it. It
also ends where the application pauses for `GAP_NS` or two RTTs, whichever is longer. The engine marks these pauses; time in which TCP
delayed the data is no pause. PSH on a segment below the MSS ends a write, not a message: an application may write one message in pieces.

If bytes are sent while data of the peer are in flight (pipelined requests, full duplex), message boundaries are unknown. The runs of both
directions and those right after them are kept with `state` `overlapping`, and nothing is concluded from them. Messages whose start precedes
the capture, or with bytes that the capture misses, have states of their own.

The segments are read once, in batches. Kept in memory: the last message of each direction, and messages not yet acknowledged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from tcptrace_lab import schema
from tcptrace_lab.engine.spill import Spill
from tcptrace_lab.text.numbers import NS_PER_MS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

GAP_NS = 10 * NS_PER_MS
"""A pause of the application of at least this length ends a message; two RTTs count instead if they are longer. It is the stall on a LAN of
docs/how-it-decides.md, 2.3 (a heuristic), and the engine's `paused` in `schema.NOTES`."""

BATCH_ROWS = 131_072
"""Segments per batch: about 30 MB together with their notes."""

KEPT_MESSAGES = 262_144
"""Messages kept in memory before they go to temporary files: about 40 MB."""

RANGE_CONNECTIONS = 131_072
"""Connections processed together. Their last messages stay in memory, about 200 bytes each."""

MAX_WRITES = 64
"""Number of writes listed per message: the first ones."""

UNACKED_MESSAGES = 64
"""A message this many messages before the last of its direction is output without an ACK time: no ACK is expected any more."""

WAY = ("conn", "from_client")
_KEY = (*WAY, "index")


def messages(segments: pl.LazyFrame, notes: pl.LazyFrame, count: int) -> pl.LazyFrame:
    """Return the messages of some connections.

    Args:
        segments: rows of `schema.SEGMENTS` of these connections, in capture order.
        notes: rows of `schema.NOTES` of these connections: the engine's notes on departures. A range of connections at a time is in memory.
        count: one more than the greatest connection number.

    Returns:
        Rows of `schema.MESSAGES`; those of a direction are in time order.

    Raises:
        OutputUnwritable: no room for temporary files.
    """
    rows = Spill(schema.MESSAGES.polars_schema(), KEPT_MESSAGES)
    for first in range(0, count, RANGE_CONNECTIONS):
        here = pl.col("conn").is_between(first, first + RANGE_CONNECTIONS, closed="left")
        whole = count <= RANGE_CONNECTIONS
        for done in _found(segments if whole else segments.filter(here), notes if whole else notes.filter(here)):
            rows.add(done)
    return rows.finish()


def _found(segments: pl.LazyFrame, notes: pl.LazyFrame) -> Iterator[pl.DataFrame]:
    """Yield rows of `schema.MESSAGES` as they become final."""
    open_rows, ends = _NO_MESSAGES, _NO_ENDS
    noted = notes.drop("conn").collect()
    wanted = _col("wait_ns").is_not_null() | (_col("payload_bytes") > 0) | (_col("acked_bytes") > 0)
    for batch in segments.filter(wanted).select(_LOOKED_AT).collect_batches(chunk_size=BATCH_ROWS, maintain_order=True):
        rows, ends = _with_other_end(_with_notes(batch, noted), ends)
        numbered = _numbered(rows.filter(_BRINGS), open_rows)
        merged = _merged(open_rows, _partials(numbered), _answered(numbered, open_rows))
        done, open_rows = _settled(_acknowledged(merged, rows))
        if not done.is_empty():
            yield _finished(done)
    if not open_rows.is_empty():
        yield _finished(open_rows)


_PARTIAL = {
    "conn": pl.UInt32(),
    "from_client": pl.Boolean(),
    "index": pl.Int64(),
    "start_offset": pl.Int64(),
    "end_offset": pl.Int64(),
    "segments": pl.Int64(),
    "first_frame": pl.Int64(),
    "last_frame": pl.Int64(),
    "stall_frame": pl.Int64(),
    "short_nagle_wait_frame": pl.Int64(),
    "first_ts_ns": pl.Int64(),
    "last_ts_ns": pl.Int64(),
    "acked_ts_ns": pl.Int64(),
    "answer_ts_ns": pl.Int64(),
    "short_nagle_wait_ns": pl.Int64(),
    "stalls": pl.List(pl.Struct({"cause": pl.String(), "ns": pl.Int64()})),
    "small_ends": pl.List(pl.Int64()),
    "held": pl.Boolean(),
    "unpushed": pl.Boolean(),
    "heard": pl.Int64(),
    "overlapping": pl.Boolean(),
    "after_overlap": pl.Boolean(),
    "start_missing": pl.Boolean(),
    "hole": pl.Boolean(),
    "bytes_missing": pl.Boolean(),
    "resent": pl.Boolean(),
}
"""Columns of a message that may still grow."""

_ENDS = {"conn": pl.UInt32(), "client_end": pl.Int64(), "server_end": pl.Int64()}
"""The highest stream offset so far in both directions of a connection."""

_NO_MESSAGES, _NO_ENDS = pl.DataFrame(schema=_PARTIAL), pl.DataFrame(schema=_ENDS)

_col = pl.col
_STREAM_END = _col("seq") + _col("payload_bytes")
_NEW = (_col("kind") == "new") & (_col("payload_bytes") > 0)
_BRINGS = (_col("payload_bytes") > 0) & _col("kind").is_in(["capture_duplicate", "network_duplicate", "keepalive", "link_damaged"]).not_()
"""Segments whose data belong to a message."""


_LOOKED_AT = (
    *WAY,
    "frame",
    "ts_ns",
    "seq",
    "ack",
    "payload_bytes",
    "flags",
    "kind",
    "acked_bytes",
    "acked_unseen_bytes",
    "smss_bytes",
)
"""Columns that messages need: of segments with data, and of the peer's ACKs between them."""

_FLAGS = ("brief", "paused", "is_resent")


def _join_columns(rows: pl.DataFrame, known: pl.DataFrame, *on: str) -> pl.DataFrame:
    """Join what is known to each row. Where nothing is known yet, the columns are null."""
    if known.is_empty():
        return rows.with_columns(pl.lit(None, dtype).alias(name) for name, dtype in known.schema.items() if name not in on)
    return rows.join(known, on=on, how="left", maintain_order="left")


def _with_notes(rows: pl.DataFrame, noted: pl.DataFrame) -> pl.DataFrame:
    """Join the engine's notes to the segments. Most segments have none."""
    both = _join_columns(rows, noted, "frame")
    return both.with_columns(_col("frame").cast(pl.Int64), _col("stall_cause").cast(pl.String), _col(_FLAGS).fill_null(value=False))


def _with_other_end(rows: pl.DataFrame, ends: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Add the end of both streams before each row: `own_end` and `other_end` (null before any data).

    Returns:
        The rows, and the stream ends after the last row.
    """
    brings = _BRINGS & _col("seq").is_not_null()
    known = _join_columns(rows, ends, "conn")
    sides = {}
    for side, from_client in schema.SIDES.items():
        own = pl.when(brings & (_col("from_client") == from_client)).then(_STREAM_END)
        sides[f"{side}_after"] = pl.max_horizontal(own.cum_max().forward_fill().over("conn"), f"{side}_end")
    known = known.with_columns(**sides)
    before = [
        pl.coalesce(_col(f"{side}_after").shift(1).over("conn"), _col(f"{side}_end")).alias(f"{side}_before") for side in schema.SIDES
    ]
    last = known.group_by("conn").agg(*(_col(f"{side}_after").last().alias(f"{side}_end") for side in schema.SIDES))
    known = known.with_columns(before).with_columns(
        own_end=pl.when("from_client").then("client_before").otherwise("server_before"),
        other_end=pl.when("from_client").then("server_before").otherwise("client_before"),
    )
    after = pl.concat([last, ends.filter(_col("conn").is_in(last["conn"].implode()).not_())]).select(*_ENDS)
    return known[[*rows.columns, "own_end", "other_end"]], after


def _numbered(rows: pl.DataFrame, open_rows: pl.DataFrame) -> pl.DataFrame:
    """Add the `index` of the message that each segment with data belongs to, counted from 0 in its direction."""
    last = open_rows.sort("index").group_by(WAY).agg(last_index=_col("index").last(), last_heard=_col("heard").last())
    rows = _join_columns(rows, last, *WAY).with_columns(
        heard=pl.when(_NEW).then(pl.min_horizontal("ack", "other_end").fill_null(0)),
        first=(pl.int_range(pl.len()).over(WAY) == 0) & _col("last_index").is_null(),
        hears_all=_col("other_end").is_null() | (_col("ack") >= _col("other_end")),
    )
    before = pl.coalesce(_col("heard").shift(1).forward_fill().over(WAY), "last_heard")
    turned = _col("hears_all") & (_col("heard") > before).fill_null(value=False)
    starts = _NEW & (turned | _col("paused")) & ~_col("first") & (_col("seq") >= _col("own_end").fill_null(0))
    rows = rows.with_columns(
        starts=starts,
        overlaps=_NEW & ~_col("hears_all").fill_null(value=True),
        start_missing=_col("first") & (_col("seq") != 1),
        hole=(_NEW & (_col("seq") > _col("own_end"))).fill_null(value=False),
    )
    index = (_col("starts") | _col("first")).cast(pl.Int64).cum_sum().over(WAY) - 1 + (_col("last_index") + 1).fill_null(0)
    return rows.with_columns(index=index)


def _answered(rows: pl.DataFrame, open_rows: pl.DataFrame) -> pl.DataFrame:
    """Return what the peer sent after each message: `_KEY`, `answer_ts` and `overlapped`.

    `answer_ts` is the time of the first segment. `overlapped`: some of it was sent before the peer had the whole message.
    """
    last = open_rows.group_by("conn", ~_col("from_client")).agg(_col("index").max().alias("other_last"))
    rows = _join_columns(rows, last, *WAY)
    client = pl.when("from_client").then("index").forward_fill().over("conn")
    server = pl.when(~_col("from_client")).then("index").forward_fill().over("conn")
    current = pl.coalesce(pl.when("from_client").then(server).otherwise(client), "other_last")
    behind = rows.with_columns(current=current).filter(_NEW & _col("current").is_not_null())
    return behind.group_by("conn", ~_col("from_client"), index="current", maintain_order=True).agg(
        answer_ts=_col("ts_ns").first(), overlapped=_col("overlaps").any()
    )


def _partials(rows: pl.DataFrame) -> pl.DataFrame:
    """Return what these rows contribute to each message."""
    full, payload = _col("smss_bytes"), _col("payload_bytes")
    is_small = (full > 0) & (payload % full != 0)
    inside = ~_col("starts")
    stalled = inside & _col("stall_cause").is_not_null()
    return rows.group_by(_KEY, maintain_order=True).agg(
        start_offset=_col("seq").min(),
        end_offset=_STREAM_END.max(),
        segments=pl.len().cast(pl.Int64),
        first_frame=_col("frame").first(),
        last_frame=_col("frame").last(),
        stall_frame=_col("frame").filter(stalled).first(),
        short_nagle_wait_frame=_col("frame").filter(inside & _col("brief")).first(),
        first_ts_ns=_col("ts_ns").first(),
        last_ts_ns=_col("ts_ns").last(),
        acked_ts_ns=pl.lit(None, pl.Int64).first(),
        answer_ts_ns=pl.lit(None, pl.Int64).first(),
        short_nagle_wait_ns=_col("caused_ns").filter(inside & _col("brief")).sum(),
        stalls=pl.struct(cause="stall_cause", ns="caused_ns").filter(stalled),
        small_ends=_STREAM_END.filter(_NEW & is_small).head(MAX_WRITES),
        held=_col("stall_cause").is_in(["nagle", "nagle-delayed-ack"]).any(),
        unpushed=(_NEW & is_small & (_col("flags") & _PSH == 0)).any(),
        heard=_col("heard").drop_nulls().last(),
        overlapping=_col("overlaps").any(),
        after_overlap=pl.lit(None, pl.Boolean).first(),
        start_missing=_col("start_missing").any(),
        hole=_col("hole").any(),
        bytes_missing=pl.lit(value=False).first(),
        resent=_col("is_resent").any(),
    )


_PSH = 8


def _merged(open_rows: pl.DataFrame, partial: pl.DataFrame, answered: pl.DataFrame) -> pl.DataFrame:
    """Merge the open messages with what the batch contributes, and add the new ones."""
    fresh = _typed(partial, _PARTIAL)
    merged = fresh if open_rows.is_empty() else _grown(pl.concat([open_rows, fresh]))
    completed = _join_columns(merged, answered, *_KEY).sort(_KEY)
    completed = completed.with_columns(
        overlapping=_col("overlapping") | _col("overlapped").fill_null(value=False),
        answer_ts_ns=pl.coalesce("answer_ts_ns", "answer_ts"),
    )
    return completed.with_columns(after_overlap=pl.coalesce("after_overlap", _col("overlapping").shift(1).over(WAY)))[list(_PARTIAL)]


def _typed(rows: pl.DataFrame, types: Mapping[str, pl.DataType]) -> pl.DataFrame:
    """Select these columns and cast each to its type."""
    own = rows[list(types)]
    return own.with_columns(column.cast(types[column.name]) for column in own if column.dtype != types[column.name])


def _grown(both: pl.DataFrame) -> pl.DataFrame:
    """Combine the two parts of each message, known and new, into one row."""
    grown = _col("end_offset").last() > _col("end_offset").first()
    return both.group_by(_KEY, maintain_order=True).agg(
        _col("start_offset").min(),
        _col("end_offset").max(),
        _col("segments").sum(),
        _col("first_frame").first(),
        _col("last_frame").last(),
        _col("stall_frame").drop_nulls().first(),
        _col("short_nagle_wait_frame").drop_nulls().first(),
        _col("first_ts_ns").first(),
        _col("last_ts_ns").last(),
        pl.when(grown).then(None).otherwise(_col("acked_ts_ns").first()).alias("acked_ts_ns"),
        _col("answer_ts_ns").first(),
        _col("short_nagle_wait_ns").sum(),
        _col("stalls").explode(empty_as_null=False).alias("stalls"),
        _col("small_ends").explode(empty_as_null=False).head(MAX_WRITES).alias("small_ends"),
        _col("heard").drop_nulls().last(),
        _col("after_overlap").drop_nulls().first(),
        *(_col(name).any() for name in ("held", "unpushed", "overlapping", "start_missing", "hole", "bytes_missing", "resent")),
    )


def _acknowledged(found: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    """Add the time of the first ACK that covers the last byte of each message, if it is among the rows or already known."""
    advancing = rows.filter(_col("acked_bytes") > 0)
    found = _with_unseen(found, advancing.filter(_col("acked_unseen_bytes") > 0))
    acks = advancing.select("conn", ~_col("from_client"), _col("ack").alias("end_offset"), ack_ts_ns="ts_ns")
    matched = found.sort("end_offset").join_asof(
        acks.sort("end_offset"), on="end_offset", by=list(WAY), strategy="forward", check_sortedness=False
    )
    return matched.with_columns(acked_ts_ns=pl.coalesce("acked_ts_ns", "ack_ts_ns")).drop("ack_ts_ns").sort(_KEY)


def _with_unseen(found: pl.DataFrame, acks: pl.DataFrame) -> pl.DataFrame:
    """Mark the messages with bytes that were ACKed but are missing from the capture."""
    if acks.is_empty():
        return found
    covered = acks.select("conn", ~_col("from_client"), covered_to="ack", covered_from=_col("ack") - _col("acked_bytes"))
    names = {name: f"{name}_acked" for name in WAY}
    touched = found.select(*_KEY, "start_offset", "end_offset").join_where(
        covered.rename(names),
        *(_col(name) == _col(other) for name, other in names.items()),
        _col("start_offset") < _col("covered_to"),
        _col("end_offset") > _col("covered_from"),
    )
    marks = touched.select(_KEY).unique().with_columns(marked=pl.lit(value=True))
    marked = found.join(marks, on=list(_KEY), how="left", maintain_order="left")
    return marked.with_columns(bytes_missing=_col("bytes_missing") | _col("marked").fill_null(value=False)).drop("marked")


def _settled(found: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Split the messages into those that are final and those that may change."""
    behind = _col("index").max().over(WAY) - _col("index")
    done = (behind > UNACKED_MESSAGES) | ((behind > 0) & _col("acked_ts_ns").is_not_null())
    settled = found.select(done).to_series()
    return found.filter(settled), found.filter(~settled)


def _finished(found: pl.DataFrame) -> pl.DataFrame:
    """Return final messages as rows of `schema.MESSAGES`."""
    state = (
        pl.when(_col("overlapping") | _col("after_overlap").fill_null(value=False))
        .then(pl.lit("overlapping"))
        .when("start_missing")
        .then(pl.lit("start_missing"))
        .when(_col("bytes_missing") | (_col("hole") & _col("acked_ts_ns").is_null()))
        .then(pl.lit("bytes_missing"))
        .otherwise(pl.lit("whole"))
    )
    found = found.with_columns(state=state)
    by_cause = _col("stalls").list.eval(pl.element().struct.field("ns")).list
    worst = _col("stalls").list.get(by_cause.arg_max(), null_on_oob=True).struct.field("cause")
    edges = pl.concat_list(_col("start_offset"), _col("small_ends"), _col("end_offset"))
    writes = edges.list.diff().list.eval(pl.element().filter(pl.element() > 0))
    sure = (_col("writes_inferred").list.len() > 1) & ~_col("held") & ~_col("unpushed")
    rows = found.with_columns(
        payload_bytes=_col("end_offset") - _col("start_offset"),
        answer_ts_ns=pl.when(_col("state") != "overlapping").then("answer_ts_ns"),
        transfer_ns=_col("last_ts_ns") - _col("first_ts_ns"),
        stalled_ns=by_cause.sum(),
        stall_cause=worst,
        writes_inferred=pl.when(~_col("resent") & (_col("state") == "whole")).then(writes),
    ).with_columns(
        writes_confidence=pl.when(_col("writes_inferred").is_not_null()).then(
            pl.when(sure).then(pl.lit("consistent")).otherwise(pl.lit("possible"))
        )
    )
    return _typed(rows, schema.MESSAGES.polars_schema())
