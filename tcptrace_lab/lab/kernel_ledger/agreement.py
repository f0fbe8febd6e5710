"""The ledger of a capture against the kernel's ledger of the same connections, in time."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

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
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tcptrace_lab.engine.segments import Tables
    from tcptrace_lab.lab.kernel_ledger.both_ends import Spans
    from tcptrace_lab.lab.kernel_ledger.causes import AllowedCauses

SENDER, RECEIVER = "sender", "receiver"
IDLE = "idle"
_ROW = ["start_ns", "end_ns", "gates", "last", "context"]


@dataclass(frozen=True, slots=True)
class Piece:
    """A time of one direction for which both ledgers have one answer each.

    Attributes:
        at: whose capture: the sender's or the receiver's.
        allowed: what the kernel says.
        gates: the kernel's own words, those that opened last in front.
        cause: what the ledger of the capture says.
        frame_before, frame_after: of the capture's wait.
    """

    folder: Path
    at: str
    conn: int
    start_ns: int
    end_ns: int
    allowed: AllowedCauses
    gates: str
    cause: str
    frame_before: int | None
    frame_after: int | None

    @property
    def ns(self) -> int:
        """How long it is."""
        return self.end_ns - self.start_ns


class KernelSpan(NamedTuple):
    """A time with what the kernel says of it, in its own words and in causes."""

    start_ns: int
    end_ns: int
    allowed: AllowedCauses
    gates: str


def pieces(folder: Path, *, all_directions: bool = False) -> Iterator[Piece]:
    """What both ledgers say of each data direction of a transfer, by the captures of both ends.

    The data direction of a connection is the one with more bytes. Time that both call idle is left out.
    """
    table = pl.read_parquet(folder / LEDGER) if (folder / LEDGER).exists() else write_ledger(folder)
    senders = ["sender_address", "sender_port", "receiver_address", "receiver_port"]
    for end in ("client", "server"):
        tables = read(_capture(folder, end), worth=())
        ledger = tables.ledger.select("conn", "from_client", "start_ns", "end_ns", "cause", "frame_before", "frame_after").collect()
        by_direction = {(key[0], key[1]): rows for key, rows in ledger.partition_by("conn", "from_client", as_dict=True).items()}
        by_sender = table.partition_by(senders, as_dict=True)
        for conn, is_from_client, sender, receiver, first_ns, last_ns in _directions(tables, all_directions=all_directions):
            kernel = by_sender.get((*sender, *receiver))
            waits = by_direction.get((conn, is_from_client))
            if kernel is None or waits is None:
                continue
            kernel = kernel.filter(pl.col("start_ns") < last_ns, pl.col("end_ns") > first_ns)
            at = SENDER if (sender[0] in {CLIENT_IPV4, CLIENT_IPV6}) == (end == "client") else RECEIVER
            spans = list(seen_by_sender(kernel) if at == SENDER else seen_by_receiver(kernel))
            yield from _overlaps(folder, at, conn, spans, waits)


def _capture(folder: Path, end: str) -> Path:
    return next(path for path in sorted(folder.iterdir()) if path.stem == end and path.suffix.startswith(".pcap"))


_Direction = tuple[int, bool, tuple[str, int], tuple[str, int], int, int]


def _directions(tables: Tables, *, all_directions: bool) -> Iterator[_Direction]:
    sides = ("client", "server")
    columns = [f"{side}_{what}" for side in sides for what in ("addr", "port", "unique_bytes")]
    for row in tables.connections.select("conn", "first_ts_ns", "last_ts_ns", *columns).collect().iter_rows(named=True):
        ends = {side: (row[f"{side}_addr"], row[f"{side}_port"]) for side in sides}
        client_bytes, server_bytes = (row[f"{side}_unique_bytes"] or 0 for side in sides)
        for is_from_client in (True, False):
            if all_directions or is_from_client == (client_bytes >= server_bytes):
                sender, receiver = ("client", "server") if is_from_client else ("server", "client")
                yield row["conn"], is_from_client, ends[sender], ends[receiver], row["first_ts_ns"], row["last_ts_ns"]


def seen_by_sender(kernel: pl.DataFrame) -> Iterator[KernelSpan]:
    """Rows that are compared, as they are: a capture at the sender has the kernel's own times."""
    for start_ns, end_ns, closed, last, context in kernel.select(_ROW).iter_rows():
        words = allowed_causes(closed, last, context, end_ns - start_ns)
        if words is not None:
            yield KernelSpan(start_ns, end_ns, words, _words(closed, last))


def seen_by_receiver(kernel: pl.DataFrame) -> Iterator[KernelSpan]:
    """Rows that are compared, later by the path's delay: so a capture at the receiver sees what the sender does.

    Where bytes are later than that, they are the network's, whatever held the sender.
    """
    delay_ns: int = next((ns for ns in kernel["least_transit_ns"] if ns is not None), 0)
    queues = joined(kernel.filter(pl.col("context").list.contains(QUEUE)).select("start_ns", "end_ns").iter_rows())
    for span in seen_by_sender(kernel):
        late = replace(span.allowed, accepted=span.allowed.accepted | {"network"}, strict=span.allowed.strict | {"network"})
        for start_ns, end_ns, is_late in _cut(span.start_ns + delay_ns, span.end_ns + delay_ns, queues):
            yield KernelSpan(start_ns, end_ns, late if is_late else span.allowed, span.gates)


def _cut(start_ns: int, end_ns: int, spans: Spans) -> Iterator[tuple[int, int, bool]]:
    """A time in pieces, and whether each is within one of the spans."""
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


def _overlaps(folder: Path, at: str, conn: int, spans: Sequence[KernelSpan], waits: pl.DataFrame) -> Iterator[Piece]:
    rows = waits.select("start_ns", "end_ns", pl.col("cause").cast(pl.String), "frame_before", "frame_after").sort("start_ns").rows()
    at_row = 0
    for span in spans:
        while at_row < len(rows) and rows[at_row][1] <= span.start_ns:
            at_row += 1
        ahead = at_row
        while ahead < len(rows) and rows[ahead][0] < span.end_ns:
            start_ns, end_ns, cause, before, after = rows[ahead]
            start_ns, end_ns = max(start_ns, span.start_ns), min(end_ns, span.end_ns)
            is_active = cause != IDLE or IDLE not in span.allowed.accepted
            if end_ns > start_ns and is_active:
                yield Piece(folder, at, conn, start_ns, end_ns, span.allowed, span.gates, cause, before, after)
            ahead += 1


def clock_ns(folder: Path) -> list[int]:
    """For each data segment in the senders' captures, when it was captured less when the tracer saw it leave."""
    events = pl.read_parquet(folder / EVENTS).filter(pl.col("kind") == TRANSMIT, pl.col("detail_bytes") > 0)
    left = events.select("local_address", "local_port", wire_seq="detail_seq", payload_bytes="detail_bytes", left_ns="time_ns")
    found: list[int] = []
    for end in ("client", "server"):
        tables = read(_capture(folder, end), worth=())
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
