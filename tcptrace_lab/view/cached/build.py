"""Writes the tables of the explorer for one capture, in a folder of the cache.

A first pass analyzes the capture (`analyze`). Then the rows of segments and ledger are divided by connection. The first pass has kept the
rows, or a second pass reads them.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from tcptrace_lab import schema, verdict
from tcptrace_lab.analysis import analyze
from tcptrace_lab.connections import capture_quality
from tcptrace_lab.engine import memory
from tcptrace_lab.engine.sorting import beside
from tcptrace_lab.report.selection import DURATION_NS
from tcptrace_lab.view.cached import listing
from tcptrace_lab.view.cached.by_connection import Files, Reader, Shares, Writer
from tcptrace_lab.view.cached.cache import DONE
from tcptrace_lab.view.cached.timeline import Timeline

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from tcptrace_lab.analysis import Analysis
    from tcptrace_lab.connections.anonymizer import Anonymizer
    from tcptrace_lab.engine.reread import Progress
    from tcptrace_lab.findings.finding import Finding

CONNECTIONS = "connections"
TRANSACTIONS = "transactions.parquet"
RATES = "rates.parquet"
FRAMES = "frames.npy"
"""File with one number per frame: the number of its connection, plus 1; 0 for a frame without TCP."""


def build(
    paths: Sequence[str],
    folder: Path,
    anonymizer: Anonymizer | None = None,
    progress: Progress | None = None,
    say: Callable[[str], None] | None = None,
    doing: Callable[[str], None] = lambda _: None,
) -> Analysis:
    """Analyze a capture and write its tables into `folder`. Return the analysis.

    Args:
        paths: the files of the capture.
        folder: an empty folder.
        anonymizer: see `analyze`.
        progress: see `analyze`.
        say: see `analyze`.
        doing: called with the name of each step after the reading.

    Raises:
        The errors of `analyze`.
        OSError: the folder cannot be written.
    """
    analysis = analyze(list(paths), proofs=True, anonymizer=anonymizer, progress=progress, say=say)
    doing("writing the tables")
    first_ns = analysis.capture["first_ts_ns"] or 0
    timeline = Timeline(first_ns, max((analysis.capture["last_ts_ns"] or 0) - first_ns, 0))
    connections = _connections(analysis, folder)
    shares, is_client = _ends(connections, first_ns, timeline)
    _divide(analysis, folder, shares, is_client, timeline)
    timeline.write(folder)
    analysis.transactions.write_parquet(folder / TRANSACTIONS)
    analysis.rates.write_parquet(folder / RATES)
    of_one = [(one.conn, one.id, one.cost_ns) for one in analysis.findings if one.conn is not None]
    listing.write(folder, connections, first_ns, analysis.labels, of_one)
    memory.give_back()
    (folder / DONE).write_text(json.dumps(_facts(analysis, timeline.bin_ns)))
    return analysis


def _connections(analysis: Analysis, folder: Path) -> pl.LazyFrame:
    """Write the row of each connection with its account, and return all rows."""
    files = Files(folder, CONNECTIONS, schema.CONNECTIONS.polars_schema() | schema.ACCOUNTS.polars_schema())
    for rows in beside(analysis.connections, analysis.accounts, "conn"):
        files.write(rows.lazy(), rows.item(0, "conn"), rows.item(-1, "conn"))
    files.finish()
    return Reader(folder, CONNECTIONS).all()


def _ends(connections: pl.LazyFrame, first_ns: int, timeline: Timeline) -> tuple[Shares, np.ndarray[Any, np.dtype[np.bool_]]]:
    """Return how connections share files, and whether the client sends the data of each connection's main direction."""
    rows = connections.select(
        "conn",
        "first_ts_ns",
        "last_ts_ns",
        segments=pl.col("client_segments") + pl.col("server_segments"),
        is_client=pl.col("client_payload_bytes") >= pl.col("server_payload_bytes"),
    ).collect()
    timed = rows.filter(DURATION_NS.is_not_null())
    timeline.connections(*(timed[name].to_numpy() - first_ns for name in ("first_ts_ns", "last_ts_ns")))
    count = int(rows["conn"].max() or 0) + 1 if rows.height else 1  # type: ignore[arg-type]
    segments, is_client = np.zeros(count, np.int64), np.zeros(count, np.bool_)
    conns = rows["conn"].to_numpy()
    segments[conns], is_client[conns] = rows["segments"].to_numpy(), rows["is_client"].to_numpy()
    return Shares.by_rows(segments), is_client


