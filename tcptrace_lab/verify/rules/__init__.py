"""Rules about known differences between us and tshark or tcptrace: one rule per behaviour, grouped by topic.

The first rule of a group that applies is used. A rule explains a tshark verdict only if our model of tshark (`wireshark_model`) predicts
this verdict. All other verdicts stay unexplained.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcptrace_lab.verify.rules import (
    acks,
    flight,
    headers,
    retransmits,
    round_trips,
    streams,
    tcptrace_listing,
    tcptrace_reading,
    tcptrace_sequence,
    unseen_acks,
    unusual_values,
    waits,
    windows,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tcptrace_lab.verify.differences import Rule

SEGMENTS = (
    *streams.RULES,
    *headers.RULES,
    *retransmits.RULES,
    *acks.RULES,
    *unseen_acks.RULES,
    *round_trips.RULES,
    *windows.RULES,
    *waits.RULES,
    *flight.RULES,
)
"""Rules for differences between our segments and tshark's segments."""

FIGURES = (*tcptrace_reading.RULES, *tcptrace_listing.RULES, *tcptrace_sequence.RULES, *unusual_values.RULES)
"""Rules for differences between our figures of a connection and tcptrace's figures."""

_ALL: tuple[Rule[Any], ...] = (*SEGMENTS, *FIGURES)

BY_NAME: Mapping[str, Rule[Any]] = {rule.name: rule for rule in _ALL}
"""All rules by name."""
