"""The tables `datagrams` and `flows`: UDP."""

from __future__ import annotations

from tcptrace_lab.schema.categories import LOSS_KNOWN_BY
from tcptrace_lab.schema.column import Column, Unit, table
from tcptrace_lab.schema.connections import sided

DATAGRAMS = table(
    "datagrams",
    "one UDP datagram as captured",
    [
        Column("frame", "UInt64", Unit.FRAME, "Number of the frame that carried the datagram, as in Wireshark", "of its last fragment to arrive"),
        Column("ts_ns", "Int64", Unit.NS, "Capture time since 1970-01-01 UTC", "null if the capture format has no timestamps"),
        Column("flow", "UInt32", Unit.NONE, "Flow, numbered from 0 by first appearance: two addresses with their ports", "datagrams that only carry a tunnel have no flow of their own"),
        Column("from_client", "Boolean", Unit.NONE, "True if the host that sent the flow's first captured datagram sent it"),
        Column("payload_bytes", "Int64", Unit.BYTES, "Bytes of data in the datagram, by the lengths in its headers"),
        Column("captured_payload_bytes", "Int64", Unit.BYTES, "Bytes of data in the capture (snaplen may truncate them)"),
        Column("fragments", "UInt16", Unit.NONE, "IP fragments of the datagram; 1 if not fragmented"),
        Column("since_previous_ns", "Int64", Unit.NS, "Time since the previous datagram of this host in the flow", "null for its first"),
        Column("since_other_ns", "Int64", Unit.NS, "Time since the peer's last datagram in the flow", "null before the first"),
        Column("ip_id", "UInt16", Unit.NONE, "IPv4 identification", "null for IPv6"),
        Column("ttl", "UInt8", Unit.NONE, "IPv4 time to live or IPv6 hop limit"),
        Column("layers", "Categorical", Unit.NONE, "Protocol headers before the datagram, outermost first: eth/ip/udp"),
    ],
)

_BY_IP_ID = "known only where the sender's IPv4 identifications count this flow's datagrams one by one, and lose at most one in ten"

_FLOW_DIRECTION = (
    Column("datagrams", "Int64", Unit.DATAGRAMS, "Datagrams sent"),
    Column("payload_bytes", "Int64", Unit.BYTES, "Bytes of data sent"),
    Column("fragmented_datagrams", "Int64", Unit.DATAGRAMS, "Datagrams received in several IP fragments"),
    Column("min_payload_bytes", "Int64", Unit.BYTES, "Smallest datagram", "null without datagrams"),
    Column("mean_payload_bytes", "Int64", Unit.BYTES, "Mean size of the datagrams, rounded", "null without datagrams"),
    Column("max_payload_bytes", "Int64", Unit.BYTES, "Largest datagram", "null without datagrams"),
    Column("distinct_sizes", "Int64", Unit.NONE, "Different sizes of datagrams", "null where the capture has more than 8 million pairs of direction and size"),
    Column("first_ts_ns", "Int64", Unit.NS, "Earliest time of a datagram", "null if the capture has no timestamps"),
    Column("last_ts_ns", "Int64", Unit.NS, "Latest time of a datagram", "null if the capture has no timestamps"),
    Column("rate_bps", "Float64", Unit.BITS_PER_SECOND, "Bits of data per second from the first datagram to the last", "too high with few datagrams: the last one's time is not in it; null if all are at one instant"),
    Column("gap_p50_ns", "Int64", Unit.NS, "Median gap between two datagrams", "nearest rank, to within 0.1%; gaps over which the clock went back are left out; null without gaps"),
    Column("gap_p95_ns", "Int64", Unit.NS, "95th percentile of the gaps between two datagrams", "nearest rank, to within 0.1%; null without gaps"),
    Column("gap_max_ns", "Int64", Unit.NS, "Longest gap between two datagrams", "null without gaps"),
    Column("gap_variation", "Float64", Unit.NONE, "Coefficient of variation of the gaps: 0 is an even pace, 1 is random as by a Poisson process, more is bursts", "null below two gaps, or if all are 0"),
    Column("missing_datagrams", "Int64", Unit.DATAGRAMS, "Datagrams that were sent but are missing from the capture", f"lost before the capture point, or by the capture; losses behind it do not show; {_BY_IP_ID}; sequence numbers in the payload (as of RTP) are not analysed"),
    Column("reordered_datagrams", "Int64", Unit.DATAGRAMS, "Datagrams captured after later ones (RFC 4737, 3.3)", "known only where the sender's IPv4 identifications advance as a counter, even one for all its traffic; a datagram that the capture has twice (mirror port, Linux \"any\") is counted twice in all figures, and a copy that comes behind a later datagram as reordered"),
    Column("loss_known_by", "Enum", Unit.NONE, "How the number of missing datagrams is known", "null: unknown; IPv6 has no identification, and Linux sends 0 on unconnected sockets", LOSS_KNOWN_BY),
)
"""Figures of one direction of a flow; columns are named by its sender."""

FLOW_DIRECTION_NAMES = tuple(column.name for column in _FLOW_DIRECTION)

_ECHO = "the server's first datagram after a client's counts as its answer; no RTT where either host also sends unasked, several questions are on the way, or an answer is lost"

FLOWS = table(
    "flows",
    "one UDP flow: all datagrams between two addresses with their ports",
    [
        Column("flow", "UInt32", Unit.NONE, "Flow, numbered from 0 by first appearance"),
        Column("client_addr", "String", Unit.NONE, "Address of the host that sent the first captured datagram"),
        Column("client_port", "UInt16", Unit.NONE, "Its port"),
        Column("server_addr", "String", Unit.NONE, "Address of the peer"),
        Column("server_port", "UInt16", Unit.NONE, "Its port"),
        Column("echo_samples", "Int64", Unit.DATAGRAMS, "Answers of the server", _ECHO),
        Column("echo_min_ns", "Int64", Unit.NS, "Shortest time from a client's datagram to the server's answer", f"from the capture point to the server and back, with the server's own time; {_ECHO}; null without answers"),
        Column("echo_p50_ns", "Int64", Unit.NS, "Median time from a client's datagram to the server's answer", f"nearest rank, to within 0.1%; {_ECHO}; null without answers"),
        Column("echo_p95_ns", "Int64", Unit.NS, "95th percentile of the time from a client's datagram to the server's answer", f"nearest rank, to within 0.1%; {_ECHO}; null without answers"),
        Column("echo_max_ns", "Int64", Unit.NS, "Longest time from a client's datagram to the server's answer", f"{_ECHO}; null without answers"),
        *sided("client", _FLOW_DIRECTION),
        *sided("server", _FLOW_DIRECTION),
    ],
)
