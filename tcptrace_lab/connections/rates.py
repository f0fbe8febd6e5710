"""How fast the two ends of each direction are, the bound that follows, and how much of it was reached.

Abrams and Chen ("A New View on What Limits TCP/IP Throughput in Local Area Networks", 1991) bound a transfer by the rates of its hosts: λ,
at which the sender can send, and μ, at which the receiver can receive. No flow control exceeds min(λ, μ); idle time of the sender shows how
far below it stays. The engine sums the periods of a capture that show these rates (`schema.CONNECTIONS`: `burst_*`, `drained_*`, `read_*`);
this module divides bytes by time, row by row. What the capture cannot show is null: λ away from the sender, where the path spaces the
segments, and queues in the path at the receiver, because its ACKs do not wait in them.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import polars as pl

from tcptrace_lab import schema
from tcptrace_lab.connections import vantage
from tcptrace_lab.schema import SIDES
from tcptrace_lab.text import numbers
from tcptrace_lab.text.numbers import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tcptrace_lab.connections.vantage import Frame

LEAST_SAMPLES = 10
"""Least number of samples for a rate (a heuristic)."""

LEAST_TOLD_NS, LEAST_TOLD_BYTES = 1_000_000, 2048
"""Least RTT and least size for which buffers are mentioned. With a shorter RTT any buffer suffices, and no stack has smaller buffers
(4.2BSD's default)."""

ALIKE_SHARE = 0.8
"""Burst segments count as equal in size if their average is at least this share of the largest (a heuristic). A rate over small and large
segments together, as in a dialogue before a bulk transfer, describes neither."""

NEARLY_ALL_SHARE = 0.995
"""From this share on, rounding would print 100%."""

NOISE_SHARE = 0.05
"""A measured bound may be below the delivered rate by this share (a heuristic); below that it is no bound."""

BITS_PER_BYTE = 8
_BPS = float(BITS_PER_BYTE * NS_PER_S)

EQUAL_RATES = 1e-6
"""A λ/μ this close to 1 is treated as 1: the general M/M/1/K formula would divide zero by zero."""

PLATEAU_ROUNDS, PLATEAU_SHARE, BELOW_WINDOW_SHARE = 5, 0.8, 0.9
"""Flights are on a plateau if they did not grow for so many RTTs and none was much larger: the level is at least the first share of the
largest flight (an application that writes in large pieces does not always fill its buffer). A level above the second share of the largest
window is the window's (docs/how-it-decides.md, 4.12)."""

CLOCKED_PART = 4
"""If the send buffer is full, more than this many times more segments leave at once with an ACK than at other times (a heuristic): an
application that sends at its own pace does not follow the ACKs."""

LINE_RATES_BPS = {
    "ethernet": (10_000_000, 100_000_000, 1_000_000_000, 2_500_000_000, 5_000_000_000, 10_000_000_000, 25_000_000_000, 40_000_000_000),
    "atm": (25_600_000, 100_000_000, 149_760_000, 599_040_000),
}
"""Link rates: IEEE 802.3; ATM Forum's 25.6 Mb/s and TAXI-100, and the cell rates of OC-3c and OC-12c (ANSI T1.105)."""

LINE_SHARE = 0.01
LINE_SAMPLES = 50
FULL_SHARE = 0.98
"""A rate is a link's rate if it differs by at most `LINE_SHARE`, has at least `LINE_SAMPLES` samples, and the segments were full to at
least `FULL_SHARE` (heuristics; a link's own clock is exact to 0.01 %)."""


def beside(connections: Frame, side: str) -> Frame:
    """Add the columns of `schema.RATES` for the data that `side` sends, named by `named`, to rows of `schema.CONNECTIONS`.

    The columns are added in steps that build on each other. Polars does not share common subexpressions: as one expression each, the
    columns would compute them a hundred times.
    """
    for step in _steps(side):
        connections = connections.with_columns(**{named(side, name): value for name, value in step.items()})
    return connections


def named(side: str, name: str) -> str:
    """Return the name that `beside` gives to a column of `schema.RATES`."""
    return f"{side}_rates_{name}"


@cache
def _steps(side: str) -> tuple[Mapping[str, pl.Expr], ...]:
    """The columns of `schema.RATES` and their intermediate columns, in steps that build on each other."""
    other = vantage.OTHER_SIDE[side]
    col = {name: pl.col(f"{side}_{name}") for name in schema.DIRECTION_NAMES}
    window = pl.col(f"{other}_max_window_bytes")

    def own(name: str) -> pl.Expr:
        return pl.col(named(side, name))

    return (
        {"to_sender_ns": vantage.turnaround(side), "to_receiver_ns": vantage.turnaround(other)},
        _known(col, own("to_sender_ns"), own("to_receiver_ns")),
        _measured(other, col, own),
        {
            "send_bps": pl.when(own("near") & own("burst_bps").is_not_null()).then(pl.max_horizontal(own("burst_bps"), own("average_bps"))),
            "receive_bps": pl.min_horizontal(own("drain_bps"), _no_less(own("read_bps"), own("taken_bps"))),
            "drained_on_line_bps": _on_line(side, own("drain_bps"), col["drained_acks"]),
            "burst_on_line_bps": _on_line(side, own("burst_bps"), pl.when(col["super_segments"] == 0).then(col["burst_departures"])),
        },
        {
            "ratio": own("send_bps") / own("receive_bps"),
            # Segments that an ACK releases, and single segments, are in no burst, but they take time too.
            "idle_share": (1 - pl.max_horizontal(own("burst_share"), own("average_bps") / own("send_bps"))).clip(0, 1),
            "link_bps": pl.coalesce(_line_rate(own("drained_on_line_bps")), _line_rate(own("burst_on_line_bps"))),
        },
        {"link_bound_bps": _no_less(own("link_bps") * col["best_payload_share"], own("delivered_bps"))},
        {"bound_bps": pl.min_horizontal(own("send_bps"), own("receive_bps"), own("link_bound_bps"))},
        {
            "bound_by": pl.when(own("bound_bps") == own("receive_bps"))
            .then(pl.lit("receive"))
            .when(own("bound_bps") >= (1 - LINE_SHARE) * own("link_bound_bps"))  # λ may be the link's rate, within its tolerance
            .then(pl.lit("link"))
            .when(own("bound_bps") == own("send_bps"))
            .then(pl.lit("send")),
            # A sender that fills a queue is faster than the bound, but what was delivered is not.
            "reached_share": pl.when(own("sent_bps") <= (1 + NOISE_SHARE) * own("bound_bps"))
            .then(pl.min_horizontal(own("sent_bps"), own("bound_bps")))
            .otherwise(pl.min_horizontal(own("delivered_bps"), own("bound_bps")))
            / own("bound_bps"),
            "send_buffer_needed_bytes": _bytes_in(own("send_bps"), own("base_rtt_ns")),
            "receive_buffer_needed_bytes": _bytes_in(own("bound_bps"), own("base_rtt_ns")),
            "window_full_share": window_full_share(own("ratio"), own("window_segments")),
            "send_buffer_estimate_bytes": _send_buffer(col, window, own("near")),
        },
    )


def _known(col: Mapping[str, pl.Expr], to_sender: pl.Expr, to_receiver: pl.Expr) -> Mapping[str, pl.Expr]:
    """Whether the capture point is near the sender, how long data came, and whether burst segments have equal size."""
    largest = pl.min_horizontal(col["max_segment_bytes"], col["full_segment_bytes"])
    return {
        "near": (vantage.is_near(to_sender, to_receiver) & to_receiver.is_not_null()).fill_null(value=False),
        "span_ns": col["last_data_ts_ns"] - col["first_data_ts_ns"],
        "alike": (col["burst_bytes"] >= ALIKE_SHARE * largest * col["burst_departures"]).fill_null(value=False),
    }


def _measured(other: str, col: Mapping[str, pl.Expr], own: Callable[[str], pl.Expr]) -> Mapping[str, pl.Expr]:
    """The columns that follow directly from those of a connection."""
    near, span_ns = own("near"), own("span_ns")
    sent_bps = pl.when(span_ns > 0).then(col["unique_bytes"] * _BPS / span_ns)
    queued_ns = (col["rtt_max_ns"] - col["rtt_min_ns"]).fill_null(0)
    delivered_bps = pl.when(span_ns > 0).then((col["unique_bytes"] - col["mean_segment_bytes"]) * _BPS / (span_ns + queued_ns))
    return {
        "delivered_bps": delivered_bps,
        # What a full receive buffer holds was delivered, and not read.
        "taken_bps": delivered_bps * (1 - pl.min_horizontal(1, pl.col(f"{other}_max_window_bytes") / col["unique_bytes"])),
        "base_rtt_ns": own("to_receiver_ns") + pl.when(near).then(0).otherwise(own("to_sender_ns")),
        "sent_bps": sent_bps,
        "average_bps": sent_bps * (1 - 1 / col["data_segments"]),  # the time starts with the first segment, so its bytes do not count
        "burst_bps": pl.when(own("alike")).then(_rate(col["burst_bytes"], col["burst_ns"], col["burst_departures"])),
        "send_samples": col["burst_departures"],
        "drain_bps": _no_less(_rate(col["drained_bytes"], col["drained_ns"], col["drained_acks"]), delivered_bps),
        "drain_samples": col["drained_acks"],
        "read_bps": _rate(col["read_bytes"], col["read_ns"], col["read_windows"]),
        "read_samples": col["read_windows"],
        "burst_share": pl.when(near & (span_ns > 0)).then(col["burst_ns"] / span_ns),
        "window_segments": pl.col(f"{other}_max_window_bytes") // col["full_segment_bytes"],
    }


def table(connections: Frame) -> Frame:
    """Return rows of `schema.RATES` for the directions with data, by `conn`.

    Args:
        connections: rows of `schema.CONNECTIONS`, by `conn`.
    """
    to_server, to_client = (connections.select(_ends(side)).filter(pl.col("sender_data_segments") > 0) for side in SIDES)
    return beside(to_server.merge_sorted(to_client, "conn"), "sender").select(_table())


@cache
def _ends(side: str) -> list[pl.Expr]:
    """The columns that the rates of `side`'s data need, with the prefixes `sender_` (`side`) and `receiver_` (its peer)."""
    ends = {"sender": side, "receiver": vantage.OTHER_SIDE[side]}
    needed = sorted({name for step in _steps("sender") for value in step.values() for name in value.meta.root_names()})
    columns = [pl.col("conn"), pl.lit(SIDES[side]).alias("from_client")]
    for name in needed:
        end, _, rest = name.partition("_")
        if not name.startswith(named("sender", "")):
            columns.append(pl.col(f"{ends[end]}_{rest}" if end in ends else name).alias(name))
    return columns


@cache
def _table() -> list[pl.Expr]:
    keys = {name: pl.col(name) for name in ("conn", "from_client")}
    types = schema.RATES.polars_schema()
    return [keys.get(name, pl.col(named("sender", name))).cast(dtype).alias(name) for name, dtype in types.items()]


def on_path_ns(row: Mapping[str, Any], sent_bytes: int) -> int | None:
    """Return the time in ns that so many bytes take at the drain rate or on the link, whichever is slower; None if neither is known.

    `row` has the columns of `schema.RATES`.
    """
    known = [row[name] for name in ("drain_bps", "link_bound_bps") if row[name] is not None]
    return round(sent_bytes * _BPS / min(known)) if known else None


def window_full_share(ratio: pl.Expr, places: pl.Expr) -> pl.Expr:
    """P(full) of M/M/1/K, (1 - r) r^K / (1 - r^(K+1)): the share of segments that find all K `places` of the receive buffer taken.

    Args:
        ratio: r = λ/μ.
        places: K.
    """
    below = (1 - ratio) * ratio**places / (1 - ratio ** (places + 1))
    turned = 1 / ratio  # an equal form, whose powers do not overflow above 1
    above = (1 - turned) / (1 - turned ** (places + 1))
    return pl.when((ratio - 1).abs() < EQUAL_RATES).then(1 / (places + 1)).when(ratio < 1).then(below).otherwise(above)


def _rate(passed_bytes: pl.Expr, passed_ns: pl.Expr, samples: pl.Expr) -> pl.Expr:
    return pl.when((samples >= LEAST_SAMPLES) & (passed_ns > 0) & (passed_bytes > 0)).then(passed_bytes * _BPS / passed_ns)


def _no_less(bound_bps: pl.Expr, delivered_bps: pl.Expr) -> pl.Expr:
    """Return a bound, but no less than the rate at which data was delivered; null if it is below that by more than `NOISE_SHARE`.

    What was delivered faster had no such bound: a few long RTTs may look like a queue that drains.
    """
    below = (bound_bps < (1 - NOISE_SHARE) * delivered_bps).fill_null(value=False)
    return pl.when(bound_bps.is_not_null() & ~below).then(pl.max_horizontal(bound_bps, delivered_bps))


def _bytes_in(rate_bps: pl.Expr, time_ns: pl.Expr) -> pl.Expr:
    return (rate_bps * time_ns / _BPS).ceil().cast(pl.Int64, strict=False)


def _on_line(side: str, rate_bps: pl.Expr, samples: pl.Expr) -> pl.Expr:
    """Convert a rate of payload to a rate on the link, with headers; null unless the segments were full."""
    full_bytes = pl.col(f"{side}_wire_data_segments") * pl.col(f"{side}_full_segment_bytes")
    full = pl.col(f"{side}_payload_bytes") >= FULL_SHARE * full_bytes
    return pl.when(full & (samples >= LINE_SAMPLES)).then(rate_bps / pl.col(f"{side}_best_payload_share"))


def _line_rate(on_line_bps: pl.Expr) -> pl.Expr:
    """Return the exact payload rate if the rate on the link is within `LINE_SHARE` of a known link rate, else null."""
    line = pl.col("link").cast(pl.String)
    of_line = {
        name: pl.coalesce(pl.when((on_line_bps - known_bps).abs() <= LINE_SHARE * known_bps).then(float(known_bps)) for known_bps in known)
        for name, known in LINE_RATES_BPS.items()
    }
    return pl.coalesce(pl.when(line == name).then(rate_bps) for name, rate_bps in of_line.items())


def _send_buffer(col: Mapping[str, pl.Expr], window: pl.Expr, near: pl.Expr) -> pl.Expr:
    """Return the level of a plateau that the sender causes: a send buffer, or a clamped congestion window. Null without one.

    Away from the sender and without timestamps, the flights must be separated by pauses. If most segments come one by one, each one RTT
    after some ACK, each RTT brings what the path carries, whatever is in flight (`causes.network`).
    """
    level, full = col["level_flight_bytes"], col["full_segment_bytes"]
    in_flights = near | col["tick_ns"].is_not_null() | (2 * col["clocked_departures"] < col["data_segments"])
    on_plateau = (
        (col["level_rounds"] >= PLATEAU_ROUNDS)
        & (level >= PLATEAU_SHARE * col["max_in_flight_bytes"])
        & (level >= 2 * full)
        & (level <= BELOW_WINDOW_SHARE * window)
        & (level + 2 * full <= window)
        & (col["clocked_departures"] > CLOCKED_PART * col["unclocked_departures"])
        & in_flights
    )
    return pl.when(on_plateau).then(level)


def reached(row: Mapping[str, Any]) -> str:
    """`94% of the bound of 19.1 Mb/s`, from a row of `schema.RATES`; empty if the bound is unknown or only the sender's."""
    if row["reached_share"] is None or row["bound_by"] == "send":
        return ""
    return f"{numbers.share(row['reached_share'])} of the bound of {numbers.rate(row['bound_bps'])}"


def sentence(row: Mapping[str, Any]) -> str:
    """Describe one direction (a row of `schema.RATES`) as text; empty if nothing is known."""
    phrases = [*_rates(row)]
    if reached(row):
        phrases.append(f"{reached(row)} was reached")
    if row["idle_share"] is not None and row["send_bps"] is not None:
        share = "nearly all" if row["idle_share"] >= NEARLY_ALL_SHARE else numbers.share(row["idle_share"])
        phrases.append(f"the sender was idle for {share} of the transfer")
    needed = row["receive_buffer_needed_bytes"]
    if reached(row) and needed is not None and needed >= LEAST_TOLD_BYTES and row["base_rtt_ns"] >= LEAST_TOLD_NS:
        phrases.append(f"that rate needs buffers of {numbers.size(needed)} at an RTT of {numbers.duration(row['base_rtt_ns'])}")
    if row["send_buffer_estimate_bytes"] is not None:
        phrases.append(f"send buffer or clamped window: about {numbers.size(row['send_buffer_estimate_bytes'])}")
    return "; ".join(phrases)


def _rates(row: Mapping[str, Any]) -> list[str]:
    phrases = []
    if row["send_bps"] is not None:
        phrases.append(f"the sender reached {numbers.rate(row['send_bps'])} in bursts ({row['send_samples']:,} segments)")
    if row["drain_bps"] is not None:
        phrases.append(f"a queue drained at {numbers.rate(row['drain_bps'])} ({row['drain_samples']:,} ACKs)")
    if row["read_bps"] is not None:
        phrases.append(
            f"the receiving application read {numbers.rate(row['read_bps'])} from a full buffer ({row['read_samples']:,} windows)"
        )
    if row["ratio"] is not None:
        full = row["window_full_share"]
        often = "" if full is None else f" (M/M/1/K: {numbers.share(full)} of the segments find the window full)"
        phrases.append(f"λ/μ = {row['ratio']:.3g}{often}")
    if row["link_bps"] is not None:
        phrases.append(f"a {numbers.rate(row['link_bps'])} link leaves {numbers.rate(row['link_bound_bps'])} for data")
    return phrases
