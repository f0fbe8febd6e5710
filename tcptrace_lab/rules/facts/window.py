"""What the receiver's window had room for, when it opened, and whether that let the departure go."""

from __future__ import annotations

import polars as pl

from tcptrace_lab.rules import of_direction
from tcptrace_lab.rules.columns import fact as _fact
from tcptrace_lab.rules.facts.acks import ALL_ACKED, IS_FIRST, PEER_SPOKE
from tcptrace_lab.rules.facts.limits import LEAST_OVERRIDE_NS, LEAST_RTO_NS, RTT_NS
from tcptrace_lab.rules.facts.path import EPSILON_NS, JITTER_NS, SAYS_WHEN
from tcptrace_lab.rules.facts.resent import IS_SMALL
from tcptrace_lab.rules.of_direction import CAUSAL_NS

_col, _known = pl.col, of_direction.known

room = _col("usable_before_bytes")
WAS_FULL = _fact(
    "window_was_full",
    _known((room < _col("payload_bytes")) | (room < 1)) & (room < _col("full_bytes")).fill_null(value=True),
)
"""There was room for less than a full segment, and for less than this one, or for none."""
_LAST_ACK_CAME = _col("near_sender") | _known(_col("since_last_ack_ns") > RTT_NS + EPSILON_NS)
"""What the last ACK said of the window had reached the sender when this left: away from it, a round trip after the ACK was seen."""
_room_now = pl.when(_LAST_ACK_CAME).then(_col("usable_window_bytes")).otherwise(room)
CUT = _fact("window_cut", IS_SMALL & _known(_col("payload_bytes") >= _room_now) & _known(room < _col("full_bytes")))
"""A small segment that takes all the room there was: the sender had waited for more room, and gave up (RFC 9293, 3.8.6.2.1: override)."""
FILLED = _fact("window_filled", IS_SMALL & _known(_col("payload_bytes") == _col("usable_window_bytes")))
"""A small segment that fills the window to the byte: whatever opened it before, it held this one, too."""
FIRST_FORCED_IN = _fact(
    "first_was_forced_in",
    _col("near_sender")
    & IS_FIRST
    & FILLED
    & _known(_col("usable_window_bytes") < _col("full_bytes"))
    & _known(_col("idle_ns") >= LEAST_OVERRIDE_NS)
    & _known(_col("reaction_min_ns") >= LEAST_OVERRIDE_NS),
)
"""The same of the first data of all, for which the window had stood open since the handshake: no opening of it ever let this sender go on
sooner than its timer, so that the timer is what let this go, too."""
_EDGE_WAS_REACHED = _known(_col("small_before")) & _known(room == 0)
"""The departure before was cut to the room there was: the program had given more."""
FORCED_IN = _fact(
    "was_forced_in",
    ~_col("near_sender")
    & IS_SMALL
    & _EDGE_WAS_REACHED
    & ~PEER_SPOKE
    & _known(_col("idle_ns") >= LEAST_RTO_NS)
    & _known(_col("window_opened_ns") - _col("acked_ago_ns") > EPSILON_NS),
)
"""The same away from the sender, where the room that it knew of is not seen: what was cut before waited for more room than the ACKs made,
until the sender's timer (RFC 9293, 3.8.6.2.1) or its window probe's (Linux, `tcp_send_probe0`: an RTO) let it go."""
FORCED_IN_UNSCALED = _fact(
    "was_forced_in_unscaled",
    _known(_col("fills_unscaled")) & IS_SMALL & ALL_ACKED & ~PEER_SPOKE & _known(_col("idle_ns") >= LEAST_OVERRIDE_NS),
)
"""The same where no SYN tells the scale of the window: that a small segment ends to the byte where the window does by one of the fifteen
scales, after its sender had waited so long with nothing in flight, is no chance."""
WAS_NEARLY_FULL = _fact("window_was_nearly_full", _known(room < 2 * _col("full_bytes")))
_EMPTIED_LONG_AGO_NS = pl.when(ALL_ACKED & (_col("idle_ns") > EPSILON_NS)).then(_col("idle_ns"))
"""Where a window is smaller than a segment, it is all open when all is acknowledged."""
LET_GO = _fact(
    "window_let_go",
    ~_known(_col("window_opened_ns") > EPSILON_NS) | ~_col("near_sender") | _known(_col("max_window_bytes") <= _col("payload_bytes")) | CUT,
) & ~(_col("near_sender") & _known(_col("peer_last_ns") < pl.coalesce("window_opened_ns", _EMPTIED_LONG_AGO_NS)))
"""What a window holds leaves when it opens. Where the sender sent nothing then, or only when an answer came, it had nothing to send, unless
there is no room for a full segment and this one takes all of it (RFC 9293, 3.8.6.2.1). Away from the sender, that it was so is not
seen so exactly."""
_OPENED_BEFORE_THE_LAST = _known(_col("window_opened_ns") > _col("held_ns"))
"""The departure before, which left before the window opened, came to the capture point behind what that ACK can have let go."""
_ACK_NOT_SEEN = _known(_col("in_flight_bytes") < _col("unacked_bytes")) & _known(
    _col("since_last_ack_ns") > _col("reaction_min_ns") + pl.max_horizontal(EPSILON_NS, CAUSAL_NS)
)
"""It does not know of an ACK that would have reached its sender, had it left as late as the quickest way tells."""
ON_THE_WAY = _fact("was_on_the_way", ~_col("near_sender") & _known(_col("flight_bytes") > 0) & (_OPENED_BEFORE_THE_LAST | _ACK_NOT_SEEN))
"""Away from its sender: it had left long before, and stood in a queue that was there before, whoever filled it. Of the first
flight that is not said: as much as the window its ACK opens the congestion window."""
GROWN_NS = _fact(
    "grown_ns",
    pl.when(SAYS_WHEN)
    .then(_col("queue_grew_ns"))
    .when(~_col("near_sender") & (ON_THE_WAY | _col("flight_bytes").is_null()))
    .then(JITTER_NS)
    .otherwise(0),
)
"""By so much the queue was longer for it than for the departures before: that is the path's, whatever held its sender. What a queue grew
and shrank by meanwhile made one wait longer and another shorter. Where no clock tells of the queue, the departure before does."""
KNOWN = _fact("window_known", room.is_not_null())
OPENED = _fact("window_opened", _col("window_opened_ns").is_not_null())
