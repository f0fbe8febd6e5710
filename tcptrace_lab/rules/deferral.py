"""What Linux leaves open in a window: room for so little of it that a sender waits for more (`tcp_tso_should_defer`)."""

from __future__ import annotations

import polars as pl

from tcptrace_lab.rules.columns import fact
from tcptrace_lab.rules.facts import held, path, released, resent, window
from tcptrace_lab.rules.of_direction import NS_PER_MS, RTT_NS, known, most_in_flight

DEFER_PART = 3
"""Linux keeps a segment back while an ACK is due soon and there is room for less than this part of the window (`tcp_tso_should_defer`,
net.ipv4.tcp_tso_win_divisor). Where it is the window's room, it counts the time as the receiver window's itself (`rwnd_limited`)."""

PACED_AHEAD = 4
"""Of flights in a round trip, no sender of Linux has paced more: its congestion window grows to twice the flight at most
(`tcp_is_cwnd_limited`), and it paces two of those in each round trip of slow start (net.ipv4.tcp_pacing_ss_ratio)."""

LARGEST_PIECE_BYTES = 65_536 - 321
"""No piece is larger (Linux `sk_setup_caps`: GSO_LEGACY_MAX_SIZE less MAX_TCP_HEADER and 1), unless its host was told to (BIG TCP)."""

AVOIDANCE_SEGMENTS = 16
"""Without a loss, Linux leaves slow start with so many segments at least (`hystart_low_window`, net/ipv4/tcp_cubic.c)."""

AVOIDANCE_PART = 20
"""Without a loss, congestion avoidance adds a segment in each round trip (RFC 5681, 3.1) or, in Linux' CUBIC, this part of the window
(`bictcp_update`)."""

_col = pl.col
_now, _flight, _full, _room = _col("unacked_before_bytes"), _col("flight_bytes"), _col("full_bytes"), _col("usable_before_bytes")
_room_then = _col("usable_window_bytes")

_OPENED_BY_ACKS = known(_col("window_opened_ns") > path.EPSILON_NS)
_WAS_LARGER = known(_now + _full <= _flight)
_NO_LARGER_NOW = _col("near_sender") & known(
    _col("unacked_bytes") + _room_then < _now + pl.when(known(_now < AVOIDANCE_SEGMENTS * _full)).then(2 * _full).otherwise(_full)
)
"""The flight before had filled a window that is no larger now, or by no more than the segment that slow start adds for an ACK: what the
window leaves open is open in the congestion window, too, which no ACK makes smaller without a loss (RFC 5681, 3.1)."""

_LEAST_BY_SLOW_START = _flight + _flight // (2 * _full) * _full
_MOST_BY_AVOIDANCE = _flight + pl.max_horizontal(_full, _flight // AVOIDANCE_PART)
_GREW_OTHERWISE = known(_now < _LEAST_BY_SLOW_START) & (
    known(_flight < AVOIDANCE_SEGMENTS * _full) | (~_col("near_sender") & known(_now > _MOST_BY_AVOIDANCE))
)
"""By less than slow start, which adds a segment for each ACK, and by more than congestion avoidance, where that can have begun. Away from
the sender this is what there is to see; near it, a larger flight that the window ends is seen to reach its edge."""

_STOOD_STILL = known(4 * _col("held_ns") >= 3 * RTT_NS)
"""For most of a round trip: the ACKs of all the flight before had come, and it was not their spacing that kept the sender back."""

_LESS_THAN_A_PIECE = known(
    (_room < 2 * _full) | ((_room < PACED_AHEAD * NS_PER_MS * _flight / RTT_NS.clip(1)) & (_room < LARGEST_PIECE_BYTES))
)
"""Linux waits for no more where as much fits as it hands down in one piece (`tcp_tso_autosize`): what it paces in a millisecond, and two
segments at least."""


def _part(room: pl.Expr) -> pl.Expr:
    """Room for less than the part of the window that Linux waits for."""
    return known((room >= 0) & (DEFER_PART * room < _now + _room))


def too_little(room: pl.Expr) -> pl.Expr:
    """The same, and for one segment."""
    return _part(room) & known(room < 2 * _full)


_HAD_MORE = ~known(_col("small_before"))
"""The segment before was full. A smaller one takes all that the program has given by then, and what comes behind it was not there yet."""

_WAITS_FOR_A_PIECE = _part(_room) & _LESS_THAN_A_PIECE & _STOOD_STILL & _HAD_MORE & (_WAS_LARGER | _GREW_OTHERWISE)
_EDGE_REACHED = known(most_in_flight + _full > _col("max_window_bytes"))
_DID_NOT_GROW = held.STANDS & _EDGE_REACHED & (known(_now < AVOIDANCE_SEGMENTS * _full) | known(_now >= AVOIDANCE_PART * _full))
"""Where slow start cannot have ended, or congestion avoidance adds a segment in each round trip, a congestion window that had held a flight
as large would have let a larger one go; and no buffer is smaller than the window, which some flight fills."""
_LEFT_TOO_LITTLE = (too_little(_room) & (_WAS_LARGER | _DID_NOT_GROW)) | _WAITS_FOR_A_PIECE
WINDOW_DEFERRED = fact(
    "window_deferred",
    released.RELEASED_BY_ACK
    & ~resent.IS_SMALL
    & ~resent.AFTER_LOSS
    & ~path.IS_OLD
    & pl.when(_OPENED_BY_ACKS).then(window.WAS_FULL & (too_little(_room_then) | _WAS_LARGER | _NO_LARGER_NOW)).otherwise(_LEFT_TOO_LITTLE),
)
"""The window had opened for a few segments, or been left open for them, and yet nothing left until an ACK came. The congestion window
cannot have held it: nothing was lost, and the flight was larger before, or filled a window as large as this, or grew otherwise. Stacks
older than segmentation offload do not do so."""
WINDOW_OWNS_ALL = fact("window_owns_all", window.FILLED | window.FORCED_IN | resent.IS_WINDOW_PROBE | WINDOW_DEFERRED)
"""However early the window opened a little, it held this one."""
