"""Columns of `connections` with conclusions about the capture of a connection, and about its two endpoints."""

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

_TURNAROUND = "an upper bound; null if no segment of this host proves that a segment of the peer had arrived"

CAPTURED = (
    Column("vantage", "Enum", Unit.NONE, "Capture point of this connection: at the client, at the server, in the middle, or unknown", "docs/how-it-decides.md, 2.1, has the rules", VANTAGES),
    Column("vantage_confidence", "Enum", Unit.NONE, "Confidence of vantage", "proved: the handshake alone shows that the capture point is at an end; possible: the handshake contradicts the other evidence, or only ACKs that may all have been delayed show a capture point in the middle; null if vantage is unknown", CONFIDENCES),
    Column("vantage_known_by", "Enum", Unit.NONE, "What shows vantage, or why it is unknown", values=VANTAGE_KNOWN_BY),
    Column("rtt_to_client_ns", "Int64", Unit.NS, "Shortest time from the capture point to the client and back (turnaround of the client)", _TURNAROUND),
    Column("rtt_to_server_ns", "Int64", Unit.NS, "Shortest time from the capture point to the server and back (turnaround of the server)", _TURNAROUND),
    Column("quality_factor", "Float64", Unit.NONE, "Factor from 0 to 1 that lowers the confidence of verdicts on this connection because of faults of its capture; 1 without faults"),
    Column("quality_reasons", "List(String)", Unit.NONE, "Faults of this connection's capture, by name", "empty without faults"),
)
"""Columns on where a connection was captured, and on how reliable its capture is."""

HOSTS = (
    Column("ack_policy", "Enum", Unit.NONE, "What triggers an ACK of this host", values=ACK_POLICIES),
    Column("ack_policy_samples", "Int64", Unit.SEGMENTS, "Number of ACKs that show ack_policy"),
    Column("ack_timer_ms", "Float64", Unit.NONE, "Delayed-ACK timer of this host, in ms", "one of the timers in docs/how-it-decides.md, 2.5; null if unknown"),
    Column("ack_timer_kind", "Enum", Unit.NONE, "Kind of the delayed-ACK timer of this host: fixed (started by the segment) or heartbeat (periodic)", "null if unknown", ACK_TIMER_KINDS),
    Column("ack_delay_from_ms", "Int64", Unit.NONE, "10th percentile of the delays of this host's delayed ACKs, in ms", "rounded to 2 ms; null without delayed ACKs"),
    Column("ack_delay_to_ms", "Int64", Unit.NONE, "90th percentile of the delays of this host's delayed ACKs, in ms", "rounded to 2 ms; null without delayed ACKs"),
    Column("nagle", "Enum", Unit.NONE, "Whether Nagle's algorithm delays the small segments of this host", values=NAGLE_STATES),
    Column("nagle_confidence", "Enum", Unit.NONE, "Confidence of nagle", "null if nagle is unknown", CONFIDENCES),
    Column("nagle_frame", "UInt64", Unit.FRAME, "First frame that shows whether Nagle's algorithm is on or off", "null if nagle is unknown"),
    Column("stack_guess", "Enum", Unit.NONE, "Family of this host's TCP stack, guessed from the options and the TTL of its SYN", "settings, middleboxes and tunnels change the SYN; null without a match", STACKS),
)
"""Columns with conclusions about one endpoint. The prefix of a column names the endpoint."""
