"""The table `transactions`."""

from __future__ import annotations

from tcptrace_lab.schema.column import Column, Unit, table
from tcptrace_lab.schema.words import PROTOCOLS, TRANSACTION_STATES

TRANSACTIONS = table(
    "transactions",
    "one transaction of HTTP/1 (a request and its answer) or FTP (a command, its replies and its data connection)",
    [
        Column("conn", "UInt32", Unit.NONE, "Connection; of FTP, the control connection"),
        Column("index", "Int64", Unit.NONE, "Its number in its connection, from 0"),
        Column("protocol", "Enum", Unit.NONE, "What is spoken", "told by the first bytes; where those were not captured, at the usual ports of servers only", PROTOCOLS),
        Column("method", "String", Unit.NONE, "Method of the request, or FTP's command", "null where its first line was not captured"),
        Column("target", "String", Unit.NONE, "What is asked for: the first 256 characters", "null where it was not captured, and of PASS and ACCT"),
        Column("status", "Int64", Unit.NONE, "Code of the answer, of FTP the last reply's", "null without an answer"),
        Column("state", "Enum", Unit.NONE, "Whether it is known as a whole", values=TRANSACTION_STATES),
        Column("data_conn", "UInt32", Unit.NONE, "FTP's data connection", "null where none was opened, or none was found that fits what the two sides agreed on"),
        Column("request_bytes", "Int64", Unit.BYTES, "Size of the request, its head included", "null where it is not known whole"),
        Column("answer_bytes", "Int64", Unit.BYTES, "Size of the answer, its head included; of FTP, of the replies", "null where it is not known whole"),
        Column("body_bytes", "Int64", Unit.BYTES, "What was transferred: the larger of the two bodies, of FTP what went over the data connection", "of HTTP without the framing of chunks, still compressed where it was; null where it is not known whole"),
        Column("request_frame", "Int64", Unit.FRAME, "The segment with the first byte of the request"),
        Column("answer_frame", "Int64", Unit.FRAME, "The segment with the first byte of the answer", "null without one"),
        Column("last_frame", "Int64", Unit.FRAME, "The segment that made the answer whole", "null where it is not"),
        Column("request_ts_ns", "Int64", Unit.NS, "Time of the first byte of the request"),
        Column("answer_ts_ns", "Int64", Unit.NS, "Time of the first byte of the answer, of FTP with a data connection: of the data", "null without one"),
        Column("last_ts_ns", "Int64", Unit.NS, "Time when the answer was whole", "null where it is not"),
        Column("connect_ns", "Int64", Unit.NS, "Time of the handshake of the connection that was opened for it: the first transaction's of HTTP, each data connection's of FTP", "null for others, and without a handshake in the capture"),
        Column("wait_ns", "Int64", Unit.NS, "Time that the client took before it asked: since the handshake, or since the answer before was whole", "null where that is not known, and where it asked before (pipelining)"),
        Column("request_ns", "Int64", Unit.NS, "From the first byte of the request to the last", "null where it is not known whole"),
        Column("think_ns", "Int64", Unit.NS, "From the last byte of the request to the first of the answer: the server's time, and the way there and back as seen from the capture point", "null where that is not known; below 0 never: an answer that began before the request was whole thought for 0"),
        Column("transfer_ns", "Int64", Unit.NS, "From the first byte of the answer to the last; of FTP with a data connection: of the data", "null where it is not known whole"),
        Column("total_ns", "Int64", Unit.NS, "From the first byte of the request to the last of the answer", "null where that is not known"),
    ],
)
