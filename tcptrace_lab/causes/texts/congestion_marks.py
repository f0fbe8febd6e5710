"""A path that marks packets as Congestion Experienced: a queue of unknown length delays segments, and the congestion window is small."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcptrace_lab.causes.rule import Doubt

if TYPE_CHECKING:
    from collections.abc import Callable

COLUMNS = ("data_segments", "ce_segments", "cwr_segments")
"""Columns of `schema.CONNECTIONS` that `stands` needs, without the prefix of the endpoint."""

FEWEST = 3
"""Minimum number of marks of one direction that is more than a coincidence (a heuristic)."""

MARKED_PART = 10
"""There was a queue for much of the transfer if one in this many data segments was marked, or reports a reduced congestion window (a
heuristic)."""


def stands(own: Callable[[str], int]) -> bool:
    """Whether marks show a queue before this sender's data for much of the transfer."""
    sent, *marks = map(own, COLUMNS)
    return max(marks) >= FEWEST and MARKED_PART * max(marks) >= sent


DOUBT = Doubt(
    limits="The path marked many packets (ECN): a queue of unknown length, and a congestion window of a segment or two, look the same as "
    "an application that pauses between them.",
    remedy=("if the application does not pause: reduce other traffic at the bottleneck, or raise its rate",),
    of_all=stands,
    rival="a queue that marks packets (ECN)",
)
