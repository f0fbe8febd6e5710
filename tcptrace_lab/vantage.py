"""Where on the path was a connection captured, and when did its ends send and receive what the capture saw?

What passes the capture point on its way to a side is answered after the way there and back. The shortest such time, over all answers
that *prove* the arrival of what they answer, is that side's **turnaround**: near 0 at the side's own end, a whole round trip at the other.
Four kinds of answer prove it: the handshake, ACKs of data (by Karn's rule), echoed TCP timestamps, and data beyond the window that had
been offered before. That data follows an ACK soon proves nothing: it may have been on its way. And what a side sends of its own accord
bounds its turnaround only from above: a program that writes once a second echoes a second late, however near it is.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, TypeVar

import polars as pl

from tcptrace_lab.fingerprint import INITIAL_TTLS
from tcptrace_lab.schema import SIDES

if TYPE_CHECKING:
    from collections.abc import Mapping

NEAR_SHARE = 0.1
"""The capture was taken at a side whose turnaround is less than this share of the sum of both (docs/how-it-decides.md, 2.1)."""

NO_DISTANCE_NS = 50_000
"""Below this a round trip is the hosts' own time, and which end is near means nothing."""

HOST_NS = 500_000
"""Hosts answer within this time (a heuristic: interrupt, softirq and scheduling of common ones, virtual ones too). Shorter turnarounds tell
of the host and not of the path, so that nothing is in the middle of them."""

LEAST_PATH_NS = 100_000
"""A sum of turnarounds below this tells nothing of the place: both ends answer about as soon (a heuristic)."""

LEAST_TICKS = 2
"""The clock must be able to tell the turnarounds apart."""

LONGEST_PATH_NS = 1_500_000_000
"""No way there and back takes longer (a heuristic: over two geostationary satellites it takes 1.1 s)."""

VANTAGES = ("client", "server", "middle", "unknown")

_LOOPBACK_ADDRESS = r"^(127\.|::1$|::ffff:127\.)"

OTHER_SIDE = {"client": "server", "server": "client", "sender": "receiver", "receiver": "sender"}
"""The other end of a connection, and of one of its directions (rows of `schema.CONNECTIONS` with its two ends named so)."""

Frame = TypeVar("Frame", pl.DataFrame, pl.LazyFrame)


@cache
def turnaround(side: str) -> pl.Expr:
    """`side`'s turnaround in nanoseconds: an upper bound of the way from the capture point to it and back. Null without proof.

    Of a side that was never asked anything (no handshake, no data that it acknowledges) only the echoes in what it sends by itself tell,
    and these are as late as its program is. Where no router lies before it, and one before the other side, it is 0. One answer alone that
    took longer than any path tells nothing: the ACK that its host sent at once was lost or is not in the capture.
    """
    other = OTHER_SIDE[side]
    answered = pl.min_horizontal(f"{side}_reaction_min_ns", f"{other}_rtt_min_ns")
    too_late_alone = (pl.col(f"{other}_rtt_samples") == 1) & (answered > LONGEST_PATH_NS)
    on_its_link = _on_the_link(side) & ~_on_the_link(other)
    return pl.when(unasked(side) & on_its_link).then(0).when(~too_late_alone.fill_null(value=False)).then(answered)


def is_near(way: pl.Expr, other: pl.Expr) -> pl.Expr:
    """Whether the capture was taken at an end, or is not known not to be: by the turnarounds of that end and of the other one."""
    return (way < NO_DISTANCE_NS) | (way < NEAR_SHARE * (way + other))


@cache
def unasked(side: str) -> pl.Expr:
    """Whether nothing was captured that `side`, in a host of its own, had to answer.

    What it sends by itself bounds the way to it, but its program may have been late and not the path.
    """
    return pl.col(f"{OTHER_SIDE[side]}_rtt_min_ns").is_null() & ~loopback()


