"""Special cases of a direction, in which what holds it up is told in other words than usual."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcptrace_lab import rates
from tcptrace_lab.behaviour import refused
from tcptrace_lab.rules.rule import WORTH_SHARE, Case
from tcptrace_lab.schema import SIDES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

SLOW_ANSWER_TIMES = 2
"""A SYN's answer that took more round trips of the same path than this was late itself, and one that came sooner after a second SYN than
this part of a round trip answers the first (a heuristic): queues may double a round trip."""

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
            "read_windows",
            "read_ns",
        )
    ),
    *("first_ts_ns", "last_ts_ns", "syn_to_synack_ns", "synack_to_ack_ns"),
    "client_rtt_min_ns",
    *(f"{side}_rtt_samples" for side in SIDES),
)
"""What they are known by, of `schema.CONNECTIONS`."""


def unanswered(of: Callable[[str], Any]) -> Any:  # noqa: ANN401  (what `of` gives)
    """Whether the client's SYN is all there is; as `behaviour.refused`.

    A client that goes on was answered, and the capture does not hold the answers.
    """
    asked = of("client_syn_segments")
    return (asked > 0) & (of("server_segments") == 0) & (of("client_segments") <= asked + of("client_rst_segments"))


def of(row: Mapping[str, Any], side: str) -> frozenset[Case]:
    """The cases that hold for what `side` (`client` or `server`) sends, by a row with `COLUMNS`."""
    resent = row[f"{side}_retransmitted_segments"]
    holds = {
        Case.SLOW_READER: _reads_slowly(row, side),
        Case.NEEDLESS: bool(resent) and row[f"{side}_spurious_retransmissions"] == resent,
    } | _of_handshake(row)
    return frozenset(case for case, it_does in holds.items() if it_does)


def _reads_slowly(row: Mapping[str, Any], side: str) -> bool:
    """Whether what `side` sends stays unread for a time worth telling: a program that is woken by it empties its buffer at once."""
    unread_ns, life_ns = row[f"{side}_read_ns"] or 0, (row["last_ts_ns"] or 0) - (row["first_ts_ns"] or 0)
    return (row[f"{side}_read_windows"] or 0) >= rates.LEAST_SAMPLES and unread_ns >= WORTH_SHARE * life_ns


def _of_handshake(row: Mapping[str, Any]) -> dict[Case, bool]:
    asked, answered = row["client_syn_segments"], row["server_syn_segments"]
    once = asked == 1 and answered == 1
    answer_ns, least_ns = row["syn_to_synack_ns"], row["client_rtt_min_ns"]
    acked_ns = row["synack_to_ack_ns"]
    behind = once and None not in (answer_ns, acked_ns) and SLOW_ANSWER_TIMES * answer_ns < acked_ns  # what took the time came later
    slow_ack = behind and row["server_rtt_samples"] <= 1  # the SYN-ACK's own is one
    known = once and answer_ns is not None and least_ns is not None and row["client_rtt_samples"] > 1  # the SYN's own is one
    late = known and not behind and answer_ns > SLOW_ANSWER_TIMES * least_ns
    asked_early = asked > 1 and None not in (answer_ns, least_ns) and SLOW_ANSWER_TIMES * answer_ns < least_ns
    return {
        Case.UNANSWERED: unanswered(row.__getitem__),
        Case.REFUSED: refused(row.__getitem__),
        Case.ANSWER_RESENT: answered > 1,
        Case.SYN_RESENT: asked > 1 and not asked_early,
        Case.SLOW_ANSWER: late,
        Case.SLOW_ACK: slow_ack,
        Case.LONG_PATH: ((known or behind) and not late and not slow_ack) or asked_early,
    }
