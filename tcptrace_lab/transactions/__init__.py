"""HTTP/1 and FTP transactions in a capture. The time of a transaction is divided into connection, waiting, request, thinking and transfer.

Read in this order:

- `payloads`: reassembled bytes of chosen connections;
- `transaction`: the fields of one transaction;
- `http`, `ftp`: the parsers;
- `keyword_search`, `protocol_detection`: detect the protocol on other than well-known ports;
- `labels`: the purpose of each connection, judged by its first data;
- `parsing`: runs the parsers, and adds handshake times and FTP data connections.

On a well-known port, the port decides the protocol unless the first bytes contradict it. So a connection whose start was not captured is
parsed too. On any other port, the first bytes decide.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from tcptrace_lab import schema
from tcptrace_lab.capture.frames import readable
from tcptrace_lab.transactions import labels as labels
from tcptrace_lab.transactions.keyword_search import mentioned
from tcptrace_lab.transactions.transaction import COLUMNS

if TYPE_CHECKING:
    from collections.abc import Sequence

FTP_PORTS = (21, 2121)
HTTP_PORTS = (
    *(80, 81, 591, 2080, 3000, 3128, 5000, 5985, 7001, 8000, 8008, 8080, 8081, 8088, 8090, 8118, 8123, 8180, 8222, 8888),
    *(9000, 9080, 9090, 9200, 11371),
)
"""Well-known HTTP server ports: IANA's for http, http-alt and related services, and ports that proxies and servers commonly use."""

METHODS = (
    *("GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"),
    *("RETR", "STOR", "STOU", "APPE", "LIST", "NLST", "MLSD"),
)
"""Methods of HTTP (RFC 9110, 9.3; RFC 5789), and FTP commands that transfer data (RFC 959, RFC 3659)."""

MAX_CONNECTIONS = 10_000
"""Maximum number of connections to well-known ports that are examined, and of connections to other ports. Lower connection numbers come
first."""

MAX_UNPACKED_BYTES = 1 << 25
"""Size limit for compressed files of a capture without connections to well-known ports. Larger files are not decompressed again."""


_CARRIED = (pl.col("client_payload_bytes") > 0) | (pl.col("server_payload_bytes") > 0)
_USUAL = pl.col("server_port").is_in([*FTP_PORTS, *HTTP_PORTS])
"""Filters: connections that carried data (`_CARRIED`), and connections to a well-known port (`_USUAL`)."""


def found(names: Sequence[str], segments: pl.LazyFrame, connections: pl.LazyFrame) -> pl.DataFrame:
    """Return rows of `schema.TRANSACTIONS`, sorted by connection and index; no rows if the files cannot be read again.

    Args:
        names: the files of the capture, as the user named them.
        segments: rows of `schema.SEGMENTS`.
        connections: rows of `schema.CONNECTIONS`.
    """
    asked = connections.filter(_CARRIED).select(COLUMNS)
    expected, others = pl.collect_all([asked.filter(which).head(MAX_CONNECTIONS) for which in (_USUAL, ~_USUAL)])
    if expected.is_empty() and others.is_empty():
        return _nothing()
    with readable(names, MAX_UNPACKED_BYTES if expected.is_empty() else None) as paths:
        return _nothing() if paths is None else _found(paths, segments, connections, expected, others)


def without_names(rows: pl.DataFrame) -> pl.DataFrame:
    """Remove text that hosts sent: all targets, and methods that are not standard ones."""
    method = pl.when(pl.col("method").is_in(METHODS)).then("method")
    return rows.with_columns(method=method, target=pl.lit(None, pl.String))


def _nothing() -> pl.DataFrame:
    return schema.TRANSACTIONS.no_rows()


def _found(
    paths: Sequence[str], segments: pl.LazyFrame, connections: pl.LazyFrame, expected: pl.DataFrame, others: pl.DataFrame
) -> pl.DataFrame:
    asked = not others.is_empty() and mentioned(paths)
    if expected.is_empty() and not asked:
        return _nothing()
    from tcptrace_lab.transactions import parsing, protocol_detection  # noqa: PLC0415  (h11)

    protocols = dict[int, str]()
    if asked:
        ports = {conn: (client, server) for conn, client, server in others.select("conn", "client_port", "server_port").iter_rows()}
        protocols = protocol_detection.protocols(paths, segments, ports)
    looked_into = pl.concat([expected, others.filter(pl.col("conn").is_in(list(protocols)))])
    if looked_into.is_empty():
        return _nothing()
    at_ftp = expected.filter(pl.col("server_port").is_in(FTP_PORTS))["conn"]
    return parsing.parse_transactions(
        paths, segments, connections, looked_into, {*at_ftp, *(conn for conn, which in protocols.items() if which == "ftp")}
    )
