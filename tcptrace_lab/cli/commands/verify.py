"""`tcptrace-lab verify`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from tcptrace_lab.cli.options import Debug, Quiet
from tcptrace_lab.cli.terminal import activity, say
from tcptrace_lab.errors import EXIT_DONE, EXIT_FINDING, UsageError
from tcptrace_lab.process import output


class Tool(StrEnum):
    """Values of `--without`."""

    TSHARK = "tshark"
    TCPTRACE = "tcptrace"


File = Annotated[str, typer.Argument(metavar="FILE", help="A capture, plain or compressed.", show_default=False)]
All = Annotated[bool, typer.Option("--all", help="List every difference, not only a few of each kind.")]
Json = Annotated[str | None, typer.Option("--json", metavar="PATH|-", help="Also write everything as JSON; - is standard output.")]
Without = Annotated[list[Tool] | None, typer.Option("--without", help="Do not compare with this program.")]


def verify(
    file: File,
    json_path: Json = None,
    every: All = False,
    without: Without = None,
    quiet: Quiet = False,
    _debug: Debug = False,
) -> int:
    """Check the results for a capture against tshark (each segment) and tcptrace (each figure), and explain the differences.

    A table shows the number of comparisons and of equal results for each item. Below the table, the differences are listed by explanation,
    with frames and values of this capture. If no known behaviour of the other program explains a difference, tcptrace-lab may be wrong, and
    the exit code is 1.
    """
    if file == output.STDOUT:
        raise UsageError("verify reads its file several times", remedy="name a file")
    if json_path is not None:
        output.check(json_path, [file])
    with activity("reading", quiet=quiet) as shown:
        from tcptrace_lab.verify import TOOLS  # noqa: PLC0415  (importing Polars takes 0.1 s, which `--help` saves)
        from tcptrace_lab.verify import verify as verify_file  # noqa: PLC0415
        from tcptrace_lab.verify.output import write_json  # noqa: PLC0415

        tools = [tool for tool in TOOLS if tool not in (without or [])]
        if not tools:
            raise UsageError("no tool is left to compare with", remedy=f"keep one of {', '.join(TOOLS)}")
        done = verify_file(file, tools, progress=shown.compared, say=None if quiet else say)
        if json_path is not None:
            with output.opened(json_path) as stream:
                write_json(done, stream)
    if not quiet and json_path != output.STDOUT:
        from tcptrace_lab.cli.tables.differences import show  # noqa: PLC0415  (Rich)

        show(done, every=every)
    if done.loss is not None and not done.unexplained:
        raise done.loss
    return EXIT_FINDING if done.unexplained else EXIT_DONE
