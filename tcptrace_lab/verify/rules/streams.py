"""Which frames hold segments, and which connection they belong to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcptrace_lab.verify.differences import Rule
from tcptrace_lab.verify.tshark import ANALYSIS
from tcptrace_lab.verify.wireshark import ACK, SYN

if TYPE_CHECKING:
    from tcptrace_lab.verify.segments import SegmentCase

_LARGEST_IP = 65_535
"""What the 16-bit length of IPv4 and IPv6 can say (RFC 2675, 1)."""


def _sampled(case: SegmentCase) -> str | None:
    layers = str(case.row["their_protocols"]).split(":")
    return (
        f"the header is a sample in an sFlow datagram ({':'.join(layers)}): a report about a packet elsewhere"
        if "sflow" in layers
        else None
    )


def _big_tcp(case: SegmentCase) -> str | None:
    size = case.row["payload_bytes"]
    return f"{size:,} bytes of data, more than an IP length can say" if size is not None and size > _LARGEST_IP - 60 else None


def _same_isn_again(case: SegmentCase) -> str | None:
    """A SYN with the number of the one before it, behind a FIN or RST."""
    connection, earlier = case.connection, case.earlier
    if not earlier or earlier["closed_by"] not in {"reset", "fin"} or connection["client_isn"] != earlier["client_isn"]:
        return None
    first = f"frame {connection['first_frame']}"
    return (
        f"{first} is a SYN with the number of the connection before it "
        f"({connection['client_isn']}), which a {earlier['closed_by']} had ended"
    )


def _old_stream(case: SegmentCase) -> str | None:
    """A verdict that compares with the connection before."""
    if not case.foreseen or not case.earlier or case.row["partner"] == case.row["their_conn"]:
        return None
    told = _same_isn_again(case)
    return None if told is None else f"{told}; to tshark it is still that one (its stream {case.row['their_conn']})"


def _late_syn(case: SegmentCase) -> str | None:
    if "reused_ports" not in case.theirs or case.row["flags"] & (SYN | ACK) != SYN | ACK:
        return None
    if case.connection["first_frame"] >= case.row["frame"]:
        return None
    return (
        f"the SYN-ACK came behind segments of its side "
        f"(the connection begins in frame {case.connection['first_frame']}), which tshark had derived a number from"
    )


RULES = (
    Rule(
        "tshark-opens-samples",
        "tshark takes TCP headers inside sFlow reports for segments",
        "sFlow version 5, flow samples",
        frozenset({"frame_only_theirs"}),
        _sampled,
    ),
    Rule(
        "tshark-knows-no-big-tcp",
        "tshark 4.0 gives up where the IP length is 0 and the packet longer than 65,535 bytes",
        "RFC 2675; Linux BIG TCP",
        frozenset({"frame_only_ours"}),
        _big_tcp,
    ),
    Rule(
        "tshark-joins-same-numbers",
        "tshark begins a stream with a SYN of another number only; we also with the same one behind FIN or RST",
        "RFC 9293, 3.10.7.4",
        frozenset({"conn", "reused_ports"}),
        _same_isn_again,
    ),
    Rule(
        "tshark-tells-reuse-of-late-syns",
        "tshark tells reused ports where a SYN-ACK comes behind other segments of its side",
        "seen here",
        frozenset({"reused_ports"}),
        _late_syn,
    ),
    Rule(
        "tshark-compares-with-the-old-connection",
        "tshark judges a connection that it takes for the one before it by what that one sent",
        "RFC 9293, 3.10.7.4",
        frozenset({*ANALYSIS, "bytes_in_flight", "ack_rtt_ns", "rto_ns", "rto_frame", "completeness"}),
        _old_stream,
    ),
)
