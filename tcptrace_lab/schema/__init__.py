"""Defines every column of every table: its type, unit, one-line meaning and limits.

The documentation, the tooltips, the axis labels and the exports all use these declarations. No other part of the package states what a
column means. Conventions for all tables:

- Times are integer nanoseconds (`*_ns`) and sizes are bytes (`*_bytes`). Both are Int64, so that sums and differences neither wrap nor
  overflow.
- Unknown is null, never 0.
- Stream offsets (`seq`, `ack`, `sack_blocks`) are relative and continue past 4 GiB without wrapping: SYN = 0 and the first byte = 1, as in
  Wireshark. In a capture that starts in mid-stream, bytes before its first segment have offsets below 1. For such bytes, Wireshark shows
  numbers near 2^32.
- `frame` is 1-based and equals Wireshark's frame number.

Each table, or part of a table, has its own module. Other modules import the names from this package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcptrace_lab.schema.archive import ARCHIVE_TABLES, CAPTURE_STATES, MONTH, PART_TABLES, STORE_VERSION
from tcptrace_lab.schema.categories import (
    ACK_POLICIES,
    BOUND_BY,
    CAPTURE_FAULTS,
    CLIENT_KNOWN_BY,
    CLOSED_BY,
    CONFIDENCES,
    ECN_SIGNALS,
    EVIDENCE,
    KINDS,
    LINES,
    LOSS_KNOWN_BY,
    MESSAGE_STATES,
    PROTOCOLS,
    RELEASED_BY,
    RESENT,
    RESET_KINDS,
    RETRANSMIT_TRIGGERS,
    TFO,
    TRANSACTION_STATES,
    VANTAGES,
)
from tcptrace_lab.schema.column import Column, Table, Unit
from tcptrace_lab.schema.connections import (
    CONNECTIONS,
    DIRECTION_NAMES,
    MORE_STATISTICS_NAMES,
    SIDES,
    SPREADS,
    STATISTICS,
)
from tcptrace_lab.schema.datagrams import DATAGRAMS, FLOW_DIRECTION_NAMES, FLOWS
from tcptrace_lab.schema.findings import FINDINGS
from tcptrace_lab.schema.ledger import ACCOUNTS, CAUSES, DEPARTURES, LEDGER, STALL_TIMERS, STALLS
from tcptrace_lab.schema.messages import MESSAGES
from tcptrace_lab.schema.rates import BOUNDS, RATES
from tcptrace_lab.schema.segments import SEGMENTS
from tcptrace_lab.schema.transactions import TRANSACTIONS
from tcptrace_lab.schema.wait_tables import KINDS_OF_WAITS, LOCKS, LONGEST, NOTES, PLACES, WAITS

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "ACCOUNTS",
    "ACK_POLICIES",
    "ARCHIVE_TABLES",
    "BOUNDS",
    "BOUND_BY",
    "CAPTURE_FAULTS",
    "CAPTURE_STATES",
    "CAUSES",
    "CLIENT_KNOWN_BY",
    "CLOSED_BY",
    "CONFIDENCES",
    "CONNECTIONS",
    "DATAGRAMS",
    "DEPARTURES",
    "DIRECTION_NAMES",
    "ECN_SIGNALS",
    "EVIDENCE",
    "FINDINGS",
    "FLOWS",
    "FLOW_DIRECTION_NAMES",
    "KINDS",
    "KINDS_OF_WAITS",
    "LEDGER",
    "LINES",
    "LOCKS",
    "LONGEST",
    "LOSS_KNOWN_BY",
    "MESSAGES",
    "MESSAGE_STATES",
    "MONTH",
    "MORE_STATISTICS_NAMES",
    "NOTES",
    "PART_TABLES",
    "PLACES",
    "PROTOCOLS",
    "RATES",
    "RELEASED_BY",
    "RESENT",
    "RESET_KINDS",
    "RETRANSMIT_TRIGGERS",
    "SEGMENTS",
    "SIDES",
    "SPREADS",
    "STALLS",
    "STALL_TIMERS",
    "STATISTICS",
    "STORE_VERSION",
    "TABLES",
    "TFO",
    "TRANSACTIONS",
    "TRANSACTION_STATES",
    "VANTAGES",
    "WAITS",
    "Column",
    "Table",
    "Unit",
]

TABLES: Mapping[str, Table] = {table.name: table for table in (SEGMENTS, CONNECTIONS, LEDGER, DEPARTURES, STALLS, ACCOUNTS, MESSAGES, TRANSACTIONS, RATES, FINDINGS, DATAGRAMS, FLOWS)}
"""All tables made of one capture, by name. `ARCHIVE_TABLES` has those of an archive, and `wait_tables` further tables that the engine
returns."""
