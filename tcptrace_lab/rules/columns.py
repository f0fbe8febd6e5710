"""Facts become columns, step by step: so each is worked out once, however many rules ask for it, and a rule looks at what is there."""

from __future__ import annotations

import polars as pl

_STEPS: list[dict[str, pl.Expr]] = []
"""Columns to be made, each step from those before it."""


def fact(name: str, value: pl.Expr) -> pl.Expr:
    """Have a column made behind those that it looks at."""
    roots = set(value.meta.root_names())
    step = 1 + max((place for place, made in enumerate(_STEPS) if made.keys() & roots), default=-1)
    if step == len(_STEPS):
        _STEPS.append({})
    _STEPS[step][name] = value
    return pl.col(name)


def looked_at() -> frozenset[str]:
    """Every column that a fact is made of, facts among them."""
    return frozenset(root for made in _STEPS for value in made.values() for root in value.meta.root_names())


def beside(departures: pl.LazyFrame) -> pl.LazyFrame:
    """Departures with the facts of their directions → the same with all facts beside them that any rule has asked for."""
    for made in _STEPS:
        departures = departures.with_columns(**made)
    return departures
