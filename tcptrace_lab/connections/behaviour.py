"""Texts on the behaviour of a connection's two endpoints, and on the capture of the connection.

For each endpoint, the texts describe its ACK policy, whether Nagle's algorithm delays its small segments, and its probable TCP stack.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcptrace_lab.connections import ack_policy, capture_quality
from tcptrace_lab.schema import SIDES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_PLACES = {"client": "at the client", "server": "at the server", "middle": "in the middle of the path"}
_PLACE_UNKNOWN = {
    "loopback": "captured within one host (loopback)",
    "short": "capture point unknown (both ends answer within microseconds)",
    "one_side": "capture point unknown (the capture has answers of one end only)",
    "nothing": "capture point unknown (the capture has no answers)",
}


def refused(of: Callable[[str], Any]) -> Any:  # noqa: ANN401  (`of` determines the type)
    """Return whether a RST answered the SYN: the port is closed, or a firewall refuses the connection (RFC 9293, 3.5.2).

    Args:
        of: returns a column of `schema.CONNECTIONS` by name: an expression (`polars.col`), or the value in one row.

    Returns:
        An expression or a bool, depending on `of`.
    """
    return (of("client_syn_segments") > 0) & (of("server_syn_segments") == 0) & (of("server_rst_segments") > 0)


def words(row: Mapping[str, Any]) -> list[str]:
    """Describe a row of `schema.CONNECTIONS` in phrases: the capture point first, then each endpoint."""
    facts = [*(["refused (RST in answer to its SYN)"] if refused(row.__getitem__) else []), place(row)]
    if row["quality_reasons"]:
        facts.append("capture limits: " + "; ".join(capture_quality.CAUSES[name] for name in row["quality_reasons"]))
    for side in SIDES:
        known = [fact for fact in (acking(row, side), nagle(row, side), stack(row, side)) if fact]
        if known:
            facts.append(f"{side}: " + "; ".join(known))
    return facts


def place(row: Mapping[str, Any]) -> str:
    """Return the capture point as a phrase."""
    if row["vantage"] in _PLACES:
        return f"captured {_PLACES[row['vantage']]} ({row['vantage_confidence']})"
    return _PLACE_UNKNOWN[row["vantage_known_by"]]


def acking(row: Mapping[str, Any], side: str) -> str:
    """Return how the endpoint `side` sends ACKs, with the number of ACKs that show it; empty if unknown."""
    facts = []
    if row[f"{side}_ack_policy"] != "unknown":
        facts.append(f"{ack_policy.POLICIES[row[f'{side}_ack_policy']]} ({row[f'{side}_ack_policy_samples']:,} ACKs)")
    timer_ms, count = row[f"{side}_ack_timer_ms"], row[f"{side}_delayed_acks"]
    if timer_ms is not None:
        seen = f"{count:,} delayed ACKs after {row[f'{side}_ack_delay_from_ms']} to {row[f'{side}_ack_delay_to_ms']} ms"
        kind = "heartbeat of 200 ms" if row[f"{side}_ack_timer_kind"] == "heartbeat" else f"delayed-ACK timer of {timer_ms:g} ms"
        facts.append(f"{kind} ({seen})")
    return ", ".join(facts)


def nagle(row: Mapping[str, Any], side: str) -> str:
    """Return whether Nagle's algorithm delays the small segments of `side`, with the evidence; empty if unknown."""
    state, confidence, frame = (row[f"{side}_{name}"] for name in ("nagle", "nagle_confidence", "nagle_frame"))
    if state == "unknown":
        return ""
    held = ack_policy.holds(lambda name: row[f"{side}_{name}"])
    if state == "off":
        times, what = row[f"{side}_small_in_flight"], "sent while an earlier one was not ACKed"
    else:
        times, what = held, "sent as soon as the ACK arrived"
    both = f"; {held:,} others were sent as soon as the ACK arrived: the setting may have changed during the connection"
    switched = both if state == "off" and held >= ack_policy.PROVING_HOLDS else ""
    return f"Nagle {state} ({confidence}: {times:,} small segment{'' if times == 1 else 's'} {what}, first in frame {frame:,}{switched})"


def stack(row: Mapping[str, Any], side: str) -> str:
    """Return the TCP stack that the SYN of `side` suggests; empty if unknown."""
    family = row[f"{side}_stack_guess"]
    return f"its SYN suggests {family}" if family else ""
