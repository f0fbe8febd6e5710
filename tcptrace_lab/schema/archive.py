"""The tables of an archive: results of thousands of captures, as Parquet that Polars, DuckDB and pandas read.

Each table starts with `capture`, the key of the table `captures`; connections are numbered within their capture. Categories are strings
here, so that any reader shows their names. The files are in `tables/TABLE/month=YYYY-MM/`: the month in which the capture starts (UTC),
`unknown` if it has no timestamps or could not be read. Any change of a column's name, type or meaning changes `STORE_VERSION`.
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

STORE_VERSION = 3
"""Version of the layout and the tables of an archive."""

MONTH = "month"
"""The partition column, present in every table when read with Hive partitioning."""

_CAPTURE = Column("capture", "String", Unit.NONE, "Capture: the first 20 digits of the SHA-256 of its contents")
_CONN = Column("conn", "UInt32", Unit.NONE, "Connection, numbered from 0 in its capture", "null for the capture as a whole")
_FROM_CLIENT = Column("from_client", "Boolean", Unit.NONE, "True for the client's direction", "null for both or none")

CAPTURE_STATES = {
    "whole": "read completely",
    "part": "partly read: results cover what could be used",
    "failed": "not readable because of its contents; another attempt would fail again",
    "lost": "not read this time: the worker was lost, or the file was unreachable; the next run tries again",
}
"""Result of reading a capture."""


def _stored(columns: Iterable[Column]) -> Iterator[Column]:
    """Yield the columns of another table as an archive stores them."""
    yield _CAPTURE
    for column in columns:
        yield replace(column, dtype="String") if column.dtype == "Enum" else column


FILES = table(
    "files",
    "one file that was found",
    [
        Column("path", "String", Unit.NONE, "Where it was found", "as given, possibly relative to the folder where the command ran"),
        Column("capture", "String", Unit.NONE, "Capture of this file", "null where it is no capture, or could not be read at all"),
        Column("place", "Int64", Unit.NONE, "Position in the files of its capture, from 0"),
        Column("file_bytes", "Int64", Unit.BYTES, "Its size", "null where it could not be read"),
        Column("sha256", "String", Unit.NONE, "Hash of its contents", "null where it could not be read"),
        Column("state", "String", Unit.NONE, "capture, duplicate (the same contents were found at another path first), other (no capture by name or first bytes), unreadable"),
    ],
)

CAPTURES = table(
    "captures",
    "one capture; of files with the same contents, the first by path",
    [
        _CAPTURE,
        Column("name", "String", Unit.NONE, "Its file's name without folder and endings"),
        Column("path", "String", Unit.NONE, "Its file, the first of a rotated set"),
        Column("files", "Int64", Unit.NONE, "Number of rotated files"),
        Column("file_bytes", "Int64", Unit.BYTES, "Their size"),
        Column("state", "String", Unit.NONE, "; ".join(f"{name}: {meaning}" for name, meaning in CAPTURE_STATES.items()), "", tuple(CAPTURE_STATES)),
        Column("reason", "String", Unit.NONE, "Why it is incomplete", "null if complete"),
        Column("format", "String", Unit.NONE, "Format of its file"),
        Column("link_types", "String", Unit.NONE, "Names of its link types"),
        Column("packets", "Int64", Unit.NONE, "Packets"),
        Column("tcp_segments", "Int64", Unit.SEGMENTS, "TCP segments"),
        Column("udp_datagrams", "Int64", Unit.DATAGRAMS, "UDP datagrams"),
        Column("connections", "Int64", Unit.NONE, "TCP connections"),
        Column("first_ts_ns", "Int64", Unit.NS, "Time of the first packet", "null if the capture has no timestamps"),
        Column("last_ts_ns", "Int64", Unit.NS, "Time of the last packet", "null as above"),
        Column("life_ns", "Int64", Unit.NS, "Total lifetime of all directions that carried data or lost time"),
        Column("fixable_ns", "Int64", Unit.NS, "Part of that with fixable causes; each direction counts separately"),
        Column("payload_bytes", "Int64", Unit.BYTES, "Data of all connections in both directions, each byte once"),
        Column("verdict", "String", Unit.NONE, "Verdict: where the time of the most important direction went, in one sentence"),
        Column("findings", "Int64", Unit.NONE, "Findings"),
        Column("worst_severity", "String", Unit.NONE, "Highest severity of its findings: high, medium, low or info", "null without any"),
        Column("quality", "String", Unit.NONE, "Capture quality: good, limited or poor", "null where it could not be read"),
        Column("quality_factor", "Float64", Unit.NONE, "Factor for the confidence of findings, 0 to 1"),
        Column("drops_suspected", "Int64", Unit.SEGMENTS, "Segments that are ACKed but missing from the capture (estimate)"),
        Column("capture_duplicates", "Int64", Unit.SEGMENTS, "Segments captured twice"),
        Column("backward_timestamps", "Int64", Unit.NONE, "Packets with an earlier timestamp than the packet before"),
        Column("resolution_ns", "Int64", Unit.NS, "Resolution of its clock"),
        Column("report", "String", Unit.NONE, "Path of its report in the archive", "null without one"),
        Column("program", "String", Unit.NONE, "Version of the application that analyzed it", "null where none could"),
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
        Column("cause", "String", Unit.NONE, "Why the next byte of this direction did not leave"),
        Column("is_fixable", "Boolean", Unit.NONE, "True if fixable: false for time that the application or the path needs"),
        Column("cause_ns", "Int64", Unit.NS, "Time"),
        Column("life_ns", "Int64", Unit.NS, "Lifetime of the direction"),
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
        Column("path", "String", Unit.NONE, "The file", "null if no file is known"),
        Column("what", "String", Unit.NONE, "What it is"),
        Column("frame", "Int64", Unit.FRAME, "The first frame concerned", "null where none is"),
        Column("offset", "Int64", Unit.BYTES, "Offset in the decompressed file", "null where it is unknown"),
        Column("count", "Int64", Unit.NONE, "Number of occurrences"),
        Column("loses_data", "Boolean", Unit.NONE, "True if part of the capture could not be used"),
    ],
)

PART_TABLES: tuple[Table, ...] = (STORED_CONNECTIONS, LEDGER_TOTALS, STORED_STALLS, STORED_MESSAGES, STORED_FINDINGS, PROBLEMS)
"""The tables that are made of one capture at a time."""

ARCHIVE_TABLES = {each.name: each for each in (FILES, CAPTURES, *PART_TABLES)}
"""All tables of an archive, by name."""
