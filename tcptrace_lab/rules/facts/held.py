"""Whether the sender kept a small segment back: Nagle's rule in its forms, and what looks like it."""

from __future__ import annotations

import polars as pl

from tcptrace_lab.rules import of_direction
from tcptrace_lab.rules.columns import fact as _fact
from tcptrace_lab.rules.facts.acks import ACK_JUST_CAME, ACKED_AT_ONCE, ALL_ACKED, HAD_IN_FLIGHT, PEER_SPOKE, SMALL_UNACKED
from tcptrace_lab.rules.facts.limits import CLUSTER_BYTES, FIN, LEAST_BUFFER_BYTES, LEAST_OVERRIDE_NS, URG
from tcptrace_lab.rules.facts.path import EPSILON_NS, IS_OLD, LINE_NS
from tcptrace_lab.rules.facts.released import (
    CAME_WITH_ACK,
    FITS_IN_ANY,
    LET_GO_PART,
    NOTHING_WAS_SHORT,
    PASSES,
    REACTION_NS,
    RELEASED_BY_ACK,
)
from tcptrace_lab.rules.facts.resent import AFTER_LOSS, IS_BARE_FIN, IS_SMALL, SENT_AGAIN
from tcptrace_lab.rules.facts.window import room
from tcptrace_lab.rules.of_direction import CAUSAL_NS, HELD_TIMES

_col, _known = pl.col, of_direction.known

_NEVER_HELD = _col("flags") & (FIN | URG) > 0
"""A close sends what is left, and urgent data leave at once (Linux, `tcp_send_fin`; 4.4BSD, `tcp_output`): they wait for their program."""
_HELD_NOW = _fact("held_now", ~PASSES & _col("holds_small"))
STANDS = _fact("flight_stands", _known(_col("unacked_before_bytes") <= _col("flight_bytes")) & ~AFTER_LOSS)
"""The flight is no larger than one of the round trip before. The congestion window had room for that one, and slow start adds to it with
each ACK (RFC 5681, 3.1): so it is not what holds this one back, but for a sender that began anew after a pause."""
HAS_FLOWN = _fact("has_flown", STANDS | _known(_col("flown_before")))
"""The same of all flights before, however long ago, but for a sender that may have begun anew. Behind a loss, of those since, if they have
stood for so long that the congestion avoidance of old stacks would have made them larger: a segment in each round trip (RFC 5681, 3.1)."""


