"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

Files = Annotated[
    list[str],
    typer.Argument(metavar="FILE", help="Captures: pcap or pcapng, plain or compressed; - is standard input.", show_default=False),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show a traceback with an error.")]
