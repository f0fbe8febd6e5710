"""Texts for a path that marks packets as Congestion Experienced (ECN).

A path sets ECN marks while its queue is long. The marks keep the congestion window small.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcptrace_lab.causes.rule import Doubt

if TYPE_CHECKING:
    from collections.abc import Callable

COLUMNS = ("data_segments", "ce_segments", "cwr_segments")
"""Columns of `schema.CONNECTIONS` that `stands` reads, without their prefix (`client_` or `server_`)."""

FEWEST = 3
"""Minimum number of marks in one direction (a heuristic). One or two marks can be a coincidence."""

MARKED_PART = 10
"""One data segment in ten must be marked, or have the CWR flag (congestion window reduced), to show a long-lived queue (a heuristic)."""


def stands(own: Callable[[str], int]) -> bool:
    """Return whether ECN marks show that the data of this sender met a queue for much of the transfer."""
    sent, *marks = map(own, COLUMNS)
    return max(marks) >= FEWEST and MARKED_PART * max(marks) >= sent


DOUBT = Doubt(
    limits=(
        "The path marked many packets (ECN). A queue of unknown length with a congestion window of one or two segments looks the same as "
        "an application that pauses."
    ),
    remedy=("if the application does not pause: reduce other traffic at the bottleneck, or raise the rate of the bottleneck",),
    of_all=stands,
    rival="a queue that marks packets (ECN)",
)
