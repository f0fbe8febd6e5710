"""Defines `pair_captures`, which runs all steps from two analyses to a `Pair`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import polars as pl

from tcptrace_lab.errors import UsageError
from tcptrace_lab.pair import connections, match, packet_fates
from tcptrace_lab.pair.client_side import near_client
from tcptrace_lab.pair.document import document
from tcptrace_lab.pair.packet_store import Writer
from tcptrace_lab.pair.packets import SEQ_SPACE, cut, identities, packets, piece_bytes
from tcptrace_lab.schema import SIDES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from tcptrace_lab.pair.clocks import Clock
    from tcptrace_lab.pair.packet_store import Packets
    from tcptrace_lab.schema.captured import Captured

EARLY_SHARE = 0.25
"""Share of the minimum delay by which a packet can seem to arrive too early, because the clocks have an error (a heuristic)."""


ENDPOINT_COLUMNS = (
    *("conn", "syn_to_synack_ns", "synack_to_ack_ns"),
    *(
        f"{side}_{name}"
        for side in SIDES
        for name in ("addr", "port", "isn", "mss_bytes", "timestamps", "max_segment_bytes", "rtt_min_ns", "unique_bytes")
    ),
)
"""The columns of `schema.CONNECTIONS` that pairing uses."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two captures of the same transfers, matched packet by packet.

    Attributes:
        captures: the objects `capture` of both JSON documents, in the given order.
        connections: `a b swapped shared first_is_near_client known_by`, one row per pair of connections. In row n, packets that the client
            of the first capture sent have the `direction` 2n, and packets that the server sent have 2n + 1.
        endpoints: `ENDPOINT_COLUMNS` of both captures, with the partners of a pair in the same row.
        clock: the clock of the second capture, relative to the clock of the first; None if a direction has too few matched packets.
        packets: the fate of each packet, as `packet_fates.packets` returns it.
    """

    captures: tuple[dict[str, Any], dict[str, Any]]
    connections: pl.DataFrame
    endpoints: tuple[pl.DataFrame, pl.DataFrame]
    clock: Clock | None
    packets: pl.DataFrame

    def write_json(self, stream: IO[bytes]) -> None:
        """Write the JSON document (UTF-8, ending with a newline)."""
        stream.write(json.dumps(document(self)).encode() + b"\n")


def pair_captures(first: Captured, second: Captured) -> Pair:
    """Match two captures of the same transfers. The order of the captures does not matter.

    Each connection shows which capture is nearer to its client.

    Raises:
        UsageError: the captures have no connection in common, are too large, or have no timestamps.
        OutputUnwritable: no space for temporary files.
    """
    tables = _endpoints(first), _endpoints(second)
    known = [identities(first), identities(second)]
    pairs = connections.paired(known[0], known[1], tables)
    paths = tuple(str(captured.capture["path"]) for captured in (first, second))
    if pairs.is_empty():
        remedy = "give two captures of the same transfer, taken at the same time at two places"
        raise UsageError("the captures have no connection in common", where=f"{paths[0]} and {paths[1]}", remedy=remedy)
    ends = _of_pairs(pairs, "a", tables[0]), _of_pairs(pairs, "b", tables[1])
    pairs = near_client(pairs, known[0], known[1], *ends)
    known.clear()
    sent, received = _by_place({"a": first, "b": second}, pairs, ends)
    resolution_ns = max(captured.capture["quality"]["resolution_ns"] or 1 for captured in (first, second))
    found = match.matched(sent, received)
    clock = match.align(found, sent, received, resolution_ns)
    sent_ns, arrived_ns = _on_first_clock(sent, clock, in_first=True), _on_first_clock(received, clock, in_first=False)
    min_ns = round(clock.rtt_min_ns / 2 * (1 - EARLY_SHARE)) if clock else 0
    links = match.settled(found, sent_ns, arrived_ns, min_ns)
    both = packet_fates.seen(links, sent, received, sent_ns, arrived_ns)
    del found, links, sent, received, sent_ns, arrived_ns
    spans = tuple((captured.capture["first_ts_ns"], captured.capture["last_ts_ns"]) for captured in (first, second))
    became = packet_fates.packets(both, clock, spans)
    return Pair((dict(first.capture), dict(second.capture)), pairs, ends, clock, became)


def _endpoints(captured: Captured) -> pl.DataFrame:
    return captured.connections.select(ENDPOINT_COLUMNS).collect()


def _of_pairs(pairs: pl.DataFrame, name: str, table: pl.DataFrame) -> pl.DataFrame:
    return pairs.select(conn=name).join(table, on="conn", how="left", maintain_order="left")


def _with_shifts(pairs: pl.DataFrame, ends: tuple[pl.DataFrame, ...]) -> pl.DataFrame:
    """Return the pairs with their number, the maximum payload of a packet (`piece`), and the shift of offsets per direction (`_shift`)."""
    shifts = (_shift(ends, pairs, side).alias(side) for side in SIDES)
    return pairs.with_row_index("pair").with_columns(piece_bytes(*ends)["piece"], *shifts)


def _with_directions(rows: pl.DataFrame, about: pl.DataFrame, name: str) -> pl.DataFrame:
    """Return the packets of one capture's paired connections, split as on the wire (`cut`), with `direction`, `near_sender` and `there`.

    Stream offsets of the second capture are converted to those of the first.
    """
    swapped = pl.col("swapped") if name == "b" else pl.lit(value=False)
    columns = ["direction", "there", "near_sender", *(column for column in rows.columns if column not in {"conn", "from_client"}), "piece"]
    own = rows.join(about.rename({name: "conn"}), on="conn", maintain_order="left")
    by_a_client = pl.col("from_client") != swapped
    sent_near_first = by_a_client == pl.col("first_is_near_client")
    moved = own.with_columns(
        direction=pl.col("pair").cast(pl.Int32) * 2 + (~by_a_client).cast(pl.Int32),
        there=sent_near_first,
        near_sender=sent_near_first if name == "a" else ~sent_near_first,
    )
    if name == "b":
        stream = pl.when(by_a_client).then("client").otherwise("server")
        other = pl.when(by_a_client).then("server").otherwise("client")
        moved = moved.with_columns(start=pl.col("start") + stream, acked=pl.col("acked") + other)
    return cut(moved.select(columns))


def _shift(ends: tuple[pl.DataFrame, ...], pairs: pl.DataFrame, side: str) -> pl.Series:
    """Return how much larger stream offsets are in the first capture than in the second, for data that the first capture's `side` sends."""
    other = {"client": "server", "server": "client"}[side]
    isn_b = pl.when(pairs["swapped"]).then(ends[1][f"{other}_isn"]).otherwise(ends[1][f"{side}_isn"]).cast(pl.Int64)
    ahead = (isn_b - ends[0][f"{side}_isn"].cast(pl.Int64) + SEQ_SPACE // 2) % SEQ_SPACE - SEQ_SPACE // 2
    return pl.select(ahead.fill_null(0)).to_series()


def _by_place(captures: Mapping[str, Captured], pairs: pl.DataFrame, ends: tuple[pl.DataFrame, ...]) -> tuple[Packets, Packets]:
    """Return the packets captured near their sender, and those captured near their receiver. `row` numbers them in capture order."""
    about = _with_shifts(pairs, ends)
    places = {True: Writer(), False: Writer()}
    for name, captured in captures.items():
        for rows in packets(captured):
            seen = _with_directions(rows, about, name)
            for near_sender, place in places.items():
                place.add(seen.filter(pl.col("near_sender") == near_sender).drop("near_sender"))
    return places[True].finish(), places[False].finish()


def _on_first_clock(rows: Packets, clock: Clock | None, *, in_first: bool) -> NDArray[np.int64]:
    """Return the times of the rows on the first capture's clock. If the clocks are not aligned, the times are not converted."""
    times: NDArray[np.int64] = rows.column("ts_ns").to_numpy()
    if clock is None:
        return times
    of_first = rows.column("there").to_numpy() == in_first
    moved: NDArray[np.int64] = np.where(of_first, times, clock.on_first(times))
    return moved
