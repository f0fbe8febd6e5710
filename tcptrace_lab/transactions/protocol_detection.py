"""Detects HTTP and FTP on ports that are not well-known, by the first bytes of both directions.

HTTP: the client's first segment begins with a request line (RFC 9112, 3). An incomplete request line suffices if the server's first segment
begins with a status line. FTP: the server's first segment begins with 220 (RFC 959, 5.4), and the client's first segment begins with a
command that SMTP lacks, because SMTP servers greet with 220 too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcptrace_lab.transactions import ftp, http
from tcptrace_lab.transactions.payloads import MAX_FRAMES, first_data, pieces

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl


def protocols(paths: Sequence[str], segments: pl.LazyFrame, ports: dict[int, tuple[int, int]]) -> dict[int, str]:
    """Return `http` or `ftp` by connection. Connections with neither protocol are absent.

    Args:
        paths: the files of the capture, uncompressed.
        segments: rows of `schema.SEGMENTS`.
        ports: connection to examine → (client's port, server's port).
    """
    begins: dict[int, dict[bool, bytes]] = {}
    for piece in pieces(paths, first_data(segments, list(ports), MAX_FRAMES), ports):
        begins.setdefault(piece.conn, {}).setdefault(piece.from_client, piece.data)
    found = {conn: _protocol(directions.get(True, b""), directions.get(False, b"")) for conn, directions in begins.items()}
    return {conn: protocol for conn, protocol in found.items() if protocol is not None}


def _protocol(client: bytes, server: bytes) -> str | None:
    if http.REQUEST_LINE.match(client) or (http.REQUEST_START.match(client) and http.ANSWER_START.match(server)):
        return "http"
    command = ftp.COMMAND.match(client.partition(b"\n")[0].rstrip(b"\r"))
    return "ftp" if ftp.GREETING.match(server) and command is not None and command[1].decode().upper() in ftp.OPENING else None
