"""Computes the contents of an archive's index from the archive's tables.

The contents are a dictionary. Each table in it is a dictionary of columns.

Nothing else determines the contents, so the index of an unchanged archive does not change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from tcptrace_lab.archive.index.outliers import LEAST, METRICS, outliers
from tcptrace_lab.archive.index.transfers import PAIR, transfers
from tcptrace_lab.schema import CAUSES
from tcptrace_lab.text.numbers import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tcptrace_lab.archive.index.regressions import Comparison

WORST = 2_000
"""Maximum number of transfers in the index. It lists the transfers that lost most time. `archive query` can list all transfers."""

PAIRS = 2_000
"""Maximum number of host pairs in the index. It lists the pairs that lost most time."""

SPARKED = 300
"""Number of host pairs, and number of servers, with a sparkline of lost time."""

POOR = "poor"
"""Captures of this quality are listed. Their times are unreliable, so sums do not include them."""

PROBLEMS = 1_000

BUCKETS = 72
"""Maximum number of time buckets of a trend."""

_MINUTE_NS = 60 * NS_PER_S
_HOUR_NS, _DAY_NS = 60 * _MINUTE_NS, 24 * 60 * _MINUTE_NS
WIDTHS_NS = (
    NS_PER_S,
    10 * NS_PER_S,
    _MINUTE_NS,
    5 * _MINUTE_NS,
    15 * _MINUTE_NS,
    _HOUR_NS,
    6 * _HOUR_NS,
    _DAY_NS,
    7 * _DAY_NS,
    28 * _DAY_NS,
    364 * _DAY_NS,
)
"""Widths of a time bucket. The smallest width with at most `BUCKETS` buckets is used."""

_DIRECTION = ("capture", "conn", "from_client")


def overview(tables: Mapping[str, pl.LazyFrame], comparison: Comparison | None, *, with_servers: bool = False) -> dict[str, Any]:
    """Return the contents of the index.

    Args:
        tables: tables of the archive (`query.opened`).
        comparison: comparison with another archive, if requested.
        with_servers: whether to add the servers. Only the explorer shows them.
    """
    captures = tables["captures"].sort("first_ts_ns", "path", "capture", nulls_last=True).collect()
    poor = captures.filter(pl.col("quality") == POOR).select("capture")
    if not poor.is_empty():
        of_captures = ("connections", "ledger_totals", "findings")
        tables = {
            **tables,
            **{name: tables[name].join(poor.lazy(), on="capture", how="anti", maintain_order="left") for name in of_captures},
        }
    sound = captures.join(poor, on="capture", how="anti", maintain_order="left")
    all_directions = transfers(tables).collect()
    places = captures.select("capture", at=pl.int_range(pl.len(), dtype=pl.Int64))
    directions = all_directions.join(places, on="capture", how="left", maintain_order="left")
    width_ns, origin_ns = _buckets(sound)
    return {
        "totals": _totals(tables, captures, sound, directions),
        "captures": _captures(captures),
        "causes": _causes(tables, directions),
        "findings": _findings(tables, places),
        "trend": _trend(tables, sound, width_ns, origin_ns),
        "transfers": _columns(_worst(directions)),
        "pairs": _pairs(directions, width_ns, origin_ns),
        **({"servers": _servers(directions, width_ns, origin_ns)} if with_servers else {}),
        "outliers": _outliers(directions),
        "problems": _problems(tables, places),
        "comparison": None if comparison is None else _comparison(comparison),
        "words": {"causes": dict(CAUSES), "metrics": {name: words for name, (words, _) in METRICS.items()}, "min_outliers": LEAST},
    }


def _columns(frame: pl.DataFrame) -> dict[str, list[Any]]:
    return {name: column.to_list() for name, column in zip(frame.columns, frame.get_columns(), strict=True)}


def _totals(tables: Mapping[str, pl.LazyFrame], captures: pl.DataFrame, sound: pl.DataFrame, directions: pl.DataFrame) -> dict[str, Any]:
    states = dict(sorted(captures.group_by("state").len().iter_rows()))
    files = dict(sorted(tables["files"].group_by("state").len().collect().iter_rows()))
    times = sound.select(pl.col("first_ts_ns").min().alias("first"), pl.col("last_ts_ns").max().alias("last")).row(0)
    sums = sound.select(pl.col("packets", "connections", "file_bytes", "active_ns", "fixable_ns", "payload_bytes").fill_null(0).sum()).row(
        0, named=True
    )
    pairs = directions.select(PAIR).unique().height
    return {
        "states": states,
        "files": files,
        "first_ts_ns": times[0],
        "last_ts_ns": times[1],
        "pairs": pairs,
        "transfers": directions.height,
        "left_out": captures.height - sound.height,
        **sums,
    }


def _captures(captures: pl.DataFrame) -> dict[str, list[Any]]:
    shown = captures.select(
        "name",
        "path",
        "state",
        "reason",
        "first_ts_ns",
        (pl.col("last_ts_ns") - pl.col("first_ts_ns")).alias("duration_ns"),
        "packets",
        "connections",
        "file_bytes",
        "active_ns",
        "fixable_ns",
        "worst_severity",
        "quality",
        "verdict",
        "report",
    )
    return _columns(shown)


def _causes(tables: Mapping[str, pl.LazyFrame], directions: pl.DataFrame) -> dict[str, list[Any]]:
    """Return the time of each cause in these directions, except idle time. Fixable causes come first.

    A direction without data has no waits, and does not count.
    """
    found = (
        tables["ledger_totals"]
        .filter(pl.col("cause") != "idle")
        .join(directions.lazy().select(_DIRECTION), on=_DIRECTION, how="semi")
        .group_by("cause")
        .agg(
            is_fixable=pl.col("is_fixable").any(),
            ns=pl.col("cause_ns").sum(),
            captures=pl.col("capture").n_unique(),
            connections=pl.struct("capture", "conn").n_unique(),
        )
        .sort("is_fixable", "ns", "cause", descending=[True, True, False])
    )
    return _columns(found.collect())


def _findings(tables: Mapping[str, pl.LazyFrame], places: pl.DataFrame) -> dict[str, list[Any]]:
    found = (
        tables["findings"]
        .sort("id", "cost_ns", "capture", "rank", descending=[False, True, False, False], nulls_last=True)
        .group_by("id", maintain_order=True)
        .agg(
            pl.len().alias("findings"),
            pl.col("capture").n_unique().alias("captures"),
            pl.col("cost_ns").sum(),
            *((pl.col("severity") == severity).sum().alias(severity) for severity in ("high", "medium", "low", "info")),
            (pl.col("confidence") == "proved").sum().alias("proved"),
            pl.first("capture").alias("capture"),
            pl.first("conn"),
            pl.first("title"),
            pl.first("remedy"),
        )
        .with_columns(is_info=pl.col("info") == pl.col("findings"))
        .sort("is_info", "cost_ns", "id", descending=[False, True, False])
        .collect()
    )
    shown = found.join(places, on="capture", how="left", maintain_order="left").with_columns(pl.col("remedy").str.split("\n").list.first())
    return _columns(shown.drop("capture"))


def _buckets(captures: pl.DataFrame) -> tuple[int, int]:
    """Return the width and the start, in ns, of the time buckets of trends."""
    first, last = captures["first_ts_ns"].min(), captures["first_ts_ns"].max()
    if not isinstance(first, int) or not isinstance(last, int):
        return WIDTHS_NS[0], 0
    width = next((width for width in WIDTHS_NS if last // width - first // width < BUCKETS), WIDTHS_NS[-1])
    return width, first // width * width


def _bucket(width_ns: int, origin_ns: int) -> pl.Expr:
    return ((pl.col("first_ts_ns") - origin_ns) // width_ns).cast(pl.Int64)


def _trend(tables: Mapping[str, pl.LazyFrame], captures: pl.DataFrame, width_ns: int, origin_ns: int) -> dict[str, Any]:
    timed = captures.filter(pl.col("first_ts_ns").is_not_null()).with_columns(bucket=_bucket(width_ns, origin_ns))
    if timed.is_empty():
        return {"width_ns": width_ns, "origin_ns": origin_ns, "buckets": 0, "captures": [], "active_ns": [], "causes": {}}
    count = min(int(timed.select(pl.col("bucket").max()).item()) + 1, BUCKETS)
    whole = pl.DataFrame({"bucket": range(count)}, schema={"bucket": pl.Int64})
    sums = whole.join(timed.group_by("bucket").agg(captures=pl.len(), active_ns=pl.col("active_ns").sum()), on="bucket", how="left").sort(
        "bucket"
    )
    lost = tables["ledger_totals"].filter("is_fixable").group_by("capture", "cause").agg(pl.col("cause_ns").sum()).collect()
    by_cause = lost.join(timed.select("capture", "bucket"), on="capture").group_by("cause", "bucket").agg(pl.col("cause_ns").sum())
    causes = {}
    for cause in by_cause.group_by("cause").agg(pl.col("cause_ns").sum()).sort("cause_ns", "cause", descending=[True, False])["cause"]:
        own = whole.join(by_cause.filter(pl.col("cause") == cause), on="bucket", how="left").sort("bucket")
        causes[cause] = own["cause_ns"].fill_null(0).to_list()
    return {
        "width_ns": width_ns,
        "origin_ns": origin_ns,
        "buckets": count,
        "captures": sums["captures"].fill_null(0).to_list(),
        "active_ns": sums["active_ns"].fill_null(0).to_list(),
        "causes": causes,
    }


def _worst(directions: pl.DataFrame) -> pl.DataFrame:
    most = directions.filter(pl.col("fixable_ns") > 0).sort("fixable_ns", *_DIRECTION, descending=[True, False, False, True]).head(WORST)
    return most.drop("capture", "data_segments", "syn_ns")


def _sums(directions: pl.DataFrame, by: list[str]) -> pl.DataFrame:
    """Sum the values of all directions in each group. The group with the most lost time comes first."""
    return (
        directions.group_by(by)
        .agg(
            connections=pl.struct("capture", "conn").n_unique(),
            captures=pl.col("capture").n_unique(),
            payload_bytes=pl.col("payload_bytes").sum(),
            active_ns=pl.col("active_ns").sum(),
            fixable_ns=pl.col("fixable_ns").sum(),
            rate_bps=pl.col("rate_bps").median(),
            rtt_ns=pl.col("rtt_ns").median().round().cast(pl.Int64),
            first_ts_ns=pl.col("first_ts_ns").min(),
            last_ts_ns=pl.col("first_ts_ns").max(),
        )
        .sort("fixable_ns", *by, descending=[True, *(False for _ in by)])
    )


def _sparks(directions: pl.DataFrame, groups: pl.DataFrame, width_ns: int, origin_ns: int) -> dict[str, Any]:
    """Return the share of lost time, in percent, in each time bucket, for the first `SPARKED` groups."""
    numbered = groups.head(SPARKED).with_columns(group=pl.int_range(pl.len(), dtype=pl.Int64))
    shares = (
        directions.join(numbered, on=groups.columns)
        .filter(pl.col("first_ts_ns").is_not_null())
        .group_by("group", bucket=_bucket(width_ns, origin_ns))
        .agg(share=(pl.col("fixable_ns").sum() / pl.col("active_ns").sum() * 100).round().cast(pl.Int64, strict=False))
        .sort("group", "bucket")
        .group_by("group", maintain_order=True)
        .agg("bucket", "share")
    )
    return {str(group): [buckets, values] for group, buckets, values in shares.iter_rows()}


def _servers(directions: pl.DataFrame, width_ns: int, origin_ns: int) -> dict[str, Any]:
    shown = _sums(directions, ["server_addr"]).head(SPARKED)
    return {**_columns(shown), "sparks": _sparks(directions, shown.select("server_addr"), width_ns, origin_ns)}


def _pairs(directions: pl.DataFrame, width_ns: int, origin_ns: int) -> dict[str, Any]:
    """Return the host pairs, most lost time first. The first `SPARKED` pairs also have the share of lost time in each time bucket."""
    by_cause = directions.filter(pl.col("cause").is_not_null()).group_by(*PAIR, "cause").agg(ns=pl.col("fixable_ns").sum())
    main = by_cause.sort("ns", "cause").group_by(PAIR, maintain_order=True).agg(pl.last("cause"))
    found = _sums(directions, list(PAIR)).join(main, on=PAIR, how="left", maintain_order="left")
    shown = found.head(PAIRS)
    return {**_columns(shown), "total": found.height, "sparks": _sparks(directions, shown.select(PAIR), width_ns, origin_ns)}


def _outliers(directions: pl.DataFrame) -> dict[str, Any]:
    found = outliers(directions)
    names = directions.select(*_DIRECTION, "at", *PAIR, "cause", "first_ts_ns")
    found_rows = found.join(names, on=_DIRECTION, how="left", maintain_order="left")
    groups = directions.group_by(*PAIR, "from_client").len()
    return {**_columns(found_rows.drop("capture")), "groups": groups.height, "large_groups": groups.filter(pl.col("len") >= LEAST).height}


def _problems(tables: Mapping[str, pl.LazyFrame], places: pl.DataFrame) -> dict[str, Any]:
    problems = tables["problems"].sort("loses_data", "path", "what", "capture", descending=[True, False, False, False]).collect()
    shown = problems.head(PROBLEMS).join(places, on="capture", how="left", maintain_order="left")
    return {**_columns(shown.select("at", "path", "what", "frame", "count", "loses_data")), "total": problems.height}


def _comparison(comparison: Comparison) -> dict[str, Any]:
    rows = [
        {
            "client": change.client,
            "server": change.server,
            "port": change.port,
            "from_client": change.from_client,
            "metric": change.metric,
            "before": change.before,
            "now": change.now,
            "n_before": change.n_before,
            "n_now": change.n_now,
            "ratio": change.ratio,
            "p": change.p,
            "severity": str(change.severity),
        }
        for change in comparison.changes
    ]
    return {"baseline": comparison.baseline, "words": comparison.words, "changes": rows}
