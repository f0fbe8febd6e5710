"""Answers to the browser's requests about one capture. Each answer is a dictionary of JSON values.

Times are in ns. They count from the first packet of the capture or, for one connection, from its first segment.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import polars as pl

from tcptrace_lab import causes, schema
from tcptrace_lab.ledger import stalls
from tcptrace_lab.report.parts import connection_details
from tcptrace_lab.text import numbers
from tcptrace_lab.view import frames, parameters, tables, windows
from tcptrace_lab.view.cached import timeline
from tcptrace_lab.view.connections import Connections

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tcptrace_lab.report.data_types import Drawings
    from tcptrace_lab.view.cached.store import Store

_KEPT_ROWS = 64
"""Maximum number of connections whose facts are kept between requests. Each connection takes 10 kB."""

_INTERNAL = frozenset({"place", "causes", "evidence_frames"})


class CaptureApi:
    """Answers requests about one capture."""

    def __init__(self, store: Store, provenance: Sequence[str] = ()) -> None:
        """Answer from the tables of `store`. `provenance` has the lines for the foot of a page."""
        self.store = store
        self.connections = Connections(store)
        self._provenance = list(provenance)
        self._row = lru_cache(_KEPT_ROWS)(store.connection)
        self._counts = lru_cache(_KEPT_ROWS)(lambda conn: tables.counts(store, conn))

    def checked(self) -> CaptureApi:
        """Return this object, if the files of the capture are unchanged. Raises Vanished or Changed."""
        self.store.capture.check()
        return self

    def overview(self) -> dict[str, Any]:
        """Answer `api/capture`."""
        facts = self.store.facts
        capture = facts["capture"]
        first_ns, last_ns = capture["first_ts_ns"], capture["last_ts_ns"]
        return {
            "name": facts["name"],
            "size_bytes": sum(size_bytes for size_bytes, *_ in self.store.capture.looks),
            "format": capture["format"],
            "packets": capture["packets"],
            "tcp_segments": capture["tcp_segments"],
            "udp_datagrams": capture["udp_datagrams"],
            "connections": capture["connections"],
            "first_ts_ns": None if first_ns is None else str(first_ns),
            "last_ts_ns": None if last_ns is None else str(last_ns),
            "first_time": numbers.utc(first_ns),
            "last_time": numbers.utc(last_ns),
            "duration_ns": self._duration_ns,
            "headline": facts["headline"],
            "why": facts["why"],
            "quality": facts["quality"],
            "causes": self._causes(),
            "findings": [{name: value for name, value in one.items() if name not in _INTERNAL} for one in facts["findings"]],
            "provenance": self._provenance,
        }

    @property
    def _duration_ns(self) -> int:
        capture = self.store.facts["capture"]
        return max((capture["last_ts_ns"] or 0) - (capture["first_ts_ns"] or 0), 0)

    def _causes(self) -> list[dict[str, Any]]:
        """Return the time by cause in the main directions of all connections, most time first."""
        found = timeline.read(self.store.folder, self.store.facts["bin_ns"], 0, self._duration_ns + 1, 1)["causes"]
        spent = sorted(((cause, sum(columns)) for cause, columns in found.items()), key=lambda one: -one[1])
        return [{"cause": cause, "title": schema.CAUSES[cause], "colour": causes.OURS[cause].colour, "ns": ns} for cause, ns in spent]

    def timeline(self, query: Mapping[str, str]) -> dict[str, Any]:
        """Answer `api/timeline`. Raises BadRequest."""
        from_ns, to_ns = parameters.window(query, self._duration_ns + 1)
        return timeline.read(self.store.folder, self.store.facts["bin_ns"], from_ns, to_ns, parameters.width(query))

    def connection(self, conn: int) -> dict[str, Any]:
        """Answer `api/connection/N`. Raises NotFound."""
        row = self._row(conn)
        begin_ns = row["first_ts_ns"]
        chosen = pl.DataFrame([row], schema=schema.CONNECTIONS.polars_schema())
        fast = connection_details.rate_sentences(chosen, self.store.rates)
        described = connection_details.description(row, self.store.account(conn), [], fast)
        label = self.store.facts["labels"].get(str(conn))
        if label:
            described["facts"].insert(
                0, {"label": "application", "value": label, "kind": "text", "tooltip": connection_details.LABEL_MEANING}
            )
        return {
            **{name: value for name, value in described.items() if name not in {"conn", "stalls"}},
            "id": conn,
            "label": label,
            "filter": f"tcp.stream eq {conn}",
            "start_ns": None if begin_ns is None else begin_ns - self.store.first_ts_ns,
            "duration_ns": None if begin_ns is None else max(row["last_ts_ns"] - begin_ns, 0),
            "capture": self.store.facts["name"],
            "omitted": [],
            "findings": [self._finding(one, begin_ns) for one in self.store.facts["findings"] if one["connection"] == conn],
            "tables": self._counts(conn),
        }

    def _finding(self, one: dict[str, Any], begin_ns: int | None) -> dict[str, Any]:
        """Return a finding with its longest wait, so that the page can jump to this wait."""
        waits = pl.col("cause").is_in(one["causes"]) & (pl.col("from_client") == bool(one["from_client"]))
        longest = (
            self.store.waits.of(one["connection"]).filter(waits, stalls.IS_STALL).select("start_ns", "end_ns").collect()
            if one["causes"] and one["from_client"] is not None and begin_ns is not None
            else None
        )
        place: dict[str, int] = {}
        if longest is not None and not longest.is_empty():
            start_ns, end_ns = longest.row(int((longest["end_ns"] - longest["start_ns"]).arg_max() or 0))
            place = {"from_ns": start_ns - begin_ns, "to_ns": end_ns - begin_ns}
        return {**{name: value for name, value in one.items() if name not in {"place", "causes"}}, **place}

    def figures(self, conn: int, query: Mapping[str, str]) -> Drawings:
        """Answer `api/connection/N/figures`. Raises NotFound and BadRequest."""
        row = self._row(conn)
        return windows.figures(self.store, row, parameters.window(query, self._length_ns(row)), parameters.width(query))

    def table(self, conn: int, name: str, query: Mapping[str, str]) -> dict[str, Any]:
        """Answer `api/connection/N/TABLE`. Raises NotFound and BadRequest."""
        row = self._row(conn)
        is_part = parameters.number(query, "from_ns") is not None or parameters.number(query, "to_ns") is not None
        window_ns = parameters.window(query, self._length_ns(row)) if is_part else None
        return tables.page(self.store, row, name, *parameters.page(query), window_ns)

    def rows(self, conn: int, name: str) -> pl.LazyFrame:
        """Return all rows of a table of a connection, for a download. Raises NotFound."""
        self._row(conn)
        return tables.rows(self.store, conn, name)

    def frame(self, frame: int, query: Mapping[str, str]) -> dict[str, Any]:
        """Answer `api/frame/N`. Raises NotFound and BadRequest."""
        return frames.packet(self.store, frame, parameters.number(query, "connection"))

    @staticmethod
    def _length_ns(row: dict[str, Any]) -> int:
        return 1 if row["first_ts_ns"] is None else max(row["last_ts_ns"] - row["first_ts_ns"], 1)
