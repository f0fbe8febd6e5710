"""Detects the special cases (`Case`) of a direction, for which a cause needs other texts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcptrace_lab.causes.rule import WORTH_SHARE, Case
from tcptrace_lab.connections import rates
from tcptrace_lab.connections.behaviour import refused
from tcptrace_lab.schema import SIDES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

SLOW_ANSWER_TIMES = 2
"""A SYN-ACK that takes more than twice the base RTT is late, because a queue can double an RTT (a heuristic). A SYN-ACK that follows the
last SYN by less than half the base RTT answers an earlier SYN."""

FIRST_TIMER_NS = 1_000_000_000
"""A SYN or a SYN-ACK without an answer is retransmitted after one second at the earliest (RFC 6298, 2.1). If a second SYN-ACK comes sooner,
the SYN was sent twice, and each SYN got its answer."""

MOST = 0.5
"""One base RTT of each wait at a full window is the path's share. If the remaining time is at least half of the waiting time, the receiver
explains the waits (a heuristic)."""

COLUMNS = (
    *(
        f"{side}_{name}"
        for side in SIDES
        for name in (
            "segments",
            "syn_segments",
            "rst_segments",
            "retransmitted_segments",
            "spurious_retransmissions",
            "read_samples",
            "read_ns",
        )
    ),
    *("first_ts_ns", "last_ts_ns", "syn_to_synack_ns", "synack_to_ack_ns", "vantage", "vantage_known_by"),
    "client_rtt_min_ns",
    *(f"{side}_rtt_samples" for side in SIDES),
)
"""Columns of `schema.CONNECTIONS` that determine the special cases."""


def unanswered(of: Callable[[str], Any]) -> Any:  # noqa: ANN401  (`of` determines the type)
    """Return whether the capture contains only SYNs and RSTs of the client. The argument `of` is described in `behaviour.refused`.

    A client that sends other segments has received answers, even if the capture does not contain them.
    """
    asked = of("client_syn_segments")
    return (asked > 0) & (of("server_segments") == 0) & (of("client_segments") <= asked + of("client_rst_segments"))


def of(row: Mapping[str, Any], side: str) -> frozenset[Case]:
    """Return the special cases of one direction.

    Args:
        row: a row of `schema.CONNECTIONS` with the columns `COLUMNS`.
        side: the sender, `client` or `server`.
    """
    resent = row[f"{side}_retransmitted_segments"]
    holds = {
        Case.SLOW_READER: _reads_slowly(row, side),
        Case.NEEDLESS: bool(resent) and row[f"{side}_spurious_retransmissions"] == resent,
    } | _of_handshake(row)
    return frozenset(case for case, it_does in holds.items() if it_does)


def _reads_slowly(row: Mapping[str, Any], side: str) -> bool:
    """Return whether the application on host `side` leaves data unread for a significant share of the connection's time."""
    unread_ns, life_ns = row[f"{side}_read_ns"] or 0, (row["last_ts_ns"] or 0) - (row["first_ts_ns"] or 0)
    return (row[f"{side}_read_samples"] or 0) >= rates.MIN_SAMPLES and unread_ns >= WORTH_SHARE * life_ns


def opens_late(waits: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether the receiver, not the path, explains these waits at a full window (`MOST`).

    If the window was also zero at some time, the receiving application reads slowly. `_reads_slowly` misses a receiver that opens its
    window by two segments at a time, because its window never shows unread data.

    Args:
        waits: rows of `schema.LONGEST`.
    """
    known = [(wait["wait_ns"], wait["base_rtt_ns"]) for wait in waits if wait["wait_ns"] and wait["base_rtt_ns"]]
    late_ns = sum(max(wait_ns - rtt_ns, 0) for wait_ns, rtt_ns in known)
    return bool(known) and late_ns >= MOST * sum(wait_ns for wait_ns, _ in known)


def _of_handshake(row: Mapping[str, Any]) -> dict[Case, bool]:
    asked, answered = row["client_syn_segments"], row["server_syn_segments"]
    once = asked == 1 and answered == 1
    answer_ns, min_ns = row["syn_to_synack_ns"], row["client_rtt_min_ns"]
    acked_ns = row["synack_to_ack_ns"]
    # behind: most of the handshake's time passed after the SYN-ACK, so on the client's side of the capture point
    behind = once and None not in (answer_ns, acked_ns) and SLOW_ANSWER_TIMES * answer_ns < acked_ns
    slow_ack = behind and row["server_rtt_samples"] <= 1  # the SYN-ACK gives the only sample
    known = once and answer_ns is not None and min_ns is not None and row["client_rtt_samples"] > 1  # the SYN gives one sample
    late = known and not behind and answer_ns > SLOW_ANSWER_TIMES * min_ns
    asked_early = asked > 1 and None not in (answer_ns, min_ns) and SLOW_ANSWER_TIMES * answer_ns < min_ns
    # If twice the shortest RTT is less than this sum, the SYN-ACK was late, and the path is not long.
    asked_early = asked_early and FIRST_TIMER_NS + answer_ns <= SLOW_ANSWER_TIMES * min_ns
    resent = asked > 1 and not asked_early
    return {
        Case.UNANSWERED: unanswered(row.__getitem__),
        Case.REFUSED: refused(row.__getitem__),
        Case.ANSWER_RESENT: answered > 1 and (acked_ns is None or acked_ns >= FIRST_TIMER_NS),
        Case.SYN_IGNORED: resent and answered < asked and (row["vantage"] == "server" or row["vantage_known_by"] == "loopback"),
        Case.SYN_RESENT: resent,
        Case.SLOW_ANSWER: late,
        Case.SLOW_ACK: slow_ack,
        Case.LONG_PATH: ((known or behind) and not late and not slow_ack) or asked_early,
    }
