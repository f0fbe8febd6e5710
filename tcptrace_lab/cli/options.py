"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

Files = Annotated[
    list[str],
    typer.Argument(metavar="FILE", help="Captures: pcap or pcapng, plain or compressed; - is standard input.", show_default=False),
]
Json = Annotated[str | None, typer.Option("--json", metavar="PATH|-", help="Also write the results as JSON; - is standard output.")]
Markdown = Annotated[
    str | None, typer.Option("--markdown", metavar="PATH|-", help="Also write Markdown for a ticket; - is standard output.")
]
Where = Annotated[
    str | None,
    typer.Option(
        "--where",
        metavar="EXPR",
        help="Only connections that match this condition: SQL over the columns of export --table connections and accounts, "
        'such as "client_retransmitted_segments > 0 and server_port = 443".',
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print only errors.")]
Debug = Annotated[bool, typer.Option("--debug", help="Print a traceback with each error.")]
