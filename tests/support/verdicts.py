"""Verdicts on segments, in a form that tests can compare, and handshakes for the beginning of exchanges."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tests.support import engine

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

HANDSHAKE = """
    0.000 C > S S  0:0(0)        win 64240 <mss 1460, sackOK, wscale 7>
    0.010 S > C S. 0:0(0) ack 1  win 65160 <mss 1460, sackOK, wscale 7>
    0.011 C > S .         ack 1  win 502
"""
"""Frames 1 to 3 are a handshake captured at the client.

From the capture point, the RTT is 10 ms to the server and 1 ms to the client.
"""

WITHOUT_SACK = HANDSHAKE.replace("sackOK, ", "")

AT_SERVER = """
    0.0000 C > S S  0:0(0)        win 64240 <mss 1460, sackOK, wscale 7>
    0.0001 S > C S. 0:0(0) ack 1  win 65160 <mss 1460, sackOK, wscale 7>
    0.0201 C > S .         ack 1  win 502
"""
"""Frames 1 to 3 are a handshake captured at the server.

From the capture point, the RTT is 0.1 ms to the server and 20 ms to the client.
"""

NOTHING = re.compile(r"(?<![\d.,])0 (?!B\b)[a-zA-Z]")
"""A count or duration of zero in the text of a finding: `0 segments`, `0 of 7`, `0 ms`."""

Verdict = tuple[str, str, int | None, str]
"""A verdict on a segment: kind, evidence, evidence frame, confidence."""


def verdicts(read: engine.Read, *frames: int) -> list[Verdict]:
    """Return the verdicts on `frames`, or on all frames."""
    names = ("kind", "evidence", "evidence_frame", "confidence")
    return list(zip(*(engine.column(read.segments, name, *frames) for name in names), strict=True))


def judged(folder: Path, text: str, *frames: int) -> list[Verdict]:
    """Return the verdicts on `frames` of the exchange `text`."""
    return verdicts(engine.read_text(folder, text), *frames)


def figures(read: engine.Read, side: str, *names: str) -> tuple[Any, ...]:
    """Return the named figures of one direction of the first connection."""
    row = read.connections.row(0, named=True)
    return tuple(row[f"{side}_{name}"] for name in names)


def of_nothing(findings: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the texts of findings with a count or cost of zero.

    The findings come from the JSON document. A finding with such a zero reports something that did not happen.
    """
    reported = list(findings)
    free = [f"{one['id']}: no cost" for one in reported if one["cost_s"] is not None and one["cost_s"] <= 0]
    return free + [f"{one['id']}: {one[words]}" for one in reported for words in ("title", "mechanism") if NOTHING.search(one[words])]
