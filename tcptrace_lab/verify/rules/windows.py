"""Windows: probes, and segments beyond what was seen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcptrace_lab.verify.differences import Rule
from tcptrace_lab.verify.rules.words import offset_of

if TYPE_CHECKING:
    from tcptrace_lab.verify.segments import SegmentCase


def _empty_beyond(case: SegmentCase) -> str | None:
    said, judged = case.said, case.judged
    if said is None or judged is None or not case.foreseen or "lost_segment" not in case.theirs or said.end != case.row["seq"]:
        return None
    if judged.highest is None:
        return None
    return f"it has no data; its number {case.row['seq']:,} is beyond the {offset_of(case, judged.highest):,} that its side had come to"


RULES = (
    Rule(
        "tshark-tells-holes-of-empty-segments",
        "tshark tells a hole at a segment without data, too; we at the segment that occupies bytes behind it",
        "Wireshark User's Guide, 7.5 TCP Analysis, TCP Previous segment not captured",
        frozenset({"lost_segment"}),
        _empty_beyond,
    ),
)
