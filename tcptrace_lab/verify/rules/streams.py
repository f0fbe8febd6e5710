"""Rules on which frames contain segments, and to which connection these segments belong."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcptrace_lab.text.numbers import counted
from tcptrace_lab.verify.differences import Rule
from tcptrace_lab.verify.tshark import ANALYSIS
from tcptrace_lab.verify.wireshark_model import ACK, SYN

if TYPE_CHECKING:
    from tcptrace_lab.verify.segments import SegmentCase

_LARGEST_IP = 65_535
"""Maximum of the 16-bit length field of IPv4 and IPv6 (RFC 2675, 1)."""

_PART = "contains only part of the"
"""Part of the engine's message about a truncated header."""

_CONTRADICTS = "TCP header's length contradicts itself"
"""Part of the engine's message about a header whose length field is impossible."""


def _sampled(case: SegmentCase) -> str | None:
    layers = str(case.row["their_protocols"]).split(":")
    return (
        f"the header is a sample in an sFlow datagram ({':'.join(layers)}): the packet itself was sent elsewhere"
        if "sflow" in layers
        else None
    )


def _cut(case: SegmentCase) -> str | None:
    row = case.row
    captured, whole = row["their_captured_bytes"], row["their_wire_bytes"]
    if captured >= whole or not any(_PART in problem for problem in case.problems):
        return None
    return f"{captured} of {whole} bytes were captured, less than the TCP header: tcptrace-lab reports a problem instead of a segment"


def _big_tcp(case: SegmentCase) -> str | None:
    size = case.row["payload_bytes"]
    return f"{size:,} bytes of data, more than an IP length field can hold" if size is not None and size > _LARGEST_IP - 60 else None


def _false_header(case: SegmentCase) -> str | None:
    row = case.row
    if row["payload_bytes"] or row["tsval"] is not None or not any(_CONTRADICTS in problem for problem in case.problems):
        return None
    return (
        "its TCP header claims fewer than 20 bytes, so tshark reads no flags; tcptrace-lab reports the segment without data, and a problem"
    )


def _fragments(case: SegmentCase) -> str | None:
    layers, size, captured = (case.row[name] for name in ("layers", "payload_bytes", "captured_payload_bytes"))
    if layers is None or "/fragments/" not in layers or captured >= size:
        return None
    return (
        f"the segment came in IP fragments ({layers}), which the capture truncated: {captured:,} of {counted(size, 'byte')} of data "
        "were captured"
    )


def _same_isn_again(case: SegmentCase) -> str | None:
    """The SYN repeats the sequence number of the previous SYN, and follows a FIN, a RST, or a pause longer than any SYN timeout."""
    connection, earlier = case.connection, case.earlier
    if not earlier or connection["client_isn"] != earlier["client_isn"]:
        return None
    silent = f"was silent since frame {earlier['last_frame']}"
    ended = f"a {earlier['closed_by']} had ended" if earlier["closed_by"] in {"reset", "fin"} else silent
    first = f"frame {connection['first_frame']}"
    return (
        f"{first} is a SYN with the same sequence number ({connection['client_isn']}) as the previous connection on these ports, which "
        f"{ended}"
    )


def _old_stream(case: SegmentCase) -> str | None:
    """Tshark's verdict refers to the previous connection."""
    if not case.is_predicted or not case.earlier or case.row["partner"] == case.row["their_conn"]:
        return None
    same_isn = _same_isn_again(case)
    return None if same_isn is None else f"{same_isn}; for tshark, it is still that connection (its stream {case.row['their_conn']})"


def _old_scale(case: SegmentCase) -> str | None:
    """Tshark scales the windows with the window scale option of the previous connection."""
    row = case.row
    if not case.earlier or row["partner"] == row["their_conn"] or not row["their_scale"]:
        return None
    same_isn = _same_isn_again(case)
    return None if same_isn is None else f"{same_isn}; tshark continues to multiply its windows by {row['their_scale']}"


def _late_syn(case: SegmentCase) -> str | None:
    if "reused_ports" not in case.theirs or case.row["flags"] & (SYN | ACK) != SYN | ACK:
        return None
    if case.connection["first_frame"] >= case.row["frame"]:
        return None
    return (
        f"the SYN-ACK follows segments of its side "
        f"(the connection begins in frame {case.connection['first_frame']}); tshark had already numbered this side from them"
    )


RULES = (
    Rule(
        "tshark-opens-samples",
        "tshark treats TCP headers inside sFlow reports as segments",
        "sFlow version 5, flow samples",
        frozenset({"frame_only_theirs"}),
        _sampled,
    ),
    Rule(
        "tshark-fills-cut-headers",
        "tshark reads a truncated TCP header as a segment; tcptrace-lab needs its first 20 bytes",
        "RFC 9293, 3.1",
        frozenset({"frame_only_theirs"}),
        _cut,
    ),
    Rule(
        "tshark-joins-no-cut-fragments",
        "tshark reassembles IP fragments only if they were captured whole; tcptrace-lab needs only their headers",
        "RFC 791, 3.2; seen here",
        frozenset({"frame_only_ours"}),
        _fragments,
    ),
    Rule(
        "tshark-reads-no-flags-of-short-headers",
        "tshark stops at a TCP header with a length below 20 bytes; tcptrace-lab reports the segment without its data",
        "RFC 9293, 3.1; seen here",
        frozenset({"frame_only_ours"}),
        _false_header,
    ),
    Rule(
        "tshark-knows-no-big-tcp",
        "tshark 4.0 does not read packets with an IP length of 0 and more than 65,535 bytes",
        "RFC 2675; Linux BIG TCP",
        frozenset({"frame_only_ours"}),
        _big_tcp,
    ),
    Rule(
        "tshark-joins-same-numbers",
        "tshark begins a new stream only at a SYN with another sequence number; tcptrace-lab also at a SYN with the same number after FIN, "
        "RST or a long silence",
        "RFC 9293, 3.10.7.4",
        frozenset({"conn", "reused_ports"}),
        _same_isn_again,
    ),
    Rule(
        "tshark-scales-by-the-old-connection",
        "tshark continues the previous connection on these ports, and scales windows by its option",
        "RFC 7323, 2.2",
        frozenset({"window_bytes", "window_known"}),
        _old_scale,
    ),
    Rule(
        "tshark-tells-reuse-of-late-syns",
        "tshark reports port reuse if a SYN-ACK follows other segments of its side",
        "seen here",
        frozenset({"reused_ports"}),
        _late_syn,
    ),
    Rule(
        "tshark-compares-with-the-old-connection",
        "tshark continues the previous connection on these ports, and compares with its segments",
        "RFC 9293, 3.10.7.4",
        frozenset({*ANALYSIS, "bytes_in_flight", "ack_rtt_ns", "rto_ns", "rto_frame", "completeness"}),
        _old_stream,
    ),
)
