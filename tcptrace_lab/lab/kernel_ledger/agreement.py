"""Compares the ledger of a capture with the kernel's ledger of the same connections, instant by instant."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, Protocol

import polars as pl

from tcptrace_lab.engine.segments import read
from tcptrace_lab.lab.kernel_ledger.both_ends import QUEUE, joined, within
from tcptrace_lab.lab.kernel_ledger.causes import allowed_causes
from tcptrace_lab.lab.kernel_ledger.events import TRANSMIT
from tcptrace_lab.lab.kernel_ledger.ledger import LEDGER, write_ledger
from tcptrace_lab.lab.kernel_ledger.sockets import SEQ_SPACE
from tcptrace_lab.lab.kernel_ledger.trace import EVENTS
from tcptrace_lab.lab.networks.network import CLIENT_IPV4, CLIENT_IPV6

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from tcptrace_lab.lab.kernel_ledger.both_ends import Spans
    from tcptrace_lab.lab.kernel_ledger.causes import AllowedCauses

SENDER, MIDDLE, RECEIVER = POINTS = "sender", "middle", "receiver"
IDLE = "idle"
_ROW = ["start_ns", "end_ns", "gates", "last", "context"]
_WAIT = ["start_ns", "end_ns", "cause", "confidence", "frame_before", "frame_after"]


@dataclass(frozen=True, slots=True)
class Piece:
    """A time span of one direction in which the answers of both ledgers stay unchanged.

    Attributes:
        at: the capture point: the sender, the receiver, or a router between them.
        is_of_data: True for the direction with more bytes.
        allowed: causes that are right according to the kernel.
        gates: the kernel's gates, with those that opened last in front.
        cause: cause in the ledger of the capture.
        confidence: confidence of the capture's ledger in this cause.
        frame_before, frame_after: frames before and after the wait in the capture.
    """

    folder: Path
    at: str
    conn: int
    from_client: bool
    is_of_data: bool
    start_ns: int
    end_ns: int
    allowed: AllowedCauses
    gates: str
    cause: str
    confidence: str
    frame_before: int | None
    frame_after: int | None

    @property
    def ns(self) -> int:
        """Return the duration of this time span in ns."""
        return self.end_ns - self.start_ns


class OfCapture(Protocol):
    """The ledger and the connections of a capture. `Tables` and `Analysis` have both tables."""

    @property
    def ledger(self) -> pl.LazyFrame:
        """Return the ledger of the capture, with all columns of `_WAIT`."""

    @property
    def connections(self) -> pl.LazyFrame:
        """Return the connections of the capture: times, addresses, ports and bytes."""


class KernelSpan(NamedTuple):
    """A time span with the kernel's gates, and the causes that follow from these gates."""

    start_ns: int
    end_ns: int
    allowed: AllowedCauses
    gates: str


class Router(NamedTuple):
    """The capture point of a router, with the delay from the client to the router, and the RTT between router and client."""

    from_client_ns: int
    rtt_to_client_ns: int


def pieces(folder: Path, *, all_directions: bool = False) -> Iterator[Piece]:
    """Yield what both ledgers say about each data direction of a transfer, for the captures of both ends.

    The data direction of a connection is the direction with more bytes. Time that both ledgers call idle is left out.
    """
    kernel = kernel_rows(folder)
    for end in ("client", "server"):
        for piece in of_capture(folder, read(capture_of(folder, end), worth=()), kernel, end):
            if all_directions or piece.is_of_data:
                yield piece


def kernel_rows(folder: Path) -> Mapping[tuple[object, ...], pl.DataFrame]:
    """Return the kernel's ledger of a transfer, by address and port of sender and receiver. If it does not exist yet, it is made."""
    table = pl.read_parquet(folder / LEDGER) if (folder / LEDGER).exists() else write_ledger(folder)
    return table.partition_by("sender_address", "sender_port", "receiver_address", "receiver_port", as_dict=True)


