"""Where the engine and tshark 4.0 do not say the same of a capture, by how much, and who is right."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from comparison import Differs

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Deviation:
    """What differs in one capture.

    Attributes:
        reason: why, and who is right.
        counts: figure → (ours, tshark's).
        columns: column → how many rows differ, and the first frame.
    """

    reason: str
    counts: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    columns: Mapping[str, Differs] = field(default_factory=dict)


DEVIATIONS: Mapping[str, Deviation] = {}
"""File name → what differs there."""
