"""Capture point: where on the path a connection was captured, and when its endpoints sent and received what the capture shows.

A packet that passes the capture point is answered after the path to the endpoint and back. The shortest such time, over all answers that
*prove* the arrival of what they answer, is the endpoint's **turnaround**: near 0 at this endpoint, a full RTT at the other. Four kinds of
answer prove arrival: the handshake, ACKs of data (Karn's rule), echoed TCP timestamps, and data beyond the window that was offered before.
Data soon after an ACK prove nothing: they may have been on the way already. What an endpoint sends on its own bounds its turnaround only
from above: an application that writes once a second echoes a second late, however near it is.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, TypeVar

import polars as pl

from tcptrace_lab.connections.fingerprint import INITIAL_TTLS

if TYPE_CHECKING:
    from collections.abc import Mapping

NEAR_SHARE = 0.1
"""The capture point is at an endpoint whose turnaround is less than this share of the sum of both (docs/how-it-decides.md, 2.1)."""

NO_DISTANCE_NS = 50_000
"""An RTT below this is host processing time; which endpoint is near is then meaningless."""

HOST_NS = 500_000
"""Hosts answer within this time (a heuristic: interrupt, softirq and scheduling of common and virtual hosts). Shorter turnarounds measure
the host and not the path, so they do not show a capture point in the middle."""

LEAST_PATH_NS = 100_000
"""A sum of turnarounds below this does not show the capture point: both endpoints answer about equally fast (a heuristic)."""

LEAST_TICKS = 2
"""The sum of turnarounds must be at least this many ticks of the capture's clock."""

LONGEST_PATH_NS = 1_500_000_000
"""Upper bound of any RTT without queues (a heuristic: two geostationary satellite hops take 1.1 s)."""

VANTAGES = ("client", "server", "middle", "unknown")

_LOOPBACK_ADDRESS = r"^(127\.|::1$|::ffff:127\.)"

OTHER_SIDE = {"client": "server", "server": "client", "sender": "receiver", "receiver": "sender"}
"""The other endpoint of a connection, and of a direction (rows of `schema.CONNECTIONS` whose endpoints are named sender and receiver)."""

Frame = TypeVar("Frame", pl.DataFrame, pl.LazyFrame)


@cache
def turnaround(side: str) -> pl.Expr:
    """Return `side`'s turnaround in ns: an upper bound for the path from the capture point to `side` and back. Null without proof.

    If `side` never had to answer (no handshake, no data that it ACKs), only echoed timestamps in its own data bound the turnaround, and
    these are as late as its application. If no router lies before it, and one before its peer, the turnaround is 0. A single answer that
    took longer than any path does not count: the immediate ACK was lost or is missing from the capture.
    """
    other = OTHER_SIDE[side]
    answered = pl.min_horizontal(f"{side}_reaction_min_ns", f"{other}_rtt_min_ns")
    too_late_alone = (pl.col(f"{other}_rtt_samples") == 1) & (answered > LONGEST_PATH_NS)
    on_its_link = _on_the_link(side) & ~_on_the_link(other)
    return pl.when(unasked(side) & on_its_link).then(0).when(~too_late_alone.fill_null(value=False)).then(answered)


def is_near(near: pl.Expr, other: pl.Expr) -> pl.Expr:
    """Whether the capture point is at an endpoint, by its turnaround and that of its peer. Null where a turnaround is unknown."""
    return (near < NO_DISTANCE_NS) | (near < NEAR_SHARE * (near + other))


@cache
def unasked(side: str) -> pl.Expr:
    """Whether the capture shows nothing that `side` had to answer, and `side` is on a host of its own.

    What it sends on its own only bounds its turnaround: its application may have been late, and not the path.
    """
    return pl.col(f"{OTHER_SIDE[side]}_rtt_min_ns").is_null() & ~loopback()


@cache
def _on_the_link(side: str) -> pl.Expr:
    """Whether `side`'s packets have an initial TTL, so no router lies before the capture point; null if it sent none."""
    return pl.col(f"{side}_ttl").is_in(INITIAL_TTLS)


@cache
def loopback() -> pl.Expr:
    """Whether both endpoints are one host: each packet is captured where it leaves and where it arrives, at one instant."""
    same = pl.col("client_addr") == pl.col("server_addr")
    return same | (pl.col("client_addr").str.contains(_LOOPBACK_ADDRESS) & pl.col("server_addr").str.contains(_LOOPBACK_ADDRESS))


