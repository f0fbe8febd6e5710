"""What the path, the line and the two clocks have in a wait, and what kind of sender it is."""

from __future__ import annotations

import polars as pl

from tcptrace_lab import rates
from tcptrace_lab.rules import of_direction
from tcptrace_lab.rules.columns import fact as _fact
from tcptrace_lab.rules.facts.limits import NS_PER_MS, RTT_NS
from tcptrace_lab.rules.of_direction import AROUND_BYTES, CAUSAL_NS, LEAST_FRAME_BYTES, on_line

_col, _known = pl.col, of_direction.known

EPSILON_NS = _col("epsilon_ns")
"""An event so soon after another may be its effect."""


def beyond_least_ns(line: str, payload: str) -> pl.Expr:
    """How much longer than a SYN, of which the shortest round trip mostly is, a segment occupies the line."""
    return on_line(pl.max_horizontal(_col(payload).fill_null(0) + (AROUND_BYTES - LEAST_FRAME_BYTES), 0), line)


def undisturbed(sent: str = "payload_before_bytes", answered: str = "peer_payload_bytes") -> pl.Expr:
    """The round trip of a segment and what comes back for it, with nothing in their way. The arguments name columns with their data."""
    return RTT_NS + beyond_least_ns("line", sent) + beyond_least_ns("other_line", answered)


def at_most(bound: pl.Expr, value: pl.Expr) -> pl.Expr:
    """The value, or the bound where that is known and less: `min_horizontal`, which takes three times as long where there are nulls."""
    return pl.when(bound < value).then(bound).otherwise(value)


def transit(gap_ns: pl.Expr, undisturbed_ns: pl.Expr) -> pl.Expr:
    """How much of a time something was on its way: at most an undisturbed round trip, and away from the sender what paths vary by."""
    return pl.max_horizontal(pl.min_horizontal(gap_ns, undisturbed_ns + _col("unsteady_ns")).fill_null(0), 0)


LINE_NS = _fact(
    "line_part_ns",
    on_line(pl.max_horizontal(_col("payload_before_bytes") + AROUND_BYTES, LEAST_FRAME_BYTES), "line"),
)
"""So long the sender's line carries the departure before, and whatever else may hold the next byte, it could not leave. Where the sender's
own host is slower than its line, it is the host that needs so long for a segment. Known near the sender alone."""
_STOOD_BEFORE_NS = _col("acked_lag_ns") - _col("held_ns")
"""So long before the wait the oldest byte left that its ACK was for: the flight's first."""
DRAINING_NS = _fact(
    "draining_ns",
    pl.when(_col("near_sender") & (_col("drained_acks") >= rates.LEAST_SAMPLES))
    .then((_col("unacked_before_bytes") * _col("drained_ns") // _col("drained_bytes") - _STOOD_BEFORE_NS).clip(0))
    .fill_null(0),
)
"""So long the path's narrowest place still carries the flight that is out, at the rate at which queues drained: it had begun with the
flight's first byte. A larger flight would have waited for it as well."""
IS_OLD = _known(_col("old"))
"""The sender's SYN offers neither SACK nor timestamps: such stacks are older than both, and than pacing (Linux 3.12, 2013)."""
ACK_CLOCKED = _col("ack_clocked")
"""Most segments of the direction leave at once when an ACK comes."""

DRIFT_PART = 10_000
"""Two clocks drift apart by no more than this part (a heuristic: 100 in a million are a bad quartz)."""

_BY_TICKS_NS = (
    pl.when(_col("ticks_milliseconds"))
    .then((_col("sent_ticks") + 1) * NS_PER_MS + _col("held_ns") // DRIFT_PART)
    .otherwise((_col("sent_ticks") + 1) * _col("tick_ns"))
)
"""The longest that the wait can have been by the sender's clock. Ticks that are counted on a capture behind a queue that grows seem longer
than they are: where they are milliseconds, that counts."""
JITTER_NS = _fact(
    "jitter_ns", pl.max_horizontal(pl.when(_col("near_sender")).then(0).otherwise(_col("held_ns") - _BY_TICKS_NS).fill_null(0), 0)
)
"""So much longer than by the sender's own clock the wait was where it was captured: the path delayed the departure (RFC 7323, 3: timestamps
are taken when a segment is sent)."""
SAYS_WHEN = ~_col("near_sender") & _col("ticks_milliseconds") & _col("queued_ns").is_not_null()
"""Away from its sender, and by its timestamp the path's delay is known: it need not be allowed for."""
QUEUED_NS = _fact("was_queued_ns", pl.when(SAYS_WHEN).then(_col("queued_ns")).otherwise(0))
"""So much longer than the quickest before it, by its own timestamp, it took to the capture point, whoever filled the queues on its way."""
_AT_ONCE = ~_col("near_sender") & (_col("sent_ticks") == 0) & (2 * _col("held_ns") > _col("tick_ns"))
WAS_DELAYED = _fact("was_delayed", ((JITTER_NS > CAUSAL_NS) & (_col("held_ns") < 2 * JITTER_NS)) | _known(_AT_ONCE))
"""Most of the wait is the path's, or the departure had left at once behind the one before and was spaced on the way."""
