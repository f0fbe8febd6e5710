"""What follows from the facts of a direction alone: columns that every departure of it has beside it (`directions.of`)."""

from __future__ import annotations

import polars as pl

from tcptrace_lab import policy

NS_PER_MS = 1_000_000

CAUSAL_NS = NS_PER_MS
"""An event within this time of another may be its effect (rule book B, ε)."""

CAUSAL_SHARE_NEAR, CAUSAL_SHARE_FAR = 0.1, 0.5
"""The same as a share of the round trip: at the sender, and away from it, where the path is unsteady between cause and effect."""

BURST_NS = 20_000
"""Segments closer than this leave together: what the sender's host needs for one (measured on loopback and veth: 1 to 10 µs)."""
BURST_SHARE = 0.002
"""The same as a share of the round trip."""

QUEUE_SHARE = 0.25
"""A round trip longer than its minimum by this share has a queue in it."""

HELD_TIMES = 3
"""So many waits of one kind prove what one is only consistent with (rule book B, 5)."""

PLATEAU_ROUNDS = 5
PLATEAU_SHARE, LEVEL_SHARE = 0.9, 0.95
BELOW_WINDOW_SHARE = 0.9
"""Flights that did not grow for so many round trips stand on a plateau; a flight of the second share of it has reached it, and one of the
first if the round trip before had one, too (rule book B, 8). A plateau closer to the largest window than the last share is the window's."""

REFILL_NS, REFILL_SHARE = 4 * NS_PER_MS, 0.25
"""A program that was blocked by a full buffer needs some time to be woken and to write: so much, whatever the path; away from the sender,
where the path is unsteady, or this share of the round trip."""

STEADY_SEGMENTS, STEADY_PART, STEADY_SHARE = 5, 4, 0.75
"""By so many more than at another pace segments of one write come at a steady one. It is no round trip of a sender with a small buffer if
it is longer than that, or at most this part of it, or if it is longer and shorter with the segments' size. There are
no pauses between flights where that is by so large a share more than at another pace (heuristics)."""

PACED_BURSTS = 5
"""By so many more bursts that leave at one pace than at another it is the sender's (a heuristic, as `STEADY_SEGMENTS`)."""

LEAST_TICK_NS, MOST_TICK_NS = 800_000, 1_250_000
"""A timestamp clock that seems to tick so often, with the path's queues in between, ticks milliseconds (a heuristic: the next that is
in use has 4)."""

TUNNEL_SHARE = 0.9
"""Of a sender whose longest segment has this share of a full one, the engine takes it for what a tunnel leaves."""

_col = pl.col
DEFAULT_MSS_BYTES = 536
"""What is sent where no MSS was offered (RFC 9293, 3.7.1): on no path of today is it smaller."""

RTT_NS = _col("rtt_whole_ns")

most_in_flight = pl.max_horizontal("max_in_flight_bytes", "top_flight_bytes")
"""As captured, and as the sender knew it: away from the sender, ACKs are seen long before it hears of them."""


def known(test: pl.Expr) -> pl.Expr:
    """Unknown is false."""
    return test.fill_null(value=False)


def _at_least(least_ns: int, share: float | pl.Expr) -> pl.Expr:
    """A share of the round trip, but not less than so much."""
    return pl.max_horizontal(pl.lit(least_ns), (RTT_NS * share).cast(pl.Int64))


def _level(level: str, rounds: str) -> pl.Expr:
    """A level that is a plateau, and not the window's; below two segments, as a program's own pace may be, if nothing left by itself."""
    shown = (_col(level) >= 2 * _col("full_segment_bytes")) | known(_col("unclocked_departures") == 0)
    return pl.when((_col(rounds) >= PLATEAU_ROUNDS) & shown & _below_window(level)).then(_col(level))


def _below_window(level: str) -> pl.Expr:
    """Far below the largest window; where the sender is old, and so sends each segment that fits, one segment is far enough."""
    fits = _col("near_sender") & known(_col("old")) & (_col(level) + _col("full_segment_bytes") <= _col("max_window_bytes"))
    return (_col(level) <= BELOW_WINDOW_SHARE * _col("max_window_bytes")) | known(fits)


