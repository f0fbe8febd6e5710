"""Categories of the `Enum` columns, with their meanings."""

from __future__ import annotations

KINDS = (
    "new",
    "ack",
    "retransmit",
    "fast_retransmit",
    "rto_retransmit",
    "tail_probe",
    "spurious",
    "out_of_order",
    "capture_duplicate",
    "keepalive",
    "keepalive_ack",
    "zero_window_probe",
    "window_update",
    "duplicate_ack",
    "reset",
    "link_damaged",
    "recovery_retransmit",
    "syn_retransmit",
    "network_duplicate",
    "zero_window_probe_ack",
    "partial_ack",
)
"""What a segment is. A kind's code is its position. The engine's `connection::Kind` has the same order (a test compares them).

- `new`: bytes, a SYN or a FIN seen for the first time; `ack`: a pure ACK of no other kind.
- Retransmits: `fast_retransmit` (the first after duplicate ACKs or SACK blocks: RFC 5681, 6675, 5827, 8985), `recovery_retransmit` (the
  rest of that recovery: RFC 6582, 6675), `rto_retransmit` (timer: RFC 6298), `tail_probe` (RFC 8985, 7), `syn_retransmit` (SYN or
  SYN-ACK), `spurious` (the original had arrived; `retransmit_trigger` has the trigger), `retransmit` (the trigger is unknown).
- No retransmits, but late or duplicated: `out_of_order` (overtaken on the path), `network_duplicate`, `capture_duplicate`
  (the capture contains the packet twice; only `capture_duplicates` counts it).
- `keepalive`, `zero_window_probe` and their answers `keepalive_ack`, `zero_window_probe_ack` (RFC 9293, 3.8.4 and 3.8.6.1).
- ACKs: `duplicate_ack` (RFC 5681, 2), `partial_ack` (RFC 6582), `window_update`.
- `reset`; `link_damaged` (discarded by the receiver's link).
"""

EVIDENCE = (
    "sequence",
    "syn",
    "duplicate_acks",
    "sack",
    "dsack",
    "reneging",
    "acknowledged",
    "partial_ack",
    "timestamp",
    "ip_id",
    "silence",
    "probe_time",
    "rtt",
    "window",
    "time",
    "reset",
    "path",
    "link",
    "none",
)
"""Evidence for the kind of a segment. A code is a position in this list. The engine's `connection::Evidence` has the same order.

`sequence` (the sequence number and what was sent and acknowledged before), `syn` (the flags), `duplicate_acks`, `sack`, `dsack` (RFC 2883),
`reneging` (the receiver discarded bytes that SACK blocks had reported: RFC 2018, 8), `acknowledged` (an earlier ACK covers the segment),
`partial_ack` (RFC 6582), `timestamp` (TCP timestamps; RFC 3522), `ip_id`, `silence` (as long as a retransmission timeout), `probe_time` (as
long as a probe timeout), `rtt` (sooner than an RTT allows), `window`, `time` (only the gap between two segments), `reset` (a RST came
before), `path` (an equal packet with another TTL or other layers), `link` (reported by the link).
"""

CONFIDENCES = ("proved", "consistent", "possible")
"""Confidence of a verdict. The engine's `connection::Confidence` has the same order. A `proved` verdict follows from the protocol's rules
and the captured packets. With `consistent`, everything fits, and alternatives are rare. With `possible`, other explanations fit equally
well."""

RETRANSMIT_TRIGGERS = ("fast", "recovery", "timeout", "tail_probe", "handshake", "unknown")
"""Trigger of a retransmit. The engine's `connection::RetransmitTrigger` has the same order."""

RESET_KINDS = ("refused", "exact", "in_window", "out_of_window", "after_close", "unknown")
"""What a RST means to its receiver (RFC 9293, 3.10.7; RFC 5961, 3.2). The engine's `connection::ResetKind` has the same order.

In this order: the RST answers the receiver's SYN; has the expected sequence number; has another sequence number inside the receiver's
window (answered with a challenge ACK); is outside the window (ignored, because such a RST can be forged); follows the end of the
connection; unknown.
"""

TFO = ("cookie_request", "cookie_grant", "cookie", "data", "data_accepted", "data_refused")
"""Steps of TCP Fast Open (RFC 7413). The engine's `connection::Tfo` has the same order.

In this order: a SYN that requests a cookie, the SYN-ACK that grants a cookie, a SYN with a cookie but no data, a SYN with data, the SYN-ACK
that acknowledges the data, the SYN-ACK that acknowledges only the SYN.
"""