def of_capture(folder: Path, tables: OfCapture, kernel: Mapping[tuple[object, ...], pl.DataFrame], point: str | Router) -> Iterator[Piece]:
    """Yield what both ledgers say about both directions of all connections in one capture of a transfer.

    Args:
        folder: folder of the transfer.
        tables: tables read from the capture.
        kernel: result of `kernel_rows`.
        point: where the capture was made: `client`, `server`, or a router.
    """
    ledger = tables.ledger.select("conn", "from_client", *_WAIT).collect()
    by_direction = {(key[0], key[1]): rows for key, rows in ledger.partition_by("conn", "from_client", as_dict=True).items()}
    for direction in _directions(tables):
        rows = kernel.get((*direction.sender, *direction.receiver))
        waits = by_direction.get((direction.conn, direction.from_client))
        if rows is None or waits is None:
            continue
        rows = rows.filter(pl.col("start_ns") < direction.last_ns, pl.col("end_ns") > direction.first_ns)
        if isinstance(point, Router):
            at, spans = MIDDLE, seen_by_router(rows, point, from_client=direction.from_client)
        elif (direction.sender[0] in {CLIENT_IPV4, CLIENT_IPV6}) == (point == "client"):
            at, spans = SENDER, seen_by_sender(rows)
        else:
            at, spans = RECEIVER, seen_by_receiver(rows)
        yield from _overlaps(folder, at, direction, list(spans), waits)


def capture_of(folder: Path, point: str) -> Path:
    """Return the path of the capture that was made at the capture point named `point`."""
    return next(path for path in sorted(folder.iterdir()) if path.stem == point and path.suffix.startswith(".pcap"))


class _Direction(NamedTuple):
    conn: int
    from_client: bool
    is_of_data: bool
    sender: tuple[str, int]
    receiver: tuple[str, int]
    first_ns: int
    last_ns: int


def _directions(tables: OfCapture) -> Iterator[_Direction]:
    sides = ("client", "server")
    columns = [f"{side}_{what}" for side in sides for what in ("addr", "port", "unique_bytes")]
    for row in tables.connections.select("conn", "first_ts_ns", "last_ts_ns", *columns).collect().iter_rows(named=True):
        ends = {side: (row[f"{side}_addr"], row[f"{side}_port"]) for side in sides}
        client_bytes, server_bytes = (row[f"{side}_unique_bytes"] or 0 for side in sides)
        for from_client in (True, False):
            is_of_data = from_client == (client_bytes >= server_bytes)
            sender, receiver = ("client", "server") if from_client else ("server", "client")
            yield _Direction(row["conn"], from_client, is_of_data, ends[sender], ends[receiver], row["first_ts_ns"], row["last_ts_ns"])


def seen_by_sender(kernel: pl.DataFrame) -> Iterator[KernelSpan]:
    """Yield the kernel's rows unchanged. A capture at the sender has the kernel's own times."""
    for start_ns, end_ns, closed, last, context in kernel.select(_ROW).iter_rows():
        words = allowed_causes(closed, last, context, end_ns - start_ns)
        if words is not None:
            yield KernelSpan(start_ns, end_ns, words, _words(closed, last))


def seen_by_receiver(kernel: pl.DataFrame) -> Iterator[KernelSpan]:
    """Yield the kernel's rows as in a capture at the receiver, which shows them after the delay of the path.

    While bytes are in a queue, `network` is accepted, too, whatever delayed the sender.
    """
    yield from _seen_behind(kernel, _transit_ns(kernel), 0)


def seen_by_router(kernel: pl.DataFrame, router: Router, *, from_client: bool) -> Iterator[KernelSpan]:
    """Yield the kernel's rows as in a capture at the router, which shows them after the delay from the sender to the router.

    The bottleneck of the path is between router and server.
    """
    if from_client:
        for span in seen_by_sender(kernel):
            yield span._replace(start_ns=span.start_ns + router.from_client_ns, end_ns=span.end_ns + router.from_client_ns)
    else:
        yield from _seen_behind(kernel, max(_transit_ns(kernel) - router.rtt_to_client_ns, 0), router.rtt_to_client_ns)


def _transit_ns(kernel: pl.DataFrame) -> int:
    return next((ns for ns in kernel["least_transit_ns"] if ns is not None), 0)


