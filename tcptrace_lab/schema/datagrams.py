"""The tables `datagrams` and `flows`: UDP."""

from __future__ import annotations

from tcptrace_lab.schema.categories import LOSS_KNOWN_BY
from tcptrace_lab.schema.column import Column, Unit, table
from tcptrace_lab.schema.connections import sided

DATAGRAMS = table(
    "datagrams",
    "one UDP datagram as captured",
    [
        Column("frame", "UInt64", Unit.FRAME, "Number of the frame that carried the datagram, as in Wireshark", "for a fragmented datagram, the frame of the fragment that arrived last"),
        Column("ts_ns", "Int64", Unit.NS, "Capture time, in ns since 1970-01-01 UTC", "null if the capture format has no timestamps"),
        Column("flow", "UInt32", Unit.NONE, "Number of the flow, from 0 by first appearance; a flow is two addresses with their ports", "datagrams that only carry a tunnel belong to no flow"),
        Column("from_client", "Boolean", Unit.NONE, "True if the sender of this datagram also sent the flow's first captured datagram"),
        Column("payload_bytes", "Int64", Unit.BYTES, "Bytes of data in the datagram, by the lengths in its headers"),
        Column("captured_payload_bytes", "Int64", Unit.BYTES, "Bytes of data of this datagram in the capture; fewer than payload_bytes if the snaplen truncated it"),
        Column("fragments", "UInt16", Unit.NONE, "Number of IP fragments of the datagram; 1 if it was not fragmented"),
        Column("since_previous_ns", "Int64", Unit.NS, "Time since the previous datagram of the same host in the flow", "null for the first one"),
        Column("since_other_ns", "Int64", Unit.NS, "Time since the last datagram of the other host in the flow", "null before the first one"),
        Column("ip_id", "UInt16", Unit.NONE, "IPv4 identification", "null for IPv6"),
        Column("ttl", "UInt8", Unit.NONE, "IPv4 time to live, or IPv6 hop limit"),
        Column("layers", "Categorical", Unit.NONE, "Protocol headers up to UDP, outermost first, such as eth/ip/udp"),
    ],
)

_BY_IP_ID = "known only if the sender's IPv4 identifications number this flow's datagrams consecutively and at most one in ten is missing"

_FLOW_DIRECTION = (
    Column("datagrams", "Int64", Unit.DATAGRAMS, "Datagrams that this host sent"),
    Column("payload_bytes", "Int64", Unit.BYTES, "Bytes of data that this host sent"),
    Column("fragmented_datagrams", "Int64", Unit.DATAGRAMS, "Datagrams of this host that arrived as several IP fragments"),
    Column("min_payload_bytes", "Int64", Unit.BYTES, "Payload of the smallest datagram", "null without datagrams"),
    Column("mean_payload_bytes", "Int64", Unit.BYTES, "Mean payload of the datagrams, rounded", "null without datagrams"),
    Column("max_payload_bytes", "Int64", Unit.BYTES, "Payload of the largest datagram", "null without datagrams"),
    Column("distinct_sizes", "Int64", Unit.NONE, "Number of different payload sizes", "null if the capture has more than 8 million pairs of direction and size"),
    Column("first_ts_ns", "Int64", Unit.NS, "Earliest time of a datagram", "in ns since 1970-01-01 UTC; null if the capture has no timestamps"),
    Column("last_ts_ns", "Int64", Unit.NS, "Latest time of a datagram", "in ns since 1970-01-01 UTC; null if the capture has no timestamps"),
    Column("rate_bps", "Float64", Unit.BITS_PER_SECOND, "Bits of data per second, from the first datagram to the last", "too high with few datagrams, because the duration of the last one is not included; null if all have the same time"),
    Column("gap_p50_ns", "Int64", Unit.NS, "Median time between consecutive datagrams of this host", "nearest rank, to within 0.1%; gaps over which the clock ran backwards are not counted; null without gaps"),
    Column("gap_p95_ns", "Int64", Unit.NS, "95th percentile of the times between consecutive datagrams", "nearest rank, to within 0.1%; null without gaps"),
    Column("gap_max_ns", "Int64", Unit.NS, "Longest time between consecutive datagrams", "null without gaps"),
    Column("gap_variation", "Float64", Unit.NONE, "Coefficient of variation of the times between consecutive datagrams: 0 for an even pace, 1 for a Poisson process, more for bursts", "null below two gaps, or if all are 0"),
    Column("missing_datagrams", "Int64", Unit.DATAGRAMS, "Datagrams that were sent but are missing from the capture", f"lost before the capture point, or by the capture; losses after the capture point are not visible; {_BY_IP_ID}; sequence numbers in the payload, as in RTP, are not analyzed"),
    Column("reordered_datagrams", "Int64", Unit.DATAGRAMS, "Datagrams that were captured after later ones (RFC 4737, 3.3)", "known only if the sender's IPv4 identifications are a counter, of this flow or of all traffic of the host; a datagram that the capture contains twice (mirror port, Linux \"any\") counts twice everywhere, and as reordered if its copy follows a later datagram"),
    Column("loss_known_by", "Enum", Unit.NONE, "Evidence for missing_datagrams", "null: unknown; IPv6 has no identification, and Linux sends 0 on unconnected sockets", LOSS_KNOWN_BY),
)
"""Columns with figures of one direction of a flow. The prefix of a column names the sender."""

FLOW_DIRECTION_NAMES = tuple(column.name for column in _FLOW_DIRECTION)

_ECHO = "the first datagram of the server after one of the client counts as its answer; this is no RTT if a host also sends unasked, if several requests are in flight, or if an answer is lost"

FLOWS = table(
    "flows",
    "one UDP flow: all datagrams between two addresses with their ports",
    [
        Column("flow", "UInt32", Unit.NONE, "Number of the flow, from 0 by first appearance"),
        Column("client_addr", "String", Unit.NONE, "Address of the host that sent the first captured datagram"),
        Column("client_port", "UInt16", Unit.NONE, "Port of the host that sent the first captured datagram"),
        Column("server_addr", "String", Unit.NONE, "Address of the other host"),
        Column("server_port", "UInt16", Unit.NONE, "Port of the other host"),
        Column("echo_samples", "Int64", Unit.DATAGRAMS, "Number of answers of the server, each of which gives a round-trip time", _ECHO),
        Column("echo_min_ns", "Int64", Unit.NS, "Shortest time from a datagram of the client to the server's answer", f"from the capture point to the server and back, including the server's processing; {_ECHO}; null without answers"),
        Column("echo_p50_ns", "Int64", Unit.NS, "Median time from a datagram of the client to the server's answer", f"nearest rank, to within 0.1%; {_ECHO}; null without answers"),
        Column("echo_p95_ns", "Int64", Unit.NS, "95th percentile of the times from a datagram of the client to the server's answer", f"nearest rank, to within 0.1%; {_ECHO}; null without answers"),
        Column("echo_max_ns", "Int64", Unit.NS, "Longest time from a datagram of the client to the server's answer", f"{_ECHO}; null without answers"),
        *sided("client", _FLOW_DIRECTION),
        *sided("server", _FLOW_DIRECTION),
    ],
)
