"""`tcptrace-lab verify`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from tcptrace_lab import output
from tcptrace_lab.cli.options import Debug, Quiet
from tcptrace_lab.cli.terminal import activity, say
from tcptrace_lab.errors import EXIT_DONE, EXIT_FINDING, UsageError


class Tool(StrEnum):
    """What `--without` takes."""

    TSHARK = "tshark"
    TCPTRACE = "tcptrace"


File = Annotated[str, typer.Argument(metavar="FILE", help="A capture, plain or compressed.", show_default=False)]
All = Annotated[bool, typer.Option("--all", help="List every difference, not a few of each kind.")]
Json = Annotated[str | None, typer.Option("--json", metavar="PATH|-", help="Write all of it as JSON, too; - is standard output.")]
Without = Annotated[list[Tool] | None, typer.Option("--without", help="Leave this program out.")]


def verify(
    file: File,
    json_path: Json = None,
    every: All = False,
    without: Without = None,
    quiet: Quiet = False,
    _debug: Debug = False,
) -> int:
    """Hold our account of a capture against tshark's, segment by segment, and tcptrace's, figure by figure; explain what differs.

    A table says how often each thing was compared and how often both said the same; then come the differences, grouped by what explains
    them, with frames and numbers of this capture. What no known habit of the other program explains is called unexplained;
    then the exit code is 1, and the mistake may be ours.
    """
    if file == output.STDOUT:
        raise UsageError("verify reads its file several times", remedy="name a file")
    if json_path is not None:
        output.check(json_path, [file])
    with activity("reading", quiet=quiet) as shown:
        from tcptrace_lab.verify import TOOLS  # noqa: PLC0415  (Polars: a tenth of a second that `--help` need not pay)
        from tcptrace_lab.verify import verify as verify_file  # noqa: PLC0415
        from tcptrace_lab.verify.output import write_json  # noqa: PLC0415

        tools = [tool for tool in TOOLS if tool not in (without or [])]
        if not tools:
            raise UsageError("nothing is left to compare with", remedy=f"leave one of {', '.join(TOOLS)} in")
        done = verify_file(file, tools, progress=shown.compared, say=None if quiet else say)
        if json_path is not None:
            with output.opened(json_path) as stream:
                write_json(done, stream)
    if not quiet:
        from tcptrace_lab.cli.differences import show  # noqa: PLC0415  (Rich)

        show(done, every=every)
    if done.loss is not None and not done.unexplained:
        raise done.loss
    return EXIT_FINDING if done.unexplained else EXIT_DONE
