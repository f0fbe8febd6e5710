"""The tables of an archive: results of thousands of captures, as Parquet that Polars, DuckDB and pandas read.

The first column of each table is `capture`, the key of the table `captures`. Connections are numbered within their capture. Categories are
strings, so that any reader shows their names. The files are in `tables/TABLE/month=YYYY-MM/`. `YYYY-MM` is the month in which the capture
starts (UTC); `unknown` replaces it if the capture has no timestamps or could not be read. When the name, type or meaning of a column
changes, `STORE_VERSION` changes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tcptrace_lab.schema.column import Column, Table, Unit, table
from tcptrace_lab.schema.connections import CONNECTIONS
from tcptrace_lab.schema.findings import FINDINGS
from tcptrace_lab.schema.ledger import STALLS
from tcptrace_lab.schema.messages import MESSAGES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

STORE_VERSION = 4
"""Version of the layout and the tables of an archive."""

MONTH = "month"
"""The partition column. Every table has it when read with Hive partitioning."""

_CAPTURE = Column("capture", "String", Unit.NONE, "Key of the capture: the first 20 digits of the SHA-256 of its contents")
_CONN = Column("conn", "UInt32", Unit.NONE, "Number of the connection in its capture, from 0", "null for the capture as a whole")
_FROM_CLIENT = Column("from_client", "Boolean", Unit.NONE, "True for the client's direction", "null for both directions or neither")

CAPTURE_STATES = {
    "whole": "read completely",
    "part": "partly read: results cover what could be used",
    "failed": "not readable because of its contents; another attempt would fail again",
    "lost": "not read this time: the worker was lost, or the file was unreachable; the next run tries again",
}
"""State of a capture after reading → meaning."""


def _stored(columns: Iterable[Column]) -> Iterator[Column]:
    """Yield the columns of another table in the form in which an archive stores them."""
    yield _CAPTURE
    for column in columns:
        yield replace(column, dtype="String") if column.dtype == "Enum" else column


FILES = table(
    "files",
    "one file that was found",
    [
        Column("path", "String", Unit.NONE, "Path at which the file was found", "as given, possibly relative to the folder where the command ran"),
        Column("capture", "String", Unit.NONE, "Key of the capture to which this file belongs", "null if it is no capture, or could not be read"),
        Column("place", "Int64", Unit.NONE, "Position of the file within its capture, from 0"),
        Column("file_bytes", "Int64", Unit.BYTES, "Size of the file", "null if it could not be read"),
        Column("sha256", "String", Unit.NONE, "SHA-256 of the contents", "null if it could not be read"),
        Column("state", "String", Unit.NONE, "What the file is: capture, duplicate (another path has the same contents), other (no capture, by name or first bytes) or unreadable"),
    ],
)

CAPTURES = table(
    "captures",
    "one capture; if several files have the same contents, the first one by path",
    [
        _CAPTURE,
        Column("name", "String", Unit.NONE, "Name of the capture's file, without folder and extensions"),
        Column("path", "String", Unit.NONE, "Path of the capture's file; for a rotated set, of the first file"),
        Column("files", "Int64", Unit.NONE, "Number of files: more than 1 for a rotated set"),
        Column("file_bytes", "Int64", Unit.BYTES, "Total size of the capture's files"),
        Column("state", "String", Unit.NONE, "; ".join(f"{name}: {meaning}" for name, meaning in CAPTURE_STATES.items()), "", tuple(CAPTURE_STATES)),
        Column("reason", "String", Unit.NONE, "Why the capture was not read completely", "null if it was read completely"),
        Column("format", "String", Unit.NONE, "File format of the capture"),
        Column("link_types", "String", Unit.NONE, "Names of the link types in the capture"),
        Column("packets", "Int64", Unit.NONE, "Number of packets"),
        Column("tcp_segments", "Int64", Unit.SEGMENTS, "Number of TCP segments"),
        Column("udp_datagrams", "Int64", Unit.DATAGRAMS, "Number of UDP datagrams"),
        Column("connections", "Int64", Unit.NONE, "Number of TCP connections"),
        Column("first_ts_ns", "Int64", Unit.NS, "Time of the first packet", "in ns since 1970-01-01 UTC; null if the capture has no timestamps"),
        Column("last_ts_ns", "Int64", Unit.NS, "Time of the last packet", "in ns since 1970-01-01 UTC; null if the capture has no timestamps"),
        Column("active_ns", "Int64", Unit.NS, "Total active time of the directions that carried data or lost time"),
        Column("fixable_ns", "Int64", Unit.NS, "Part of active_ns with fixable causes; each direction counts separately"),
        Column("payload_bytes", "Int64", Unit.BYTES, "Bytes of data of all connections in both directions, each byte counted once"),
        Column("verdict", "String", Unit.NONE, "Verdict in one sentence: what took the time of the most important direction"),
        Column("findings", "Int64", Unit.NONE, "Number of findings"),
        Column("worst_severity", "String", Unit.NONE, "Highest severity of the findings: high, medium, low or info", "null without findings"),
        Column("quality", "String", Unit.NONE, "Capture quality: good, limited or poor", "null if the capture could not be read"),
        Column("quality_factor", "Float64", Unit.NONE, "Factor from 0 to 1 that lowers the confidence of findings because of faults of the capture"),
        Column("drops_suspected", "Int64", Unit.SEGMENTS, "Estimated number of segments that were ACKed but are missing from the capture"),
        Column("capture_duplicates", "Int64", Unit.SEGMENTS, "Segments that the capture contains twice"),
        Column("backward_timestamps", "Int64", Unit.NONE, "Packets with an earlier timestamp than the packet before them"),
        Column("resolution_ns", "Int64", Unit.NS, "Resolution of the capture's clock"),
        Column("report", "String", Unit.NONE, "Path of the capture's report in the archive", "null without a report"),
        Column("program", "String", Unit.NONE, "Version of tcptrace-lab that analyzed the capture", "null if it was not analyzed"),
    ],
)

STORED_CONNECTIONS = table("connections", CONNECTIONS.row, _stored(CONNECTIONS))

LEDGER_TOTALS = table(
    "ledger_totals",
    "time of one cause in one direction; causes without time have no row",
    [
        _CAPTURE,
        _CONN,
        _FROM_CLIENT,
        Column("cause", "String", Unit.NONE, "Why this direction did not send its next byte"),
        Column("is_fixable", "Boolean", Unit.NONE, "True if the cause is fixable; false for time that the application or the path needs"),
        Column("cause_ns", "Int64", Unit.NS, "Time that the cause took in this direction"),
        Column("life_ns", "Int64", Unit.NS, "Duration of the direction"),
    ],
)

STORED_STALLS = table("stalls", STALLS.row, _stored(STALLS))
STORED_MESSAGES = table("messages", MESSAGES.row, _stored(MESSAGES))

STORED_FINDINGS = table("findings", FINDINGS.row, _stored(FINDINGS))

PROBLEMS = table(
    "problems",
    "one kind of problem in reading a capture, or the reason why it could not be read",
    [
        _CAPTURE,
        Column("path", "String", Unit.NONE, "Path of the file", "null if no file is known"),
        Column("what", "String", Unit.NONE, "Description of the problem"),
        Column("frame", "Int64", Unit.FRAME, "First frame with the problem", "null if it concerns no frame"),
        Column("offset", "Int64", Unit.BYTES, "Byte offset of the problem in the decompressed file", "null if unknown"),
        Column("count", "Int64", Unit.NONE, "Number of occurrences"),
        Column("loses_data", "Boolean", Unit.NONE, "True if part of the capture could not be used"),
    ],
)

PART_TABLES: tuple[Table, ...] = (STORED_CONNECTIONS, LEDGER_TOTALS, STORED_STALLS, STORED_MESSAGES, STORED_FINDINGS, PROBLEMS)
"""The tables that are made of one capture at a time."""

ARCHIVE_TABLES = {each.name: each for each in (FILES, CAPTURES, *PART_TABLES)}
"""All tables of an archive, by name."""
