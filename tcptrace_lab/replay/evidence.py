"""What is taken from a capture to make one of its connections again: its own row, its segments, its messages and its ledger."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import polars as pl

from tcptrace_lab.connections import behaviour
from tcptrace_lab.connections.vantage import loopback
from tcptrace_lab.engine.segments import read
from tcptrace_lab.errors import CaptureInsufficient, UsageError
from tcptrace_lab.messages import messages
from tcptrace_lab.text.numbers import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tcptrace_lab.engine.reread import Progress

MOST_SEGMENTS = 2_000_000
"""Of the one connection, held in memory: about 1 GB with its messages; a replay of more would take hours."""

WINDOW_CAUSES = ("receiver-window", "zero-window")

SEGMENT_COLUMNS = (
    "frame", "ts_ns", "from_client", "seq", "ack", "payload_bytes", "flags", "window_bytes", "kind", "acked_bytes",
)  # fmt: skip


class Judged(Protocol):
    """The tables of a capture of which the engine was asked why senders waited: `Tables`, or an `Analysis`."""

    @property
    def connections(self) -> pl.LazyFrame:
        """`schema.CONNECTIONS`."""

    @property
    def segments(self) -> pl.LazyFrame:
        """`schema.SEGMENTS`."""

    @property
    def notes(self) -> pl.LazyFrame:
        """`schema.NOTES`."""

    @property
    def ledger(self) -> pl.LazyFrame:
        """`schema.WAITS`."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """One connection.

    Attributes:
        capture: name of the file.
        conn: its number.
        row: its row of `schema.CONNECTIONS`, with what `behaviour` tells of it, and `same_host`.
        segments: `SEGMENT_COLUMNS` of its segments, in capture order.
        messages: rows of `schema.MESSAGES`, by time.
        ledger_ns: direction (True: the client's) → cause → nanoseconds.
        window_ns: direction → (from, to) of each time that the receiver's window held it.
    """

    capture: str
    conn: int
    row: Mapping[str, Any]
    segments: pl.DataFrame
    messages: pl.DataFrame
    ledger_ns: Mapping[bool, Mapping[str, int]]
    window_ns: Mapping[bool, Sequence[tuple[int, int]]]

    @property
    def life_ns(self) -> int:
        """From its first frame to its last."""
        return int(self.row["last_ts_ns"] - self.row["first_ts_ns"])

    @property
    def round_trip_ns(self) -> int:
        """The shortest that both ways together took, capture point to both ends and back; 0 where nothing shows it."""
        return int((self.row["to_client_ns"] or 0) + (self.row["to_server_ns"] or 0))

    def share(self, *causes: str, from_client: bool) -> float:
        """Share of the connection's life that these causes hold of one direction."""
        return sum(self.ledger_ns[from_client].get(cause, 0) for cause in causes) / max(self.life_ns, 1)


def gather(
    paths: Sequence[str], connection: int | None = None, *, progress: Progress | None = None, say: Callable[[str], None] | None = None
) -> Evidence:
    """Read a capture and take one connection out of it: the one asked for, or the one with most data.

    Raises:
        UsageError: there is no such connection.
        CaptureInsufficient: nothing can be made again of it: no connection with data, one direction only, no times, too many segments.
        CaptureUnreadable: as `read` does.
    """
    tables = read(paths, worth=(), progress=progress, say=say)
    where = ", ".join(paths)
    conn = _chosen(tables.connections, connection, where, is_damaged=bool(tables.problems))
    return of_tables(tables, tables.info["resolution_ns"], conn, where)


def of_tables(tables: Judged, resolution_ns: int, conn: int, where: str) -> Evidence:
    """Take one connection out of a capture that was read already.

    Args:
        tables: of the capture, or what was made of them; those of `conn` are among their rows.
        resolution_ns: of the capture's clock.
        conn: which.
        where: name of the capture.

    Raises:
        CaptureInsufficient: as `gather`.
    """
    own = tables.connections.filter(pl.col("conn") == conn).with_columns(same_host=loopback()).collect()
    own = behaviour.of_rows(own, resolution_ns)
    row = own.row(0, named=True)
    _check(row, where)
    here = pl.col("conn") == conn
    mine = tables.segments.filter(here)
    kept = mine.select(SEGMENT_COLUMNS).collect()
    if untimed := kept["ts_ns"].null_count():
        what = f"the times of {counted(untimed, 'segment')} of connection {conn} are unknown"
        raise CaptureInsufficient(what, where=where, remedy="capture again with tcpdump or dumpcap")
    found = messages.messages(mine, tables.notes.filter(here), conn + 1).sort("first_ts_ns", "first_frame").collect()
    spans = tables.ledger.filter(here).select("from_client", "cause", "start_ns", "end_ns").collect()
    sums: dict[bool, dict[str, int]] = {True: {}, False: {}}
    for from_client, cause, ns in spans.group_by("from_client", "cause").agg((pl.col("end_ns") - pl.col("start_ns")).sum()).iter_rows():
        sums[from_client][cause] = ns
    held = spans.filter(pl.col("cause").cast(pl.String).is_in(WINDOW_CAUSES)).sort("start_ns")
    windows = {way: list(held.filter(pl.col("from_client") == way).select("start_ns", "end_ns").iter_rows()) for way in (True, False)}
    return Evidence(where, conn, row, kept, found, sums, windows)


def _chosen(connections: pl.LazyFrame, connection: int | None, where: str, *, is_damaged: bool) -> int:
    carried = pl.col("client_payload_bytes") + pl.col("server_payload_bytes")
    if connection is not None:
        if connections.filter(pl.col("conn") == connection).collect().is_empty():
            raise UsageError(f"no connection {connection}", where=where, remedy="tcptrace-lab analyze lists them")
        return connection
    most = connections.filter(carried > 0).select("conn", carried=carried).top_k(1, by=["carried", "conn"], reverse=[False, True]).collect()
    if most.is_empty():
        remedy = "headers are truncated or damaged: capture at least 96 bytes per frame" if is_damaged else ""
        raise CaptureInsufficient("no TCP connection with data", where=where, remedy=remedy)
    return int(most.item(0, "conn"))


def _check(row: Mapping[str, Any], where: str) -> None:
    for side, other in (("client", "server"), ("server", "client")):
        if not row[f"{side}_segments"]:
            raise CaptureInsufficient(
                f"connection {row['conn']} was captured in one direction only: nothing from the {side}",
                where=where,
                remedy=f"capture both directions; otherwise it is unknown what the {other} waited for",
            )
    if row["client_segments"] + row["server_segments"] > MOST_SEGMENTS:
        raise CaptureInsufficient(
            f"connection {row['conn']} has more than {MOST_SEGMENTS:,} segments", where=where, remedy="cut a part out of it with editcap"
        )
    if not row["client_payload_bytes"] + row["server_payload_bytes"]:
        raise CaptureInsufficient(f"connection {row['conn']} carried no data", where=where, remedy="choose another with --connection")
