"""Which bytes were missing: compared with a set that keeps every single offset."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tcptrace_lab.report.figures import holes


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(1, 9)), max_size=40))
def test_a_segment_fills_exactly_the_bytes_that_were_missing(segments: list[tuple[int, int]]) -> None:
    tracked, end, missing = holes.Holes(), 0, set[int]()
    for seq, length in segments:
        if seq > end:
            tracked.open(end, seq)
            missing |= set(range(end, seq))
        else:
            arrived = set(range(seq, min(seq + length, end)))
            assert tracked.fill(seq, min(seq + length, end)) == len(missing & arrived)
            missing -= arrived
        end = max(end, seq + length)
    assert len(tracked) == sum(offset - 1 not in missing for offset in missing)


def test_the_oldest_holes_are_forgotten_when_there_are_too_many() -> None:
    tracked = holes.Holes()
    for place in range(holes.MAX_HOLES + 5):
        tracked.open(10 * place, 10 * place + 4)
    assert len(tracked) == holes.MAX_HOLES
    assert tracked.fill(0, 50) == 0
    assert tracked.fill(50, 60) == 4
