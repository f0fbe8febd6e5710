"""Detect HTTP and FTP on other than well-known ports, by the first bytes of both directions.

HTTP: the client's first segment begins with a request line (RFC 9112, 3). The start of one suffices if the server's first segment begins
with a status line. FTP: the server's first segment begins with 220 (RFC 959, 5.4), and the client's with a command that SMTP lacks; SMTP
servers greet with 220 too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from tcptrace_lab.transactions import ftp, http
from tcptrace_lab.transactions.payloads import COLUMNS, MAX_FRAMES, pieces

if TYPE_CHECKING:
    from collections.abc import Sequence


def protocols(paths: Sequence[str], segments: pl.LazyFrame, ports: dict[int, tuple[int, int]]) -> dict[int, str]:
    """Connection → `http` or `ftp`; connections with neither protocol are absent.

    Args:
        paths: the files of the capture, uncompressed.
        segments: rows of `schema.SEGMENTS`.
        ports: connection to examine → (client's port, server's port).
    """
    begins: dict[int, dict[bool, bytes]] = {}
    for piece in pieces(paths, _first(segments, list(ports)), ports):
        begins.setdefault(piece.conn, {}).setdefault(piece.from_client, piece.data)
    found = {conn: _protocol(directions.get(True, b""), directions.get(False, b"")) for conn, directions in begins.items()}
    return {conn: protocol for conn, protocol in found.items() if protocol is not None}


def _first(segments: pl.LazyFrame, conns: Sequence[int]) -> pl.DataFrame:
    """The first segment with data of each direction, in capture order."""
    asked = pl.col("conn").is_in(pl.Series(conns, dtype=pl.UInt32).implode()) & (pl.col("payload_bytes") > 0)
    rest = [name for name in COLUMNS if name not in {"conn", "from_client"}]
    rows = segments.filter(asked & (pl.col("frame") <= MAX_FRAMES)).select(COLUMNS).group_by("conn", "from_client")
    first = rows.agg(first=pl.struct(rest).bottom_k_by("frame", 1)).explode("first").unnest("first")
    return first.select(COLUMNS).sort("frame").collect()


def _protocol(client: bytes, server: bytes) -> str | None:
    if http.REQUEST_LINE.match(client) or (http.REQUEST_START.match(client) and http.ANSWER_START.match(server)):
        return "http"
    command = ftp.COMMAND.match(client.partition(b"\n")[0].rstrip(b"\r"))
    return "ftp" if ftp.GREETING.match(server) and command is not None and command[1].decode().upper() in ftp.OPENING else None