def beside(connections: Frame, resolution_ns: int = 1) -> Frame:
    """Add the capture point of each connection to rows of `schema.CONNECTIONS`.

    The columns are added in steps that build on each other: as one expression each, they would compute the turnarounds dozens of times.

    Args:
        connections: the rows.
        resolution_ns: resolution of the capture's clock.

    Returns:
        The rows, with these columns:
        `vantage`: client, server, middle, or unknown (as for loopback);
        `vantage_confidence`: null if unknown; `proved`: the handshake alone shows that it is at an endpoint; `consistent`: at an endpoint
        by other answers, or in the middle by the handshake (both hosts may just be slow); `possible`: the handshake contradicts, or in the
        middle by ACKs that may all have been delayed;
        `vantage_known_by`: `handshake`, `answers` (only ACKs, echoed timestamps and windows), `loopback`, `short` (both endpoints answer
            too
        fast to distinguish), `one_side` (answers of one endpoint only), `nothing`;
        `rtt_to_client_ns`, `rtt_to_server_ns`: the turnarounds.
    """
    for step in steps(resolution_ns):
        connections = connections.with_columns(**step)
    return connections.drop(_BY_ALL, _BY_HANDSHAKE, _LOOPBACK)


_BY_ALL, _BY_HANDSHAKE, _LOOPBACK = "vantage_by_all", "vantage_by_handshake", "vantage_loopback"
"""Intermediate columns of `beside`."""


@cache
def steps(resolution_ns: int) -> tuple[Mapping[str, pl.Expr], ...]:
    """The columns of `beside` and their intermediate columns, in steps that build on each other."""
    to_client, to_server, by_all, by_handshake = (pl.col(name) for name in ("rtt_to_client_ns", "rtt_to_server_ns", _BY_ALL, _BY_HANDSHAKE))
    has_handshake = pl.col("synack_to_ack_ns").is_not_null() & pl.col("syn_to_synack_ns").is_not_null()
    at_side = by_all != "middle"
    known = ~pl.col(_LOOPBACK) & (by_all != "unknown")
    confidence = (
        pl.when(has_handshake & (by_all == by_handshake))
        .then(pl.when(at_side).then(pl.lit("proved")).otherwise(pl.lit("consistent")))
        .when(at_side & (~has_handshake | (by_handshake == "unknown")))
        .then(pl.lit("consistent"))
        .otherwise(pl.lit("possible"))
    )
    reason = (
        pl.when(_LOOPBACK)
        .then(pl.lit("loopback"))
        .when(to_client.is_null() & to_server.is_null())
        .then(pl.lit("nothing"))
        .when(to_client.is_null() | to_server.is_null())
        .then(pl.lit("one_side"))
        .when(by_all == "unknown")
        .then(pl.lit("short"))
        .when(has_handshake)
        .then(pl.lit("handshake"))
        .otherwise(pl.lit("answers"))
    )
    return (
        {"rtt_to_client_ns": turnaround("client"), "rtt_to_server_ns": turnaround("server"), _LOOPBACK: loopback()},
        {
            _BY_ALL: _place(to_client, to_server, resolution_ns),
            _BY_HANDSHAKE: _place(pl.col("synack_to_ack_ns"), pl.col("syn_to_synack_ns"), resolution_ns),
        },
        {
            "vantage": pl.when(known).then(by_all).otherwise(pl.lit("unknown")),
            "vantage_confidence": pl.when(known).then(confidence),
            "vantage_known_by": reason,
        },
    )


def _place(to_client: pl.Expr, to_server: pl.Expr, resolution_ns: int) -> pl.Expr:
    """Return the capture point that two turnarounds show."""
    total = to_client + to_server
    least = max(LEAST_PATH_NS, LEAST_TICKS * resolution_ns)
    return (
        pl.when(total.is_null() | (total < least))
        .then(pl.lit("unknown"))
        .when(to_client < NEAR_SHARE * total)
        .then(pl.lit("client"))
        .when(to_server < NEAR_SHARE * total)
        .then(pl.lit("server"))
        .when((to_client > HOST_NS) & (to_server > HOST_NS))
        .then(pl.lit("middle"))
        .otherwise(pl.lit("unknown"))
    )