def _low_top() -> pl.Expr:
    """The largest flight of a direction that never had two full segments in flight, if ACKs let it go on often, and nothing else did.

    Known where the round trip is so long that what leaves with an ACK leaves because of it.
    """
    low = known(most_in_flight < 2 * _col("full_segment_bytes"))
    low &= (_col("clocked_departures") >= PLATEAU_ROUNDS) & (_col("unclocked_departures") == 0)
    clear = known(CAUSAL_SHARE_NEAR * RTT_NS >= CAUSAL_NS) & _below_window("max_in_flight_bytes")
    return pl.when(low & clear).then(_col("max_in_flight_bytes"))


def at_a_stop(flight: pl.Expr) -> pl.Expr:
    """Behind a flight of just so many bytes full segments waited as well, three times and more: neither was in the send buffer yet.

    Not where what the engine takes for full never was (`never_full`).
    """
    stops = (("full_held_flight_bytes", "full_held_times"), ("other_full_held_flight_bytes", "other_full_held_times"))
    full = pl.any_horizontal(known((flight == _col(size)) & (_col(times) >= HELD_TIMES)) for size, times in stops)
    return full & ~_col("never_full")


def emptied(flight: pl.Expr) -> pl.Expr:
    """Behind a flight of just so many bytes, its last segment pushed, full ones waited three times and more, though the window had room.

    In old stacks all that the sender had been given had left with them (4.4BSD, `tcp_output`): what came behind was not in the buffer yet.
    """
    sizes = (("emptied_flight_bytes", "emptied_times"), ("other_emptied_flight_bytes", "other_emptied_times"))
    return known(_col("old")) & pl.any_horizontal(known((flight == _col(size)) & (_col(times) >= HELD_TIMES)) for size, times in sizes)


AROUND_BYTES, LEAST_FRAME_BYTES = 78, 84
"""What a segment takes of an Ethernet beside its data (headers of IPv4 and TCP, frame, preamble and gap), and the least that any takes
(IEEE 802.3). On other lines it is about as much, and little where the line's rate matters."""


ALIKE_SHARE, ALIKE_IN_CELLS_SHARE = 0.05, 0.02
"""Rates of the lines of both ways that differ by less are the same (a heuristic); over ATM, where nothing but the clock of the capture is
rounded, the second."""

CELL_BYTES, AROUND_IN_CELLS_BYTES, LEAST_SEGMENT_CELLS = 48, 56, 2
"""Over ATM a segment takes whole cells, of which each carries so many bytes (ITU-T I.361), with its headers, LLC/SNAP and trailer (ITU-T
I.363.5, RFC 2684); one without data takes two."""
TIMESTAMP_BYTES = 12
"""What timestamps take of each segment behind the SYN (RFC 7323, appendix A)."""
_OPTION_BYTES = pl.when("stamped").then(TIMESTAMP_BYTES).otherwise(0)
_LEAST_SEGMENT_BYTES = pl.max_horizontal(_OPTION_BYTES + AROUND_BYTES, LEAST_FRAME_BYTES)
"""A segment without data on an Ethernet."""


def _cells(payload: pl.Expr) -> pl.Expr:
    return (payload + _OPTION_BYTES + AROUND_IN_CELLS_BYTES + CELL_BYTES - 1) // CELL_BYTES


LONGEST_ON_LINE_NS = 16_000 * NS_PER_MS
"""No line that a capture is made at takes longer for a segment (a heuristic: 1,538 bytes at 1,200 bit/s take 10 s)."""


