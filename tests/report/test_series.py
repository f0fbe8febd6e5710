"""Segments become lines and marks of figures. The expected values follow from the exchange."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tcptrace_lab.report import selection
from tcptrace_lab.report.figures import collector, series
from tests.support.pages.report_frames import FIN, MS, RST, SYN, Exchange, HandMade, analysis, lossy_upload

if TYPE_CHECKING:
    from tcptrace_lab.engine.figures import Direction


def read(made: HandMade, room: selection.Room = selection.ALONE) -> dict[int, dict[bool, Direction]]:
    """Return the series of the connections that the report draws, by connection and direction."""
    return series.read(made, selection.requests(selection.chosen(made.connections).drawn, room))


def upload(made: HandMade, room: selection.Room = selection.ALONE) -> Direction:
    """Return the series of the client's data in connection 0."""
    return read(made, room)[0][True]


def steps(direction: Direction, line: str) -> list[tuple[float, int]]:
    """Return one line of a figure as points (milliseconds, value)."""
    return [(t_ns / MS, y) for t_ns, y, _ in direction.lines[line].rows()]


def test_ack_line_rises_only_when_new_data_is_acknowledged() -> None:
    assert steps(upload(analysis(lossy_upload())), "acked") == [
        (20, 1),
        (50, 1001),
        (60, 2001),
        (70, 3001),
        (141, 10_001),
        (180, 10_002),
        (181, 10_002),
    ]


def test_flight_rises_with_data_and_falls_with_acks() -> None:
    """From 70 ms on, the client sends a segment every 10 ms.

    The server acknowledges nothing new until the retransmit arrives at 140 ms.
    """
    flight = dict(steps(upload(analysis(lossy_upload())), "flight"))
    assert (flight[30], flight[40], flight[80], flight[120], flight[141]) == (1000, 2000, 3000, 7000, 0)
    assert flight[160] == 1, "a FIN takes one offset"


def test_flight_is_unknown_before_the_first_ack() -> None:
    mid_stream = Exchange().send(0, "C", 1, 500, ack=1).send(1, "C", 501, 500, ack=1).send(20, "S", 1, ack=501)
    assert steps(upload(analysis(mid_stream)), "flight") == [(20, 500)]


def test_flight_is_unknown_while_acks_run_ahead_of_the_capture() -> None:
    """Offsets 501 to 1500 are not in the capture, but the receiver acknowledges them."""
    holed = Exchange().send(0, "C", 1, 500, ack=1).send(10, "S", 1, ack=1501).send(20, "C", 1501, 500, ack=1)
    assert steps(upload(analysis(holed)), "flight") == [(20, 500)]


def test_window_edge_follows_the_newest_ack_not_a_late_one() -> None:
    exchange = Exchange().send(0, "C", 1, 500, ack=1).send(1, "C", 501, 500, ack=1)
    exchange.send(10, "S", 1, ack=1001, window=3000).send(11, "S", 1, ack=501, window=9000).send(12, "S", 1, ack=1001, window=2000)
    assert steps(upload(analysis(exchange)), "window_edge") == [(10, 4001), (12, 3001)]


def test_unknown_window_scale_draws_no_window() -> None:
    exchange = Exchange().send(0, "C", 1, 500, ack=1, window=None).send(10, "S", 1, ack=501, window=None)
    direction = upload(analysis(exchange))
    assert direction.lines["window_edge"].is_empty()
    assert direction.lines["offered"].is_empty()


def test_each_data_segment_is_one_stroke_and_oddities_are_marks() -> None:
    direction = upload(analysis(lossy_upload()))
    assert direction.bursts.select("low", "high").rows() == [(1 + 1000 * i, 1001 + 1000 * i) for i in range(10)]
    assert direction.mark_counts == {"fast_retransmit": 1, "syn": 1, "fin": 1, "duplicate_ack": 3}
    assert direction.marks["fast_retransmit"].select("t_ns", "low", "payload_bytes").row(0) == (111 * MS, 3001, 1000)


def test_zero_windows_resets_and_probes_of_both_sides_are_marked() -> None:
    exchange = Exchange().send(0, "C", 0, flags=SYN).send(1, "S", 0, ack=1, flags=SYN).send(2, "C", 1, 1000, ack=1)
    exchange.send(3, "S", 1, ack=1001, window=0).send(200, "C", 1001, 1, ack=1, kind="zero_window_probe").send(
        201, "S", 1, ack=1001, window=0
    )
    exchange.send(900, "C", 1000, ack=1, kind="keepalive").send(901, "S", 99_999_999, window=0, flags=RST, kind="reset")
    direction = upload(analysis(exchange))
    assert direction.mark_counts == {"keepalive": 1, "zero_window_probe": 1, "syn": 1, "zero_window": 2, "peer_reset": 1}
    assert direction.marks["zero_window"]["low"].to_list() == [1001, 1001], "a RST advertises nothing"
    assert direction.marks["peer_reset"]["low"].to_list() == [1001], "drawn where the stream stood, not at its own number"


