"""Quantiles of round trips, beside sorting all samples and counting off the rank."""

from __future__ import annotations

import math
from collections import defaultdict

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tcptrace_lab.udp.rtt import Samples

WIDTH = 0.001
"""How far a quantile may be off: a bucket's width."""

SAMPLES = st.lists(st.tuples(st.integers(0, 3), st.booleans(), st.integers(0, 10**12)), max_size=60)


def rows(samples: list[tuple[int, bool, int]]) -> tuple[pl.Series, pl.Series, pl.Series]:
    schema = {"conn": pl.UInt32, "from_client": pl.Boolean, "time_ns": pl.Int64}
    conn, from_client, time_ns = pl.DataFrame(samples, schema=schema, orient="row").get_columns()
    return conn, from_client, time_ns


def nearest_rank(sorted_ns: list[int], share: float) -> int:
    """By the definition of the nearest rank."""
    return sorted_ns[math.ceil(share * len(sorted_ns)) - 1]


@given(parts=st.lists(SAMPLES, max_size=4), merge_rows=st.sampled_from([0, 7, 10**6]))
def test_quantiles_are_the_nearest_ranks_to_within_a_bucket(parts: list[list[tuple[int, bool, int]]], merge_rows: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tcptrace_lab.udp.rtt.MERGE_ROWS", merge_rows)
        counted = Samples()
        for part in parts:
            counted.count(*rows(part))
    expected: defaultdict[tuple[int, bool], list[int]] = defaultdict(list)
    for conn, from_client, time_ns in (sample for part in parts for sample in part):
        expected[conn, from_client].append(time_ns)
    found = {(conn, from_client): (p50_ns, p95_ns) for conn, from_client, p50_ns, p95_ns in counted.quantiles().iter_rows()}
    assert list(found) == sorted(expected)
    for direction, (p50_ns, p95_ns) in found.items():
        samples_ns = sorted(expected[direction])
        assert p50_ns == pytest.approx(nearest_rank(samples_ns, 0.50), rel=WIDTH, abs=1)
        assert p95_ns == pytest.approx(nearest_rank(samples_ns, 0.95), rel=WIDTH, abs=1)


def test_equal_samples_give_their_value_exactly() -> None:
    counted = Samples()
    counted.count(*rows([(7, False, 40_000_123)] * 5))
    assert counted.quantiles().rows() == [(7, False, 40_000_123, 40_000_123)]


def test_a_clock_that_steps_back_makes_the_smallest_samples() -> None:
    counted = Samples()
    counted.count(*rows([(0, False, -5_000), (0, False, 1_000), (0, False, 2_000), (0, False, 3_000)]))
    assert counted.quantiles().rows() == [(0, False, 1_000, 3_000)]
    counted.count(*rows([(0, False, -5_000)] * 5))
    assert counted.quantiles().rows() == [(0, False, -5_000, 3_000)]


def test_no_samples_make_no_rows() -> None:
    counted = Samples()
    assert counted.quantiles().is_empty()
    counted.count(*rows([]))
    assert dict(counted.quantiles().schema) == {"conn": pl.Int64, "from_client": pl.Boolean, "p50_ns": pl.Int64, "p95_ns": pl.Int64}
