"""The proof of a wait's cause (`Rule.proof`): the sender's state as text, and the frames that show the state.

Each text is made from one row of `schema.STALLS`. Unknown values are left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tcptrace_lab.causes.texts import rivals
from tcptrace_lab.schema import STALL_TIMERS
from tcptrace_lab.text import numbers

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class Value(NamedTuple):
    """One value of a proof.

    Attributes:
        text_of: makes the text from a row of `schema.STALLS`; returns None if the value is unknown.
        frame: column with the number of a further frame that shows the value; empty if the frames at both ends of the wait show it.
    """

    text_of: Callable[[Mapping[str, Any]], str | None]
    frame: str = ""


def _in_flight(row: Mapping[str, Any]) -> str | None:
    return f"{row['flight_before_bytes']:,} bytes in flight" if row["flight_before_bytes"] else None


def _room(row: Mapping[str, Any]) -> str | None:
    return None if row["usable_window_before_bytes"] is None else f"{max(row['usable_window_before_bytes'], 0):,} bytes free in the window"


def _held_segment(row: Mapping[str, Any]) -> str | None:
    known = row["payload_bytes"] is not None and row["smss_bytes"] is not None
    return f"a delayed segment of {row['payload_bytes']:,} bytes (a full segment has {row['smss_bytes']:,})" if known else None


def _ack(row: Mapping[str, Any]) -> str | None:
    return None if row["ack_frame"] is None else f"ACK in frame {row['ack_frame']:,}"


def _late_ack(row: Mapping[str, Any]) -> str | None:
    ack, late_ns = _ack(row), row["ack_late_ns"]
    return ack if ack is None or late_ns is None else f"{ack} came {numbers.duration(late_ns)} late"


def _timer(row: Mapping[str, Any]) -> str | None:
    return None if row["timer"] is None else f"wait ended by the {STALL_TIMERS[row['timer']]}"


def _rivals(row: Mapping[str, Any]) -> str | None:
    return rivals.either(names) if (names := rivals.names_of(row["rivals"])) else None


IN_FLIGHT = Value(_in_flight)
ROOM = Value(_room)
HELD_SEGMENT = Value(_held_segment)
ACK = Value(_ack, "ack_frame")
LATE_ACK = Value(_late_ack, "ack_frame")
TIMER = Value(_timer)
RIVALS = Value(_rivals)
