"""`tcptrace-lab predict`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from tcptrace_lab.cli.options import Debug, Quiet
from tcptrace_lab.cli.terminal import activity, say
from tcptrace_lab.errors import EXIT_DONE, UsageError
from tcptrace_lab.process import output
from tcptrace_lab.text.quantities import size_bytes

RANGES = 12
"""Maximum number of ranges that are printed in the terminal. The JSON and the page have all ranges."""

StackName = Annotated[
    str, typer.Option("--stack", metavar="NAME", help="Stack to model: sunos4, bsd4.4, irix6.2 or linux.", show_default=False)
]
Mss = Annotated[str, typer.Option(metavar="BYTES", help="Payload of a full segment in bytes, such as 1460 or 9148.", show_default=False)]
SendBuffer = Annotated[str, typer.Option(metavar="SIZE", help="Send buffer of the sender, such as 16K.", show_default=False)]
ReceiveBuffer = Annotated[str, typer.Option(metavar="SIZE", help="Receive buffer of the receiver, such as 16K.", show_default=False)]
Copy = Annotated[
    str,
    typer.Option(
        "--copy",
        metavar="BYTES",
        help="Bytes copied to TCP at a time: the copy unit of the stack, or the size of each write if it is smaller.",
        show_default=False,
    ),
]
NoDelay = Annotated[bool, typer.Option("--nodelay", help="The sender switches Nagle's algorithm off.")]
Sizes = Annotated[str, typer.Option(metavar="FIRST:LAST", help="Range of message sizes.")]
Grid = Annotated[
    str,
    typer.Option(
        metavar="FIRST:LAST:STEP", help="Also try all send and receive buffers of these sizes, such as 16K:51K:4K.", show_default=False
    ),
]
From = Annotated[
    list[str] | None, typer.Option("--from", metavar="CAPTURE", help="Take missing parameters from this capture.", show_default=False)
]
Separate = Annotated[
    bool, typer.Option("--separate", help="Treat several --from as separate captures (repetitions); default: one capture, merged by time.")
]
Connection = Annotated[
    int | None,
    typer.Option(
        "--connection", metavar="N", min=0, help="Connection in this capture; default: the connection with most data.", show_default=False
    ),
]
Page = Annotated[
    str | None, typer.Option("-o", "--output", metavar="PAGE.html", help="Write an HTML page with figures.", show_default=False)
]
Json = Annotated[str | None, typer.Option("--json", metavar="PATH|-", help="Write the prediction as JSON; - is standard output.")]


def predict(
    stack: StackName = "",
    mss: Mss = "",
    send_buffer: SendBuffer = "",
    receive_buffer: ReceiveBuffer = "",
    copy: Copy = "",
    nodelay: NoDelay = False,
    sizes: Sizes = "1:64K",
    grid: Grid = "",
    captures: From = None,
    separate: Separate = False,
    connection: Connection = None,
    page: Page = None,
    json_path: Json = None,
    quiet: Quiet = False,
    _debug: Debug = False,
) -> int:
    """Predict which message sizes stall, and whether a stream can deadlock, from the rules of a TCP stack.

    With --from, also show which message sizes were slow between the two hosts in these captures.
    """
    _check(page, json_path, captures or [], connection, separate=separate)
    span, buffers = _span(sizes), _grid(grid)
    with activity("predicting", quiet=quiet) as shown:
        from tcptrace_lab.messages import prediction  # noqa: PLC0415  (importing Polars takes 0.1 s, which `--help` saves)

        asked = prediction.Asked(
            stack=stack,
            mss_bytes=_size(mss),
            send_buffer_bytes=_size(send_buffer),
            receive_buffer_bytes=_size(receive_buffer),
            copy_bytes=_size(copy),
            nodelay=nodelay,
        )
        words = None if quiet else say
        read_alone = [[path] for path in captures or ()] if separate else [captures] if captures else []
        known = prediction.from_captures(read_alone, connection, shown.segments, words) if read_alone else None
        shown.doing("predicting")
        document = prediction.document(*prediction.completed(asked, known.parameters if known else None), span, buffers, known)
        if json_path is not None:
            output.write_json(json_path, document)
        if page is not None:
            from tcptrace_lab.report.prediction_page import write_page  # noqa: PLC0415

            write_page(document, page)
    if not quiet and json_path != output.STDOUT:
        _tell(document)
    if not quiet and page is not None:
        say(f"page written: {page}")
    return EXIT_DONE


def _check(page: str | None, json_path: str | None, captures: list[str], connection: int | None, *, separate: bool) -> None:
    """Check the combination of options before any capture is read."""
    for path in (page, json_path):
        if path is not None:
            output.check(path, captures)
    if page == output.STDOUT:
        raise UsageError("the page cannot be written to standard output", remedy="name a file with -o")
    if connection is not None and not captures:
        raise UsageError("--connection needs a capture", remedy="give one with --from")
    if separate and not captures:
        raise UsageError("--separate needs captures", remedy="give them with --from")
    if connection is not None and separate:
        raise UsageError("--connection needs a capture", remedy="omit --separate")


def _size(text: str) -> int | None:
    return size_bytes(text) if text else None


def _span(text: str) -> tuple[int, int]:
    first, colon, last = text.partition(":")
    if not colon:
        raise UsageError(f"not a range of sizes: {text!r}", remedy="write it as 1:64K")
    span = size_bytes(first), size_bytes(last)
    if not 1 <= span[0] <= span[1]:
        raise UsageError(f"empty range of sizes: {text!r}", remedy="write the smaller size first; it must be 1 or more")
    return span


def _grid(text: str) -> list[int]:
    """Parse FIRST:LAST:STEP into the sizes FIRST, FIRST + STEP, … below LAST, and LAST itself."""
    if not text:
        return []
    words = text.split(":")
    if len(words) != 3:  # noqa: PLR2004  (first, last, step)
        raise UsageError(f"not a grid: {text!r}", remedy="write it as 16K:51K:4K")
    first, last, step = map(size_bytes, words)
    if not (1 <= first <= last and step >= 1):
        raise UsageError(f"empty grid: {text!r}", remedy="write the smaller size first; the step must be 1 or more")
    if (last - first) // step > 1000:  # noqa: PLR2004  (stops a mistyped grid of millions; `prediction` has the real limit)
        raise UsageError(f"{(last - first) // step + 1:,} buffers in {text!r}", remedy="take larger steps")
    return [*range(first, last, step), last]


def _tell(document: dict[str, Any]) -> None:
    """Print the prediction to stdout, as lines and tables."""
    from rich.text import Text  # noqa: PLC0415

    from tcptrace_lab.cli.console import console  # noqa: PLC0415
    from tcptrace_lab.cli.tables import prediction  # noqa: PLC0415

    out = console()
    for words in prediction.words(document):
        out.print(Text(words))
    for table in prediction.tables(document, RANGES):
        out.print(table)
