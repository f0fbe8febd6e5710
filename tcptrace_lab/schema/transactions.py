"""The table `transactions`: one HTTP/1 or FTP transaction per row."""

from __future__ import annotations

from tcptrace_lab.schema.categories import PROTOCOLS, TRANSACTION_STATES
from tcptrace_lab.schema.column import Column, Unit, table

TRANSACTIONS = table(
    "transactions",
    "one transaction of HTTP/1 (a request and its answer) or FTP (a command, its replies and its data connection)",
    [
        Column("conn", "UInt32", Unit.NONE, "Number of the connection; for FTP, of the control connection"),
        Column("index", "Int64", Unit.NONE, "Number of the transaction in its connection, from 0"),
        Column("protocol", "Enum", Unit.NONE, "Application protocol", "recognized by the first bytes; if those were not captured, only on the usual server ports", PROTOCOLS),
        Column("method", "String", Unit.NONE, "Method of the HTTP request, or FTP command", "null if its first line was not captured"),
        Column("target", "String", Unit.NONE, "Target of the HTTP request, or argument of the FTP command: the first 256 characters", "null if it was not captured, and for PASS and ACCT"),
        Column("status", "Int64", Unit.NONE, "Status code of the answer; for FTP, of the last reply", "null without an answer"),
        Column("state", "Enum", Unit.NONE, "Completeness of the transaction", values=TRANSACTION_STATES),
        Column("data_conn", "UInt32", Unit.NONE, "Number of FTP's data connection", "null if none was opened, or if none was found that fits the negotiation"),
        Column("request_bytes", "Int64", Unit.BYTES, "Size of the request, headers included", "null unless all of it is known"),
        Column("answer_bytes", "Int64", Unit.BYTES, "Size of the answer, headers included; for FTP, of the replies", "null unless all of it is known"),
        Column("body_bytes", "Int64", Unit.BYTES, "Size of the transferred body: for HTTP, the larger of the two bodies; for FTP, the data connection", "for HTTP, without chunk framing, and compressed if it was sent compressed; null unless all of it is known"),
        Column("request_frame", "Int64", Unit.FRAME, "Frame of the segment with the first byte of the request"),
        Column("answer_frame", "Int64", Unit.FRAME, "Frame of the segment with the first byte of the answer", "null without an answer"),
        Column("last_frame", "Int64", Unit.FRAME, "Frame of the segment that completed the answer", "null if the answer is incomplete"),
        Column("request_ts_ns", "Int64", Unit.NS, "Time of the first byte of the request, in ns since 1970-01-01 UTC"),
        Column("answer_ts_ns", "Int64", Unit.NS, "Time of the first byte of the answer; for FTP with a data connection, of the data", "null without an answer"),
        Column("last_ts_ns", "Int64", Unit.NS, "Time when the answer was complete", "null if the answer is incomplete"),
        Column("connect_ns", "Int64", Unit.NS, "Duration of the handshake of the connection that was opened for the transaction: for HTTP, only for its first transaction; for FTP, of each data connection", "null for all other transactions, and without a handshake in the capture"),
        Column("client_think_ns", "Int64", Unit.NS, "Client think time: from the end of the handshake, or from the end of the previous answer, to the request", "null if unknown, and for pipelined requests"),
        Column("request_ns", "Int64", Unit.NS, "Time from the first byte of the request to the last", "null unless all of it is known"),
        Column("server_think_ns", "Int64", Unit.NS, "Server think time: from the last byte of the request to the first byte of the answer, including the RTT from the capture point to the server", "null if unknown; 0 if the answer began before the end of the request"),
        Column("transfer_ns", "Int64", Unit.NS, "Time from the first byte of the answer to the last; for FTP with a data connection, of the data", "null unless all of it is known"),
        Column("total_ns", "Int64", Unit.NS, "Time from the first byte of the request to the last byte of the answer", "null unless both are known"),
    ],
)
