"""The verdict on a capture without a fault: the cause that took most time in the direction with most data, or why it is unknown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from tcptrace_lab import causes
from tcptrace_lab.causes import Confidence
from tcptrace_lab.causes.texts import rivals
from tcptrace_lab.connections import capture_quality
from tcptrace_lab.connections.behaviour import refused
from tcptrace_lab.schema import SIDES
from tcptrace_lab.udp import without_tcp
from tcptrace_lab.verdict import lacking
from tcptrace_lab.verdict.choice import Sent
from tcptrace_lab.verdict.direction import Direction, account_of, direction_of
from tcptrace_lab.verdict.phrases import fixable, main_phrase, where_phrase
from tcptrace_lab.verdict.result import Analysed, Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tcptrace_lab.findings.finding import Finding

MIN_RTO_NS = 200_000_000
"""Minimum retransmission timeout (RTO) of common stacks: 200 ms on Linux. RFC 6298 asks for 1 s."""


def of_largest(analysis: Analysed, advice: str = "", faults: tuple[Finding, ...] = ()) -> Verdict:
    """Return the verdict on the direction with most data: the cause that took most of its time.

    `advice` is the second part of the sentence, and describes `faults` of another direction. If `advice` is empty, the sentence ends with
    advice for the described direction.
    """
    capture = analysis.capture
    if not capture["connections"]:
        return Verdict(without_tcp.sentence(capture, analysis.flows))
    if capture["first_ts_ns"] is None:
        return Verdict("This capture has no timestamps, so it cannot show where the time went.")
    data = pl.max_horizontal(*(f"{side}_unique_bytes" for side in SIDES))
    timed = (
        analysis.connections.filter(~capture_quality.has_jumped()) if _has(capture, capture_quality.CLOCK_JUMP) else analysis.connections
    )
    most = timed.select("conn", data=data).top_k(1, by=["data", "conn"], reverse=[False, True])
    chosen = most.collect()["conn"].to_list()  # only the number, because a full row takes 3 kB
    rows = analysis.connections.filter(pl.col("conn").is_in(chosen)).collect()
    if rows.is_empty() and _has(capture, capture_quality.CLOCK_JUMP):
        return Verdict("The clock of this capture jumped while its connections lasted, so it cannot show where the time went.")
    if rows.is_empty() or not sum(rows[f"{side}_payload_bytes"][0] or 0 for side in SIDES):
        return _without_data(analysis)
    row = rows.row(0, named=True)
    account = account_of(analysis, row["conn"])
    sent = Sent(analysis)
    directions = [direction_of(analysis, row, account, from_client=from_client) for from_client in SIDES.values()]
    other, direction = sorted(directions, key=lambda each: row["client_unique_bytes" if each.from_client else "server_unique_bytes"])
    if not direction.life_ns:
        return Verdict("This capture covers no time in which a sender could wait.")
    listed = [one for one in direction.findings if one.causes == {direction.main_cause}]
    advice = advice or _advice(capture, row, direction, directions, listed)
    words = f"{main_phrase(direction, other, where_phrase(analysis, direction))}; {advice}."
    named = direction.main_causes, direction.confidence_of_main
    sent_bytes = sent.by(row["conn"], from_client=direction.from_client)
    return Verdict(
        words,
        row["conn"],
        direction.from_client,
        None,
        direction.life_ns,
        direction.active_ns,
        faults or tuple(listed),
        *named,
        sent.data(sent_bytes) if sent_bytes else "",
        row,
        account,
        direction.rivals if direction.main_cause == "unknown" else (),
    )


def _has(capture: Mapping[str, Any], reason: str) -> bool:
    return any(one["name"] == reason for one in capture["quality"]["reasons"])


def _advice(
    capture: Mapping[str, Any], row: Mapping[str, Any], direction: Direction, directions: Sequence[Direction], listed: Sequence[Finding]
) -> str:
    """Return what to do if no finding is a fault. The described direction is searched first, then the other direction."""
    if direction.main_cause == "unknown" and (words := _what_would_show_it(capture, row, direction)):
        return words
    rule = causes.of_cause(direction.main_cause)
    if rule.cure and direction.confidence_of_main != Confidence.POSSIBLE:
        return f"{direction.fill_in(rule.cure)} would help"
    for each in sorted(directions, key=lambda each: each is not direction):
        if each.curable:
            curable = causes.of_cause(each.curable)
            return f"{fixable(each, each.ns[each.curable], curable.lost_to)}; {each.fill_in(curable.cure)} would help"
    if direction.main_cause == "unknown":
        side = "client" if direction.from_client else "server"
        at_sender = row["vantage"] == side or row["vantage_known_by"] == "loopback"
        return "no TCP problem found in the remaining time" if at_sender else direction.fill_in("a capture at {sender} would show more")
    if direction.main_cause in {"handshake", "close"} and (resent := _resent_ends(row, direction)):
        return resent
    cure = rule.advice.cure if listed and rule.advice else ""
    doubt = direction.doubt_of(direction.main_cause)
    rival = f"{doubt.rival} looks the same; " if doubt is not None and doubt.rival else ""
    return f"{rival}no TCP problem found" + (f"; {direction.fill_in(cure)} would help" if cure else "")


def _resent_ends(row: Mapping[str, Any], direction: Direction) -> str:
    """Return how often each host sent its SYN and its FIN; empty if no host had to repeat one.

    A host repeats a SYN or a FIN when its timer expires, so the opening or closing must have taken at least as long as the timers. A copy
    that the capture or the path made needs no timer.
    """
    said = []
    for side, from_client in SIDES.items():
        counts = {flag: row[f"{side}_{flag.lower()}_segments"] for flag in ("SYN", "FIN")}
        repeated = {flag: count for flag, count in counts.items() if count > 1}
        if repeated and direction.ns[direction.main_cause] >= MIN_RTO_NS * (sum(repeated.values()) - len(repeated)):
            host = "sender" if from_client == direction.from_client else "receiver"
            times = " and ".join(f"its {flag} {count:,} times" for flag, count in repeated.items())
            said.append(f"{{{host}}} ({side}) sent {times}")
    return direction.fill_in(f"{', '.join(said)}: find out why answers are missing") if said else ""


def _what_would_show_it(capture: Mapping[str, Any], row: Mapping[str, Any], direction: Direction) -> str:
    if _has(capture, capture_quality.BACKWARD):
        return "the capture's timestamps run backwards: if only the order of its packets is wrong, sort them with reordercap"
    told_apart_by = direction.fill_in(rivals.told_apart_by(direction.rivals)) if direction.rivals else ""
    return lacking.what(row, from_client=direction.from_client) or told_apart_by or lacking.start(row)


def _without_data(analysis: Analysed) -> Verdict:
    segments, resets = (pl.sum_horizontal(pl.sum(f"{side}_{what}") for side in SIDES) for what in ("segments", "rst_segments"))
    counts = analysis.connections.select(all=pl.len(), refused=refused(pl.col).sum(), segments=segments, resets=resets).collect()
    turned_away, count = counts["refused"][0], analysis.capture["connections"]
    if not counts["all"][0]:
        none = "The only connection" if count == 1 else f"None of the {count:,} connections"
        return Verdict(f"{none} in this capture was {'not ' if count == 1 else ''}selected.")
    if turned_away:
        listed = f"{turned_away:,} of {count:,} {'was' if turned_away == 1 else 'were'} refused (RST in answer to the SYN)"
        return Verdict(f"No connection carried data; {listed}.")
    if counts["resets"][0] == counts["segments"][0]:
        return Verdict(f"No connection in this capture carried data: all {counts['segments'][0]:,} segments are resets (RST).")
    return Verdict("No connection in this capture carried data.")
