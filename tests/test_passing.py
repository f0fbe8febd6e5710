"""Rows that go by in temporary files come back as they were, whatever each file could hold them in."""

from __future__ import annotations

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from tcptrace_lab import schema
from tcptrace_lab.passing import Passing
from tcptrace_lab.revisions import REVISED, Revisions

KIND = pl.Enum(["new", "retransmit", "spurious"])
SCHEMA = {"frame": pl.UInt64(), "conn": pl.UInt32(), "held_ns": pl.Int64(), "kind": KIND, "small": pl.Boolean(), "share": pl.Float64()}
FRAMES = [
    pl.DataFrame(
        {
            "frame": [1, 2, 3],
            "conn": [0, 1, 0],
            "held_ns": [-1, None, 127],
            "kind": ["new", None, "spurious"],
            "small": [True, None, False],
            "share": [0.1, None, -2.5],
        },
        schema=SCHEMA,
    ),
    pl.DataFrame(
        {
            "frame": [4, 2**63 + 1],
            "conn": [2**32 - 1, 1],
            "held_ns": [2**63 - 1, -(2**63)],
            "kind": ["retransmit", "new"],
            "small": [False, True],
            "share": [1e300, 0.0],
        },
        schema=SCHEMA,
    ),
    pl.DataFrame({name: [None] for name in SCHEMA}, schema=SCHEMA),
]
WHOLE = pl.concat(FRAMES)


@pytest.fixture(params=[0, 4, 100], ids=["all in files", "one frame kept first", "all in memory"])
def rows(request: pytest.FixtureRequest) -> pl.LazyFrame:
    passing = Passing(SCHEMA, request.param)
    for frame in FRAMES:
        passing.add(frame)
        passing.add(frame.clear())
    return passing.finish()


def test_rows_come_back_in_order_with_their_types_each_time(rows: pl.LazyFrame) -> None:
    assert_frame_equal(rows.collect(), WHOLE)
    assert_frame_equal(rows.collect(engine="streaming"), WHOLE)


def test_what_is_asked_is_reckoned_with_wide_numbers(rows: pl.LazyFrame) -> None:
    """127 fits into eight bits, twice as much does not."""
    assert rows.filter(pl.col("held_ns") * 2 == 254).select("share", "frame").collect().rows() == [(-2.5, 3)]
    assert rows.filter(pl.col("kind") == "new").select("small").collect()["small"].to_list() == [True, True]
    assert rows.select(pl.col("conn").max() + 0).collect().item() == 2**32 - 1


def test_no_more_rows_come_than_are_wanted(rows: pl.LazyFrame) -> None:
    assert_frame_equal(rows.head(4).collect(), WHOLE.head(4))
    assert rows.filter(pl.col("frame") > 1).head(1).select("frame").collect()["frame"].to_list() == [2]


@pytest.mark.parametrize("bits", [7, 8, 15, 16, 31, 32, 62])
def test_the_smallest_and_the_largest_number_of_each_width_come_back_and_so_do_their_neighbours(bits: int) -> None:
    """Each in a file of its own: beside a larger one it would be kept as wide as that."""
    edge = 1 << bits
    types = {name: SCHEMA[name] for name in ("frame", "held_ns")}
    passing = Passing(types, 0)
    rows = [(edge - 1, edge - 1), (edge, edge), (0, -edge), (0, -edge - 1)]
    for row in rows:
        passing.add(pl.DataFrame([row], schema=types, orient="row"))
    assert passing.finish().collect().rows() == rows


def test_nothing_added_is_no_rows() -> None:
    assert_frame_equal(Passing(SCHEMA, 0).finish().collect(), WHOLE.clear())


def test_two_queries_at_a_time_do_not_disturb_each_other(rows: pl.LazyFrame) -> None:
    largest, count = pl.collect_all([rows.select(pl.col("held_ns").max()), rows.select(pl.len())])
    assert (largest.item(), count.item()) == (2**63 - 1, WHOLE.height)


@pytest.mark.parametrize("spill_rows", [0, 4, 100], ids=["all in files", "one frame kept first", "all in memory"])
def test_the_last_word_on_a_segment_counts_in_what_is_tested_and_in_what_is_given(spill_rows: int) -> None:
    """Frame 2 turns out to be spurious; frame 3 was resent after a timeout, and later turns out to have come out of order."""
    types = {name: schema.SEGMENTS[name].polars_type() for name in ("payload_bytes", "frame", *REVISED)}
    passing = Passing(types, spill_rows)
    for first in (1, 4):
        frames = [first, first + 1, first + 2]
        at_first = {"payload_bytes": [10 * frame for frame in frames], "frame": frames, "kind": ["new", "retransmit", "rto_retransmit"]}
        passing.add(pl.DataFrame(at_first | dict.fromkeys(REVISED[1:], [None] * 3), schema=types))
    words = {"frame": [3, 2, 3], "kind": ["retransmit", "spurious", "out_of_order"], "evidence_frame": [7, 8, 9]}
    told = {name: types[name] for name in ("frame", *REVISED)}
    rows = passing.finish(Revisions(pl.DataFrame(words | dict.fromkeys(("evidence", "confidence"), [None] * 3), schema=told)))
    kinds = ["new", "spurious", "out_of_order", "new", "retransmit", "rto_retransmit"]
    assert rows.select("kind").collect()["kind"].to_list() == kinds
    assert rows.filter(pl.col("kind") == "out_of_order").select("payload_bytes").collect().rows() == [(30,)]
    assert rows.filter(pl.col("kind") == "rto_retransmit").select("payload_bytes", "kind").collect().rows() == [(60, "rto_retransmit")]
    assert rows.filter(pl.col("payload_bytes") < 40).select("evidence_frame").collect()["evidence_frame"].to_list() == [None, 8, 9]
    assert rows.select("payload_bytes").collect()["payload_bytes"].sum() == 210
