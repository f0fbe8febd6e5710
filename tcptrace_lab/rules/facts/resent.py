"""What a departure is, and whether it was sent again, why, and in what state its sender is behind a loss."""

from __future__ import annotations

import polars as pl

from tcptrace_lab.rules import of_direction
from tcptrace_lab.rules.columns import fact as _fact
from tcptrace_lab.rules.facts.limits import FIN, INITIAL_SEGMENTS, LATEST_ACK_NS, LONGEST_TIMEOUT_NS, RTT_NS, SYN

_col, _known = pl.col, of_direction.known

KIND = _col("kind")

IS_SYN = _fact("is_syn", _col("flags") & SYN > 0)
IS_BARE_FIN = _fact("is_bare_fin", (_col("flags") & FIN > 0) & (_col("payload_bytes") == 0))
IS_SMALL = _fact(
    "is_small",
    (_known(_col("small")) | (_col("never_full") & (_col("payload_bytes") > 0))) & ~_known(_col("payload_bytes") == _col("rounded_bytes")),
)
SENT_AGAIN = _fact("sent_again", _col("resent_by").is_not_null())
_SPURIOUS = _fact("is_spurious", KIND == "spurious")
_REPEATS_SYN = IS_BARE_FIN & (_col("seq") == 0)
"""A FIN in the place of the SYN repeats nothing."""
IS_RESENT = _fact("is_resent", SENT_AGAIN & ~_REPEATS_SYN & _known(_col("held_ns") <= LONGEST_TIMEOUT_NS))
IS_TIMED_OUT = _fact("is_timed_out", IS_RESENT & _known(_col("resent_by") == "timeout"))
IS_REPAIR = _fact("is_repair", IS_RESENT & ~_SPURIOUS & (IS_TIMED_OUT | _known(_col("unacked_bytes") != 0)))
"""Sent again, and not for nothing: not all of it was acknowledged, or the ACK had not come when the timer ran out."""
TIMER_CAME_BEFORE_ACK = (
    IS_TIMED_OUT
    & ~_SPURIOUS
    & _known(_col("tells_no_copies"))
    & _known(_col("unacked_before_bytes") < 2 * _col("full_bytes"))
    & _known(_col("held_ns") - RTT_NS <= LATEST_ACK_NS)
)
"""Perhaps nothing was lost: the ACK of fewer than two segments may be delayed longer than the sender's timer runs (Linux: 200 ms; lwIP: up
to 250), a copy lets it go at once, and neither DSACK nor a timestamp tells which of the two it is for."""
IS_LATE_FIN = _fact(
    "is_late_fin",
    IS_BARE_FIN
    & IS_RESENT
    & (_known(_col("unacked_bytes") <= 1) | (IS_TIMED_OUT & _col("unacked_bytes").is_null()))
    & ~_known(_col("other_last_data_ts_ns") > _col("ts_ns") - _col("held_ns")),
)
"""A FIN sent again, when neither side has data left: the FIN is all that is not acknowledged, and the other side sent none since. Where it
goes on to send, it may have waited for that FIN as for the end of a request. A timer sends the oldest again that is not acknowledged
(RFC 6298, 5.4): where the capture holds no ACK, that tells as much."""
IS_STRANGE = _fact("is_strange", SENT_AGAIN & ~IS_RESENT)
"""Sent again in a way that no stack does: two captures in one file, or segments that others made."""
IS_NEEDLESS = _fact("is_needless", _known((_col("resent_by") == "tail_probe") | _SPURIOUS))
"""Sent again although nothing was lost, or only to ask whether something was: it does not tell what holds the next new byte."""
IS_WINDOW_PROBE = _fact("is_window_probe", KIND == "zero_window_probe")
_REPAIR_UNSEEN = (
    ~_col("near_sender")
    & _known(_col("uses_sack"))
    & _known(_col("out_of_order_segments") == 0)
    & _known(_col("loss_told_ns") == _col("held_ns"))
    & _col("repaired_by").is_null()
    & _known(_col("unacked_bytes") > 0)
)
"""Away from its sender, where nothing was overtaken: by the departure before, as many SACK blocks had reached the sender as make it repair
(RFC 6675, 5), and what is missing has not come since. The repair was lost on its way here as well."""
IS_RECOVERING = _fact("is_recovering", _known(_col("recovering")) | _REPAIR_UNSEEN)

AFTER_LOSS = _fact("is_after_loss", _known(_col("after_loss")))
HAS_BEGUN_ANEW = _fact(
    "has_begun_anew",
    _col("only_late") & _known(_col("flight_bytes") == 0) & _known(_col("unacked_before_bytes") >= INITIAL_SEGMENTS * _col("full_bytes")),
)
"""The first flight after a pause, with a whole initial window in it (RFC 5681, 4.1), of a sender whose resends were all for nothing."""
