"""Where the flights of a direction stand: at a level that they do not pass, though the window would take more (rule book B, 8)."""

from __future__ import annotations

import polars as pl

from tcptrace_lab.rules.columns import fact
from tcptrace_lab.rules.deferral import AVOIDANCE_PART, AVOIDANCE_SEGMENTS, too_little
from tcptrace_lab.rules.facts import acks, flow, held, limits, path, released, resent, window
from tcptrace_lab.rules.of_direction import LEVEL_SHARE, PLATEAU_SHARE, known

TOP_SHARE = 0.5
"""A flight of this share of a top that was reached so often, and a round trip ago, no longer grows: slow start would double it (RFC 5681,
3.1)."""

INITIAL_BYTES = 14_600
"""No initial window is larger, but one of two larger segments; nor than ten segments (RFC 6928, 2; Linux takes ten of any size, and is not
old)."""

LEAST_PROBING_SEGMENTS = 4
"""BBR has no more in flight while it looks for the shortest round trip (Linux, `bbr_cwnd_min_target`)."""

col = pl.col
_flight, _room = col("unacked_before_bytes"), col("usable_before_bytes")


_HIGHEST = pl.min_horizontal(PLATEAU_SHARE * col("max_in_flight_bytes"), col("max_in_flight_bytes") - col("full_bytes") + 1)
"""A plateau from here on is the highest: no flight was a tenth larger, or none a segment larger, by which congestion windows grow."""


def _on(plateau: str) -> pl.Expr:
    """A flight as large, to within a twentieth; or nearly so, and no longer growing: the round trip before had one as large.

    Where flights went far beyond that level once, one that grows passes through it: it stands there only behind another.
    """
    level = col(plateau)
    before, highest = col("flight_bytes"), known(level >= _HIGHEST)
    reached = (_flight >= LEVEL_SHARE * level) & (highest | before.is_null() | (before >= LEVEL_SHARE * level))
    stands = reached | ((_flight >= PLATEAU_SHARE * level) & (before >= PLATEAU_SHARE * level))
    return known(stands & (PLATEAU_SHARE * _flight <= level))


def _below(plateau: str) -> pl.Expr:
    """A smaller flight, no larger than one before, where none ever was a segment larger than the plateau.

    That is enough of a sender older than HyStart (RFC 9406) and remembered thresholds, wherever its flights grew later: it leaves slow
    start with a loss alone.
    """
    level = col(plateau)
    fits = known((TOP_SHARE * level <= _flight) & (PLATEAU_SHARE * _flight <= level))
    highest = known(col("max_in_flight_bytes") < level + col("full_bytes"))
    return col("near_sender") & fits & held.HAS_FLOWN & (highest | path.IS_OLD)


_BELOW_TOP = known(
    (TOP_SHARE * col("top_bytes") <= _flight)
    & (PLATEAU_SHARE * _flight <= col("top_bytes"))
    & (PLATEAU_SHARE * col("top_bytes") <= col("flight_bytes"))
)
_low = LEVEL_SHARE * col("low_top_bytes")
_FIRST_AS_EVER = col("near_sender") & col("flight_bytes").is_null() & ~resent.AFTER_LOSS & known(_flight + 1 >= col("low_top_bytes"))
"""The first flight is as large as any later, but for a FIN: the congestion window has grown since, and no more flew."""
_AS_BEFORE = (known((_low <= _flight) & (_low <= col("flight_bytes"))) | _FIRST_AS_EVER) & ~acks.PEER_SPOKE
_SMALL_FITS = resent.IS_SMALL & known(col("small_passes")) & known(_room > col("payload_bytes"))
"""It would have passed those in flight, as others did, and the window had room for it."""
_WINDOW_IS_NEAR = (
    pl.when(col("near_sender") & path.IS_OLD)
    .then(known(_room < pl.min_horizontal(col("full_bytes"), col("max_window_bytes") / 2)) & ~_SMALL_FITS)
    .when(col("near_sender"))
    .then(known(_room < col("full_bytes")) | (too_little(_room) & ~resent.IS_SMALL))
    .otherwise(window.WAS_NEARLY_FULL)
)
"""There was no room for what leaves at once: a full segment, or half of the largest window in BSD's stacks (`tcp_output`); in Linux also a
third of the window for more than one (`DEFER_PART`). Away from the sender the room is not known so exactly: for two segments."""
ON_PLATEAU = fact(
    "on_plateau",
    (
        _on("top_bytes")
        | _on("plateau_bytes")
        | _on("other_plateau_bytes")
        | _BELOW_TOP
        | _below("top_bytes")
        | _below("plateau_bytes")
        | _below("other_plateau_bytes")
        | _AS_BEFORE
    )
    & ~_WINDOW_IS_NEAR
    & ~(held.MORE_WAS_GIVEN & resent.IS_SMALL),  # it was in the buffer, and the program has not filled it since
)
"""Flights stand at one level of two segments or more, well below the largest window, and more would fit the one of now; or they come and go
below one that they reach again and again, as those of a program that fills its buffer now more, now less; or they are all less than two
segments, and as large as the one before."""

