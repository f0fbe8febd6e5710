"""`tcptrace-lab export`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from tcptrace_lab import output
from tcptrace_lab.cli.options import Debug, Files, Quiet
from tcptrace_lab.cli.terminal import activity, say
from tcptrace_lab.errors import EXIT_DONE, UsageError
from tcptrace_lab.formats import Format, TableName

Form = Annotated[Format, typer.Option("--format", help="The format.")]
Table = Annotated[TableName, typer.Option("--table", help="The table: one row per TCP segment, connection, UDP datagram or UDP flow.")]
Output = Annotated[str, typer.Option("-o", "--output", metavar="PATH|-", help="Where it goes; - is standard output.")]


def export(
    files: Files,
    form: Form = Format.PARQUET,
    table: Table = TableName.SEGMENTS,
    path: Output = output.STDOUT,
    quiet: Quiet = False,
    _debug: Debug = False,
) -> int:
    """Write a table of a capture as Parquet, CSV, Arrow IPC or NDJSON.

    Several FILEs are one capture, merged by time. In CSV, null is an empty field and SACK blocks are text: left:right left:right.
    """
    output.check(path, files)
    if path == output.STDOUT and not form.is_text and sys.stdout.isatty():
        raise UsageError(f"{form} is not for a terminal", remedy="name a file with -o, or choose --format csv")
    with activity("reading", quiet=quiet) as shown:
        from tcptrace_lab.export import export as export_table  # noqa: PLC0415  (Polars: a tenth of a second that `--help` need not pay)
        from tcptrace_lab.export import read_table  # noqa: PLC0415

        progress = shown.datagrams if table.is_udp else shown.segments
        rows, loss = read_table(files, table, progress=progress, say=None if quiet else say)
        shown.doing(f"writing {table}")
        with output.opened(path) as stream:
            export_table(rows, table, form, stream)
    if loss is not None:
        raise loss
    return EXIT_DONE
