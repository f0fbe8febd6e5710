"""`tcptrace-lab view`."""

from __future__ import annotations

import re
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tcptrace_lab.cli.options import Anonymize, AnonymizeKey, Debug, Quiet, anonymizer
from tcptrace_lab.cli.terminal import PROGRAM, activity, say
from tcptrace_lab.errors import EXIT_DONE, MissingTool, UsageError

if TYPE_CHECKING:
    from tcptrace_lab.view.explorer import Subject

Viewed = Annotated[
    list[str],
    typer.Argument(
        metavar="CAPTURE… | ARCHIVE | A vs B",
        help="A capture, several captures (merged by time), an archive that batch has written, or captures before vs after a change.",
        show_default=False,
    ),
]
PairOption = Annotated[bool, typer.Option("--pair", help="The two captures show the same transfers at two capture points.")]
Port = Annotated[int, typer.Option("--port", metavar="N", min=0, max=65_535, help="Port on this machine; 0 chooses a free port.")]
NoBrowser = Annotated[bool, typer.Option("--no-browser", help="Only print the URL.")]
Idle = Annotated[
    str | None,
    typer.Option("--idle", metavar="TIME", help="End after this time without a request, such as 90s, 30m or 2h.", show_default=False),
]

_UNITS_S = {"s": 1, "m": 60, "h": 3600}
_NEEDED = ("starlette", "uvicorn")


def view(
    captures: Viewed,
    pair: PairOption = False,
    port: Port = 0,
    no_browser: NoBrowser = False,
    idle: Idle = None,
    anonymize: Anonymize = False,
    anonymize_key: AnonymizeKey = None,
    quiet: Quiet = False,
    _debug: Debug = False,
) -> int:
    """Explore a capture or an archive in the browser: connections, causes over time, any figure at any zoom, every packet.

    The command serves pages until Ctrl-C, on this machine only. The URL of the pages contains a secret and is printed to stdout. Tables are
    kept in a cache (XDG_CACHE_HOME), so that the next view of the same capture opens at once.
    """
    idle_s = None if idle is None else _seconds(idle)
    if any(find_spec(name) is None for name in _NEEDED):
        raise MissingTool("view needs Starlette and uvicorn", remedy="pip install 'tcptrace-lab[view]'")
    from tcptrace_lab.view import explorer, server  # noqa: PLC0415  (Polars and the server)

    with activity("reading", quiet=quiet) as shown:
        subject: Subject = explorer.opened(
            captures,
            pair=pair,
            anonymizer=anonymizer(anonymize_key, wanted=anonymize),
            progress=shown.segments,
            say=None if quiet else say,
            doing=shown.doing,
            now=datetime.now().astimezone(),
        )

    def ready(url: str) -> None:
        typer.echo(url)
        if not quiet:
            say(f"serving {subject.name} on this machine only; Ctrl-C ends {PROGRAM}")

    with subject:
        server.serve(subject.app, port=port, browser=not no_browser, idle_s=idle_s, ready=ready, hand_over=Path(subject.private))
    return EXIT_DONE


def _seconds(text: str) -> float:
    found = re.fullmatch(r"(\d{1,6})\s*([smh])", text.strip())
    if found is None or not int(found[1]):
        raise UsageError(f"--idle {text!r} is not a time", remedy="write for example 90s, 30m or 2h")
    return float(int(found[1]) * _UNITS_S[found[2]])