ECN_SIGNALS = ("setup", "accepted", "echo", "reduced", "echo_reduced", "accurate")
"""Meaning of the ECN flags (RFC 3168, 6.1). The engine's `connection::EcnSignal` has the same order.

In this order: a SYN that offers ECN, the SYN-ACK that accepts ECN, ECE (a mark was received), CWR (the sender has reduced its window), both
ECE and CWR, a counter of accurate ECN (RFC 9768).
"""

RELEASED_BY = ("ack", "write", "timer", "burst", "unknown")
"""What triggered the departure of a segment. A code is a position in this list. The engine's `connection::ReleasedBy` has the same order.
"""

RESENT = ("retransmit", "fast_retransmit", "rto_retransmit", "tail_probe", "spurious", "recovery_retransmit", "syn_retransmit")
"""Kinds of segments whose bytes were sent before."""

CLIENT_KNOWN_BY = ("syn", "syn_ack", "data", "port", "first")
"""How the client is identified: its SYN, the server's SYN-ACK, a request or answer in the first data, the higher port, or the order of
appearance. `data`, `port` and `first` are guesses."""

CLOSED_BY = ("fin", "reset", "reuse", "end", "room", "idle")
"""What ended a connection. `fin`: FINs in both directions. `reset`: a RST. `reuse`: reuse of its ports. `end`: the end of the capture.
`room`: the engine's memory bound (more than 131,072 connections at a time). `idle`: a silence of more than 2 hours and 4 minutes (with
more than 16,384 connections at a time)."""

BOUND_BY = ("send", "receive", "link")
"""What bounds the rate of a direction: the sender's rate λ, the receiver's rate μ, or the share of the link rate that framing leaves."""

LINES = ("atm", "ethernet")
"""Kinds of link whose overhead is known. A code is a position in this list. The engine's `connection::Line` has the same order."""

LOSS_KNOWN_BY = ("ip_id",)
"""Evidence for the number of missing datagrams. UDP itself has no sequence numbers."""

MESSAGE_STATES = ("whole", "overlapping", "start_missing", "bytes_missing")
"""State of a message. `whole`: complete. `overlapping`: the end is unknown, because data of the peer was in flight meanwhile (pipelined or
full duplex). `start_missing`: the direction starts before the capture. `bytes_missing`: the capture lacks some bytes of the message."""

PROTOCOLS = ("http", "ftp")
"""Protocols of transactions: HTTP/1.0 and 1.1 (RFC 9112), FTP (RFC 959, 2428)."""

TRANSACTION_STATES = ("whole", "unanswered", "unfinished", "request_missing", "bytes_missing", "malformed")
"""State of a transaction. `whole`: complete. `unanswered`, `unfinished`: the capture or the connection ended before the answer began, or
before the answer was complete. `request_missing`: the capture lacks the request. `bytes_missing`: the capture lacks bytes of the
transaction (a short snaplen, drops). `malformed`: the transaction violates its protocol."""

VANTAGES = ("client", "server", "middle", "unknown")
"""Where a connection was captured. A code is a position in this list. The engine's `hosts::Place` has the same order."""

VANTAGE_KNOWN_BY = ("handshake", "answers", "loopback", "short", "one_side", "nothing")
"""What shows the capture point, or why the capture point is unknown. The engine's `hosts::KnownBy` has the same order.

`handshake`: the handshake shows it. `answers`: only ACKs, echoed timestamps and windows show it. `loopback`: both ends are one host.
`short`: both ends answer too fast to distinguish them. `one_side`: only one end answered. `nothing`: neither end answered.
"""

CAPTURE_FAULTS = (
    "one_direction",
    "start_missing",
    "not_captured",
    "much_not_captured",
    "acks_missing",
    "clock_jump",
    "reordered",
    "duplicated",
    "offload",
)
"""Faults in the capture of a connection (texts: `connections.capture_quality`). The engine's `hosts::Fault` has the same order."""

ACK_POLICIES = ("per-segment", "per-2-segments", "per-2-mss", "per-2", "buffer-35", "buffer-50", "stretch", "timer", "unknown")
"""What triggers an ACK (texts: `connections.ack_policy`). The engine's `hosts::AckPolicy` has the same order."""

ACK_TIMER_KINDS = ("fixed", "heartbeat")
"""Kinds of delayed-ACK timers. A `fixed` timer starts with the segment; a `heartbeat` fires periodically. The engine's `hosts::TimerKind`
has the same order."""

NAGLE_STATES = ("on", "off", "unknown")
"""Whether Nagle's algorithm delays the small segments of an endpoint. The engine's `hosts::NagleState` has the same order."""

STACKS = ("Linux", "Apple", "FreeBSD", "OpenBSD", "Windows", "Solaris")
"""Families of TCP stacks that a SYN can show. The engine's `hosts::Stack` has the same order."""
