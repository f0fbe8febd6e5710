"""Answers to the browser's requests about an archive. The sums are those of the archive's index (`archive.index.overview`)."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from tcptrace_lab import causes
from tcptrace_lab.archive.dataset import query
from tcptrace_lab.archive.index.outliers import METRICS
from tcptrace_lab.archive.index.overview import overview
from tcptrace_lab.errors import CaptureUnreadable
from tcptrace_lab.text import numbers
from tcptrace_lab.view import parameters
from tcptrace_lab.view.problem import BadRequest, NotFound, TakesTooLong

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tcptrace_lab.view.capture_api import CaptureApi

FRESH_S = 30.0
"""Seconds after which the sums of an archive are read again, because a batch can have added captures."""

QUERY_ROWS, DOWNLOAD_ROWS = 1_000, 100_000
"""Maximum number of rows in the answer to a query: on the page, and as CSV."""

QUERY_S = 20.0
"""Maximum time of a query, in seconds."""

OPEN_CAPTURES = 4
"""Maximum number of captures of the archive whose explorers are open at the same time."""

_LISTED = 200
"""Maximum number of rows of a table on the page."""

_CAPTURES = {
    "name": ("name", "text", "Name of the capture"),
    "path": ("path", "text", "Path of the capture"),
    "state": ("state", "text", "Whether the capture could be read"),
    "first_ts_ns": ("first packet", "utc", "Time of the first packet"),
    "duration_ns": ("duration", "duration", "From the first packet to the last"),
    "packets": ("packets", "count", "Packets in the capture"),
    "connections": ("connections", "count", "TCP connections in the capture"),
    "file_bytes": ("size", "size", "Size of its files"),
    "fixable_ns": ("lost time", "duration", "Time that a change could save, all connections together"),
    "worst_severity": ("worst finding", "text", "Highest severity of its findings"),
    "quality": ("quality", "text", "Capture quality"),
    "verdict": ("verdict", "text", "What took the time"),
}

_TREND = ("over time", "trend", "Share of the active time that was lost, in each period of the figure above")

_SERVERS = {
    "server_addr": ("host", "text", "Address of the server"),
    "trend": _TREND,
    "connections": ("connections", "count", "Connections with this server"),
    "captures": ("captures", "count", "Captures with this server"),
    "payload_bytes": ("payload", "size", "Data in both directions"),
    "active_ns": ("active time", "duration", "Time without idle periods"),
    "fixable_ns": ("lost time", "duration", "Time that a change could save"),
}

_PAIR = {
    "client_addr": ("client", "text", "Address of the client"),
    "server_addr": ("server", "text", "Address of the server"),
    "server_port": ("port", "integer", "Port of the server"),
}

_LINKS = {
    **_PAIR,
    "trend": _TREND,
    "connections": ("connections", "count", "Connections of this pair"),
    "captures": ("captures", "count", "Captures with this pair"),
    "payload_bytes": ("payload", "size", "Data in both directions"),
    "rate_bps": ("rate", "rate", "Median rate of a direction"),
    "rtt_ns": ("RTT", "duration", "Median of the median RTTs"),
    "active_ns": ("active time", "duration", "Time without idle periods"),
    "fixable_ns": ("lost time", "duration", "Time that a change could save"),
    "cause": ("main cause", "cause", "Cause of most of the lost time"),
}

_OUTLIERS = {
    **_PAIR,
    "conn": ("connection", "integer", "Number of the connection in its capture"),
    "metric": ("what", "text", "Figure that is unusual"),
    "value": ("value", "text", "Its value"),
    "median": ("median of the pair", "text", "Median of all transfers of this pair and direction"),
    "z": ("z-score", "ratio", "Modified z-score; above 3.5 is an outlier (Iglewicz and Hoaglin, 1993)"),
}

_METRIC_KINDS = {"rate_bps": "rate", "rtt_ns": "duration", "syn_ns": "duration"}


class ArchiveApi:
    """Answers requests about one archive, and opens the explorers of its captures."""

    def __init__(self, root: str, open_capture: Callable[[Sequence[str]], CaptureApi]) -> None:
        """Open an archive. Raises UsageError if there is no archive at `root`."""
        self.root = root
        self._open = open_capture
        self._lock = threading.Lock()
        self._opened: dict[str, CaptureApi] = {}
        self._opening: dict[str, threading.Lock] = {}
        self._sums: tuple[float, dict[str, Any], pl.DataFrame] | None = None
        self._read()

    def _read(self) -> tuple[dict[str, Any], pl.DataFrame]:
        """Return the sums of the archive, and the rows of `captures`. Row n belongs to capture n of the sums."""
        with self._lock:
            if self._sums is None or time.monotonic() - self._sums[0] > FRESH_S:
                with query.opened(self.root) as tables:
                    captures = tables["captures"].sort("first_ts_ns", "path", "capture", nulls_last=True).collect()
                    self._sums = (time.monotonic(), overview(tables, None, with_servers=True), captures)
            return self._sums[1:]

    def overview(self) -> dict[str, Any]:
        """Answer `api/archive`."""
        sums, captures = self._read()
        totals, ids = sums["totals"], captures["capture"].to_list()
        duration_ns = 0 if totals["first_ts_ns"] is None else totals["last_ts_ns"] - totals["first_ts_ns"]
        facts = [
            ("Captures", captures.height, "count"),
            ("Packets", totals["packets"], "count"),
            ("Connections", totals["connections"], "count"),
            ("Size", totals["file_bytes"], "size"),
            ("First packet", totals["first_ts_ns"], "utc"),
            ("Duration", duration_ns, "duration"),
            ("Active time", totals["active_ns"], "duration"),
            ("Lost time", totals["fixable_ns"], "duration"),
            ("Left out because of poor capture quality", totals["left_out"], "count"),
        ]
        return {
            "name": Path(self.root).name or self.root,
            "captures": captures.height,
            "facts": [{"label": label, "value": value, "kind": kind} for label, value, kind in facts],
            "causes": [
                {"cause": cause, "colour": causes.OURS[cause].colour, "ns": ns}
                for cause, ns in zip(sums["causes"]["cause"], sums["causes"]["ns"], strict=True)
            ],
            "trend": _trend(sums["trend"]),
            "tables": [
                _table(
                    "hosts",
                    "Servers",
                    "The server whose connections lost most time comes first",
                    _SERVERS,
                    _over_time(sums, "servers", _SERVERS),
                ),
                _table("links", "Client and server", "The pair that lost most time comes first", _LINKS, _over_time(sums, "pairs", _LINKS)),
                _table("worst", "Worst captures", "The capture that lost most time comes first", _CAPTURES, _worst(captures)),
                _table("outliers", "Outliers", "Transfers much slower than others of the same pair", _OUTLIERS, _outliers(sums, ids)),
            ],
        }

    def captures(self, asked: Mapping[str, str]) -> dict[str, Any]:
        """Answer `api/archive/captures`. Raises BadRequest."""
        offset, limit = parameters.page(asked)
        by = parameters.text(asked, "sort") or "first_ts_ns"
        if by not in _CAPTURES:
            raise BadRequest(f"sort must be one of {', '.join(_CAPTURES)}")
        rows = _listed(self._read()[1])
        for word in parameters.text(asked, "text").lower().split():
            places = [pl.col(name).str.to_lowercase().str.contains(word, literal=True) for name in ("name", "path", "verdict", "state")]
            rows = rows.filter(pl.any_horizontal(one.fill_null(value=False) for one in places))
        ordered = rows.sort(by, "capture_id", descending=[parameters.flag(asked, "descending"), False], nulls_last=True)
        return {"total": rows.height, "columns": _columns(_CAPTURES), "rows": ordered.slice(offset, limit).to_dicts()}

    def query(self, asked: Mapping[str, str]) -> dict[str, Any]:
        """Answer `api/archive/query`. Raises BadRequest and TakesTooLong."""
        answer: dict[str, Any] = json.loads(self._answer(asked, QUERY_ROWS, "json"))
        return answer

    def query_csv(self, asked: Mapping[str, str]) -> bytes:
        """Answer `api/archive/query.csv`. Raises BadRequest and TakesTooLong."""
        return self._answer(asked, DOWNLOAD_ROWS, "csv")

    def _answer(self, asked: Mapping[str, str], limit: int, form: str) -> bytes:
        sql = parameters.text(asked, "sql")
        if not sql.strip():
            raise BadRequest("sql is missing")
        command = [sys.executable, "-P", "-m", "tcptrace_lab.view.query_process", self.root, str(limit), form]
        try:
            done = subprocess.run(command, input=sql.encode(), capture_output=True, timeout=QUERY_S, check=False)
        except subprocess.TimeoutExpired:
            raise TakesTooLong(f"the query was stopped after {QUERY_S:g} s; ask for less") from None
        if done.returncode:
            words = done.stderr.decode(errors="replace").strip().splitlines()
            known = done.returncode == 2 and words  # noqa: PLR2004  (usage)
            raise BadRequest(words[-1] if known else "the query exceeded its limit of memory or time; ask for less")
        return done.stdout

    def capture(self, name: str) -> CaptureApi:
        """Return the explorer of the archive's capture with the key `name`.

        Raises:
            NotFound: the archive has no such capture.
            CaptureUnreadable: the files of the capture are gone, or have changed since they were added to the archive.
        """
        with self._lock:
            opening = self._opening.setdefault(name, threading.Lock())
        with opening:  # the first request for a capture makes the tables; further requests for this capture wait
            with self._lock:
                if name in self._opened:
                    return self._opened[name]
            try:
                opened = self._open(self._files(name))
            except Exception:
                with self._lock:
                    self._opening.pop(name, None)
                raise
            with self._lock:
                while len(self._opened) >= OPEN_CAPTURES:
                    oldest = next(iter(self._opened))
                    self._opened.pop(oldest)
                    self._opening.pop(oldest, None)
                self._opened[name] = opened
            return opened

    def _files(self, name: str) -> list[str]:
        """Return the files of a capture, as `batch` read them. Raises NotFound and CaptureUnreadable."""
        with query.opened(self.root) as tables:
            files = tables["files"].filter(pl.col("capture") == name, pl.col("state") == "capture").sort("place").collect()
        if files.is_empty():
            raise NotFound("this archive has no such capture")
        for path, size_bytes in files.select("path", "file_bytes").iter_rows():
            if not Path(path).is_file() or Path(path).stat().st_size != size_bytes:
                raise CaptureUnreadable(
                    "the file is gone, or has changed since batch read it", where=Path(path).name, remedy="run batch again"
                )
        return files["path"].to_list()


def _trend(trend: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "start": numbers.utc(trend["origin_ns"] + place * trend["width_ns"])[:19],
            "captures": trend["captures"][place],
            "causes": {cause: lost[place] for cause, lost in trend["causes"].items() if lost[place]},
        }
        for place in range(trend["buckets"])
    ]


def _table(key: str, title: str, note: str, columns: Mapping[str, tuple[str, str, str]], rows: list[dict[str, Any]]) -> dict[str, Any]:
    linked = [{"capture_id": None, "href": None, **row} for row in rows]
    return {"key": key, "title": title, "note": note, "columns": _columns(columns), "rows": linked}


def _columns(columns: Mapping[str, tuple[str, str, str]]) -> list[dict[str, str]]:
    return [{"name": name, "label": label, "kind": kind, "meaning": meaning} for name, (label, kind, meaning) in columns.items()]


def _rows(columns: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the first rows of a dictionary of columns."""
    names = [name for name in wanted if name in columns]
    return [dict(zip(names, row, strict=True)) for row in zip(*(columns[name][:_LISTED] for name in names), strict=True)]