STOPPED = fact(
    "stopped",
    col("near_sender") & held.BUFFER_EMPTIED & ~_WINDOW_IS_NEAR,
)
"""All that the sender had been given had left, so that the congestion window held nothing, and the program gave more as soon as there was
room again."""

_ONE_BY_ONE = (
    held.MAY_FILL_BUFFER
    & released.RELEASED_BY_ACK
    & held.HELD_BEHIND_SMALL
    & known(col("held_before"))
    & known(col("payload_before_bytes") == _flight)
    & ~acks.ACK_WAS_LATE
    & ~col("surely_holds_small")
)
TAKEN_ONE_BY_ONE = fact("taken_one_by_one", _ONE_BY_ONE & known((col("payload_bytes") == _flight) & (_flight == col("flight_bytes"))))
"""Small segments of one size, one in each round trip. Nagle's rule holds no full segment, and lets all go that the buffer has when the ACK
comes: a program that goes on writing gives it full ones while there is room. So this one was not in the buffer when the last left, because
it found no place there, with Nagle's rule or without. The only other way to frames like these is a program that writes just so much in
each round trip by itself."""
TAKEN_IN_TURN = fact("taken_in_turn", _ONE_BY_ONE & ~col("taken_one_by_one"))
"""The same with other sizes: the buffer, or what a program writes now and then, which Nagle's rule holds. The capture does not tell."""

_initial = pl.min_horizontal(limits.INITIAL_SEGMENTS * col("full_bytes"), pl.max_horizontal(2 * col("full_bytes"), pl.lit(INITIAL_BYTES)))
_STANDS_AGAIN = (
    held.HAS_FLOWN & known(TOP_SHARE * col("flight_bytes") <= _flight) & (~acks.LITTLE_IN_FLIGHT | known(col("unclocked_departures") == 0))
)
_BEGAN_AT_ONCE = col("beginning_seen") & col("flight_bytes").is_null() & ~resent.AFTER_LOSS & known(_flight > _initial)
"""More than any initial window had left before an ACK of data came: this sender knows no slow start (4.2BSD)."""
_STANDS_TODAY = (
    ~path.IS_OLD
    & ~resent.AFTER_LOSS
    & known(col("flown_before"))
    & known(TOP_SHARE * col("flight_bytes") <= _flight)
    & known(_flight > LEAST_PROBING_SEGMENTS * col("full_bytes"))
    & (known(_flight < AVOIDANCE_SEGMENTS * col("full_bytes")) | known(_flight >= AVOIDANCE_PART * col("full_bytes")))
    & known(flow.PACED_PART * col("held_ns") >= limits.RTT_NS)
)
NO_LARGER = fact("no_larger", col("near_sender") & ((path.IS_OLD & (_STANDS_AGAIN | _BEGAN_AT_ONCE)) | _STANDS_TODAY) & ~_WINDOW_IS_NEAR)
"""The flight is no larger than one before, nor much smaller than the last, of a sender that leaves slow start with a loss alone, or has
left it by one: whatever holds it, the congestion window does not, which has grown with each ACK since. Below two segments nothing but ACKs
may have let it go. Of senders of today that is so before any loss, where the sender stood still, and slow start cannot have ended, or
congestion avoidance adds a segment in each round trip: behind a loss the window of CUBIC stands below its last maximum (RFC 9438, 4.4), and
that of BBR stands at the path's rate, but it spaces its flights."""
