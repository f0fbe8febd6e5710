"""Collects the series of one direction's figures, slice by slice, with a bounded number of points.

Each slice of tracked rows (`direction_state.Tracker`) is reduced before the next one is read. Exact counts remain, so that the page can
state what it omits.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from tcptrace_lab import schema
from tcptrace_lab.report.figures import downsampling
from tcptrace_lab.report.figures.cause_strip import PIXELS, CauseStrip
from tcptrace_lab.report.figures.direction_state import FIN, RST, SYN, has
from tcptrace_lab.report.figures.holes import Holes

if TYPE_CHECKING:
    from tcptrace_lab.report.data_types import Band

HELD_POINTS = 20_000
"""Points of one series kept between two slices: several times the number drawn, so that reducing twice has no visible effect."""

SENDER_MARKS = (*schema.RESENT, "out_of_order", "network_duplicate", "capture_duplicate", "keepalive", "zero_window_probe", "reset")
"""Kinds of the sender's segments that are drawn as marks, up to the limit of points. All of them are counted."""

MARKS = (*SENDER_MARKS, "syn", "fin", "zero_window", "peer_reset", "duplicate_ack", "sack")
"""All marks of a time-sequence figure. `zero_window`, `peer_reset` and `duplicate_ack` are segments of the receiver; `sack` is one per
block of its SACK options."""

_FILLING_KINDS = (*schema.RESENT, "out_of_order")

_AGAIN_KINDS = (*_FILLING_KINDS, "keepalive", "zero_window_probe", "network_duplicate", "capture_duplicate")
"""Kinds whose bytes are new only beyond the highest offset sent, or within a hole."""


class Request(NamedTuple):
    """A connection to draw, and the maximum numbers of its points.

    Attributes:
        conn, first_frame, last_frame, first_ts_ns, duration_ns: as in `schema.CONNECTIONS`.
        data_segments: number of data segments by direction (`from_client`); directions without data are absent.
        line_points: maximum number of points per line, by direction.
        mark_points: maximum number of marks in the time-sequence figure, by direction.
    """

    conn: int
    first_frame: int
    last_frame: int
    first_ts_ns: int
    duration_ns: int
    data_segments: dict[bool, int]
    line_points: dict[bool, int]
    mark_points: dict[bool, int]

    @property
    def bin_ns(self) -> int:
        """Width of a throughput bin in ns."""
        return bin_width_ns(self.duration_ns, max(self.data_segments.values(), default=0))


@dataclass(slots=True)
class Direction:
    """The data of one direction's figures. Rows are in frame order.

    Attributes:
        bursts: `t_ns t_end_ns low high segments payload_bytes frame frame_end`: data segments, or runs of them if there are too many;
            stream offsets from `low` to `high` (exclusive).
        merged: whether `bursts` may contain runs of several segments.
        lines: `acked window_edge flight offered rtt ack_lag payload`, each with `t_ns y frame`.
        line_counts: number of changes or samples of each line, including those left out.
        marks: name in `MARKS` → `t_ns low payload_bytes frame`.
        mark_counts: number of marks of each name, including those left out.
        throughput: `t_ns unique_bytes` per bin, without empty bins.
        causes: the causes of its waits, as adjacent bands.
    """

    bursts: pl.DataFrame
    merged: bool
    lines: dict[str, pl.DataFrame]
    line_counts: dict[str, int]
    marks: dict[str, pl.DataFrame]
    mark_counts: dict[str, int]
    throughput: pl.DataFrame
    causes: list[Band]


