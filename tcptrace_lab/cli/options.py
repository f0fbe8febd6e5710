"""Options that several commands share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from tcptrace_lab.connections.anonymizer import Anonymizer

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
Anonymize = Annotated[
    bool,
    typer.Option("--anonymize", help="Replace addresses by pseudonyms; write and print no names and no payload."),
]
AnonymizeKey = Annotated[
    str | None,
    typer.Option(
        "--anonymize-key",
        metavar="KEY",
        help="Anonymize with this key instead of a random one: runs with the same key give an address the same pseudonym.",
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print only errors.")]
Debug = Annotated[bool, typer.Option("--debug", help="Print a traceback with each error.")]


def anonymizer(key: str | None, *, wanted: bool) -> Anonymizer | None:
    """Return the anonymizer that `--anonymize` or `--anonymize-key` asks for; None without them."""
    if not wanted and key is None:
        return None
    from tcptrace_lab.connections.anonymizer import Anonymizer  # noqa: PLC0415  (Polars)

    return Anonymizer(key)
