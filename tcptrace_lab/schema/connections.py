"""The table `connections`: columns for the whole connection, and columns for each of its two directions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcptrace_lab.schema.behaviour import BEHAVIOUR, WAITS
from tcptrace_lab.schema.categories import CLIENT_KNOWN_BY, CLOSED_BY, LINES
from tcptrace_lab.schema.column import Column, Unit, table
from tcptrace_lab.schema.direction import DIRECTION
from tcptrace_lab.schema.endpoint_rates import PACE
from tcptrace_lab.schema.hosts import CAPTURED, HOSTS
from tcptrace_lab.schema.rates import BOUNDS
from tcptrace_lab.schema.statistics import MORE_STATISTICS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SIDES: Mapping[str, bool] = {"client": True, "server": False}
"""Prefix of a direction's columns → `from_client`."""


_OF_SIDE = (*DIRECTION, *MORE_STATISTICS, *BEHAVIOUR, *WAITS, *PACE, *HOSTS, *BOUNDS)


def sided(side: str, direction: tuple[Column, ...] = _OF_SIDE) -> Iterator[Column]:
    """Yield the columns of one direction, with its sender (`client` or `server`) as prefix."""
    for column in direction:
        yield Column(f"{side}_{column.name}", column.dtype, column.unit, f"{column.meaning} (host: {side})", column.limits, column.values)


STATISTICS = (*DIRECTION, *MORE_STATISTICS)
"""Counts and measurements of one direction, without prefix. The other columns of a direction are conclusions."""

MORE_STATISTICS_NAMES = tuple(column.name for column in MORE_STATISTICS)
"""Columns that the JSON has in the object `statistics`."""

DIRECTION_NAMES = tuple(column.name for column in _OF_SIDE)

_QUANTILES = (
    Column("rtt_p50_ns", "Int64", Unit.NS, "Median RTT sample of this host's data", "nearest rank, to within 0.1%; null without samples"),
    Column("rtt_p95_ns", "Int64", Unit.NS, "95th percentile of the RTT samples of this host's data", "nearest rank, to within 0.1%; null without samples"),
    Column("ack_lag_p50_ns", "Int64", Unit.NS, "Median ACK lag: time from the transmission of the oldest data that an ACK newly covers to that ACK", "samples as in ack_lag_samples; nearest rank, to within 0.1%; null without samples"),
    Column("ack_lag_p95_ns", "Int64", Unit.NS, "95th percentile of the ACK lag", "samples as in ack_lag_samples; nearest rank, to within 0.1%; null without samples"),
)

SPREADS = (*_QUANTILES, *(column for column in BEHAVIOUR if column.name.startswith("ack_lag_")))
"""Columns on the spread of RTTs and ACK lags. The report shows them in one table with `STATISTICS`."""

CONNECTIONS = table(
    "connections",
    "one TCP connection",
    [
        Column("conn", "UInt32", Unit.NONE, "Number of the connection, from 0 by first appearance (Wireshark's tcp.stream)"),
        Column("client_addr", "String", Unit.NONE, "Address of the host that opened the connection"),
        Column("client_port", "UInt16", Unit.NONE, "Port of the host that opened the connection"),
        Column("server_addr", "String", Unit.NONE, "Address of the host that accepted the connection"),
        Column("server_port", "UInt16", Unit.NONE, "Port of the host that accepted the connection"),
        Column(
            "client_known_by",
            "Enum",
            Unit.NONE,
            "How the client was identified",
            "data, port and first are guesses",
            CLIENT_KNOWN_BY,
        ),
        Column("closed_by", "Enum", Unit.NONE, "How the connection ended in this capture", values=CLOSED_BY),
        Column("first_frame", "UInt64", Unit.FRAME, "First frame of the connection"),
        Column("last_frame", "UInt64", Unit.FRAME, "Last frame of the connection"),
        Column("first_ts_ns", "Int64", Unit.NS, "Earliest time of a segment", "in ns since 1970-01-01 UTC; null if the capture has no timestamps"),
        Column("last_ts_ns", "Int64", Unit.NS, "Latest time of a segment", "in ns since 1970-01-01 UTC; null if the capture has no timestamps"),
        Column("clock_tick_ns", "Int64", Unit.NS, "Granularity of the capture's clock, as the timestamps of this connection show it", "null unless several packets have the same timestamp and all other steps are multiples of one tick; differences below one tick, such as an RTT of 0, show nothing"),
        Column("syn_to_synack_ns", "Int64", Unit.NS, "Time from the last SYN before the SYN-ACK to the SYN-ACK (first part of the handshake)", "null unless both were captured"),
        Column("synack_to_ack_ns", "Int64", Unit.NS, "Time from the SYN-ACK to the client's first ACK of it (second part of the handshake)", "null unless both were captured"),
        Column("link", "Enum", Unit.NONE, "Link type, if the overhead of a segment on it is known", "null on other links, and without data; an Ethernet link may be virtual", LINES),
        Column("vpi", "UInt16", Unit.NONE, "ATM virtual path identifier of the connection's cells", "null without ATM, if it was not captured, or if there were several (see segments)"),
        Column("vci", "UInt16", Unit.NONE, "ATM virtual channel identifier of the connection's cells", "null without ATM, if it was not captured, or if there were several (see segments)"),
        *CAPTURED,
        *sided("client"),
        *sided("server"),
        *sided("client", _QUANTILES),
        *sided("server", _QUANTILES),
    ],
)
