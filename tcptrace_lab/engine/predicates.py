"""Splits the predicate of a query and applies its limit, so that a source of rows can skip rows early."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import polars as pl


def conjuncts(predicate: pl.Expr | None) -> list[pl.Expr]:
    """Split a predicate at its `&`: `a & b & c` → `a`, `b`, `c`. Any other predicate is one part, and None has no parts."""
    if predicate is None:
        return []
    inputs = predicate.meta.pop()
    if len(inputs) == 2:  # noqa: PLR2004  (two operands; the operator is `&` if joining the operands by `&` gives the predicate)
        left, right = inputs
        if (left & right).meta.eq(predicate) or (right & left).meta.eq(predicate):
            return [*conjuncts(left), *conjuncts(right)]
    return [predicate]


def limited(frames: Iterable[pl.DataFrame], limit: int | None) -> Iterator[pl.DataFrame]:
    """Yield the first `limit` rows of `frames` (None: all rows). Later frames are not requested."""
    left = limit
    for frame in frames:
        yield frame if left is None else frame.head(left)
        if left is not None:
            left -= min(left, frame.height)
            if left == 0:
                return
