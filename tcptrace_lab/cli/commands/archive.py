"""`tcptrace-lab archive query|list|gc`."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from tcptrace_lab.cli.options import Debug, Quiet
from tcptrace_lab.cli.terminal import activity, say
from tcptrace_lab.errors import EXIT_DONE, UsageError
from tcptrace_lab.process import output
from tcptrace_lab.text.escape import printable

if TYPE_CHECKING:
    import polars as pl

app = typer.Typer(help="Query and clean up archives that batch has written.", rich_markup_mode=None, no_args_is_help=True)

PLAIN_WIDTH = 80
MAX_ROWS = 1_000
"""Maximum number of rows of a table in the terminal. The other formats have all rows."""


class QueryFormat(StrEnum):
    """Output formats of `archive query`."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"


Archive = Annotated[str, typer.Argument(metavar="ARCHIVE", help="Folder or URL of an archive that batch has written.", show_default=False)]
Sql = Annotated[str, typer.Argument(metavar="SELECT…", help="SQL query; see archive tables for the tables.", show_default=False)]
Form = Annotated[QueryFormat, typer.Option("--format", "-f", help="table is for reading; json writes one object per line.")]
Target = Annotated[str, typer.Option("-o", "--output", metavar="PATH|-", help="File for the rows.")]
State = Annotated[
    str, typer.Option("--state", metavar="STATE", help="List only captures in this state: whole, part, failed or lost.", show_default=False)
]
Missing = Annotated[bool, typer.Option("--missing", help="Also remove captures whose files were deleted or have changed.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be removed, but remove nothing.")]


@app.command()
def query(archive: Archive, sql: Sql, form: Form = QueryFormat.TABLE, target: Target = output.STDOUT, _debug: Debug = False) -> int:
    """Query an archive with SQL. The tables are: captures, connections, ledger_totals, stalls, messages, findings, problems and files.

    Example: tcptrace-lab archive query ARCHIVE "SELECT cause, SUM(cause_ns) / 1e9 AS s FROM ledger_totals WHERE is_fixable GROUP BY cause"
    """
    output.check(target, ())
    if form is QueryFormat.PARQUET and target == output.STDOUT and sys.stdout.isatty():
        raise UsageError("cannot write Parquet to a terminal", remedy="name a file with -o")
    with activity("asking", quiet=False):
        from tcptrace_lab.archive.dataset import query as asking  # noqa: PLC0415  (Polars)

        with asking.opened(archive) as tables:
            rows = asking.run(tables, sql)
    with output.opened(target) as stream:
        match form:
            case QueryFormat.TABLE:
                stream.write(_drawn(rows).encode())
            case QueryFormat.CSV:
                _flat(rows).write_csv(stream)
            case QueryFormat.JSON:
                rows.write_ndjson(stream)
            case QueryFormat.PARQUET:
                rows.write_parquet(stream)
    return EXIT_DONE


@app.command()
def tables(name: Annotated[str, typer.Argument(metavar="TABLE", show_default=False)] = "", _debug: Debug = False) -> int:
    """List the tables that every archive has, or the columns of one table, with their meanings."""
    from tcptrace_lab.schema import ARCHIVE_TABLES  # noqa: PLC0415

    if name and name not in ARCHIVE_TABLES:
        raise UsageError(f"no table {name!r}", remedy=f"every archive has {', '.join(ARCHIVE_TABLES)}")
    lines = [f"{table.name}: {table.row}" for table in ARCHIVE_TABLES.values()]
    if name:
        lines = [
            f"{column.name} ({column.dtype}{f', {column.unit}' if column.unit else ''}): {column.meaning}"
            + (f" [{column.limits}]" if column.limits else "")
            for column in ARCHIVE_TABLES[name]
        ]
    for line in lines:
        typer.echo(line)
    return EXIT_DONE


@app.command(name="list")
def list_captures(archive: Archive, state: State = "", _debug: Debug = False) -> int:
    """List the captures of an archive: start time, state, and findings."""
    from tcptrace_lab.archive.dataset import listing  # noqa: PLC0415  (Polars)
    from tcptrace_lab.schema import CAPTURE_STATES  # noqa: PLC0415

    if state and state not in CAPTURE_STATES:
        raise UsageError(f"no state {state!r}", remedy=f"there are {', '.join(CAPTURE_STATES)}")
    for line in listing.lines(archive, state or None):
        typer.echo(printable(line))
    return EXIT_DONE


@app.command()
def gc(archive: Archive, missing: Missing = False, dry_run: DryRun = False, quiet: Quiet = False, _debug: Debug = False) -> int:
    """Remove unneeded files: results of other program versions or of captures that no longer exist, and incomplete files of killed runs."""
    from tcptrace_lab.archive import garbage_collection  # noqa: PLC0415  (Polars)
    from tcptrace_lab.text.numbers import size  # noqa: PLC0415

    removed = garbage_collection.collect_garbage(archive, missing=missing, dry_run=dry_run)
    if not quiet:
        verb = "would be removed" if dry_run else "removed"
        for path in removed.captures.values():
            say(
                f"forgotten, because its files are gone: {path}"
                if not dry_run
                else f"would be forgotten, because its files are gone: {path}"
            )
        say(f"{len(removed.files):,} files, {size(removed.size_bytes)}, {verb}")
    return EXIT_DONE


def _flat(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the rows with each list as text, because CSV has no lists."""
    import polars as pl  # noqa: PLC0415

    lists = [name for name, dtype in rows.schema.items() if dtype.is_nested()]
    return rows.with_columns(pl.col(name).cast(pl.List(pl.String)).list.join(" ") for name in lists)


def _drawn(rows: pl.DataFrame) -> str:
    """Return the rows as a table for the terminal."""
    from io import StringIO  # noqa: PLC0415

    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    text = StringIO()
    terminal = sys.stdout.isatty()
    console = Console(file=text, width=None if terminal else max(PLAIN_WIDTH, sum(len(name) + 2 for name in rows.columns)), highlight=False)
    drawn = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name, dtype in rows.schema.items():
        drawn.add_column(Text(name), justify="right" if dtype.is_numeric() else "left", overflow="fold")
    for row in rows.head(MAX_ROWS).iter_rows():
        drawn.add_row(*(Text(_cell(value)) for value in row))
    console.print(drawn)
    more = rows.height - MAX_ROWS
    return text.getvalue() + (f"and {more:,} more rows; use --format csv for all\n" if more > 0 else "")


def _cell(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:,.6g}"
    return printable(str(value))
