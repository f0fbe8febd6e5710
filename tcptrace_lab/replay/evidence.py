"""The data from which the schedule of one connection is reconstructed: its table row, segments, messages and ledger."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import polars as pl

from tcptrace_lab.connections.anonymizer import NAME
from tcptrace_lab.engine.segments import read
from tcptrace_lab.errors import CaptureInsufficient, UsageError
from tcptrace_lab.messages import messages
from tcptrace_lab.text.numbers import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tcptrace_lab.connections.anonymizer import Anonymizer
    from tcptrace_lab.engine.reread import Progress

MAX_SEGMENTS = 2_000_000
"""Maximum number of segments of the connection.

The data of a connection with so many segments takes about 1 GB of memory. A replay of more segments would take hours.
"""

WINDOW_CAUSES = ("receiver-window", "zero-window")

SEGMENT_COLUMNS = (
    "frame", "ts_ns", "from_client", "seq", "ack", "payload_bytes", "flags", "window_bytes", "kind", "acked_bytes",
)  # fmt: skip


class Judged(Protocol):
    """The tables of a capture with a ledger: `Tables`, or an `Analysis`."""

    @property
    def connections(self) -> pl.LazyFrame:
        """Rows of `schema.CONNECTIONS`."""

    @property
    def segments(self) -> pl.LazyFrame:
        """Rows of `schema.SEGMENTS`."""

    @property
    def notes(self) -> pl.LazyFrame:
        """Rows of `schema.NOTES`."""

    @property
    def ledger(self) -> pl.LazyFrame:
        """Rows of `schema.WAITS`."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """The data of one connection.

    Attributes:
        capture: name of the capture file, as outputs show it.
        conn: number of the connection.
        row: its row of `schema.CONNECTIONS`.
        segments: the columns `SEGMENT_COLUMNS` of its segments, in capture order.
        messages: its rows of `schema.MESSAGES`, by time.
        ledger_ns: direction (True: from the client) → cause → nanoseconds.
        window_ns: direction → (start, end) in ns of each wait for the receive window.
        paths: the files of the capture, if it has to be read again; otherwise empty.
        anonymizer: replaces the addresses when the capture is read again; None: addresses are kept.
    """

    capture: str
    conn: int
    row: Mapping[str, Any]
    segments: pl.DataFrame
    messages: pl.DataFrame
    ledger_ns: Mapping[bool, Mapping[str, int]]
    window_ns: Mapping[bool, Sequence[tuple[int, int]]]
    paths: tuple[str, ...] = ()
    anonymizer: Anonymizer | None = None

    @property
    def life_ns(self) -> int:
        """Time from the connection's first frame to its last."""
        return int(self.row["last_ts_ns"] - self.row["first_ts_ns"])

    @property
    def base_rtt_ns(self) -> int:
        """Base RTT: sum of the shortest RTTs between the capture point and each end; 0 if unknown."""
        return int((self.row["rtt_to_client_ns"] or 0) + (self.row["rtt_to_server_ns"] or 0))

    def share(self, *causes: str, from_client: bool) -> float:
        """Return the share of the connection's duration that these causes take in one direction."""
        return sum(self.ledger_ns[from_client].get(cause, 0) for cause in causes) / max(self.life_ns, 1)


def gather(
    paths: Sequence[str],
    connection: int | None = None,
    *,
    anonymizer: Anonymizer | None = None,
    progress: Progress | None = None,
    say: Callable[[str], None] | None = None,
) -> Evidence:
    """Read a capture, and extract one connection.

    If `connection` is None, the connection with most data is extracted. With an `anonymizer`, outputs contain no address and no file name.

    Raises:
        UsageError: the capture has no such connection.
        CaptureInsufficient: the connection cannot be replayed: no data, one direction only, no timestamps, or too many segments.
        CaptureUnreadable: raised by `read`.
    """
    tables = read(paths, worth=(), progress=progress, say=say if anonymizer is None else None)
    where = ", ".join(paths) if anonymizer is None else NAME
    conn = _chosen(tables.connections, connection, where, is_damaged=bool(tables.problems))
    if anonymizer is not None:
        tables = replace(tables, connections=anonymizer.rows(tables.connections))
    return replace(of_tables(tables, conn, where), paths=tuple(paths), anonymizer=anonymizer)


def of_tables(tables: Judged, conn: int, where: str) -> Evidence:
    """Extract one connection from the tables of a capture.

    Args:
        tables: tables of the capture, or its analysis. The tables must contain the rows of `conn`.
        conn: number of the connection.
        where: name of the capture.

    Raises:
        CaptureInsufficient: the connection cannot be replayed, as in `gather`.
    """
    own = tables.connections.filter(pl.col("conn") == conn).collect()
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
    windows = {
        of_client: list(held.filter(pl.col("from_client") == of_client).select("start_ns", "end_ns").iter_rows())
        for of_client in (True, False)
    }
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
    if row["client_segments"] + row["server_segments"] > MAX_SEGMENTS:
        raise CaptureInsufficient(
            f"connection {row['conn']} has more than {MAX_SEGMENTS:,} segments", where=where, remedy="extract a part with editcap"
        )
    if not row["client_payload_bytes"] + row["server_payload_bytes"]:
        raise CaptureInsufficient(f"connection {row['conn']} carried no data", where=where, remedy="select another with --connection")
