"""`--where`: selects connections by an SQL expression.

The expression uses the columns of `schema.CONNECTIONS` and `schema.ACCOUNTS`. As in SQL, null counts as false.
"""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING

import polars as pl
from polars.exceptions import PolarsError

from tcptrace_lab import schema
from tcptrace_lab.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

_COLUMNS = schema.CONNECTIONS.polars_schema() | schema.ACCOUNTS.polars_schema()

_MIXED = "it compares values of different types, such as text and numbers"
_QUERY = "subqueries are not allowed"

_SUBQUERY = "_POLARS_"
"""Start of the column names that Polars makes for a subquery."""

_COMPARED = re.compile(r"\b(\w+)\s*(?:=|==|!=|<>)\s*'([^']*)'")
_IN_LIST = re.compile(r"\b(\w+)\s+(?:not\s+)?in\s*\(([^()]*)\)", re.IGNORECASE)
"""Comparisons of a column with text. Polars accepts text that is not a category of the column, and then selects no row."""

_UNKNOWN_FUNCTION = re.compile(r"unsupported function '(\w+)'")

_EXAMPLE = 'for example "client_retransmitted_segments > 0 and server_port = 443"'


class Where:
    """The condition of `--where`, which is checked before any capture is read."""

    def __init__(self, text: str) -> None:
        """Parse and check `text`.

        Raises:
            UsageError: `text` is not an SQL expression, names an unknown column, or is not boolean.
        """
        self._text = text
        try:
            self._condition = pl.sql_expr(text)
        except PolarsError as error:
            raise _wrong(text, _not_understood(error), _EXAMPLE) from error
        names = self._condition.meta.root_names()
        for name in names:
            if name.startswith(_SUBQUERY):
                raise _wrong(text, _QUERY, _EXAMPLE)
            if name not in _COLUMNS:
                raise _wrong(text, f"no column {name}", _like(name))
        for name, value in _compared(text):
            if isinstance(dtype := _COLUMNS.get(name), pl.Enum) and value not in dtype.categories.to_list():
                raise _wrong(text, f"{name} is never {value!r}", f"its values are {', '.join(dtype.categories)}")
        self.needs_accounts = any(name not in schema.CONNECTIONS.names for name in names)
        try:
            dtype = pl.DataFrame(schema=_COLUMNS).select(self._condition).to_series().dtype
        except PolarsError as error:
            raise _wrong(text, _not_worked_out(error), _EXAMPLE) from error
        if dtype != pl.Boolean:
            raise _wrong(text, "it must be true or false", _EXAMPLE)

    def chosen(self, connections: pl.LazyFrame, accounts: pl.LazyFrame | None) -> pl.Series:
        """Return the numbers of the connections for which the condition is true.

        Args:
            connections: rows of `schema.CONNECTIONS`.
            accounts: rows of `schema.ACCOUNTS`; can be None unless `needs_accounts`.

        Raises:
            UsageError: the condition cannot be evaluated, for example because it compares text with a number.
        """
        rows = connections if accounts is None else connections.join(accounts, on="conn", how="left")
        try:
            return rows.filter(self._condition).select("conn").collect().to_series()
        except PolarsError as error:
            raise _wrong(self._text, _not_worked_out(error), _EXAMPLE) from error


def _compared(text: str) -> Iterator[tuple[str, str]]:
    """Yield each column that the condition compares with text, together with the text."""
    for name, value in _COMPARED.findall(text):
        yield name, value
    for name, values in _IN_LIST.findall(text):
        for value in re.findall(r"'([^']*)'", values):
            yield name, value


def _wrong(text: str, what: str, remedy: str) -> UsageError:
    return UsageError(f"--where: {what}", where=text, remedy=remedy)


def _like(name: str) -> str:
    near = difflib.get_close_matches(name, _COLUMNS, n=3, cutoff=0.6)
    return f"did you mean {' or '.join(near)}?" if near else "export --table connections shows the columns"


def _not_understood(error: PolarsError) -> str:
    """Describe why the expression is invalid. The parser's own message is left out, because it describes Polars' internals."""
    unknown = _UNKNOWN_FUNCTION.search(str(error))
    return f"no function {unknown[1]}" if unknown else "not an SQL expression"


def _not_worked_out(error: PolarsError) -> str:
    """Describe why the expression cannot be evaluated, without Polars' message."""
    message = str(error)
    return _QUERY if "subplan" in message.lower() else _MIXED
