"""Transactions of HTTP/1 and FTP in a capture, with the parts of their times: connection, waiting, request, thinking, transfer.

Read in this order: `payloads` (the bytes of some connections, in order) · `transaction` (what is told of one) · `http` · `ftp` · `known`
(with what the connections tell). Nothing is read a second time unless a connection to a usual port of HTTP or FTP carried data; what is
spoken there is told by the first bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from tcptrace_lab import schema
from tcptrace_lab.frames import readable

if TYPE_CHECKING:
    from collections.abc import Sequence

FTP_PORTS = (21, 2121)
HTTP_PORTS = (
    *(80, 81, 591, 2080, 3000, 3128, 5000, 5985, 7001, 8000, 8008, 8080, 8081, 8088, 8090, 8118, 8123, 8180, 8222, 8888),
    *(9000, 9080, 9090, 9200, 11371),
)
"""Ports of servers: IANA's for http, http-alt and their kin, and what proxies and programs take by habit."""

MOST_CONNECTIONS = 10_000
"""Connections that are looked into: the first so many."""


def found(names: Sequence[str], segments: pl.LazyFrame, connections: pl.LazyFrame) -> pl.DataFrame:
    """Rows of `schema.TRANSACTIONS`, by connection and index; none where the files cannot be read again.

    Args:
        names: the files of the capture, as they were read.
        segments: rows of `schema.SEGMENTS`.
        connections: rows of `schema.CONNECTIONS`.
    """
    spoken = pl.col("server_port").is_in([*FTP_PORTS, *HTTP_PORTS]) & (
        (pl.col("client_payload_bytes") > 0) | (pl.col("server_payload_bytes") > 0)
    )
    looked_into = connections.filter(spoken).head(MOST_CONNECTIONS).collect()
    if not looked_into.is_empty():
        from tcptrace_lab.transactions.known import followed  # noqa: PLC0415  (h11, which most captures do not need)

        with readable(names) as paths:
            if paths is not None:
                return followed(paths, segments, connections, looked_into, frozenset(FTP_PORTS))
    return pl.DataFrame(schema=schema.TRANSACTIONS.polars_schema())
