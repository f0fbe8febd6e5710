"""What a query asks for, taken apart, so that a source of rows can leave out early what nobody wants."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
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