def test_a_reset_with_a_foreign_sequence_number_stays_in_the_picture() -> None:
    exchange = Exchange().send(0, "C", 1, 1000, ack=1).send(5, "C", -3_000_000_000, flags=RST, kind="reset")
    assert upload(analysis(exchange)).marks["reset"]["low"].to_list() == [1001]


def test_throughput_counts_each_byte_of_the_stream_once() -> None:
    exchange = (
        Exchange().send(0, "C", 1, 1000, ack=1).send(10, "C", 2001, 1000, ack=1).send(20, "C", 1001, 1000, ack=1, kind="out_of_order")
    )
    exchange.send(30, "C", 1, 1000, ack=1, kind="retransmit").send(40, "C", 2501, 1000, ack=1, kind="rto_retransmit")
    exchange.send(50, "C", 1, 1000, ack=1, kind="capture_duplicate").send(60, "S", 1, ack=3501)
    bins = upload(analysis(exchange)).throughput
    assert bins["unique_bytes"].sum() == 3500, "1,000 + 1,000 + 1,000, nothing, the 500 that are new, nothing"


def test_throughput_bins_are_round_and_few() -> None:
    assert collector.bin_width_ns(10_000 * MS, 1_000_000) == 50 * MS
    assert collector.bin_width_ns(10_000 * MS, 8) == 500 * MS
    assert collector.bin_width_ns(0, 1) == 1


@pytest.mark.parametrize("slice_rows", [1, 2, 7, 25])
def test_slices_change_nothing(monkeypatch: pytest.MonkeyPatch, slice_rows: int) -> None:
    """The segments of two connections alternate. The figures do not depend on the number of segments that are read at once."""
    first, second = lossy_upload(), lossy_upload(conn=1)
    for place, row in enumerate(first.rows):
        row["frame"] = 2 * place + 1
    for place, row in enumerate(second.rows):
        row["frame"] = 2 * place + 2
    made = analysis(first, second)
    whole = read(made)
    monkeypatch.setattr(series, "SLICE_ROWS", slice_rows)
    sliced = read(made)
    for conn, side in ((0, True), (1, True)):
        a, b = whole[conn][side], sliced[conn][side]
        assert a.mark_counts == b.mark_counts
        assert a.bursts.equals(b.bursts)
        assert a.throughput.equals(b.throughput)
        for name, line in a.lines.items():
            assert line.equals(b.lines[name]), name


def test_a_stroke_of_many_segments_never_spans_a_pause() -> None:
    exchange = Exchange()
    for n in range(12):
        exchange.send(n + (500 if n >= 7 else 0), "C", 1 + 100 * n, 100, ack=1)
    direction = upload(analysis(exchange), selection.Room(4, 24_000, 5_000, 24_000, 25, 8))
    assert direction.merged
    assert direction.bursts.select("low", "high", "segments", "frame", "frame_end").rows() == [
        (1, 301, 3, 1, 3), (301, 601, 3, 4, 6), (601, 701, 1, 7, 7), (701, 901, 2, 8, 9), (901, 1201, 3, 10, 12),
    ]  # fmt: skip


def test_segments_of_other_connections_are_left_out() -> None:
    quiet = Exchange(conn=1, first_frame=100).send(500, "C", 1, ack=1).send(501, "S", 1, ack=1)
    made = analysis(lossy_upload(), quiet)
    assert list(read(made)) == [0]


def test_segments_without_a_time_are_left_out_of_the_pictures() -> None:
    exchange = Exchange().send(0, "C", 1, 500, ack=1).send(1, "C", 501, 500, ack=1).send(10, "S", 1, ack=1001, flags=FIN)
    exchange.rows[1]["ts_ns"] = None
    assert upload(analysis(exchange)).bursts["low"].to_list() == [1]


def test_a_resent_segment_that_the_capture_had_not_seen_counts_as_new_payload() -> None:
    """The exchange is captured at the receiver. Offsets 1001 to 2000 were lost before the capture point.

    The client retransmits offsets 1001 to 1500 twice.
    """
    exchange = Exchange().send(0, "C", 1, 1000, ack=1).send(10, "C", 2001, 1000, ack=1)
    exchange.send(20, "C", 1001, 500, ack=1, kind="retransmit").send(30, "C", 1001, 500, ack=1, kind="retransmit").send(
        40, "S", 1, ack=1501
    )
    assert upload(analysis(exchange)).throughput["unique_bytes"].sum() == 2500
