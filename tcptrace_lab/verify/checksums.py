"""Decides what a wrong TCP checksum in tshark's output means: a damaged segment, or only a wrong checksum in the capture.

With checksum offload, the network card computes checksums after the capture point. Then nearly all captured segments of the sender have
wrong checksums, but the receiver accepts the segments. A receiver discards a segment that the path damaged (RFC 9293, 3.1), and the sender
retransmits its bytes. So retransmits decide between offload and corruption, for each direction.

The engine does not verify checksums. It would have to read all captured bytes, and would learn nothing from captures with offload or a
short snaplen. Wireshark also verifies checksums only on request.
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
"""Values of tshark's `tcp.checksum.status`. Any other value means that the segment is truncated or not verified."""

MAX_DIRECTIONS = 100_000
"""Maximum number of directions with wrong checksums that are tracked, at about 200 bytes each. Others count only in the total."""

MAX_REMEMBERED = 64
"""Maximum number of data segments with a wrong checksum that are stored per direction, so that their retransmits are recognized."""

MAX_FRAMES = 100
"""Maximum number of retransmits per direction whose frames are listed."""

MOSTLY = 0.5
"""Minimum share of retransmitted data segments, among those with a wrong checksum, for the verdict `corruption` (a heuristic).

If the path damages segments, nearly all of them are retransmitted. With offload, nearly none are.
"""

NEARLY_ALL = 0.9
"""Minimum share of segments with wrong checksums for the verdict `offload`, if none of them has data (a heuristic)."""


@dataclass(slots=True)
class Direction:
    """Wrong checksums of one direction.

    Attributes:
        checked: number of segments with a verified checksum.
        bad: number of verified segments with a wrong checksum.
        bad_with_data: number of data segments with a wrong checksum.
        retransmitted: number of data segments with a wrong checksum that were retransmitted.
        frames: frames of the first retransmits.
    """

    checked: int = 0
    bad: int = 0
    bad_with_data: int = 0
    retransmitted: int = 0
    frames: list[int] = field(default_factory=list)
    _remembered: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=MAX_REMEMBERED))

    @property
    def verdict(self) -> str:
        """`corruption`: the receiver discarded the segments. `offload`: the segments arrived, so the network card corrected the checksums.

        `unknown`: there is no evidence for either.
        """
        if self.bad_with_data:
            return "corruption" if self.retransmitted >= MOSTLY * self.bad_with_data else "offload"
        return "offload" if self.bad >= NEARLY_ALL * self.checked and self.bad > 1 else "unknown"

    def damaged(self, start: int, end: int) -> None:
        """Record a data segment from `start` to `end` with a wrong checksum."""
        self.bad_with_data += 1
        self._remembered.append((start, end))

    def sent_again(self, frame: int, start: int, end: int) -> None:
        """Record a retransmit of the bytes from `start` to `end`. Each damaged segment counts only once."""
        kept = [(first, last) for first, last in self._remembered if last <= start or end <= first]
        again = len(self._remembered) - len(kept)
        if again:
            self.retransmitted += again
            self._remembered = deque(kept, MAX_REMEMBERED)
            if len(self.frames) < MAX_FRAMES:
                self.frames.append(frame)


class Checksums:
    """Tracks wrong checksums per direction, by the joined rows of `pairing`."""

    def __init__(self) -> None:
        """Start without any segment."""
        self.checked = self.bad = 0
        self._directions: dict[tuple[int, bool], Direction] = {}
        self._clean: dict[tuple[int, bool], int] = {}

    def take(self, both: pl.DataFrame) -> None:
        """Process the next rows."""
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
        """Yield connection, True if the client is the sender, and the counts, for each direction with wrong checksums."""
        for (conn, from_client), direction in sorted(self._directions.items()):
            yield conn, from_client, direction

    @property
    def corrupted(self) -> int:
        """Number of segments that were damaged on the path and retransmitted."""
        return sum(one.retransmitted for one in self._directions.values() if one.verdict == "corruption")

    def words(self) -> str:
        """Return a summary as one line; empty if no checksum is wrong."""
        if not self.bad:
            return ""
        found = [one.verdict for one in self._directions.values()]
        sentence = f"TCP checksums: {self.bad:,} of {self.checked:,} are wrong"
        if "offload" in found:
            sentence += f"; those of {counted(found.count('offload'), 'direction')} are due to offload: the segments arrived nevertheless"
        if "corruption" in found:
            sentence += f"; {counted(self.corrupted, 'segment')} with data damaged and retransmitted: a loss by corruption"
        return sentence
