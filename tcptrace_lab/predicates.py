"""What a query asks for, taken apart, so that a source of rows can leave out early what nobody wants."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import polars as pl


def conjuncts(predicate: pl.Expr | None) -> list[pl.Expr]:
    """`a & b & c` → `a`, `b`, `c`; anything else as it is, and nothing for None."""
    if predicate is None:
        return []
    inputs = predicate.meta.pop()
    if len(inputs) == 2:  # noqa: PLR2004  (two operands, and `and` is the operator if joining them by it makes the same)
        left, right = inputs
        if (left & right).meta.eq(predicate) or (right & left).meta.eq(predicate):
            return [*conjuncts(left), *conjuncts(right)]
    return [predicate]


def limited(frames: Iterable[pl.DataFrame], limit: int | None) -> Iterator[pl.DataFrame]:
    """The first `limit` rows of them, all for None; no more frames are asked for than that takes."""
    left = limit
    for frame in frames:
        yield frame if left is None else frame.head(left)
        if left is not None:
            left -= min(left, frame.height)
            if left == 0:
                return
