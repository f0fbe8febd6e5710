"""Runs SQL queries over the tables of an archive with Polars. `schema.ARCHIVE_TABLES` lists the tables."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from tcptrace_lab.archive import registry
from tcptrace_lab.archive.dataset.tables import table_types
from tcptrace_lab.archive.storage import at
from tcptrace_lab.errors import UsageError
from tcptrace_lab.schema import ARCHIVE_TABLES, MONTH

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tcptrace_lab.archive.storage import Place


@contextlib.contextmanager
def opened(root: str) -> Iterator[dict[str, pl.LazyFrame]]:
    """Open the tables of an archive, by name. The tables are readable until the `with` block ends.

    Each table has the columns of its schema, and a column `month`.

    Raises:
        UsageError: not an archive, or an archive of another version.
        MissingTool: a URL needs a package that is not installed.
    """
    place = at(root)
    registry.check(place, must_exist=True)
    with contextlib.ExitStack() as stack:
        yield {name: _scanned(place, name, stack) for name in ARCHIVE_TABLES}


def _scanned(place: Place, name: str, stack: contextlib.ExitStack) -> pl.LazyFrame:
    """Return one table. If the archive is behind a URL, the files of the table are downloaded first."""
    types = table_types(ARCHIVE_TABLES[name])
    months: dict[str, list[Path]] = {}
    for file in place.names(f"tables/{name}"):
        month = next((part.removeprefix(f"{MONTH}=") for part in Path(file).parts if part.startswith(f"{MONTH}=")), "unknown")
        months.setdefault(month, []).append(stack.enter_context(place.local(file)))
    frames = [pl.scan_parquet(paths, schema=types).with_columns(pl.lit(month).alias(MONTH)) for month, paths in sorted(months.items())]
    return pl.concat(frames) if frames else pl.LazyFrame(schema={**types, MONTH: pl.String()})


def run(tables: Mapping[str, pl.LazyFrame], sql: str, limit: int | None = None) -> pl.DataFrame:
    """Run a SELECT and return at most `limit` rows of its result.

    Raises:
        UsageError: the query is invalid; the message lists the tables.
    """
    with pl.SQLContext(dict(tables)) as context:
        try:
            rows = context.execute(sql, eager=False)
            return (rows if limit is None else rows.head(limit)).collect(engine="streaming")
        except (pl.exceptions.PolarsError, TypeError, ValueError) as error:
            raise UsageError(
                _words(error), where=" ".join(sql.split()), remedy=f"tables: {', '.join(tables)}; docs/archives.md has examples"
            ) from error


def _words(error: Exception) -> str:
    """Return the error message of Polars on one line, without the query plan."""
    return " ".join(str(error).split("\n\n")[0].split()) or type(error).__name__
