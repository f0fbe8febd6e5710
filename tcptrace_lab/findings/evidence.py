"""Selects the waits that prove a finding: the longest waits of each direction and cause, outside of outages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import polars as pl

from tcptrace_lab import schema
from tcptrace_lab.causes.rule import Confidence
from tcptrace_lab.ledger import stalls

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

EVIDENCE_WAITS = 10
"""Maximum number of waits whose frames are evidence; the longest waits are chosen. The frames are those at the ends of a wait, and those
that the proof of the wait names (`causes.texts.proof`)."""


LONGEST, LONG_PART = 300, 1000
"""Maximum number of waits that are kept per direction. A kept wait takes at least a thousandth of the connection's duration."""


Inside: TypeAlias = "Mapping[tuple[int, bool, str], Sequence[tuple[int, int]]]"
"""Waits within outages, by direction and cause: length and `place` of each (`path_outage.covered`)."""

_RANKED = ["conn", "from_client", "cause", "start_ns", "end_ns", "place", "place_in_cause"]


def kind_of(row: Mapping[str, Any]) -> tuple[int, bool, str]:
    """Return the direction and the cause of a wait."""
    return row["conn"], row["from_client"], row["cause"]


def without_waits(kind: Mapping[str, Any], waits: pl.DataFrame, places: Collection[int]) -> dict[str, Any]:
    """Return a row of `schema.KINDS_OF_WAITS` without the waits at `places`.

    The median stays the same if some of the remaining waits are unknown.
    """
    own = waits.filter(
        (waits["conn"] == kind["conn"]) & (waits["from_client"] == kind["from_client"]) & (waits["cause"] == kind["cause"])
    ).with_columns(ns=pl.col("end_ns") - pl.col("start_ns"))
    is_left_out = own["place"].is_in(list(places))
    left_out, others = own.filter(is_left_out), own.filter(own["place_in_cause"].is_not_null() & ~is_left_out)
    sure = left_out.filter(left_out["confidence"] != Confidence.POSSIBLE)
    proved = left_out.filter(left_out["confidence"] == Confidence.PROVED)
    count = kind["waits"] - len(left_out)
    median_ns = others["ns"].median() if count <= len(others) else kind["median_ns"]
    return {
        **kind,
        "ns": kind["ns"] - left_out["ns"].sum(),
        "waits": count,
        "sure_waits": kind["sure_waits"] - len(sure),
        "sure_ns": kind["sure_ns"] - sure["ns"].sum(),
        "proved_ns": kind["proved_ns"] - proved["ns"].sum(),
        "median_ns": median_ns or 0.0,
    }


def evidence(
    waits: pl.DataFrame, kinds: Collection[tuple[int, bool, str]], inside: Inside
) -> dict[tuple[int, bool, str], list[dict[str, Any]]]:
    """Return the longest waits of each kind outside of outages, as rows of `schema.LONGEST`, longest first."""
    found: dict[tuple[int, bool, str], list[dict[str, Any]]] = {}
    proving = waits.filter(waits["place_in_cause"] < EVIDENCE_WAITS).to_dicts()
    for row in sorted(proving, key=lambda row: row["place_in_cause"]):
        if kind_of(row) in kinds and not any(row["place"] == place for _, place in inside.get(kind_of(row), ())):
            found.setdefault(kind_of(row), []).append(row)
    return found


def longest_and_stalls(
    waits: pl.DataFrame, connections: pl.DataFrame, kinds: Collection[tuple[int, bool, str]]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the waits of each direction that are kept (rows of `schema.LEDGER`), and its longest stalls (rows of `schema.STALLS`).

    The longest waits and the evidence for findings are kept. Both tables are in time order, with the client's direction before the
    server's.
    """
    lives_ns = {conn: (last or 0) - (first or 0) for conn, first, last in connections[["conn", "first_ts_ns", "last_ts_ns"]].rows()}
    kept = [
        ((conn, from_client, cause) in kinds and in_cause is not None and in_cause < EVIDENCE_WAITS)
        or (place is not None and place < LONGEST and (end_ns - start_ns) * LONG_PART >= lives_ns[conn])
        for conn, from_client, cause, start_ns, end_ns, place, in_cause in waits[_RANKED].rows()
    ]
    longest = waits[list(schema.LEDGER.names)].filter(pl.Series(kept, dtype=pl.Boolean))
    stalled = waits.filter(waits["place_in_stalls"] < LONGEST)
    listed = schema.STALLS.no_rows() if stalled.is_empty() else stalls.stalls(stalled)
    return longest.sort("conn", "from_client", "start_ns", descending=[False, True, False]), listed


def frames_of(waits: Iterable[Mapping[str, Any]]) -> tuple[int, ...]:
    """Return the frames at the ends of these waits."""
    ends = {wait[name] for wait in waits for name in ("frame_before", "frame_after")}
    return tuple(sorted(ends - {None}))