def _over_time(sums: Mapping[str, Any], groups: str, wanted: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the first rows of a table of groups. `trend` in a row has the share that was lost in each period of `_trend`, in percent."""
    rows, periods = _rows(sums[groups], wanted), sums["trend"]["buckets"]
    for place, row in enumerate(rows):
        shares = dict(zip(*sums[groups]["sparks"].get(str(place), ([], [])), strict=True))
        row["trend"] = [shares.get(period) for period in range(periods)]
    return rows


def _listed(captures: pl.DataFrame) -> pl.DataFrame:
    rows = captures.with_columns(duration_ns=pl.col("last_ts_ns") - pl.col("first_ts_ns"))
    return rows.select(pl.col("capture").alias("capture_id"), *_CAPTURES)


def _worst(captures: pl.DataFrame) -> list[dict[str, Any]]:
    rows = _listed(captures).filter(pl.col("fixable_ns") > 0)
    return rows.sort("fixable_ns", "capture_id", descending=[True, False]).head(_LISTED).to_dicts()


def _outliers(sums: Mapping[str, Any], ids: Sequence[str]) -> list[dict[str, Any]]:
    found = sums["outliers"]
    rows = _rows(found, _OUTLIERS)
    for row, at in zip(rows, found["at"], strict=False):
        metric = row["metric"]
        for name in ("value", "median"):
            row[name] = numbers.formatted(round(row[name]), _METRIC_KINDS[metric])[0]
        row["metric"] = METRICS[metric][0]
        row["capture_id"] = None if at is None else ids[at]
    return rows