def bin_width_ns(duration_ns: int, data_segments: int) -> int:
    """A round bin width (1, 2 or 5 times a power of ten) in ns, for 20 to 200 bins with about four data segments each."""
    bins = min(max(data_segments // 4, 20), 200)
    wanted_ns = max(duration_ns / bins, 1.0)
    decade = 1
    while decade * 10 <= wanted_ns:
        decade *= 10
    return next(decade * step for step in (1, 2, 5, 10) if decade * step >= wanted_ns)


@dataclass(slots=True)
class _Line:
    """A line that is reduced to `HELD_POINTS` points whenever it has twice as many."""

    parts: list[pl.DataFrame] = field(default_factory=list)
    count: int = 0

    def add(self, part: pl.DataFrame) -> None:
        self.count += part.height
        self.parts.append(part)
        if sum(piece.height for piece in self.parts) > 2 * HELD_POINTS:
            self.parts = [self.take(HELD_POINTS)]

    def take(self, keep: int) -> pl.DataFrame:
        if not self.parts:
            return pl.DataFrame(schema={"t_ns": pl.Int64, "y": pl.Int64, "frame": pl.UInt64})
        whole = pl.concat(self.parts)
        return downsampling.line(whole, "t_ns", "y", keep)


@dataclass(slots=True)
class _Marks:
    """Marks of one name, reduced to `HELD_POINTS` whenever there are more than twice as many."""

    parts: list[pl.DataFrame] = field(default_factory=list)
    count: int = 0

    def add(self, part: pl.DataFrame) -> None:
        if part.height:
            self.count += part.height
            self.parts.append(part)
            if sum(piece.height for piece in self.parts) > 2 * HELD_POINTS:
                self.parts = [self.take(HELD_POINTS)]

    def take(self, keep: int) -> pl.DataFrame:
        whole = pl.concat(self.parts)
        return whole if whole.height <= keep else whole[downsampling.even(whole.height, keep)]


class Collector:
    """Collects the series of one direction, slice by slice."""

    def __init__(self, request: Request, *, from_client: bool, only_sequence: bool = False) -> None:
        """Collect for all figures, or only for the time-sequence figure (`only_sequence`)."""
        self.request = request
        self.from_client = from_client
        self.only_sequence = only_sequence
        self.holes = Holes()
        self.merged = request.data_segments[from_client] > request.line_points[from_client]
        self.bursts: list[pl.DataFrame] = []
        self.lines = {name: _Line() for name in _LINES}
        self.marks = {name: _Marks() for name in MARKS}
        self.bins: Counter[int] = Counter()
        self.strip = CauseStrip(request.first_ts_ns, max(request.duration_ns // PIXELS, 1))

    def add(self, rows: pl.DataFrame) -> None:
        """Add the next rows of the connection, of both directions, as `Tracker` returns them for this direction."""
        seen = rows.select(_SEQUENCE if self.only_sequence else _ALL)

        def points(which: str, **columns: pl.Series) -> pl.DataFrame:
            return pl.DataFrame({name: column.filter(seen[which]) for name, column in columns.items()})

        t_ns, seq, payload_bytes, frame = (rows[name] for name in _SENT_SCHEMA)
        self._add_bursts(points("sent", t_ns=t_ns, seq=seq, payload_bytes=payload_bytes, frame=frame))
        if rows["sack_blocks"].null_count() < rows.height:
            self.marks["sack"].add(_sack_blocks(rows))
        for name, marks in self.marks.items():
            if name in _MARKED and seen[name].any():
                marks.add(points(name, t_ns=t_ns, low=seen[_MARK_OFFSETS[name]], payload_bytes=payload_bytes, frame=frame))
        for name, source in _LINES.items():
            if name in seen.columns:
                self.lines[name].add(points(name, t_ns=t_ns, y=rows[source], frame=frame))
        if not self.only_sequence:
            unique = points("new", t_ns=t_ns, unique_bytes=seen["unique_bytes"])
            changes = points("holes", place=seen["place"], seq=seq, payload_bytes=payload_bytes, sent_before=rows["sent_before"])
            self._add_bins(unique, changes)

    def skip(self, rows: pl.DataFrame) -> None:
        """Take the rows before those that are drawn: they may open holes that later rows fill."""
        for seq, payload_bytes, sent_before in rows.filter(_NEW & _CHANGES_HOLES).select("seq", "payload_bytes", "sent_before").iter_rows():
            if seq > sent_before:
                self.holes.open(sent_before, seq)
            elif len(self.holes):
                self.holes.fill(seq, min(seq + payload_bytes, sent_before))

    def _add_bins(self, unique: pl.DataFrame, changes: pl.DataFrame) -> None:
        """Add the sender's bytes that the capture sees for the first time to the throughput bins.

        Args:
            unique: `t_ns unique_bytes` of each data segment, without the bytes that fill holes.
            changes: `place seq payload_bytes sent_before` of the segments that open a hole or may fill one; `place` is the row in `unique`.
        """
        filled: dict[int, int] = {}
        for place, seq, payload_bytes, sent_before in changes.iter_rows():
            if seq > sent_before:
                self.holes.open(sent_before, seq)
            elif len(self.holes):
                filled[place] = unique.item(place, "unique_bytes") + self.holes.fill(seq, min(seq + payload_bytes, sent_before))
        if filled:
            unique = unique.with_columns(unique["unique_bytes"].scatter(list(filled), list(filled.values())))
        bins = unique.group_by(pl.col("t_ns") // self.request.bin_ns * self.request.bin_ns).agg(pl.col("unique_bytes").sum())
        self.bins.update(dict(bins.iter_rows()))

    def finish(self) -> Direction:
        """The reduced series."""
        bursts = pl.concat(self.bursts) if self.bursts else _bursts(pl.DataFrame(schema=_SENT_SCHEMA), 1, 1)
        names = [name for name in MARKS if self.marks[name].count]
        granted = downsampling.share([self.marks[name].count for name in names], self.request.mark_points[self.from_client])
        keep = self.request.line_points[self.from_client]
        return Direction(
            bursts=bursts,
            merged=self.merged,
            lines={name: series.take(keep) for name, series in self.lines.items()},
            line_counts={name: series.count for name, series in self.lines.items()},
            marks={name: self.marks[name].take(budget) for name, budget in zip(names, granted, strict=True)},
            mark_counts={name: self.marks[name].count for name in names},
            causes=self.strip.finish(),
            throughput=pl.DataFrame(sorted((+self.bins).items()), {"t_ns": pl.Int64, "unique_bytes": pl.Int64}, orient="row"),
        )

    def _add_bursts(self, sent: pl.DataFrame) -> None:
        points = max(self.request.line_points[self.from_client], 1)
        run = -(-self.request.data_segments[self.from_client] // points)
        self.bursts.append(_bursts(sent, run, max(self.request.duration_ns // points, 1)))


_MINE, _KIND = pl.col("mine"), pl.col("kind")

_ORDINARY = _MINE & ~_KIND.is_in(SENDER_MARKS)

_ALIVE = ~_MINE & ~has(RST)

DATA = _MINE & (pl.col("payload_bytes") > 0)

_NEW = DATA & ~has(RST)
"""Segments whose bytes may be new."""

_MARKED = {
    **{name: _MINE & (pl.col("kind") == name) for name in SENDER_MARKS},
    "syn": _ORDINARY & has(SYN),
    "fin": _ORDINARY & has(FIN),
    "zero_window": _ALIVE & (pl.col("window_bytes") == 0) & pl.col("ack").is_not_null(),
    "peer_reset": ~_MINE & has(RST),
    "duplicate_ack": _ALIVE & (pl.col("kind") == "duplicate_ack"),
}
"""Name in `MARKS` → condition of the segments that get this mark."""

_MARK_OFFSETS = dict.fromkeys(SENDER_MARKS, "seq") | {
    "reset": "stood",  # a reset may have any sequence number, so it is drawn at the highest offset sent
    "syn": "seq",
    "fin": "end",
    "zero_window": "ack",
    "peer_reset": "acknowledged",
    "duplicate_ack": "ack",
}
"""Name in `MARKS` → column of `_SEQUENCE` with the mark's position on the sequence axis."""


def _sack_blocks(rows: pl.DataFrame) -> pl.DataFrame:
    """The blocks of the receiver's SACK options, as marks from their left edge."""
    own = rows.filter(rows["sack_blocks"].is_not_null() & ~rows["mine"])
    if own.is_empty():
        return own
    lefts, rights = (own["sack_blocks"].list.gather_every(2, offset) for offset in (0, 1))
    blocks = own.select("t_ns", "frame", low=lefts, right=rights).explode("low", "right")
    return blocks.select("t_ns", "low", payload_bytes=pl.col("right") - pl.col("low"), frame="frame")


_SENT_SCHEMA = {"t_ns": pl.Int64, "seq": pl.Int64, "payload_bytes": pl.Int64, "frame": pl.UInt64}


def _bursts(sent: pl.DataFrame, run: int, silence_ns: int) -> pl.DataFrame:
    """Merge data segments into runs of up to `run`. A pause longer than `silence_ns` ends a run, so that a stroke never hides it."""
    t_ns, seq, payload_bytes, frame = (pl.col(name) for name in _SENT_SCHEMA)
    bursts = sent.select(
        t_ns,
        t_ns.alias("t_end_ns"),
        seq.alias("low"),
        (seq + payload_bytes).alias("high"),
        pl.lit(1, pl.Int64).alias("segments"),
        payload_bytes,
        frame,
        frame.alias("frame_end"),
    )
    if run == 1:
        return bursts
    parted = (pl.int_range(pl.len()) % run == 0) | ((t_ns - t_ns.shift(1)) > silence_ns).fill_null(value=True)
    reduced = (
        pl.col("t_ns", "frame").first(),
        pl.col("t_end_ns", "frame_end").last(),
        pl.col("low").min(),
        pl.col("high").max(),
        pl.col("segments", "payload_bytes").sum(),
    )
    return bursts.group_by(parted.cum_sum().alias("run"), maintain_order=True).agg(reduced)[bursts.columns]


def _changes(source: str) -> pl.Expr:
    """True for rows where the value of a step line changes, and for the last known value, so that the drawn line reaches its end."""
    y = pl.col(source)
    last = pl.int_range(pl.len()) == y.is_not_null().arg_true().last()
    return y.is_not_null() & (y.ne_missing(y.forward_fill().shift(1)) | last)


_LINES = {
    "acked": "acked",
    "window_edge": "edge",
    "flight": "flight",
    "offered": "offered",
    "rtt": "rtt_ns",
    "ack_lag": "ack_lag_ns",
    "payload": "payload_bytes",
}
"""Line → column of the tracked rows."""


_SEQ, _PAYLOAD, _SENT_BEFORE = pl.col("seq"), pl.col("payload_bytes"), pl.col("sent_before")

_FRESH = (_SEQ + _PAYLOAD - pl.max_horizontal(_SEQ, _SENT_BEFORE)).clip(0, _PAYLOAD)

_CHANGES_HOLES = (_SEQ > _SENT_BEFORE) | ((_SEQ < _SENT_BEFORE) & _KIND.is_in(_FILLING_KINDS))

_SEQUENCE = [
    (_ORDINARY & DATA).alias("sent"),
    *(_changes(_LINES[name]).alias(name) for name in ("acked", "window_edge")),
    *(rows.alias(name) for name, rows in _MARKED.items()),
    _SEQ,
    pl.col("ack"),
    (_SEQ + _PAYLOAD).alias("end"),
    pl.coalesce("sent", pl.lit(0)).alias("stood"),
    pl.coalesce("acked", "sent", pl.lit(0)).alias("acknowledged"),
]
"""Columns for a time-sequence figure: conditions for segments, lines and marks, and positions of marks. One query computes all of them."""

_ALL = [
    *_SEQUENCE,
    *(_changes(_LINES[name]).alias(name) for name in ("flight", "offered")),
    *((~_MINE & pl.col(_LINES[name]).is_not_null()).alias(name) for name in ("rtt", "ack_lag")),
    DATA.alias("payload"),
    _NEW.alias("new"),
    pl.when(_KIND.is_in(_AGAIN_KINDS)).then(_FRESH).otherwise(_PAYLOAD).alias("unique_bytes"),
    (_NEW & _CHANGES_HOLES).alias("holes"),
    (_NEW.cum_sum() - 1).alias("place"),
]
"""`_SEQUENCE` and the columns that the other figures of a direction need."""