@cache
def _on_the_link(side: str) -> pl.Expr:
    """Whether `side`'s packets came with a time to live that stacks start with; null without any."""
    return pl.col(f"{side}_ttl").is_in(INITIAL_TTLS)


@cache
def loopback() -> pl.Expr:
    """Whether both ends are one host: each packet is captured where it leaves and where it arrives, at one instant."""
    same = pl.col("client_addr") == pl.col("server_addr")
    return same | (pl.col("client_addr").str.contains(_LOOPBACK_ADDRESS) & pl.col("server_addr").str.contains(_LOOPBACK_ADDRESS))


def beside(connections: Frame, resolution_ns: int = 1) -> Frame:
    """Rows of `schema.CONNECTIONS` with what is known of the place of each.

    Made in steps, each from columns that are there by then: as one expression each, the turnarounds would be worked out dozens of times.

    Args:
        connections: the rows.
        resolution_ns: of the capture's clock.

    Returns:
        The rows, and beside them:
        `vantage`: client, server, middle, or unknown, as of loopback;
        `vantage_confidence`: null if unknown; `proved`: the handshake alone says that it is at a side; `consistent`: at a side by other
        answers, or in the middle by the handshake (both hosts may just be slow); `possible`: the handshake contradicts, or in the middle
        by ACKs that may all have been delayed;
        `vantage_known_by`: `handshake`, `answers` (ACKs, echoes and windows only), `loopback`, `short` (both ends answer too soon to be
        told apart), `one_side` (only one side's answers were captured), `nothing`;
        `to_client_ns`, `to_server_ns`: the turnarounds.
    """
    for step in steps(resolution_ns):
        connections = connections.with_columns(**step)
    return connections.drop(_BY_ALL, _BY_HANDSHAKE, _LOOPBACK)


_BY_ALL, _BY_HANDSHAKE, _LOOPBACK = "vantage_by_all", "vantage_by_handshake", "vantage_loopback"
"""Columns on the way to those of `beside`."""


@cache
def steps(resolution_ns: int) -> tuple[Mapping[str, pl.Expr], ...]:
    """The columns of `beside`, and those on the way to them, in steps that look at those before."""
    to_client, to_server, by_all, by_handshake = (pl.col(name) for name in ("to_client_ns", "to_server_ns", _BY_ALL, _BY_HANDSHAKE))
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
        {"to_client_ns": turnaround("client"), "to_server_ns": turnaround("server"), _LOOPBACK: loopback()},
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
    """The place by two turnarounds."""
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


def shifted(segments: pl.LazyFrame, connections: pl.LazyFrame) -> pl.LazyFrame:
    """Segments with the times at which their two ends saw them, so that a rule says the same wherever the capture was taken.

    A segment left its sender half of the sender's turnaround before it was captured, and reached its receiver half of the receiver's
    turnaround after it: estimates, which take the way there and back for equally long, and the shortest turnaround for the way alone.

    Args:
        segments: rows of `schema.SEGMENTS`; at least `conn from_client ts_ns`.
        connections: rows of `schema.CONNECTIONS`.

    Returns:
        `segments`, in their order, and `sender_ts_ns receiver_ts_ns` (nanoseconds since 1970; null where the turnaround is unknown).
    """
    ends = connections.select("conn", *(turnaround(side).alias(f"_to_{side}_ns") for side in SIDES))
    to_client, to_server = pl.col("_to_client_ns"), pl.col("_to_server_ns")
    from_client = pl.col("from_client")
    to_sender = pl.when(from_client).then(to_client).otherwise(to_server)
    to_receiver = pl.when(from_client).then(to_server).otherwise(to_client)
    joined = segments.join(ends, on="conn", how="left", maintain_order="left")
    return joined.with_columns(
        sender_ts_ns=pl.col("ts_ns") - to_sender // 2,
        receiver_ts_ns=pl.col("ts_ns") + to_receiver // 2,
    ).drop("_to_client_ns", "_to_server_ns")
