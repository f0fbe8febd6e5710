"""The receiver's window has no room for the next segment."""

from __future__ import annotations

import polars as pl

from tcptrace_lab.rules import proof
from tcptrace_lab.rules.deferral import WINDOW_DEFERRED
from tcptrace_lab.rules.facts import acks, held, limits, released, resent, window
from tcptrace_lab.rules.of_direction import known
from tcptrace_lab.rules.rule import Advice, Case, Confidence, Instead, Rule

_NEW = ~resent.IS_RESENT & ~resent.IS_RECOVERING
_FULL = window.WAS_FULL & (window.OPENED | acks.ACK_JUST_CAME) & window.LET_GO
_GROWS_WITH_ROOM = known(pl.col("usable_before_bytes") >= pl.col("full_bytes")) & known(
    pl.col("unacked_before_bytes") > pl.col("flight_bytes")
)
"""The flight is larger than the one before, and there is room for a full segment: it has not come to the window's edge yet."""
_NEARLY_FULL = (
    ~pl.col("near_sender")  # at the sender, it is seen whether the window had room
    & window.WAS_NEARLY_FULL
    & ~_GROWS_WITH_ROOM
    & (pl.col("usable_before_bytes") >= 0).fill_null(value=False)  # a sender that goes beyond its window is not held by it
    & acks.HAD_IN_FLIGHT
    & ~acks.ALL_ACKED
    & ~resent.IS_SMALL
    & ~resent.IS_BARE_FIN
    & ~acks.ACK_JUST_CAME
)
_CUT = window.CUT & ~held.LEFT_AS_HALF & ~window.OPENED & window.LET_GO & (pl.col("held_ns") >= limits.LEAST_OVERRIDE_NS)
_SPACED_IN_FULL_ROUNDS = (
    ~pl.col("near_sender")
    & acks.HAD_IN_FLIGHT
    & ~acks.PEER_SPOKE
    & ~resent.IS_SMALL
    & ~resent.IS_BARE_FIN
    & ~resent.AFTER_LOSS
    & ~released.IN_BURST
    & known(pl.col("held_ns") * limits.TRAIN_PART <= limits.RTT_NS)
    & known(pl.col("flight_bytes") + pl.col("full_bytes") > pl.col("unacked_before_bytes") + pl.col("usable_before_bytes"))
)
"""Away from the sender, which of the ACKs within a tick of their timestamps let this one go is not seen, nor so how full the window was.
The flight of the round trip before had filled it, though, and it is no larger now: its ACKs, as the path spaced them, let this train go."""

RULE = Rule(
    cause="receiver-window",
    lost_to="waiting for room in the receiver's window",
    holds=(
        _NEW & (_FULL | _NEARLY_FULL | _CUT | window.FIRST_FORCED_IN | window.FORCED_IN_UNSCALED | WINDOW_DEFERRED | _SPACED_IN_FULL_ROUNDS)
    )
    | (resent.IS_NEEDLESS & window.WAS_FULL),
    confidence=Confidence.PROVED,
    proof=(proof.IN_FLIGHT, proof.ROOM, proof.ACK),
    refuted_by="room for a full segment, and for a third of the window, before the ACK that released it",
    source="RFC 9293, 3.8.6",
    owns_until_window_opened=True,
    advice=Advice(
        finding="receiver-window-limited",
        title="The receiver's window, {window}, held the sender for {cost}",
        mechanism=(
            "The window that the receiver offers is smaller than rate times round trip ({rtt}). "
            "The sender fills it and waits for room, once per round trip."
        ),
        limits="Whether a larger window would meet the next limit soon cannot be told from this capture alone.",
        cure="a larger receive buffer on {receiver}",
        remedy=(
            "raise the receive buffer at the receiver (SO_RCVBUF; Linux: net.ipv4.tcp_rmem) to at least bandwidth × round trip",
            "allow window scaling where it is off",
        ),
        instead={
            Case.SLOW_READER: Instead(
                title="The receiving program read slowly, and its window, {window}, held the sender for {cost}",
                mechanism=(
                    "The receiving program took {read} out of a buffer that was at least half full. "
                    "The sender fills the room that this makes, and waits for the next."
                ),
                limits="Why the program read no faster cannot be seen. A larger buffer takes what it has room for once, and no more.",
                lost_to="a window that the program on {receiver} kept small by reading slowly",
                cure="reading faster there",
                remedy=(
                    "let the receiving program read faster, or find what it waits for: disk, printer, another service",
                    "if only the sender must not wait: a receive buffer (SO_RCVBUF) that holds the whole transfer",
                ),
            )
        },
    ),
)
