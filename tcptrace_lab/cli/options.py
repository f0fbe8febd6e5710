"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

Files = Annotated[
    list[str],
    typer.Argument(metavar="FILE", help="Captures: pcap or pcapng, plain or compressed; - is standard input.", show_default=False),
]
Json = Annotated[str | None, typer.Option("--json", metavar="PATH|-", help="Write the results as JSON, too; - is standard output.")]
Markdown = Annotated[
    str | None, typer.Option("--markdown", metavar="PATH|-", help="Write Markdown for a ticket, too; - is standard output.")
]
Where = Annotated[
    str | None,
    typer.Option(
        "--where",
        metavar="EXPR",
        help="Only connections for which this is true: SQL over the columns of export --table connections and accounts, "
        'as in "client_retransmitted_segments > 0 and server_port = 443".',
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show a traceback with an error.")]