def on_line(payload: pl.Expr, line: str) -> pl.Expr:
    """Nanoseconds for which so many bytes, headers and gap with them, keep a line busy; 0 where its rate is not known.

    In whole numbers: a quotient of floats may differ in its last bit with the rows that are beside it, and a time with it.
    """
    return pl.max_horizontal((payload * _col(f"{line}_busy_ns") // _col(f"{line}_busy_bytes")).fill_null(0), 0)


def _busy(of: str) -> tuple[pl.Expr, pl.Expr]:
    """Time on a line, seen at either side, and the bytes that take it."""
    return _col(f"{of}_ns").clip(upper_bound=LONGEST_ON_LINE_NS), _col(f"{of}_payload_bytes") + AROUND_BYTES


def _alike(one: pl.Expr, other: pl.Expr, share: float) -> pl.Expr:
    """Whether they differ by no more than a share, and both are known."""
    return known((one - other).abs() <= share * other)


_exchange = (_col("exchange_ns"), _col("exchange_bytes"))
"""What one exchange of messages took longer than that of the SYNs: a second way to tell the rate of lines that are alike both ways. Which
part of it was the other program's is not told; where it agrees with the first, nothing was."""
_of_exchange, _of_exchange_cells = (_col("exchange_ns") / _col(f"exchange_{unit}") for unit in ("bytes", "cells"))
_EXCHANGE_AS_OWN = _alike(_of_exchange, _col("line_ns") / (_col("line_payload_bytes") + AROUND_BYTES), ALIKE_SHARE) | _alike(
    _of_exchange_cells, _col("line_ns") / _cells(_col("line_payload_bytes")), ALIKE_IN_CELLS_SHARE
)
_EXCHANGE_AS_FIN = _alike(_of_exchange, _col("other_fin_ns") / _LEAST_SEGMENT_BYTES, ALIKE_SHARE) | _alike(
    _of_exchange_cells, _col("other_fin_ns") / LEAST_SEGMENT_CELLS, ALIKE_IN_CELLS_SHARE
)
"""The first way is what a segment keeps the line busy for (`line_ns`), or how soon the other side's FIN, a short one, came behind data."""


def _own_line() -> tuple[pl.Expr, pl.Expr]:
    """That of this side."""
    ns, payload = (pl.coalesce(one, pl.when(_EXCHANGE_AS_FIN).then(other)) for one, other in zip(_busy("line"), _exchange, strict=True))
    return ns, payload


def _others_line() -> tuple[pl.Expr, pl.Expr]:
    """That of the other side: its small segments tell of it where their spacing is that of this side's line."""
    spaced, line = _busy("other_spaced"), _busy("other_line")
    of_spaced, of_own = (ns / payload for ns, payload in (spaced, _busy("line")))
    alike = _alike(of_spaced, of_own, ALIKE_SHARE)
    by_exchange = _EXCHANGE_AS_OWN | _EXCHANGE_AS_FIN
    ns, payload = (
        pl.when(alike).then(one).otherwise(pl.coalesce(other, pl.when(by_exchange).then(third)))
        for one, other, third in zip(spaced, line, _exchange, strict=True)
    )
    return ns, payload


def _near_sender(value: pl.Expr) -> pl.Expr:
    return pl.when(_col("near_sender")).then(value)


_NEARLY_FULL = known(_col("max_segment_bytes") < _col("full_segment_bytes")) & known(
    _col("max_segment_bytes") >= TUNNEL_SHARE * _col("full_segment_bytes")
)
_BELOW_ANY_MSS = _col("full_segment_bytes").is_null() & known(_col("max_segment_bytes") < DEFAULT_MSS_BYTES)
_NEVER_FULL = (_NEARLY_FULL | _BELOW_ANY_MSS) & known(most_in_flight < 2 * _col("max_segment_bytes"))

_HOLDS_OVER_FULL = known(_col("small_past_full") == 0) & known(_col("small_held_over_full") >= HELD_TIMES)
_HOLDS_IN_FIRST_FORM = known(_col("old")) & known(_col("small_past_full") == 0) & known(_col("small_held_run") >= HELD_TIMES)
_NONE_PASSED = _HOLDS_OVER_FULL & _col("rounded_bytes").is_not_null()

_BY_SIZE = known(_col("steady_other_sizes") > 0)
_UNLIKE_ROUND_TRIP = _BY_SIZE | known(_col("steady_ns") > 1.25 * RTT_NS + NS_PER_MS) | known(STEADY_PART * _col("steady_ns") <= RTT_NS)


_CAUSAL_SHARE = (
    pl.when(_col("near_sender") & known(_col("unclocked_departures") > _col("clocked_departures")))
    .then(0.0)
    .when(_col("near_sender"))
    .then(CAUSAL_SHARE_NEAR)
    .otherwise(CAUSAL_SHARE_FAR)
)
"""Where most segments leave by themselves, a tenth of them come within a tenth of a round trip of an ACK by chance: no share tells then."""

OF_DIRECTION = {
    **{name: _near_sender(value) for name, value in zip(("line_busy_ns", "line_busy_bytes"), _own_line(), strict=True)},
    **{name: _near_sender(value) for name, value in zip(("other_line_busy_ns", "other_line_busy_bytes"), _others_line(), strict=True)},
    "epsilon_ns": _at_least(CAUSAL_NS, _CAUSAL_SHARE),
    "unsteady_ns": pl.when(_col("near_sender")).then(0).otherwise(_at_least(CAUSAL_NS, CAUSAL_SHARE_NEAR)),
    "comes_steadily": known(_col("steady_segments") >= STEADY_SEGMENTS)
    & _col("tick_ns").is_null()
    & (_col("near_sender") | _UNLIKE_ROUND_TRIP),
    "comes_by_size": _BY_SIZE & known(_col("steady_segments") >= STEADY_SHARE * _col("followed_segments")),
    "paces": known(_col("paced_bursts") >= PACED_BURSTS) & ~known(_col("old")),
    "burst_ns": _at_least(BURST_NS, BURST_SHARE),
    "refill_ns": _at_least(REFILL_NS, pl.when(_col("near_sender")).then(0.0).otherwise(REFILL_SHARE)),
    "queue_ns": (QUEUE_SHARE * RTT_NS).cast(pl.Int64) + NS_PER_MS,
    "none_passed": _NONE_PASSED,
    "holds_small": (known((_col("small_behind_small") == 0) | (_col("small_held_run") >= HELD_TIMES)) | _NONE_PASSED)
    & ~(_NEVER_FULL & known(_col("small_past_full") > 0)),
    "holds_behind_full": _HOLDS_OVER_FULL | _HOLDS_IN_FIRST_FORM,
    "surely_holds_small": known(policy.sure_holds(_col) >= HELD_TIMES),
    "answered": known(2 * _col("other_data_segments") >= _col("small_held_run") + _col("small_held_over_full")),
    "ack_clocked": known(_col("clocked_departures") > _col("unclocked_departures")),
    "plateau_bytes": _level("level_flight_bytes", "level_rounds"),
    "other_plateau_bytes": _level("other_level_flight_bytes", "other_level_rounds"),
    "low_top_bytes": _low_top(),
    "top_bytes": _level("top_flight_bytes", "top_rounds"),
    "never_full": _NEVER_FULL,
    "ticks_milliseconds": known(_col("tick_ns").is_between(LEAST_TICK_NS, MOST_TICK_NS)),
    "only_late": ~_col("near_sender")
    & known(_col("retransmitted_segments") == _col("spurious_retransmissions"))
    & known(_col("out_of_order_segments") == 0),
}
"""Name → what it is. `never_full`: a little less than a full segment was the most, or where the MSS is not known less than any, and there
never were two of them in flight: these were writes of that size, not segments that a tunnel makes shorter. `none_passed`: of a sender
that rounds its MSS, and held three small segments behind full ones and let none pass, what passed a small one in flight was full, and
not yet known to be. `holds_behind_full`: seen three times, or of a stack older than Minshall's form of Nagle's rule that was seen to
follow the rule. `surely_holds_small`: small segments waited for an ACK behind flights that fill no send buffer.
`paces`: bursts of what its program had given leave at one pace; a sender older than pacing has another reason.
`comes_steadily`: of a sender without timestamps; at its own host none of these came just behind an ACK; `comes_by_size`: a line's rate, and
no pauses.
`answered`: the other side sent data at least half as often as small segments waited for an ACK, as with questions and answers."""
