"""TCP checksums, as tshark reckons them: wrong on the wire, or only in the capture?

A capture at a sender whose card fills checksums in (offload) holds nearly all of its segments with wrong ones; they arrive all the same.
A segment that was damaged on its way is thrown away by its receiver (RFC 9293, 3.1), so the bytes come again: a loss by corruption. Which
it was is told for each direction by what became of its data. The engine itself does not look at checksums: that costs a pass over all
captured bytes, and says nothing in the many captures that offload or a short snaplen spoils; Wireshark, too, does so only when asked.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import polars as pl

from tcptrace_lab.schema import RESENT
from tcptrace_lab.text.numbers import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

BAD, GOOD = 0, 1
"""Values of tshark's `tcp.checksum.status`; others are of segments that were not captured whole, or have none."""

MAX_DIRECTIONS = 100_000
"""Directions with wrong checksums that are followed, some 200 bytes each; those beyond are counted in the sum only."""

MAX_REMEMBERED = 64
"""Segments with data and a wrong checksum remembered per direction, to know them when they are sent again."""

MAX_FRAMES = 100
"""Frames of resends listed per direction."""

MOSTLY = 0.5
"""Share of the wrong segments with data that must come again for the receiver to have thrown them away (a choice of ours: nearly all do
where the path damages them, and nearly none where the card repairs them)."""

NEARLY_ALL = 0.9
"""Share of a direction's segments that are wrong where the card fills checksums in, if it sent no data to tell by (a choice of ours)."""


@dataclass(slots=True)
class Direction:
    """Wrong checksums of one direction.

    Attributes:
        checked: segments whose checksum was reckoned.
        bad: those of them whose is wrong.
        bad_data: those of them with data.
        resent: those of them whose bytes came again.
        frames: the resends, the first of them.
    """

    checked: int = 0
    bad: int = 0
    bad_data: int = 0
    resent: int = 0
    frames: list[int] = field(default_factory=list)
    _remembered: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=MAX_REMEMBERED))

    @property
    def verdict(self) -> str:
        """`corruption`: the receiver threw them away; `offload`: they arrived, so the card filled them in; `unknown`."""
        if self.bad_data:
            return "corruption" if self.resent >= MOSTLY * self.bad_data else "offload"
        return "offload" if self.bad >= NEARLY_ALL * self.checked and self.bad > 1 else "unknown"

    def damaged(self, start: int, end: int) -> None:
        """A segment with data from `start` to `end` and a wrong checksum."""
        self.bad_data += 1
        self._remembered.append((start, end))

    def sent_again(self, frame: int, start: int, end: int) -> None:
        """These bytes were sent once more: each damaged segment among them counts once."""
        kept = [(first, last) for first, last in self._remembered if last <= start or end <= first]
        again = len(self._remembered) - len(kept)
        if again:
            self.resent += again
            self._remembered = deque(kept, MAX_REMEMBERED)
            if len(self.frames) < MAX_FRAMES:
                self.frames.append(frame)


class Checksums:
    """Follows the directions as the joined rows of `pairing` go by."""

    def __init__(self) -> None:
        """Nothing was seen."""
        self.checked = self.bad = 0
        self._directions: dict[tuple[int, bool], Direction] = {}
        self._clean: dict[tuple[int, bool], int] = {}

    def take(self, both: pl.DataFrame) -> None:
        """The next rows."""
        shared = both.filter(pl.col("ours") & pl.col("theirs"))
        checked = shared.filter(pl.col("their_checksum").is_in([BAD, GOOD]))
        wrong = pl.col("their_checksum") == BAD
        self.checked += checked.height
        self.bad += int(checked.select(wrong.sum()).item())
        counts = checked.group_by("conn", "from_client").agg(pl.len(), bad=wrong.sum())
        for conn, from_client, segments, bad in counts.iter_rows():
            direction = self._direction(conn, from_client, begins=bad > 0)
            if direction is not None:
                direction.checked += segments
                direction.bad += bad
            elif len(self._clean) < MAX_DIRECTIONS:
                self._clean[conn, from_client] = self._clean.get((conn, from_client), 0) + segments
        again = pl.col("kind").cast(pl.String).is_in(RESENT)
        of_interest = shared.filter((pl.col("payload_bytes") > 0) & (wrong.fill_null(value=False) | again))
        for row in of_interest.select("frame", "conn", "from_client", "seq", "payload_bytes", wrong=wrong, again=again).iter_rows(
            named=True
        ):
            self._follow(row)

    def _direction(self, conn: int, from_client: bool, *, begins: bool) -> Direction | None:  # noqa: FBT001  (part of a key)
        direction = self._directions.get((conn, from_client))
        if direction is None and begins and len(self._directions) < MAX_DIRECTIONS:
            direction = self._directions[conn, from_client] = Direction(self._clean.pop((conn, from_client), 0))
        return direction

    def _follow(self, row: dict[str, Any]) -> None:
        direction = self._directions.get((row["conn"], row["from_client"]))
        if direction is None:
            return
        start, end = row["seq"], row["seq"] + row["payload_bytes"]
        if row["again"]:
            direction.sent_again(row["frame"], start, end)
        if row["wrong"]:
            direction.damaged(start, end)

    def directions(self) -> Iterator[tuple[int, bool, Direction]]:
        """Those with wrong checksums: connection, whether the client's, and what is known."""
        for (conn, from_client), direction in sorted(self._directions.items()):
            yield conn, from_client, direction

    @property
    def corrupted(self) -> int:
        """Segments that were damaged on the way and sent again."""
        return sum(one.resent for one in self._directions.values() if one.verdict == "corruption")

    def words(self) -> str:
        """One line for people; empty if no checksum is wrong."""
        if not self.bad:
            return ""
        found = [one.verdict for one in self._directions.values()]
        told = f"TCP checksums: {self.bad:,} of {self.checked:,} are wrong"
        if "offload" in found:
            told += (
                f"; those of {counted(found.count('offload'), 'direction')} arrived all the same: the sender's card fills them in (offload)"
            )
        if "corruption" in found:
            told += f"; {counted(self.corrupted, 'segment')} with data came again after such damage: thrown away, a loss by corruption"
        return told
