"""Parses the transactions of connections, and adds handshake times and FTP data connections."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from tcptrace_lab import schema
from tcptrace_lab.schema import SIDES
from tcptrace_lab.transactions import ftp, http
from tcptrace_lab.transactions.payloads import pieces, wanted
from tcptrace_lab.transactions.transaction import COLUMNS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from tcptrace_lab.transactions.payloads import Piece
    from tcptrace_lab.transactions.transaction import Transaction

MAX_TRANSACTIONS = 200_000
"""Maximum number of rows, which take up to 100 MB."""

Conversation = http.Conversation | ftp.Conversation


def parse_transactions(
    paths: Sequence[str], segments: pl.LazyFrame, connections: pl.LazyFrame, looked_into: pl.DataFrame, expect_ftp: Collection[int]
) -> pl.DataFrame:
    """Return rows of `schema.TRANSACTIONS`, sorted by connection and index.

    Args:
        paths: the files of the capture, uncompressed.
        segments: rows of `schema.SEGMENTS`.
        connections: rows of `schema.CONNECTIONS`.
        looked_into: rows of the connections that can carry HTTP or FTP.
        expect_ftp: numbers of the connections on which FTP is expected. On all other connections, HTTP is expected.
    """
    known = {row["conn"]: row for row in looked_into.select(COLUMNS).iter_rows(named=True)}
    ports = {conn: (row["client_port"], row["server_port"]) for conn, row in known.items()}
    conversations = _listened(pieces(paths, wanted(segments, list(known)), ports), expect_ftp)
    transfers = _Transfers(connections, [known[conn] for conn, each in conversations.items() if isinstance(each, ftp.Conversation)])
    rows: list[dict[str, Any]] = []
    for conn, conversation in sorted(conversations.items()):
        conversation.end(closed=known[conn]["closed_by"] == "fin")
        if isinstance(conversation, ftp.Conversation):
            transfers.link(conversation, known[conn])
        rows += _rows(conversation, known[conn])
    return pl.DataFrame(rows[:MAX_TRANSACTIONS], schema=schema.TRANSACTIONS.polars_schema())


def _listened(stream: Iterator[Piece], expect_ftp: Collection[int]) -> dict[int, Conversation]:
    """Return connection → its parsed conversation. The first captured bytes can override the expected protocol."""
    conversations: dict[int, Conversation | None] = {}
    for piece in stream:
        if piece.conn not in conversations:
            if not piece.data:
                continue
            conversations[piece.conn] = _begun(piece, expect_ftp=piece.conn in expect_ftp)
        conversation = conversations[piece.conn]
        if conversation is not None:
            conversation.take(piece)
    return {conn: conversation for conn, conversation in conversations.items() if conversation is not None}


def _begun(piece: Piece, *, expect_ftp: bool) -> Conversation | None:
    if piece.from_client and http.REQUEST_LINE.match(piece.data):
        return http.Conversation(piece.conn)
    if expect_ftp or (not piece.from_client and ftp.GREETING.match(piece.data)):
        begins = ftp.COMMAND.match(piece.data.split(b"\r\n")[0]) if piece.from_client else ftp.REPLY.match(piece.data)
        return ftp.Conversation(piece.conn) if begins else None
    return http.Conversation(piece.conn)


def _handshake(row: dict[str, Any]) -> int | None:
    return None if row["syn_to_synack_ns"] is None or row["synack_to_ack_ns"] is None else row["syn_to_synack_ns"] + row["synack_to_ack_ns"]


def _rows(conversation: Conversation, row: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the rows of one conversation.

    The handshake time of an HTTP connection belongs to its first transaction. The handshake time of an FTP control connection belongs to
    none.
    """
    opened_ns = _handshake(row)
    ready_ns = None if opened_ns is None else row["first_ts_ns"] + opened_ns
    complete = [
        transaction for transaction in conversation.transactions if transaction.method is not None or transaction.status is not None
    ]
    for index, transaction in enumerate(complete):
        if index == 0 and isinstance(conversation, http.Conversation):
            transaction.connect_ns = opened_ns
        yield transaction.row(index, ready_ns)
        ready_ns = transaction.last_ts_ns


class _Transfers:
    """Finds the data connections of FTP transfers."""

    def __init__(self, connections: pl.LazyFrame, controls: Sequence[dict[str, Any]]) -> None:
        hosts = [row[f"{side}_addr"] for row in controls for side in SIDES]
        among = pl.col("client_addr").is_in(hosts) & pl.col("server_addr").is_in(hosts)
        rows = connections.filter(among).select(COLUMNS).collect() if hosts else None
        self._rows = [] if rows is None else rows.sort("first_ts_ns").rows(named=True)
        self._taken: set[int] = set()

    def link(self, conversation: ftp.Conversation, control: dict[str, Any]) -> None:
        """Add to each transfer its data connection, with size and times."""
        for index, agreed in conversation.agreed.items():
            transaction = conversation.transactions[index]
            row = self._match(control, agreed, transaction)
            if row is not None:
                self._taken.add(row["conn"])
                _with_data(transaction, row)

    def _match(self, control: dict[str, Any], agreed: ftp.Agreed, transaction: Transaction) -> dict[str, Any] | None:
        """Return the connection to the announced port of the listening side, if it is open during the transfer; else None."""
        listener, opener = ("client", "server") if agreed.client_listens else ("server", "client")
        for row in self._rows:
            fits = row["server_port"] == agreed.port and row["server_addr"] == control[f"{listener}_addr"]
            lived = row["last_ts_ns"] is not None and row["last_ts_ns"] >= (transaction.request_ts_ns or 0)
            begun = transaction.last_ts_ns is None or row["first_ts_ns"] <= transaction.last_ts_ns
            if fits and lived and begun and row["client_addr"] == control[f"{opener}_addr"] and row["conn"] not in self._taken:
                return row
        return None


def _with_data(transaction: Transaction, row: dict[str, Any]) -> None:
    sender = max(SIDES, key=lambda side: row[f"{side}_unique_bytes"] or 0)
    transaction.data_conn = row["conn"]
    transaction.connect_ns = _handshake(row)
    transaction.body_bytes = row[f"{sender}_unique_bytes"]
    if row[f"{sender}_first_data_ts_ns"] is not None:
        transaction.answer_ts_ns = row[f"{sender}_first_data_ts_ns"]
        transaction.data_last_ts_ns = row[f"{sender}_last_data_ts_ns"]
