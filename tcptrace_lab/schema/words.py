"""The categories of `Enum` columns, and what they mean."""

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
"""What a segment is. Codes are positions; the engine's `connection::Kind` has the same order (a test holds them together).

- `new`: bytes, a SYN or a FIN seen for the first time; `ack`: a pure ACK that is nothing more special.
- Sent again: `fast_retransmit` (the first after duplicate ACKs or SACK blocks: RFC 5681, 6675, 5827, 8985), `recovery_retransmit` (the
  rest of that recovery: RFC 6582, 6675), `rto_retransmit` (timer: RFC 6298), `tail_probe` (RFC 8985, 7), `syn_retransmit` (SYN or
  SYN-ACK), `spurious` (the first copy had arrived; `resent_by` tells why it was sent), `retransmit` (the capture does not tell why).
- Not sent again, but there behind later bytes or twice: `out_of_order` (overtaken on the path), `network_duplicate`, `capture_duplicate`
  (the capture holds the packet twice; counts nowhere but in `capture_duplicates`).
- `keepalive`, `zero_window_probe` and their answers `keepalive_ack`, `zero_window_probe_ack` (RFC 9293, 3.8.4 and 3.8.6.1).
- ACKs: `duplicate_ack` (RFC 5681, 2), `partial_ack` (RFC 6582), `window_update`.
- `reset`; `link_damaged` (thrown away by the receiver's link).
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
"""What a kind is known by. Codes are positions; the engine's `connection::Evidence` has the same order.

`sequence` (the place in the stream and what was sent and acknowledged before), `syn` (the flags), `duplicate_acks`, `sack`, `dsack` (RFC 2883),
`reneging` (bytes that SACK blocks reported were given up: RFC 2018, 8), `acknowledged` (an earlier ACK covers it), `partial_ack` (RFC 6582),
`timestamp` (TCP timestamps; RFC 3522), `ip_id`, `silence` (as long as a retransmission timeout), `probe_time` (as long as a probe timeout),
`rtt` (sooner than a round trip allows), `window`, `time` (nothing but the gap between two segments), `reset` (a RST came before), `path`
(the same packet with another TTL or other layers), `link` (the link says so).
"""

CONFIDENCES = ("proved", "consistent", "possible")
"""How sure a verdict is: it follows from the protocol's rules and what was captured; all fits, and what else would fit is rare; other
explanations fit as well. The engine's `connection::Confidence` has the same order."""

RESENT_BY = ("fast", "recovery", "timeout", "tail_probe", "handshake", "unknown")
"""What made the sender send bytes again. The engine's `connection::ResentBy` has the same order."""

RESET_KINDS = ("refused", "exact", "in_window", "out_of_window", "after_close", "unknown")
"""What a RST is to the side that it is sent to (RFC 9293, 3.10.7; RFC 5961, 3.2): the answer to its SYN; with the number that it expects;
only inside its window (it answers with a challenge ACK); outside (ignored: perhaps forged); after the end of the connection; or the
capture does not tell. The engine's `connection::ResetKind` has the same order."""

TFO = ("cookie_request", "cookie_grant", "cookie", "data", "data_accepted", "data_refused")
"""Steps of TCP Fast Open (RFC 7413): a SYN that asks for a cookie, the SYN-ACK that gives one, a SYN with a cookie and no data, a SYN with
data, and the SYN-ACK that acknowledges them or the SYN alone. The engine's `connection::Tfo` has the same order."""

ECN_SIGNALS = ("setup", "accepted", "echo", "reduced", "echo_reduced", "accurate")
"""What the ECN flags say (RFC 3168, 6.1): a SYN that offers ECN, the SYN-ACK that accepts it, ECE (a mark was received), CWR (the sender has
slowed down), both; or a counter of accurate ECN (RFC 9768). The engine's `connection::EcnSignal` has the same order."""

RELEASED_BY = ("ack", "write", "timer", "burst", "unknown")
"""What let a segment leave. Codes are positions; the engine's `connection::ReleasedBy` has the same order."""

RESENT = ("retransmit", "fast_retransmit", "rto_retransmit", "tail_probe", "spurious", "recovery_retransmit", "syn_retransmit")
"""The kinds that carry bytes which had been sent before."""

CLIENT_KNOWN_BY = ("syn", "syn_ack", "data", "port", "first")
"""How the client was told from the server: its SYN, the server's SYN-ACK, a request or answer in the first data, the higher port,
or only who was seen first. The last three are guesses."""

CLOSED_BY = ("fin", "reset", "reuse", "end", "room", "idle")
"""What ended a connection: FINs of both sides, a RST, its ports used again, the end of the capture, the engine's need for room
(more than 131,072 connections at a time), or a silence of more than 2 hours and 4 minutes (where there are more than 16,384 at a time)."""

BOUND_BY = ("send", "receive", "line")
"""What bounds the rate of a direction: λ, μ, or what framing leaves of the line."""

LINES = ("atm", "ethernet")
"""Kinds of line whose cost is known. Codes are positions; the engine's `connection::Line` has the same order."""

LOSS_KNOWN_BY = ("ip_id",)
"""What tells how many datagrams are missing. UDP itself numbers nothing."""

MESSAGE_STATES = ("whole", "overlapping", "start_missing", "bytes_missing")
"""What is known of a message: all; or the other side's bytes were on their way meanwhile (pipelined or full duplex), so that where it ends
is not known; its direction begins before the capture does; or the capture does not hold all of its bytes."""

PROTOCOLS = ("http", "ftp")
"""What transactions are of: HTTP/1.0 and 1.1 (RFC 9112), FTP (RFC 959, 2428)."""

TRANSACTION_STATES = ("whole", "unanswered", "unfinished", "request_missing", "bytes_missing", "malformed")
"""What is known of a transaction: all; or no answer came before the capture or the connection ended; or the answer was not at its end then;
or the request is not in the capture; or bytes of it are not (a short snaplen, drops); or what was sent breaks the rules of its protocol."""