def _seen_behind(kernel: pl.DataFrame, delay_ns: int, left_ns: int) -> Iterator[KernelSpan]:
    """Yield the kernel's rows as in a capture behind the queue of the path.

    Packets reach the capture point `delay_ns` after they leave the sender, and `left_ns` before they reach the receiver.
    """
    late = joined(kernel.filter(pl.col("context").list.contains(QUEUE)).select("start_ns", "end_ns").iter_rows())
    queues = [(start_ns - left_ns, end_ns - left_ns) for start_ns, end_ns in late]
    for span in seen_by_sender(kernel):
        by_network = replace(span.allowed, accepted=span.allowed.accepted | {"network"}, strict=span.allowed.strict | {"network"})
        for start_ns, end_ns, is_late in _cut(span.start_ns + delay_ns, span.end_ns + delay_ns, queues):
            yield KernelSpan(start_ns, end_ns, by_network if is_late else span.allowed, span.gates)


def _cut(start_ns: int, end_ns: int, spans: Spans) -> Iterator[tuple[int, int, bool]]:
    """Cut a time span at the edges of the given spans. Yield each piece, and whether it is inside one of the given spans."""
    first = max(bisect_right(spans, start_ns, key=lambda span: span[0]) - 1, 0)
    cuts = {start_ns, end_ns}
    for span_start_ns, span_end_ns in spans[first:]:
        if span_start_ns >= end_ns:
            break
        cuts.update(moment for moment in (span_start_ns, span_end_ns) if start_ns < moment < end_ns)
    for piece_start_ns, piece_end_ns in pairwise(sorted(cuts)):
        yield piece_start_ns, piece_end_ns, within(spans, piece_start_ns)


def _words(closed: Sequence[str], last: Sequence[str]) -> str:
    others = [gate for gate in closed if gate not in last]
    return "/".join(last) + (f" ({', '.join(others)})" if others else "")


def _overlaps(folder: Path, at: str, of: _Direction, spans: Sequence[KernelSpan], waits: pl.DataFrame) -> Iterator[Piece]:
    rows = waits.select(_WAIT).cast({"cause": pl.String, "confidence": pl.String}).sort("start_ns").rows()
    at_row = 0
    for span in spans:
        while at_row < len(rows) and rows[at_row][1] <= span.start_ns:
            at_row += 1
        ahead = at_row
        while ahead < len(rows) and rows[ahead][0] < span.end_ns:
            start_ns, end_ns, cause, confidence, before, after = rows[ahead]
            start_ns, end_ns = max(start_ns, span.start_ns), min(end_ns, span.end_ns)
            is_active = cause != IDLE or IDLE not in span.allowed.accepted
            if end_ns > start_ns and is_active:
                words = span.allowed, span.gates, cause, confidence, before, after
                yield Piece(folder, at, of.conn, of.from_client, of.is_of_data, start_ns, end_ns, *words)
            ahead += 1


def clock_ns(folder: Path) -> list[int]:
    """Return the clock difference for each data segment in the senders' captures: capture time minus the tracer's transmission time."""
    events = pl.read_parquet(folder / EVENTS).filter(pl.col("kind") == TRANSMIT, pl.col("detail_bytes") > 0)
    left = events.select("local_address", "local_port", wire_seq="detail_seq", payload_bytes="detail_bytes", left_ns="time_ns")
    found: list[int] = []
    for end in ("client", "server"):
        tables = read(capture_of(folder, end), worth=())
        wanted = (
            tables.segments.filter(pl.col("payload_bytes") > 0).select("conn", "from_client", "ts_ns", "seq", "payload_bytes").collect()
        )
        side = f"{end}_"
        connections = tables.connections.select("conn", f"{side}isn", f"{side}addr", f"{side}port").collect()
        ours = wanted.filter(pl.col("from_client") == (end == "client")).join(connections, on="conn")
        seq = (pl.col("seq").cast(pl.Int64) + pl.col(f"{side}isn").cast(pl.Int64)) % SEQ_SPACE
        keys = ours.select(
            "ts_ns",
            local_address=f"{side}addr",
            local_port=pl.col(f"{side}port").cast(pl.UInt16),
            wire_seq=seq.cast(pl.UInt32),
            payload_bytes=pl.col("payload_bytes").cast(pl.Int32),
        ).sort("ts_ns")
        by = ["local_address", "local_port", "wire_seq", "payload_bytes"]
        nearest = keys.join_asof(
            left.sort("left_ns"), left_on="ts_ns", right_on="left_ns", by=by, strategy="nearest", check_sortedness=False
        )
        found += nearest.select(pl.col("ts_ns") - pl.col("left_ns")).drop_nulls()["ts_ns"].to_list()
    return found
