"""`tcptrace-lab lab` runs experiments that a file declares."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tcptrace_lab.cli.options import Debug, Quiet
from tcptrace_lab.cli.terminal import activity, say
from tcptrace_lab.errors import EXIT_DONE, OutputUnwritable
from tcptrace_lab.process import interrupts, output
from tcptrace_lab.text.escape import printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tcptrace_lab.lab.studies.experiment_file import Declared

Name = Annotated[str, typer.Argument(metavar="NAME|FILE.toml", help="A name from lab list, or a file of your own.")]
Short = Annotated[bool, typer.Option("--short", help="Run the short form: fewer points and repetitions.")]
Folder = Annotated[
    str | None, typer.Option("-o", "--output", metavar="FOLDER", help="Folder for the results.", show_default="reports/lab-<name>-<time>")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only list the points.")]

app = typer.Typer(
    name="lab",
    help="Experiments in private network namespaces.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.command("list")
def listed(_debug: Debug = False) -> int:
    """List the experiments in the package, including those of published studies."""
    from tcptrace_lab.lab.studies import experiment_file  # noqa: PLC0415

    names = experiment_file.ready_made()
    width = max(map(len, names), default=0)
    for name in names:
        sys.stdout.write(f"{name:<{width}}  {experiment_file.load(name).title}\n")
    return EXIT_DONE


@app.command()
def show(name: Name, short: Short = False, _debug: Debug = False) -> int:
    """Write the file of an experiment to standard output; the number of its points goes to stderr."""
    from tcptrace_lab.lab.studies import experiment_file  # noqa: PLC0415

    declared = experiment_file.load(name, short=short)
    sys.stdout.write(declared.text)
    say(_size(declared))
    return EXIT_DONE


@app.command()
def keys(_debug: Debug = False) -> int:
    """List every key of an experiment file, with its meaning and default."""
    from tcptrace_lab.lab.studies.experiment_keys import KEYS  # noqa: PLC0415

    for key in KEYS.values():
        values = f"one of {', '.join(key.choices)}" if key.choices else str(key.type)
        default = "" if key.default is None else f"; else {key.default_words}"
        only = f" [{', '.join(key.kinds)}]" if key.kinds else ""
        sys.stdout.write(f"{key.name}: {values}{default}{only}\n    {key.meaning}\n")
    return EXIT_DONE


@app.command()
def run(
    name: Name, folder: Folder = None, short: Short = False, dry_run: DryRun = False, quiet: Quiet = False, _debug: Debug = False
) -> int:
    """Run an experiment as root: captures at both ends, tcp_info of the kernel, analysis, and one report with 95% intervals.

    FOLDER receives report.html, results.json, runs.parquet, tcp_info.parquet, experiment.toml and captures/.
    """
    with activity("reading", quiet=quiet) as shown:
        from tcptrace_lab.lab.studies import experiment_file  # noqa: PLC0415  (slow imports, which `--help` does not need)

        declared = experiment_file.load(name, short=short)
        if dry_run:
            for point in declared.points:
                sys.stdout.write(f"{printable(point.label)}\n")
            return EXIT_DONE
        from tcptrace_lab.lab.studies.study import perform_all  # noqa: PLC0415
        from tcptrace_lab.report.experiment_page import write_report  # noqa: PLC0415

        target = _folder(folder, declared.name)
        shown.doing("building networks")
        with interrupts.raised(), _tidied(target):
            results = perform_all(declared, target, shown.doing)
        shown.doing("writing the report")
        report = target / "report.html"
        write_report(results, str(report))
    if not quiet:
        _tell(results)
        say(f"report written: {report}")
    return EXIT_DONE


def _folder(asked: str | None, name: str) -> Path:
    target = output.reports() / f"lab-{name}-{output.now()}" if asked is None else Path(asked)
    output.check_folder(str(target))
    try:
        target.mkdir(exist_ok=True)
    except OSError as error:
        raise output.refused(error, str(target)) from error
    if any(target.iterdir()):
        raise OutputUnwritable("the folder is not empty", where=str(target), remedy="name a new one")
    return target


@contextlib.contextmanager
def _tidied(target: Path) -> Iterator[None]:
    """Remove the folder of an experiment that fails or is interrupted before its first capture."""
    try:
        yield
    except BaseException:
        captures = target / "captures"
        with contextlib.suppress(OSError):
            if captures.exists():
                captures.rmdir()  # raises OSError if the folder is not empty
                (target / "experiment.toml").unlink(missing_ok=True)
            target.rmdir()
        raise


def _size(declared: Declared) -> str:
    points = declared.points
    transfers = sum(int(point["run.repetitions"]) for point in points)
    return f"{'short form: ' if declared.is_short else ''}{len(points):,} points, {transfers:,} transfers"


def _tell(results: dict[str, Any]) -> None:
    """Print the points as a table to stdout."""
    from tcptrace_lab.cli.tables import lab  # noqa: PLC0415  (Rich)

    lab.show(results)
