"""The list of connections: search, filters, order, pages, downloads.

For the next page of results, a search keeps the numbers of the connections that it has found. Rows are read when they are shown.
"""

from __future__ import annotations

import ipaddress
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

import polars as pl
from polars.io.plugins import register_io_source

from tcptrace_lab.findings.finding import FINDING_IDS
from tcptrace_lab.schema import CAUSES
from tcptrace_lab.view import parameters
from tcptrace_lab.view.cached import listing
from tcptrace_lab.view.problem import BadRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from tcptrace_lab.view.cached.store import Store

KEPT = 8
"""Number of searches whose results are kept. For a million connections, each result takes 4 MB."""

_BLOCK_ROWS = 65_536
"""Number of rows of a download that are in memory at a time. They take 30 MB."""

_SHOWN = [name for name in listing.SCHEMA if name not in {"client_addr", "client_port", "server_addr", "server_port"}]
_SAVED = {name: dtype for name, dtype in listing.SCHEMA.items() if name != "bytes"}
_SORTED_BY = {**{name: name for name in _SHOWN if name != "findings"}, "findings": "cost_ns"}
_DIGITS = 10
"""A connection number has fewer digits than this."""

_SEARCH = ("address", "port", "cause", "finding", "lost", "min_bytes", "max_bytes", "text", "from_ns", "to_ns", "sort", "descending")


class Connections:
    """The list of connections of one capture."""

    def __init__(self, store: Store) -> None:
        """List the connections in `store`."""
        self._store = store
        self._found: OrderedDict[tuple[str, ...], pl.Series] = OrderedDict()
        self._lock = threading.Lock()

    def page(self, query: Mapping[str, str]) -> dict[str, Any]:
        """Return `total` and `rows`: one page of the connections that a search finds. Raises BadRequest."""
        offset, limit = parameters.page(query)
        found = self._search(query)
        rows = self._rows(found.slice(offset, limit)).select(_SHOWN)
        return {"total": found.len(), "rows": [_row(row) for row in rows.iter_rows(named=True)]}

    def all(self, query: Mapping[str, str]) -> pl.LazyFrame:
        """Return all rows that a search finds, for a download. Raises BadRequest."""
        found = self._search(query)

        def rows(columns: list[str] | None, _predicate: object, _limit: object, _batch_rows: object) -> Iterator[pl.DataFrame]:
            blocks = (found.slice(start, _BLOCK_ROWS) for start in range(0, found.len(), _BLOCK_ROWS))
            return (self._rows(numbers).select(columns or list(_SAVED)) for numbers in blocks)

        return register_io_source(rows, schema=_SAVED)

    def _rows(self, numbers: pl.Series) -> pl.DataFrame:
        """Return the rows of these connections, in this order."""
        near = pl.col("id").is_between(numbers.min() or 0, numbers.max() or 0)  # the other row groups are not read
        rows = self._store.listing.filter(near, pl.col("id").is_in(numbers.implode())).collect()
        return pl.DataFrame({"id": numbers}).join(rows, on="id", how="left", maintain_order="left")

    def _search(self, query: Mapping[str, str]) -> pl.Series:
        """Return the numbers of the connections that match the search, in order."""
        key = tuple(parameters.text(query, name) for name in _SEARCH)
        with self._lock:
            if key in self._found:
                self._found.move_to_end(key)
                return self._found[key]
        by, descending = _order(query)
        rows = self._store.listing.filter(_condition(query)).select("id", *({by} - {"id"})).collect()
        numbers = rows.sort(by, descending=descending, nulls_last=True, maintain_order=True)["id"]  # ties stay sorted by number
        with self._lock:
            self._found[key] = numbers
            while len(self._found) > KEPT:
                self._found.popitem(last=False)
        return numbers


def _row(row: dict[str, Any]) -> dict[str, Any]:
    causes = {cause: ns for cause in CAUSES if (ns := row.pop(f"{cause}_ns"))}
    return {**row, "findings": row["findings"] or [], "causes": causes, "filter": f"tcp.stream eq {row['id']}"}


def _order(query: Mapping[str, str]) -> tuple[str, bool]:
    by = parameters.text(query, "sort") or "id"
    if by not in _SORTED_BY:
        raise BadRequest(f"sort must be one of {', '.join(_SORTED_BY)}")
    return _SORTED_BY[by], parameters.flag(query, "descending")


def _condition(query: Mapping[str, str]) -> pl.Expr:
    """Return the condition of a search. The text of a search is literal, not a pattern."""
    tests = [pl.lit(value=True)]
    if address := parameters.text(query, "address").strip():
        tests.append(_either("addr", lambda column: column.str.contains(_canonical(address), literal=True)))
    if (port := parameters.number(query, "port")) is not None:
        tests.append(_either("port", lambda column: column.cast(pl.Int64) == port))
    if cause := _one_of(query, "cause", CAUSES):
        tests.append(pl.col("dominant_cause") == cause)
    if finding := _one_of(query, "finding", FINDING_IDS):
        tests.append(pl.col("findings").list.contains(finding).fill_null(value=False))
    if parameters.flag(query, "lost"):
        tests.append(pl.col("retransmitted") > 0)
    tests += [test(bound) for name, test in _BOUNDS.items() if (bound := parameters.number(query, name)) is not None]
    tests += [_has(word) for word in parameters.text(query, "text").lower().split()]
    return pl.all_horizontal(tests)


_BOUNDS: dict[str, Callable[[int], pl.Expr]] = {
    "min_bytes": lambda bound: pl.col("bytes") >= bound,
    "max_bytes": lambda bound: pl.col("bytes") <= bound,
    "from_ns": lambda bound: pl.col("end_ns") >= bound,
    "to_ns": lambda bound: pl.col("start_ns") <= bound,
}
"""Parameter → the condition that it sets."""


def _one_of(query: Mapping[str, str], name: str, values: Collection[str]) -> str:
    """Return a parameter that must be one of some values; empty if it is not given."""
    value = parameters.text(query, name)
    if value and value not in values:
        raise BadRequest(f"{name} must be one of {', '.join(values)}")
    return value


def _has(word: str) -> pl.Expr:
    """Return whether an endpoint, the label, the main cause or a finding of a connection contains `word`, or its number equals `word`."""
    places = [pl.col(name).cast(pl.String).str.to_lowercase() for name in ("client", "server", "label", "dominant_cause")]
    places.append(pl.col("findings").list.join(" "))
    is_number = pl.col("id") == int(word) if word.isascii() and word.isdigit() and len(word) < _DIGITS else pl.lit(value=False)
    return pl.any_horizontal(*(place.str.contains(word, literal=True).fill_null(value=False) for place in places), is_number)


def _either(what: str, test: Callable[[pl.Expr], pl.Expr]) -> pl.Expr:
    """Return whether at least one of the two hosts meets a test."""
    return test(pl.col(f"client_{what}")) | test(pl.col(f"server_{what}"))


def _canonical(address: str) -> str:
    """Return a complete address in the form that the tables use. Any other text, such as a part of an address, is returned unchanged."""
    try:
        return str(ipaddress.ip_address(address))
    except ValueError:
        return address
