"""Columns of `connections`: what a whole connection shows about its capture and about its two endpoints."""

from __future__ import annotations

from tcptrace_lab.schema.categories import (
    ACK_POLICIES,
    ACK_TIMER_KINDS,
    CONFIDENCES,
    NAGLE_STATES,
    STACKS,
    VANTAGE_KNOWN_BY,
    VANTAGES,
)
from tcptrace_lab.schema.column import Column, Unit

_TURNAROUND = "an upper bound; null without an answer that proves the arrival of what it answers"

CAPTURED = (
    Column("vantage", "Enum", Unit.NONE, "Where the connection was captured", "docs/how-it-decides.md, 2.1", VANTAGES),
    Column("vantage_confidence", "Enum", Unit.NONE, "How sure that is", "proved: the handshake alone shows that it is at an end; possible: the handshake contradicts, or in the middle by ACKs that may all have been delayed; null if the place is unknown", CONFIDENCES),
    Column("vantage_known_by", "Enum", Unit.NONE, "What shows it, or why it is unknown", values=VANTAGE_KNOWN_BY),
    Column("rtt_to_client_ns", "Int64", Unit.NS, "Turnaround of the client: shortest time from the capture point to it and back", _TURNAROUND),
    Column("rtt_to_server_ns", "Int64", Unit.NS, "Turnaround of the server", _TURNAROUND),
    Column("quality_factor", "Float64", Unit.NONE, "Share of a verdict's confidence that the faults of this connection's capture leave, 0 to 1"),
    Column("quality_reasons", "List(String)", Unit.NONE, "These faults", "empty without any"),
)
"""Where a connection was captured, and how far the capture can be believed."""

HOSTS = (
    Column("ack_policy", "Enum", Unit.NONE, "What triggers an ACK of this host", values=ACK_POLICIES),
    Column("ack_policy_samples", "Int64", Unit.SEGMENTS, "ACKs that show it"),
    Column("ack_timer_ms", "Float64", Unit.NONE, "Delayed-ACK timer of this host in ms", "one of those in docs/how-it-decides.md, 2.5; null if unknown"),
    Column("ack_timer_kind", "Enum", Unit.NONE, "Kind of that timer", "null if unknown", ACK_TIMER_KINDS),
    Column("ack_delay_from_ms", "Int64", Unit.NONE, "Least of the middle 80% of the delays of its delayed ACKs, in ms", "to within 2 ms; null without any"),
    Column("ack_delay_to_ms", "Int64", Unit.NONE, "Most of them", "null without any"),
    Column("nagle", "Enum", Unit.NONE, "Whether Nagle's algorithm delays the small segments of this host", values=NAGLE_STATES),
    Column("nagle_confidence", "Enum", Unit.NONE, "How sure that is", "null if unknown", CONFIDENCES),
    Column("nagle_frame", "UInt64", Unit.FRAME, "First frame that shows it", "null if unknown"),
    Column("stack_guess", "Enum", Unit.NONE, "Family of its TCP stack, from the options and the time to live of its SYN", "a guess: settings, middleboxes and tunnels change the SYN; null without one", STACKS),
)
"""Conclusions about one endpoint; columns are named by that endpoint."""
