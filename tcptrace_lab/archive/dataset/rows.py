"""Converts an analysis into the rows that an archive stores, in batches."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import polars as pl

from tcptrace_lab import causes
from tcptrace_lab.engine import memory
from tcptrace_lab.engine.sorting import beside
from tcptrace_lab.findings import table as findings_table
from tcptrace_lab.findings.finding import Severity
from tcptrace_lab.ledger import stalls
from tcptrace_lab.messages import messages
from tcptrace_lab.schema import CAUSES, PART_TABLES, SIDES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tcptrace_lab.analysis import Analysis

_BATCH_ROWS = 16_384

_DIRECTION = ("conn", "from_client")


def tables(analysis: Analysis, paths: Sequence[str]) -> dict[str, Iterator[pl.DataFrame]]:
    """Return the rows of each table of `schema.PART_TABLES`, in batches, without the column `capture`.

    The table `problems` names a file by its index in `paths`.
    """
    count = analysis.capture["connections"]
    return {
        "connections": _batches(analysis.connections),
        "ledger_totals": _totals(analysis),
        "stalls": _batches(stalls.stalls(analysis.ledger)),
        "messages": _batches(messages.messages(analysis.segments, analysis.notes, count)),
        "findings": iter([findings_table.rows(analysis.findings)]),
        "problems": iter([_problems(analysis, paths)]),
    }


def _batches(rows: pl.LazyFrame) -> Iterator[pl.DataFrame]:
    return memory.batches(rows, _BATCH_ROWS)


@cache
def _faults(*, once: bool = False) -> tuple[str, ...]:
    """Return the fixable causes.

    With `once`, return only the causes that delay both directions at the same time. This time counts once: for the client's direction.
    """
    listed = {cause: causes.of_cause(cause).advice for cause in CAUSES}
    return tuple(
        cause for cause, advice in listed.items() if advice is not None and advice.is_a_fault and (advice.of_client_alone or not once)
    )


@cache
def _lost(side: str) -> tuple[str, ...]:
    """Return the columns of `schema.ACCOUNTS` with the time that a direction loses to fixable causes.

    If one cause delays both directions at the same time, this time counts only for the client's direction.
    """
    return tuple(_account(side, cause) for cause in _faults() if SIDES[side] or cause not in _faults(once=True))


def _account(side: str, cause: str) -> str:
    """Return the name of the column of `schema.ACCOUNTS` for this cause, if `side` is the sender."""
    return f"{side}_{cause.replace('-', '_')}_ns"


_ACCOUNTS = {_account(side, cause): cause for side in SIDES for cause in CAUSES}


def _totals(analysis: Analysis) -> Iterator[pl.DataFrame]:
    life = analysis.connections.select("conn", life_ns=pl.col("last_ts_ns") - pl.col("first_ts_ns"))
    for batch in beside(analysis.accounts, life, "conn"):
        long = batch.lazy().unpivot(list(_ACCOUNTS), index=["conn", "life_ns"], variable_name="account", value_name="cause_ns")
        costs = long.filter(pl.col("cause_ns") > 0).with_columns(_of_account())
        yield costs.sort("conn", "from_client", "cause", descending=[False, True, False]).collect()


@cache
def _of_account() -> list[pl.Expr]:
    """Return expressions for the direction, the cause, and whether the cause is fixable.

    They compute these values from `account`, the name of a column of `schema.ACCOUNTS`.
    """
    account = pl.col("account")
    return [
        account.str.starts_with("client_").alias("from_client"),
        account.replace_strict(_ACCOUNTS).alias("cause"),
        account.is_in([name for side in SIDES for name in _lost(side)]).alias("is_fixable"),
    ]


def _problems(analysis: Analysis, paths: Sequence[str]) -> pl.DataFrame:
    """Return the rows of the table `problems`. The column `path` contains the index of the file."""
    places = {path: str(number) for number, path in enumerate(paths)}
    listed = [
        {
            "path": places.get(each["path"]),
            "what": _named_by_place(each["what"], places),
            "frame": each["frame"],
            "offset": each["offset"],
            "count": each["count"],
            "loses_data": each["loses_data"],
        }
        for each in analysis.problems
    ]
    return pl.DataFrame(listed, schema=_types("problems"), orient="row")


def _named_by_place(words: str, places: Mapping[str, str]) -> str:
    """Shorten the paths in a problem's message to file names. A part must not depend on the capture's folder."""
    for path in places:
        words = words.replace(path, path.rpartition("/")[2])
    return words


def _types(table: str) -> dict[str, pl.DataType]:
    (found,) = (each for each in PART_TABLES if each.name == table)
    return {name: dtype for name, dtype in found.polars_schema().items() if name != "capture"}


def capture_row(analysis: Analysis, sentence: str) -> dict[str, Any]:
    """Return the columns of `schema.CAPTURES` that the analysis determines. `sentence` is the verdict."""
    capture, quality = analysis.capture, analysis.capture["quality"]
    active_ns, fixable_ns, payload_bytes = _sums(analysis)
    severities = [finding.severity for finding in analysis.findings]
    return {
        "format": capture["format"],
        "link_types": ", ".join(link["name"] for link in capture["link_types"]),
        **{name: capture[name] for name in ("packets", "tcp_segments", "udp_datagrams", "connections", "first_ts_ns", "last_ts_ns")},
        "active_ns": active_ns,
        "fixable_ns": fixable_ns,
        "payload_bytes": payload_bytes,
        "verdict": sentence,
        "findings": len(severities),
        "worst_severity": str(Severity(max(severities))) if severities else None,
        "quality": quality["rating"],
        "quality_factor": quality["factor"],
        **{name: quality[name] for name in ("drops_suspected", "capture_duplicates", "backward_timestamps", "resolution_ns")},
    }


def _sums(analysis: Analysis) -> tuple[int, int, int]:
    """Return three sums over the directions that carried data or lost time: active time (ns), lost time (ns), payload (bytes)."""
    active_ns = fixable_ns = payload_bytes = 0
    sent = {side: f"{side}_unique_bytes" for side in SIDES}
    lives = analysis.connections.select("conn", life_ns=pl.col("last_ts_ns") - pl.col("first_ts_ns"), **sent)
    for batch in beside(analysis.accounts, lives, "conn"):
        lost = batch.select(**{side: pl.sum_horizontal(_lost(side)) for side in SIDES})
        for side in SIDES:
            counts = (batch[side].fill_null(0) > 0) | (lost[side] > 0)
            active_ns += int((batch["life_ns"] - batch[_account(side, "idle")]).filter(counts).sum())
            fixable_ns += int(lost[side].sum())
            payload_bytes += int(batch[side].sum())
    return active_ns, fixable_ns, payload_bytes
