"""The table `transactions`: one HTTP/1 or FTP transaction per row."""

from __future__ import annotations

from tcptrace_lab.schema.categories import PROTOCOLS, TRANSACTION_STATES
from tcptrace_lab.schema.column import Column, Unit, table

TRANSACTIONS = table(
    "transactions",
    "one transaction of HTTP/1 (a request and its answer) or FTP (a command, its replies and its data connection)",
    [
        Column("conn", "UInt32", Unit.NONE, "Connection; of FTP, the control connection"),
        Column("index", "Int64", Unit.NONE, "Its number in its connection, from 0"),
        Column("protocol", "Enum", Unit.NONE, "Application protocol", "by the first bytes; if those were not captured, only on the usual server ports", PROTOCOLS),
        Column("method", "String", Unit.NONE, "Method of the request, or FTP's command", "null where its first line was not captured"),
        Column("target", "String", Unit.NONE, "Target of the request: the first 256 characters", "null where it was not captured, and of PASS and ACCT"),
        Column("status", "Int64", Unit.NONE, "Status code of the answer; for FTP, of the last reply", "null without an answer"),
        Column("state", "Enum", Unit.NONE, "Completeness of the transaction", values=TRANSACTION_STATES),
        Column("data_conn", "UInt32", Unit.NONE, "FTP's data connection", "null if none was opened, or none was found that fits the negotiation"),
        Column("request_bytes", "Int64", Unit.BYTES, "Size of the request, its head included", "null where it is unknown whole"),
        Column("answer_bytes", "Int64", Unit.BYTES, "Size of the answer, its head included; of FTP, of the replies", "null where it is unknown whole"),
        Column("body_bytes", "Int64", Unit.BYTES, "Size of the transferred body: the larger of the two bodies; for FTP, the data connection", "HTTP: without chunk framing, compressed if it was; null where it is unknown whole"),
        Column("request_frame", "Int64", Unit.FRAME, "The segment with the first byte of the request"),
        Column("answer_frame", "Int64", Unit.FRAME, "The segment with the first byte of the answer", "null without one"),
        Column("last_frame", "Int64", Unit.FRAME, "The segment that completed the answer", "null if incomplete"),
        Column("request_ts_ns", "Int64", Unit.NS, "Time of the first byte of the request"),
        Column("answer_ts_ns", "Int64", Unit.NS, "Time of the first byte of the answer, of FTP with a data connection: of the data", "null without one"),
        Column("last_ts_ns", "Int64", Unit.NS, "Time when the answer was complete", "null if incomplete"),
        Column("connect_ns", "Int64", Unit.NS, "Time of the handshake of the connection opened for the transaction: HTTP: only the first transaction; FTP: each data connection", "null for others, and without a handshake in the capture"),
        Column("client_think_ns", "Int64", Unit.NS, "Client think time: from the handshake, or the end of the previous answer, to the request", "null if unknown, and for pipelined requests"),
        Column("request_ns", "Int64", Unit.NS, "From the first byte of the request to the last", "null where it is unknown whole"),
        Column("server_think_ns", "Int64", Unit.NS, "Server think time: from the last byte of the request to the first of the answer, including the RTT from the capture point", "null if unknown; never negative: 0 if the answer began before the end of the request"),
        Column("transfer_ns", "Int64", Unit.NS, "From the first byte of the answer to the last; of FTP with a data connection: of the data", "null where it is unknown whole"),
        Column("total_ns", "Int64", Unit.NS, "From the first byte of the request to the last of the answer", "null where that is unknown"),
    ],
)
