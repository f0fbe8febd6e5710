"""`tcptrace-lab export`."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tcptrace_lab.cli.options import Anonymize, AnonymizeKey, Debug, Files, Quiet, anonymizer
from tcptrace_lab.cli.terminal import activity, say
from tcptrace_lab.errors import EXIT_DONE, UsageError
from tcptrace_lab.outputs.formats import Format, TableName
from tcptrace_lab.process import output
from tcptrace_lab.text.escape import printable
from tcptrace_lab.text.numbers import size

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl

    from tcptrace_lab.connections.anonymizer import Anonymizer
    from tcptrace_lab.engine.reread import Progress
    from tcptrace_lab.errors import ReadInPart

Form = Annotated[Format | None, typer.Option("--format", help="Format of the output.", show_default="by the ending of -o, else parquet")]
Table = Annotated[
    TableName | None,
    typer.Option(
        "--table",
        metavar="NAME",
        help="One row per TCP segment (segments, the default), connection (connections), interval of a direction with its cause "
        "(ledger), sent segment with its wait and cause (departures), long interval with its evidence (stalls), connection with its time "
        "by cause (accounts), application message (messages), HTTP or FTP transaction (transactions), direction with its rates (rates), "
        "finding of analyze (findings), "
        "UDP datagram (datagrams) or UDP flow (flows).",
        show_default=False,
    ),
]
Output = Annotated[str, typer.Option("-o", "--output", metavar="PATH|-", help="Output file; - is standard output. For xplot, a folder.")]


def export(
    files: Files,
    form: Form = None,
    table: Table = None,
    path: Output = output.STDOUT,
    anonymize: Anonymize = False,
    anonymize_key: AnonymizeKey = None,
    quiet: Quiet = False,
    _debug: Debug = False,
) -> int:
    """Write a table of a capture as Parquet, CSV, Arrow IPC or NDJSON; or, as tcptrace does, a long listing or graphs for xplot.

    Several FILEs are one capture, merged by time. In CSV, null is an empty field, and SACK blocks are text: left:right left:right.
    """
    form = form or Format.of_path(path)
    hidden = anonymizer(anonymize_key, wanted=anonymize)
    if form.is_table:
        return _export_table(files, form, table or TableName.SEGMENTS, path, hidden, quiet=quiet)
    if table is not None:
        raise UsageError(f"{form} is not a table format", remedy="leave --table out")
    return (_export_graphs if form is Format.XPLOT else _export_listing)(files, path, hidden, quiet=quiet)


def _export_table(files: list[str], form: Format, table: TableName, path: str, hidden: Anonymizer | None, *, quiet: bool) -> int:
    output.check(path, files)
    if path == output.STDOUT and not form.is_text and sys.stdout.isatty():
        raise UsageError(f"cannot write {form} to a terminal", remedy="name a file with -o, or choose --format csv")
    with activity("reading", quiet=quiet) as shown:
        from tcptrace_lab.outputs.export import export as export_table  # noqa: PLC0415  (importing Polars takes 0.1 s, which `--help` saves)

        words = None if quiet else say
        progress = shown.datagrams if table.is_udp else shown.segments
        read = _findings if table is TableName.FINDINGS else partial(_read, table)
        rows, loss = read(files, hidden, progress, words)
        shown.doing(f"writing {table}")
        with output.opened(path) as stream:
            export_table(rows, table, form, stream)
    return _done(loss, f"table {table} as {form}", path, quiet=quiet)


def _read(
    table: TableName, files: list[str], hidden: Anonymizer | None, progress: Progress, words: Callable[[str], None] | None
) -> tuple[pl.LazyFrame, ReadInPart | None]:
    from tcptrace_lab.outputs.export import read_table  # noqa: PLC0415

    return read_table(files, table, hidden, progress=progress, say=words)


def _findings(
    files: list[str], hidden: Anonymizer | None, progress: Progress, words: Callable[[str], None] | None
) -> tuple[pl.LazyFrame, ReadInPart | None]:
    from tcptrace_lab.analysis import analyze  # noqa: PLC0415
    from tcptrace_lab.findings import table  # noqa: PLC0415

    analysis = analyze(files, anonymizer=hidden, progress=progress, say=words)
    return table.rows(analysis.findings).lazy(), analysis.loss


def _export_listing(files: list[str], path: str, hidden: Anonymizer | None, *, quiet: bool) -> int:
    output.check(path, files)
    with activity("reading", quiet=quiet) as shown:
        from tcptrace_lab.engine.segments import read  # noqa: PLC0415
        from tcptrace_lab.outputs.tcptrace_listing import write_listing  # noqa: PLC0415

        tables = read(files, progress=shown.segments, say=None if quiet else say)
        shown.doing("writing the listing")
        with output.opened(path) as stream:
            connections, name = _hidden(tables.connections, hidden), printable(" ".join(files)) if hidden is None else "capture"
            write_listing(connections, tables.info, name, stream)
    return _done(tables.loss, "the listing of tcptrace -lrW", path, quiet=quiet)


def _hidden(connections: pl.LazyFrame, hidden: Anonymizer | None) -> pl.LazyFrame:
    return connections if hidden is None else hidden.rows(connections)


def _export_graphs(files: list[str], path: str, hidden: Anonymizer | None, *, quiet: bool) -> int:
    output.check_folder(path)
    with activity("reading", quiet=quiet) as shown:
        from tcptrace_lab.engine.segments import read  # noqa: PLC0415
        from tcptrace_lab.outputs.xplot import write  # noqa: PLC0415

        tables = read(files, progress=shown.segments, say=None if quiet else say)
        shown.doing("drawing graphs")
        write(tables.segments, _hidden(tables.connections, hidden), path)
    return _done(tables.loss, "graphs for xplot", path, quiet=quiet)


def _done(loss: ReadInPart | None, what: str, path: str, *, quiet: bool) -> int:
    """Print what was written, unless it was written to standard output."""
    if path != output.STDOUT and not quiet:
        target = Path(path)
        say(f"{what} written: {path}" + (f" ({size(target.stat().st_size)})" if target.is_file() else ""))
    if loss is not None:
        raise loss
    return EXIT_DONE
