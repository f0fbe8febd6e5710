"""What tshark and tcptrace are known to do otherwise: one rule for each thing, grouped by what it is about.

The order within a group decides where several hold. A rule about a verdict of tshark's asks that the verdict is foreseen (`wireshark`):
what is not understood is not explained.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcptrace_lab.verify.rules import acks, flight, headers, listing, numbers, oddities, reading, resends, streams, waits, windows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tcptrace_lab.verify.differences import Rule

SEGMENTS = (*streams.RULES, *headers.RULES, *resends.RULES, *acks.RULES, *windows.RULES, *waits.RULES, *flight.RULES)
"""Rules for segments, told by us and by tshark."""

FIGURES = (*reading.RULES, *listing.RULES, *numbers.RULES, *oddities.RULES)
"""Rules for figures of connections, told by us and by tcptrace."""

_ALL: tuple[Rule[Any], ...] = (*SEGMENTS, *FIGURES)

BY_NAME: Mapping[str, Rule[Any]] = {rule.name: rule for rule in _ALL}
"""All rules."""