def _is_half(payload: str) -> pl.Expr:
    """BSD lets half of the largest window pass, whatever Nagle's rule says (`tcp_output`; RFC 9293, 3.8.6.2.1)."""
    return IS_OLD & _known(_col(payload) >= _col("max_window_bytes") // 2)


IS_HALF = _fact("is_half_a_window", _is_half("payload_bytes"))
LEFT_AS_HALF = _fact("left_as_half_a_window", IS_HALF & _known(_col("reaction_min_ns") < LEAST_OVERRIDE_NS))
"""Such a segment leaves as soon as it is given; its sender was seen to go on sooner than a timer that waits for more room."""
BUFFER_EMPTIED = _fact("buffer_emptied", _known(_col("pushed_before")) & of_direction.emptied(_col("unacked_before_bytes")))
_AT_A_STOP = of_direction.at_a_stop(_col("unacked_before_bytes")) | BUFFER_EMPTIED
_MAY_BE_HELD = _fact("may_be_held_at_all", IS_SMALL & ~_NEVER_HELD & ~IS_HALF & ~_AT_A_STOP)
_BEHIND_HALF = _known(_col("small_before")) & _is_half("payload_before_bytes")
WRITTEN_WITH_THE_ACK = _fact(
    "written_with_the_ack",
    RELEASED_BY_ACK
    & ~IS_OLD
    & SMALL_UNACKED
    & ~_known(_col("small_before"))
    & _known(_col("small_held_went_on") >= HELD_TIMES)
    & _known(_col("unacked_before_bytes") > 2 * _col("full_bytes")),
)
"""Behind full segments an ACK lets a small one go, and time after time more follows it at once: its program gave all of that just then,
and so was woken by the ACK. What a program that wants to go on has left in the buffer does not wait for Nagle's rule: Linux pushes it when
it blocks its program (`tcp_sendmsg`, TCP_NAGLE_PUSH), and in other stacks of today the ACK of the flight's first two segments wakes the
program, which makes it a full one. Old receivers acknowledge more at once."""
_KERNEL_LET_GO = ~_col("near_sender") | _known(
    _col("acked_ago_ns") <= pl.max_horizontal(pl.lit(REACTION_NS), _col("held_ns") // LET_GO_PART)
)
"""Near the sender. What Nagle's rule holds is let go by the host that takes the ACK, and no program has to be woken for it."""
HELD_BEHIND_SMALL = _fact(
    "held_behind_small",
    _MAY_BE_HELD & SMALL_UNACKED & _HELD_NOW & _KERNEL_LET_GO & (~_BEHIND_HALF | FITS_IN_ANY | STANDS) & ~WRITTEN_WITH_THE_ACK,
)
"""A small segment behind a small one in flight, while the sender let none pass: what Nagle's rule holds in all its forms. It may be
switched on and off under way: then what came last tells, and one run of waits in a row. Behind half of the largest window, which passes a
small one, there may be more in flight than slow start has room for."""

HELD_AT_FIRST = _fact(
    "held_at_first",
    RELEASED_BY_ACK & _MAY_BE_HELD & SMALL_UNACKED & ~PASSES & NOTHING_WAS_SHORT & ~HELD_BEHIND_SMALL & CAME_WITH_ACK,
)
"""A small segment left with the ACK of the only one in flight, before any passed another: a program that sets TCP_NODELAY later, as
OpenSSH's does behind the login, had not set it yet."""

_A_LITTLE_LATE = 8
LET_GO_LATE = _fact(
    "let_go_late",
    HELD_BEHIND_SMALL
    & HAD_IN_FLIGHT
    & ALL_ACKED
    & ~PEER_SPOKE
    & ~IS_BARE_FIN
    & _known(_col("small_held_run") >= HELD_TIMES)
    & _known(_col("idle_ns") * _A_LITTLE_LATE <= _col("held_ns")),
)
"""A busy host may be late to react to the ACK. Where three in a row left at once, one that left within an eighth of its wait was held, too
(a heuristic)."""

_OPENED_BEFORE = _col("near_sender") & (room == _col("payload_bytes")) & (_col("window_opened_ns") > EPSILON_NS)
"""The window had room for just this segment, and opened long before it left: something else held it from then on."""

HELD_BEHIND_FULL = _fact(
    "held_behind_full",
    _MAY_BE_HELD
    & ~SMALL_UNACKED
    & _HELD_NOW
    & ALL_ACKED
    & (_known(_col("unacked_before_bytes") <= 2 * _col("full_bytes")) | ACKED_AT_ONCE)
    & _known((room > _col("payload_bytes")) | _OPENED_BEFORE)
    & ~AFTER_LOSS
    & _col("holds_behind_full"),
)
"""A small segment behind full ones in flight: held by Nagle's rule in its first form (RFC 896, BSD), not in Minshall's (Linux). A tail that
the congestion window holds looks alike, so the sender must have done it three times, never let one pass, and have lost nothing."""

HELD_THROUGH_ROOM = _fact(
    "held_through_room",
    _col("near_sender")
    & IS_OLD
    & _MAY_BE_HELD
    & ~SMALL_UNACKED
    & ALL_ACKED
    & _known(_col("window_opened_ns") > EPSILON_NS)
    & STANDS
    & _known(_col("small_past_full") == 0),
)
"""The same behind a window that was full: an ACK made room for a full segment, and yet this small one waited for the ACK of all. Neither
the window nor, with no more in flight than before, the congestion window can have held it."""

_QUANTUM_BYTES = pl.max_horizontal(_col("full_bytes"), pl.lit(CLUSTER_BYTES))
MAY_FILL_BUFFER = _fact(
    "may_fill_buffer",
    _known(_col("unacked_before_bytes") >= LEAST_BUFFER_BYTES)
    & _known(_col("unacked_before_bytes") + _QUANTUM_BYTES > _col("max_in_flight_bytes")),
)
"""Never was so much more in flight that the send buffer is known to have had room: what waits behind such a flight was held back in the
buffer, or found no place there. A full buffer takes nothing until a segment or a cluster of it is free (BSD `sosend`), or takes one piece
more than it has room for (Linux, Solaris)."""

HELD_SHORT_OF_BUFFER = _fact(
    "held_short_of_buffer",
    _col("near_sender")
    & IS_OLD
    & _MAY_BE_HELD
    & ~SMALL_UNACKED
    & ALL_ACKED
    & HAS_FLOWN
    & ~MAY_FILL_BUFFER
    & _known(room > _col("payload_bytes"))
    & _known(_col("small_past_full") == 0),
)
"""The same behind a flight that leaves room in every send buffer, and in the window; nor, as a flight as large had flown before, is it the
congestion window that held it."""

MORE_WAS_GIVEN = _fact(
    "more_was_given",
    _col("near_sender")
    & IS_OLD
    & _col("pushes")
    & ~_known(_col("pushed_before"))
    & _known(_col("payload_before_bytes") > 0)
    & (_col("payload_bytes") > 0)
    & ~SENT_AGAIN,
)
"""A sender that sets PSH did not in the departure before: it had more in its buffer by then (RFC 9293, 3.9.1.2: the last segment of what
is buffered must have it; 4.4BSD, `tcp_output`). Stacks of today leave it out for a program that corks, too, or within one write."""
_HAD_ROOM = _known(room >= _col("full_bytes")) | (IS_SMALL & _known(room >= _col("payload_bytes")))
"""In the window: for a full segment, or for what left."""
KEPT_BEHIND_WINDOW = _fact(
    "was_kept_behind_window",
    ~_HAD_ROOM & _known(_col("usable_window_bytes") >= _col("full_bytes")) & _known(_col("window_opened_ns") > EPSILON_NS),
)
"""It had not, until it opened."""
KEPT_BACK = _fact(
    "was_kept_back",
    MORE_WAS_GIVEN & (_HAD_ROOM | KEPT_BEHIND_WINDOW) & ~ACK_JUST_CAME & _known(_col("held_ns") - LINE_NS > CAUSAL_NS),
)
"""The sender had more, the window had room for it, and this one left by itself: neither the congestion window nor the send buffer opens
without an ACK. So less than a full segment was kept back, until the program filled it or a timer let it go."""
HELD_THOUGH_GIVEN = _fact(
    "held_though_given",
    MORE_WAS_GIVEN
    & IS_SMALL
    & ~_NEVER_HELD
    & ~IS_HALF
    & ALL_ACKED
    & _known(room > _col("payload_bytes"))
    & (HAS_FLOWN | _known(_col("flown_bytes") >= _col("unacked_before_bytes") + _col("payload_bytes"))),
)
"""A small segment that the sender had, and for which the window had room, and the congestion window as well: so much flew at once before,
or the flight without it, and slow start adds a segment. Yet it waited for the ACK of all."""

HELD_BY_NAGLE = _fact(
    "held_by_nagle", HELD_BEHIND_SMALL | HELD_AT_FIRST | HELD_BEHIND_FULL | HELD_THROUGH_ROOM | HELD_SHORT_OF_BUFFER | HELD_THOUGH_GIVEN
)
