"""Places connections on one time axis. A connection's colour stands for its main cause in the direction with more data."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import polars as pl

from tcptrace_lab.connections import host_names
from tcptrace_lab.report.parts import connection_table
from tcptrace_lab.schema import CAUSES

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from typing import Any

    from tcptrace_lab.report.data_types import Lane

MAX_LANES = 100
"""Maximum number of connections that are shown: those with findings, then those with the most payload. The connection table lists more."""


def lanes(listed: pl.DataFrame, accounts: pl.LazyFrame, found: Collection[int], drawn: Collection[int], path: str) -> list[Lane]:
    """Return one lane per connection, in order of time; no lane if there are fewer than two connections.

    Args:
        listed: rows of `schema.CONNECTIONS`.
        accounts: rows of `schema.ACCOUNTS`.
        found: connections with findings.
        drawn: connections with figures on the page.
        path: the capture, for the command that shows a connection without figures.
    """
    timed = [row for row in listed.select(connection_table.ASKED).iter_rows(named=True) if _is_timed(row)]
    by_worth = sorted(timed, key=lambda row: (row["conn"] not in found, -row["client_payload_bytes"] - row["server_payload_bytes"]))
    rows = sorted(by_worth[:MAX_LANES], key=lambda row: (row["first_ts_ns"], row["conn"]))
    if len(rows) < 2:  # noqa: PLR2004  (one is no comparison)
        return []
    own = accounts.filter(pl.col("conn").is_in([row["conn"] for row in rows])).collect()
    by_conn = {account["conn"]: account for account in own.iter_rows(named=True)}
    begin_ns, end_ns = min(row["first_ts_ns"] for row in rows), max(row["last_ts_ns"] for row in rows)
    return [_lane(row, by_conn.get(row["conn"], {}), begin_ns, max(end_ns - begin_ns, 1), drawn, path) for row in rows]


def _is_timed(row: Mapping[str, Any]) -> bool:
    first_ns, last_ns = row["first_ts_ns"], row["last_ts_ns"]
    return first_ns is not None and last_ns is not None and first_ns <= last_ns


def _lane(row: Mapping[str, Any], account: Mapping[str, Any], begin_ns: int, span_ns: int, drawn: Collection[int], path: str) -> Lane:
    side = connection_table.main_side(row)
    spent = {cause: account.get(f"{side}_{cause.replace('-', '_')}_ns") or 0 for cause in CAUSES if cause != "idle"}
    cause = max(spent, key=lambda each: spent[each])
    return {
        "conn": row["conn"],
        "label": " → ".join(host_names.endpoint(row, each) for each in ("client", "server")),
        "start_ns": row["first_ts_ns"] - begin_ns,
        "duration_ns": row["last_ts_ns"] - row["first_ts_ns"],
        "left": (row["first_ts_ns"] - begin_ns) / span_ns,
        "width": (row["last_ts_ns"] - row["first_ts_ns"]) / span_ns,
        "cause": cause if spent[cause] else "idle",
        "drawn": row["conn"] in drawn,
        "command": f"tcptrace-lab analyze {shlex.quote(path)} --connection {row['conn']}",
    }


def legend(shown: Sequence[Lane]) -> list[str]:
    """Return the causes of these lanes, the most frequent first."""
    causes = [lane["cause"] for lane in shown]
    return sorted(set(causes), key=lambda cause: (-causes.count(cause), cause))
