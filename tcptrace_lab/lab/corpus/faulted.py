"""Judges faulty captures by the kernel's ledger, and shows how many correct verdicts remain correct."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import polars as pl

from tcptrace_lab.analysis import analyze
from tcptrace_lab.errors import TcptraceLabError
from tcptrace_lab.lab.corpus.faults import FAULTS, TRANSLATED_IPV4, TRANSLATED_PORTS, faulty, read_packets, write_packets
from tcptrace_lab.lab.corpus.judging import points, summed
from tcptrace_lab.lab.corpus.sums import UNKNOWN, cost, is_sure_and_wrong, ns_of, where
from tcptrace_lab.lab.kernel_ledger.agreement import POINTS, capture_of, kernel_rows, of_capture
from tcptrace_lab.lab.networks.network import CLIENT_IPV4
from tcptrace_lab.text.numbers import NS_PER_MS, NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from tcptrace_lab.analysis import Analysis
    from tcptrace_lab.lab.corpus.faults import Packet
    from tcptrace_lab.lab.corpus.judging import Key, Wait
    from tcptrace_lab.lab.kernel_ledger.agreement import Piece

_ALWAYS = (0, 1 << 62)
_ENDS = [f"{side}_{what}" for side in ("client", "server") for what in ("addr", "port")]


@dataclass(frozen=True, slots=True)
class Seen:
    """Tables of a faulty capture. The ledger has the true packet times, and the connections have the true addresses."""

    ledger: pl.LazyFrame
    connections: pl.LazyFrame


@dataclass(slots=True)
class Broken:
    """The results for the captures of one transfer with one fault.

    Attributes:
        fault: name of the fault.
        name: name of the transfer.
        sums, waits: as in `Judged`.
        whole: `sums` of the captures without the fault, for the time that the faulty captures cover.
        error: reason why the captures could not be judged, if there is one.
    """

    fault: str
    name: str
    sums: dict[Key, int] = field(default_factory=dict)
    waits: dict[Key, list[Wait]] = field(default_factory=dict)
    whole: dict[Key, int] = field(default_factory=dict)
    error: str = ""


def judge_faulty(
    folder: Path, entries: Sequence[dict[str, Any]], faults: Sequence[str], processes: int, kept: Path | None
) -> Iterator[Broken]:
    """Judge the captures of each transfer with each of the faults, in several processes.

    Args:
        folder: folder of the transfers.
        entries: manifest lines of the transfers to judge.
        faults: names in `FAULTS`.
        processes: number of processes.
        kept: folder in which the faulty captures remain; None: they are deleted.
    """
    one = partial(_judge_all, folder, faults, kept)
    if processes <= 1:
        for entry in entries:
            yield from one(entry)
        return
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        for found in pool.map(one, entries):
            yield from found


def _judge_all(folder: Path, faults: Sequence[str], kept: Path | None, entry: dict[str, Any]) -> list[Broken]:
    transfer = folder / entry["name"]
    every = [Broken(fault, entry["name"]) for fault in faults]
    try:
        kernel = kernel_rows(transfer)
        sound = {name: analyze(capture_of(transfer, name)) for name, _ in points(entry)}
        pieces = {name: list(of_capture(transfer, sound[name], kernel, point)) for name, point in points(entry)}
        read = {name: read_packets(capture_of(transfer, name)) for name in sound}
    except (TcptraceLabError, OSError) as error:
        return [replace(one, error=str(error)) for one in every]
    for broken in every:
        found: list[Piece] = []
        same: list[Piece] = []
        with TemporaryDirectory(prefix="faults-") as temporary:
            for name, point in points(entry):
                link, packets = read[name]
                changed = faulty(packets, broken.fault, Random(f"{entry['name']} {name} {broken.fault}"))  # noqa: S311
                place = (kept / broken.fault / entry["name"]) if kept else Path(temporary)
                place.mkdir(parents=True, exist_ok=True)
                write_packets(place / f"{name}.pcap", link, changed)
                try:
                    analysis = analyze(place / f"{name}.pcap")
                except TcptraceLabError as error:
                    broken.error = str(error)
                    continue
                found += of_capture(transfer, seen(analysis, sound[name], changed), kernel, point)
                same += _within(pieces[name], changed)
        broken.sums, broken.waits = summed(found)
        broken.whole, _ = summed(same)
    return every


def _within(pieces: Iterable[Piece], packets: Sequence[Packet]) -> Iterator[Piece]:
    first_ns, last_ns = min(packet.passed_ns for packet in packets), max(packet.passed_ns for packet in packets)
    for piece in pieces:
        start_ns, end_ns = max(piece.start_ns, first_ns), min(piece.end_ns, last_ns)
        if start_ns < end_ns:
            yield replace(piece, start_ns=start_ns, end_ns=end_ns)


def seen(analysis: Analysis, sound: Analysis, packets: Sequence[Packet]) -> Seen:
    """Return ledger and connections of a faulty capture, in a form that can be compared with the kernel's ledger.

    Args:
        analysis: analysis of the faulty capture.
        sound: analysis of the capture without the fault, which shows the data direction of each connection.
        packets: packets of the faulty capture, in capture order.
    """
    return Seen(_in_true_time(analysis.ledger.collect(), packets).lazy(), _own_connections(analysis, sound).lazy())


def _in_true_time(ledger: pl.DataFrame, packets: Sequence[Packet]) -> pl.DataFrame:
    """Return the waits between the true times of their packets.

    If a wait has several parts, the boundaries between the parts move by as much as the start of the wait.
    """
    shape: dict[str, Any] = {"frame": ledger.schema["frame_before"], "at_ns": pl.Int64, "passed_ns": pl.Int64}
    times = pl.DataFrame([(at, one.at_ns, one.passed_ns) for at, one in enumerate(packets, 1)], schema=shape, orient="row")
    for side in ("before", "after"):
        mine = times.rename({"frame": f"frame_{side}", "at_ns": f"at_{side}", "passed_ns": f"passed_{side}"})
        ledger = ledger.join(mine, on=f"frame_{side}", how="left", maintain_order="left")
    moved = pl.coalesce(pl.col("passed_before") - pl.col("at_before"), pl.col("passed_after") - pl.col("at_after"), pl.lit(0))
    last = pl.coalesce(pl.col("passed_after"), pl.lit(_ALWAYS[1]))

    def true(moment: str) -> pl.Expr:
        return (
            pl.when(pl.col(moment) == pl.col("at_after"))
            .then(pl.col("passed_after"))
            .otherwise(pl.min_horizontal(pl.col(moment) + moved, last))
        )

    start = pl.when(pl.col("start_ns") == pl.col("at_before")).then(pl.col("passed_before")).otherwise(true("start_ns"))
    return ledger.with_columns(start_ns=start, end_ns=true("end_ns"))


def _own_connections(analysis: Analysis, sound: Analysis) -> pl.DataFrame:
    """Return the connections with the hosts' true addresses.

    The byte counts come from the capture without the fault. The ledger already limits the compared time, so the time span of the
    connections is unlimited.
    """
    sent = _bytes_by_end(sound)
    rows = []
    for conn, *ends in analysis.connections.select("conn", *_ENDS).collect().iter_rows():
        here, there = (_own(*ends[at : at + 2]) for at in (0, 2))
        rows.append((conn, *_ALWAYS, *here, *there, sent.get((here, there), 0), sent.get((there, here), 0)))
    columns = ["conn", "first_ts_ns", "last_ts_ns", *_ENDS, "client_unique_bytes", "server_unique_bytes"]
    return pl.DataFrame(rows, schema=columns, orient="row")


_End = tuple[str, int]


def _own(address: str, port: int) -> _End:
    return (CLIENT_IPV4, (port - TRANSLATED_PORTS) % (1 << 16)) if address == TRANSLATED_IPV4 else (address, port)


def _bytes_by_end(sound: Analysis) -> dict[tuple[_End, _End], int]:
    sent: dict[tuple[_End, _End], int] = {}
    columns = [*_ENDS, "client_unique_bytes", "server_unique_bytes"]
    for *ends, from_client, from_server in sound.connections.select(columns).collect().iter_rows():
        here, there = (ends[0], ends[1]), (ends[2], ends[3])
        for key, count in (((here, there), from_client), ((there, here), from_server)):
            sent[key] = sent.get(key, 0) + (count or 0)
    return sent


def report(every: Sequence[Broken], largest: int) -> Iterator[str]:
    """Yield the lines of a comparison.

    The first lines give the correct share of time at each capture point, with and without each fault. The largest errors follow.
    """
    yield from (f"{one.name}, {one.fault}: {one.error}" for one in every if one.error)
    judged = [one for one in every if not one.error]
    yield f"{len({one.name for one in judged})} transfers; in brackets: the same time without the fault"
    yield ""
    yield "| fault | at | s | accepted | sure and wrong | unknown | cost of a second |"
    yield "|---|---|---:|---:|---:|---:|---:|"
    for fault in FAULTS:
        mine = [one for one in judged if one.fault == fault]
        for at in POINTS:
            cells = [_cells(where(_added(maps), at=at)) for maps in ([one.sums for one in mine], [one.whole for one in mine])]
            if mine:
                yield f"| {fault} | {at} | {' | '.join(f'{one} ({other})' for one, other in zip(*cells, strict=True))} |"
    yield from _blocks(judged, largest)


def _added(maps: Iterable[Mapping[Key, int]]) -> dict[Key, int]:
    total: dict[Key, int] = {}
    for sums in maps:
        for key, ns in sums.items():
            total[key] = total.get(key, 0) + ns
    return total


def _cells(sums: Mapping[Key, int]) -> list[str]:
    whole = ns_of(sums)
    if not whole:
        return ["0", "–", "–", "–", "–"]
    tests = (lambda key: key.is_accepted, is_sure_and_wrong, lambda key: key.cause == UNKNOWN)
    return [f"{whole / NS_PER_S:,.0f}", *(f"{ns_of(sums, test) / whole:.1%}" for test in tests), f"{cost(sums):.2f}"]


def _blocks(judged: Sequence[Broken], largest: int) -> Iterator[str]:
    """Yield a table for each fault: the waits for which the ledger is sure of a wrong cause, but only in captures with the fault."""
    yield ""
    yield f"The {largest} largest errors of each fault: sure and wrong only with the fault. Frames are those of the faulty capture (--keep)"
    yield "| fault | transfer | at | kernel: opened last (also closed) | ledger | s more | longest: frames (ms) |"
    yield "|---|---|---|---|---|---:|---|"
    for fault in FAULTS:
        mine = [one for one in judged if one.fault == fault]
        found = [(ns - one.whole.get(key, 0), one, key) for one in mine for key, ns in one.sums.items() if is_sure_and_wrong(key)]
        for ns, one, key in sorted(found, key=lambda item: -item[0])[:largest]:
            if ns < NS_PER_MS:
                break
            waits = ", ".join(
                f"{wait.conn + 1}: {wait.frame_before or '…'}–{wait.frame_after or '…'} ({wait.ns / NS_PER_MS:.1f})"
                for wait in one.waits[key]
            )
            yield f"| {fault} | {one.name} | {key.at} | {key.gates} | {key.cause} ({key.confidence}) | {ns / NS_PER_S:.2f} | {waits} |"
