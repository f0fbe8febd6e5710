"""Connections → the facts of their directions, which the rules of the ledger look at beside each wait.

Where the sender is and how far, what it offered, how its flights went: columns of the connections, by the side that sends. What follows
from them is in `of_direction`.
"""

from __future__ import annotations

import polars as pl

from tcptrace_lab import vantage
from tcptrace_lab.rules import of_direction
from tcptrace_lab.rules.facts import limits
from tcptrace_lab.schema import SIDES


def of(connections: pl.LazyFrame) -> pl.LazyFrame:
    """What the rules know of each direction: two rows for each row of `schema.CONNECTIONS`."""
    return pl.concat([_direction(connections, side) for side in SIDES]).with_columns(**of_direction.OF_DIRECTION)


def _direction(connections: pl.LazyFrame, side: str) -> pl.LazyFrame:
    (other,) = SIDES.keys() - {side}
    bound = vantage.turnaround(side)
    to_sender, to_receiver = (turnaround.fill_null(0) for turnaround in (bound, vantage.turnaround(other)))
    close, at_receiver = vantage.is_near(to_sender, to_receiver), vantage.is_near(to_receiver, to_sender)
    begun = pl.max_horizontal(*(f"{name}_syn_segments" for name in SIDES)) > 0
    unplaced = ((bound.is_null() & ~vantage.loopback()) | ((vantage.unasked(side) | ~begun) & ~close)) & (pl.col(f"{other}_segments") > 0)
    near = close & ~unplaced
    return connections.select(
        "conn",
        pl.lit(SIDES[side]).alias("from_client"),
        pl.col("first_ts_ns").alias("born_ns"),
        pl.col("last_ts_ns").alias("died_ns"),
        pl.col(f"{side}_rtt_min_ns").alias("rtt_min_ns"),
        pl.col(f"{side}_rtt_max_ns").alias("rtt_max_ns"),
        near.alias("near_sender"),
        (~near & ~unplaced & at_receiver & vantage.turnaround(other).is_not_null()).alias("near_receiver"),
        unplaced.alias("sender_unplaced"),
        to_sender.alias("to_sender_ns"),
        (to_receiver + pl.when(near).then(0).otherwise(to_sender)).alias("rtt_whole_ns"),
        pl.col(f"{other}_max_window_bytes").alias("max_window_bytes"),
        pl.col(f"{other}_last_data_ts_ns").alias("other_last_data_ts_ns"),
        pl.col(f"{other}_syn_segments").alias("other_syn_segments"),
        pl.col(f"{other}_first_departure_ts_ns").is_not_null().alias("other_departed"),
        begun.alias("beginning_seen"),
        pl.col(f"{other}_data_segments").alias("other_data_segments"),
        (pl.col(f"{side}_pushed_segments") > 0).alias("pushes"),
        (pl.col(f"{side}_fin_segments") > 0).alias("finished"),
        (pl.col(f"{other}_fin_segments") > 0).alias("other_finished"),
        (pl.max_horizontal(pl.col(f"{other}_fin_segments"), *(f"{name}_rst_segments" for name in SIDES)) > 0).alias("ended_by_others"),
        pl.col(f"{side}_missing_segments").is_not_null().alias("numbered"),
        _old(side).alias("old"),
        _tells_no_copies().alias("tells_no_copies"),
        _used_by_both("sack_permitted").alias("uses_sack"),
        _used_by_both("timestamps").alias("stamped"),
        _rounded(side, other).alias("rounded_bytes"),
        *(
            pl.col(f"{side}_{name}").alias(name)
            for name in (
                "reaction_min_ns",
                "retransmitted_segments",
                "spurious_retransmissions",
                "out_of_order_segments",
                "max_segment_bytes",
                "full_segment_bytes",
                "max_in_flight_bytes",
                "small_behind_small",
                "small_held_run",
                "small_past_full",
                "small_held_over_full",
                "small_held_went_on",
                "nagle_holds",
                "nagle_holds_over_full",
                "nagle_holds_in_doubt",
                "tick_ns",
                "clocked_departures",
                "unclocked_departures",
                "first_departure_ts_ns",
                "first_departure_frame",
                "first_departure_is_syn",
                "level_flight_bytes",
                "level_rounds",
                "other_level_flight_bytes",
                "other_level_rounds",
                "ending_held_ns",
                "ending_held_since_frame",
                "ending_idle_ns",
                "ending_peer_first_ns",
                "ending_peer_last_ns",
                "ending_payload_bytes",
                "ending_peer_payload_bytes",
                "line_payload_bytes",
                "line_ns",
                "exchange_bytes",
                "exchange_cells",
                "exchange_ns",
                "followed_segments",
                "steady_payload_bytes",
                "steady_ns",
                "steady_segments",
                "steady_other_sizes",
                "paced_payload_bytes",
                "paced_ns",
                "paced_bursts",
                "top_flight_bytes",
                "top_rounds",
                "full_held_flight_bytes",
                "full_held_times",
                "other_full_held_flight_bytes",
                "other_full_held_times",
                "emptied_flight_bytes",
                "emptied_times",
                "other_emptied_flight_bytes",
                "other_emptied_times",
                "drained_bytes",
                "drained_ns",
                "drained_acks",
            )
        ),
        *(
            pl.col(f"{other}_{name}").alias(f"other_{name}")
            for name in ("line_payload_bytes", "line_ns", "spaced_payload_bytes", "spaced_ns", "fin_ns")
        ),
    )


def _old(side: str) -> pl.Expr:
    """A stack that offers neither SACK (1996) nor timestamps (1992); null where its SYN was not seen."""
    return ~pl.col(f"{side}_sack_permitted") & ~pl.col(f"{side}_timestamps")


def _tells_no_copies() -> pl.Expr:
    """Neither SACK (and so no DSACK, RFC 2883) nor timestamps (RFC 3522) are in use: what came twice is told to nobody."""
    return ~(_used_by_both("sack_permitted") | _used_by_both("timestamps"))


def _used_by_both(option: str) -> pl.Expr:
    """Both SYNs offer it; null where that was not seen."""
    return pl.all_horizontal(*(f"{side}_{option}" for side in SIDES))


def _rounded(side: str, other: str) -> pl.Expr:
    """The payload to which a 4.4BSD of old rounds its MSS (as the engine says it of each departure, from when it can tell)."""
    longest, full = pl.col(f"{side}_max_segment_bytes"), pl.col(f"{side}_full_segment_bytes")
    whole = (longest > 0) & (longest < full) & (longest == full // limits.CLUSTER_BYTES * limits.CLUSTER_BYTES)
    two = pl.col(f"{side}_max_in_flight_bytes") >= 2 * longest
    # One at a time, again and again, but for the two that a FIN lets go together: a locked buffer (rule book A3).
    locked = (pl.col(f"{side}_small_held_run") >= of_direction.HELD_TIMES) & (pl.col(f"{side}_small_behind_small") == 0)
    two &= ~locked | (pl.col(f"{side}_max_in_flight_bytes") >= 3 * longest)
    return pl.when(_old(side) & whole & two & (pl.col(f"{other}_max_window_bytes") > 2 * longest + limits.CLUSTER_BYTES)).then(longest)