def _divide(analysis: Analysis, folder: Path, shares: Shares, is_client: np.ndarray[Any, np.dtype[np.bool_]], timeline: Timeline) -> None:
    """Write segments, ledger and notes by connection, and the connection of each frame. Add the rows to the timeline."""
    segments = Writer(folder, "segments", schema.SEGMENTS.polars_schema(), shares)
    waits = Writer(folder, "ledger", schema.WAITS.polars_schema(), shares)
    frames = np.lib.format.open_memmap(folder / FRAMES, "w+", np.uint32, (analysis.capture["packets"] + 1,))
    for segment_rows, wait_rows in _passing(analysis, range(len(is_client))):
        if segment_rows.height:
            segments.add(segment_rows)
            timeline.segments(segment_rows)
            frames[segment_rows["frame"].to_numpy()] = segment_rows["conn"].to_numpy() + 1
        if wait_rows.height:
            waits.add(wait_rows)
            main = is_client[wait_rows["conn"].to_numpy()] == wait_rows["from_client"].to_numpy()
            timeline.waits(wait_rows.filter(pl.Series(main)))
    frames.flush()
    segments.finish()
    waits.finish()
    notes = Writer(folder, "notes", schema.NOTES.polars_schema(), shares)
    for batch in memory.batches(analysis.notes):
        notes.add(batch)
    notes.finish()


def _passing(analysis: Analysis, conns: range) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """Yield batches of all segments and of the whole ledger, in one pass if the capture is read again."""
    if analysis.together is not None:
        yield from analysis.together(conns, schema.SEGMENTS.names, schema.WAITS.names)
        return
    no_segments, no_waits = schema.SEGMENTS.no_rows(), schema.WAITS.no_rows()
    for batch in memory.batches(analysis.segments):
        yield batch, no_waits
    for batch in memory.batches(analysis.ledger):
        yield no_segments, batch


def _facts(analysis: Analysis, bin_ns: int) -> dict[str, Any]:
    """Return the facts that the explorer shows about the capture without reading a table."""
    found = verdict.of(analysis)
    quality = analysis.capture["quality"]
    loss = None if analysis.loss is None else str(analysis.loss)
    return {
        "name": analysis.name,
        "capture": analysis.capture,
        "headline": found.sentence,
        "why": found.why,
        "quality": [capture_quality.line(quality), *([loss] if loss else [])],
        "findings": [_finding(place, one) for place, one in enumerate(analysis.findings)],
        "labels": {str(conn): words for conn, words in analysis.labels.items()},
        "bin_ns": bin_ns,
    }


def _finding(place: int, one: Finding) -> dict[str, Any]:
    return {
        "place": place,
        "id": one.id,
        "title": one.title,
        "severity": str(one.severity),
        "confidence": str(one.confidence),
        "connection": one.conn,
        "connections": one.connections,
        "from_client": one.from_client,
        "cost_ns": one.cost_ns,
        "cost_share": one.cost_share,
        "saves": one.predicted_gain,
        "remedy": list(one.remedy),
        "filter": one.wireshark_filter,
        "mechanism": one.mechanism,
        "limits": one.limits,
        "source": one.source,
        "evidence_frames": list(one.evidence_frames),
        "causes": sorted(one.causes),
    }
