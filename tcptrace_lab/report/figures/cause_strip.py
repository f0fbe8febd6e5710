"""The causes of a direction over its whole life, as adjacent bands of at least a pixel.

A wait of at least a pixel is a band of its own. Shorter waits share a band. The shared band shows the cause with the most time that no band
shows yet, in these waits and in earlier ones (error diffusion). The bands of a cause therefore add up to its time in the ledger, except for
a few pixels.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from tcptrace_lab.report.data_types import Band

PIXELS = 800
"""Number of pixels in a direction's life: the width of a figure's axis on a desktop."""

MANY_WAITS = 20_000
"""If there are more waits than this, those within one pixel are summed first, because one query costs less than that many steps."""


@dataclass(slots=True)
class CauseStrip:
    """Makes bands of a direction's ledger, in order of time.

    Attributes:
        begin_ns: time of the connection's first segment.
        pixel_ns: length of a pixel.
    """

    begin_ns: int
    pixel_ns: int
    _bands: list[tuple[int, int, str]] = field(default_factory=list)
    _owed_ns: dict[str, int] = field(default_factory=dict)
    _since_ns: int | None = None
    _until_ns: int = 0

    def add(self, waits: pl.DataFrame) -> None:
        """Take the next intervals of the direction: `start_ns end_ns cause`."""
        for start_ns, end_ns, cause in (_summed(waits, self.pixel_ns) if waits.height >= MANY_WAITS else waits).iter_rows():
            if end_ns - start_ns >= self.pixel_ns:
                self._draw()
                self._append(start_ns, end_ns, cause)
                continue
            if self._since_ns is None:
                self._since_ns = start_ns
            self._owed_ns[cause] = self._owed_ns.get(cause, 0) + end_ns - start_ns
            self._until_ns = end_ns
            if end_ns - self._since_ns >= self.pixel_ns:
                self._draw()

    def finish(self) -> list[Band]:
        """The bands, in ns since the connection's first segment."""
        self._draw()
        return [{"start_ns": start - self.begin_ns, "end_ns": end - self.begin_ns, "cause": cause} for start, end, cause in self._bands]

    def _draw(self) -> None:
        """Draw the short waits since the last band as one band. It has the cause with most time that no band shows yet."""
        if self._since_ns is None:
            return
        cause = max(self._owed_ns, key=lambda each: self._owed_ns[each])
        self._owed_ns[cause] -= self._until_ns - self._since_ns
        self._append(self._since_ns, self._until_ns, cause)
        self._since_ns = None

    def _append(self, start_ns: int, end_ns: int, cause: str) -> None:
        if self._bands and self._bands[-1][1:] == (start_ns, cause):
            start_ns = self._bands.pop()[0]
        self._bands.append((start_ns, end_ns, cause))


def _summed(waits: pl.DataFrame, pixel_ns: int) -> pl.DataFrame:
    """Sum the waits within each pixel by cause. The sums of a pixel follow each other."""
    length = pl.col("end_ns") - pl.col("start_ns")
    is_long = length >= pixel_ns
    run = is_long.rle_id() * 2 + is_long.cast(pl.UInt32)
    pixel = pl.when(is_long).then(pl.col("start_ns")).otherwise(pl.col("start_ns") // pixel_ns)
    summed = waits.group_by(run.alias("run"), pixel.alias("pixel"), "cause", maintain_order=True).agg(
        first_ns=pl.col("start_ns").min(), length_ns=length.sum()
    )
    begin = pl.col("first_ns").min().over("run", "pixel") + pl.col("length_ns").cum_sum().over("run", "pixel")
    return summed.select(start_ns=begin - pl.col("length_ns"), end_ns=begin, cause="cause")
