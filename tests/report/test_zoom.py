"""The figure of a finding shows the right time and draws the right segments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from tcptrace_lab import analyze, report, schema
from tcptrace_lab.causes import Confidence
from tcptrace_lab.findings.finding import Finding, Severity
from tcptrace_lab.report.figures import finding_windows
from tcptrace_lab.report.pack import pack
from tcptrace_lab.text.numbers import NS_PER_S
from tests.support.pages.report_frames import BASE_NS, MS, Exchange, HandMade, analysis
from tests.support.places import CAPTURES

if TYPE_CHECKING:
    from tcptrace_lab import Analysis


@pytest.fixture(scope="module")
def nagle() -> Analysis:
    """A capture of 68 frames with eleven stalls of 44 ms. Each stall ends with a delayed ACK."""
    return analyze(CAPTURES / "ethernet-nagle-on.pcapng")


def finding(*frames: int, name: str = "nagle-delayed-ack", conn: int | None = 0) -> Finding:
    """Return a finding about the client's data. `frames` are its evidence."""
    return Finding(
        name,
        Severity.HIGH,
        Confidence.PROVED,
        conn,
        from_client=True,
        cost_ns=None,
        cost_share=None,
        title="",
        mechanism="",
        evidence_frames=frames,
        limits="",
        remedy=(),
        predicted_gain=None,
        source="",
        causes=frozenset({name} & set(schema.CAUSES)),
    )


def waits(*spans: tuple[float, float, str, int, int]) -> pl.DataFrame:
    """Return ledger rows of the client's data.

    Each span has five values: start and end in milliseconds, cause, frame before, and frame after.
    """
    rows = [
        {"conn": 0, "from_client": True, "cause": cause, "frame_before": before, "frame_after": after, "confidence": "consistent"}
        | {"start_ns": BASE_NS + round(start * MS), "end_ns": BASE_NS + round(end * MS)}
        for start, end, cause, before, after in spans
    ]
    return pl.DataFrame(rows, schema=schema.LEDGER.polars_schema())


def zoom(made: Any, place: int = 0) -> dict[str, Any]:  # noqa: ANN401  (anything that `report.data` takes)
    found = report.data(made)["findings"][place]["zoom"]
    assert found is not None
    return dict(found)


def with_finding(exchange: Exchange, found: Finding, longest: pl.DataFrame) -> HandMade:
    made = analysis(exchange)
    made.findings, made.longest_waits = (found,), longest
    return made


def ping_pong(rounds: int, every_ms: float = 10) -> Exchange:
    """Return an exchange in which the client sends `rounds` segments of 100 bytes. These segments are the odd frames.

    The server acknowledges each segment after one millisecond. These ACKs are the even frames.
    """
    exchange = Exchange()
    for i in range(rounds):
        exchange.send(i * every_ms, "C", 1 + 100 * i, 100, ack=1).send(i * every_ms + 1, "S", 1, ack=101 + 100 * i)
    return exchange


def trace(figure: dict[str, Any], name: str) -> dict[str, Any]:
    (found,) = [each for each in figure["data"] if each["name"] == name]
    return dict(found)


def test_the_longest_wait_of_the_finding_is_shown_with_twice_its_length_around_it() -> None:
    """The finding has waits of 100 ms and 300 ms. The figure shows the longer wait.

    The wait of 1 s has another cause, so it does not belong to the finding.
    """
    exchange = ping_pong(1000)
    longest = waits(
        (1000, 1100, "nagle-delayed-ack", 201, 221), (4000, 4300, "nagle-delayed-ack", 801, 861), (5000, 6000, "peer", 801, 861)
    )
    seen = zoom(with_finding(exchange, finding(201, 221, 801, 861), longest))
    assert (seen["from_ns"], seen["to_ns"]) == ((4000 - 600) * MS, (4300 + 600) * MS)
    assert (seen["proving"], seen["elsewhere"]) == (2, 2)


@pytest.mark.parametrize(
    ("begin_ms", "said"), [(0, "0.0000 s to 0.0140 s"), (3_600_000, "3,599.9880 s to 3,600.0140 s")], ids=["at once", "after an hour"]
)
def test_times_are_reported_finely_enough_to_distinguish_them(begin_ms: int, said: str) -> None:
    """The figure shows a wait of 2 ms, and 12 ms before and after it.

    The wait is either at the start of the connection or an hour later.
    """
    exchange = Exchange().send(0, "C", 1, 100, ack=1)
    for n in range(3):
        exchange.send(begin_ms + 2 * n + (0 if begin_ms else 0.001), "C", 101 + 100 * n, 100, ack=1)
    exchange.send(begin_ms + 14, "C", 401, 100, ack=1)
    first = 2 if begin_ms else 1
    made = with_finding(exchange, finding(first, 3), waits((begin_ms, begin_ms + 2, "nagle-delayed-ack", first, 3)))
    assert zoom(made)["times"] == said


def test_a_finding_names_the_ends_of_its_connection() -> None:
    made = with_finding(ping_pong(20), finding(3, 5), waits((10, 20, "nagle-delayed-ack", 3, 5)))
    assert "<bdi>10.0.0.1:40000 → 10.0.0.2:80</bdi>" in report.render(report.data(made))


def test_every_segment_of_the_window_is_drawn_and_none_beyond(nagle: Analysis) -> None:
    seen = zoom(nagle)
    begin_ns = nagle.connections.select(pl.col("first_ts_ns").first()).collect().item()
    rows = nagle.segments.filter((pl.col("ts_ns") - begin_ns).is_between(seen["from_ns"], seen["to_ns"])).collect()
    sent = rows.filter(pl.col("from_client") & (pl.col("payload_bytes") > 0))
    strokes = [x for x in trace(seen["figure"], "data")["x"] if x is not None]
    inside = [x for x in strokes if seen["from_ns"] <= round(x * NS_PER_S) <= seen["to_ns"]]
    assert seen["segments"] == rows.height > 20
    assert len(inside) == 2 * sent.height, "a stroke has two ends"
    assert len(strokes) - len(inside) <= 4, "one segment at either side, so that lines go through"


def test_rings_mark_the_frames_that_prove_it_at_the_ends_of_their_data() -> None:
    seen = zoom(with_finding(ping_pong(20), finding(3, 5), waits((10, 20, "nagle-delayed-ack", 3, 5))))
    rings = trace(seen["figure"], "frames that prove the finding")
    assert (rings["x"], rings["y"]) == ([0.01, 0.02], [201, 301])
    assert [note["text"] for note in seen["figure"]["layout"]["annotations"]] == ["frame 3", "frame 5"]


def test_an_ack_that_proves_is_marked_at_what_it_acknowledges() -> None:
    seen = zoom(with_finding(ping_pong(20), finding(4, 5), waits((11, 20, "nagle-delayed-ack", 4, 5))))
    assert trace(seen["figure"], "frames that prove the finding")["y"] == [201, 301]


def test_bands_of_a_window_touch_and_fill_it(nagle: Analysis) -> None:
    seen = zoom(nagle)
    bands = [shape for shape in seen["figure"]["layout"]["shapes"] if shape["layer"] == "above"]
    assert bands[0]["x0"] == seen["from_ns"] / NS_PER_S
    assert bands[-1]["x1"] == seen["to_ns"] / NS_PER_S
    assert [band["x1"] for band in bands[:-1]] == [band["x0"] for band in bands[1:]]
    # In each round, the client waits 215 µs for its peer. This wait lasts from the client's second piece (frame 17) to the answer (frame
    # 19).
    assert {cause["cause"] for cause in seen["causes"]} == {"nagle-delayed-ack", "application", "network", "peer"}


def test_waits_of_the_finding_are_shaded_and_no_others(nagle: Analysis) -> None:
    """The time that the figure shows contains nine of the eleven stalls of 43.6 ms."""
    seen = zoom(nagle)
    shades = [shape for shape in seen["figure"]["layout"]["shapes"] if shape["layer"] == "below"]
    assert seen["shaded"] == ["nagle-delayed-ack"]
    assert [round((shade["x1"] - shade["x0"]) * 1000, 1) for shade in shades] == pytest.approx([43.7] * 9, abs=0.2)


def test_window_and_ack_lines_come_in_from_before_the_window() -> None:
    """No ACK arrives from 1 ms to 900 ms.

    The figure begins at 350 ms, so the lines continue from the ACK at 1 ms.
    """
    exchange = Exchange().send(0, "C", 1, 100, ack=1).send(1, "S", 1, ack=101, window=5000)
    exchange.send(650, "C", 101, 100, ack=1).send(700, "C", 201, 100, ack=1).send(900, "S", 1, ack=301, window=5000)
    seen = zoom(with_finding(exchange, finding(3, 4), waits((650, 700, "nagle-delayed-ack", 3, 4))))
    acked, edge = (trace(seen["figure"], name) for name in ("acknowledged", "window (right edge)"))
    assert (acked["x"][0], acked["y"][0], edge["y"][0]) == (0.001, 101, 5101)
    assert seen["from_ns"] == (650 - 6 * 50) * MS, "as far as six times the wait, for want of segments"


def test_segments_of_a_window_are_bounded_and_what_is_left_out_is_counted() -> None:
    seen = zoom(with_finding(ping_pong(3000, every_ms=0.5), finding(1001, 5001), waits((250, 1250, "nagle-delayed-ack", 1001, 5001))))
    assert seen["omitted"] == 4001 - finding_windows.BETWEEN_SEGMENTS
    assert seen["segments"] <= finding_windows.BETWEEN_SEGMENTS + 2 * finding_windows.AROUND_SEGMENTS
    assert len(pack(seen["figure"])) < 30_000


def test_frames_without_a_wait_are_shown_from_the_first_on() -> None:
    frames = tuple(range(101, 401, 20))
    seen = zoom(with_finding(ping_pong(1000), finding(*frames, name="silly-window"), waits()))
    first_ns, last_ns = 500 * MS, 500 * MS + (finding_windows.FIRST_FRAMES - 1) * 100 * MS
    margin_ns = (last_ns - first_ns) // 4
    assert (seen["from_ns"], seen["to_ns"]) == (first_ns - margin_ns, last_ns + margin_ns)
    assert seen["shaded"] == []


def test_a_single_frame_is_shown_among_its_neighbours() -> None:
    seen = zoom(with_finding(ping_pong(1000), finding(1001, name="tinygrams"), waits()))
    assert (seen["first_frame"], seen["last_frame"]) == (1001 - finding_windows.MIN_AROUND, 1001 + finding_windows.MIN_AROUND)


@pytest.mark.parametrize("found", [finding(), finding(1, conn=None), finding(999)], ids=["no frames", "no connection", "frame of nobody"])
def test_a_finding_without_a_place_has_no_figure(found: Finding) -> None:
    assert report.data(with_finding(ping_pong(3), found, waits()))["findings"][0]["zoom"] is None


def test_the_same_is_drawn_whether_the_capture_comes_at_once_or_in_slices(nagle: Analysis, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = zoom(nagle)
    monkeypatch.setattr("tcptrace_lab.report.figures.series.SLICE_ROWS", 7)
    made = HandMade(**{name: getattr(nagle, name) for name in HandMade.__dataclass_fields__})
    made.segments = pl.concat([piece.lazy() for piece in nagle.segments.collect().iter_slices(7)])
    assert zoom(made) == whole


def test_a_capture_that_is_read_again_is_drawn_as_one_that_is_kept(nagle: Analysis) -> None:
    again = analyze(CAPTURES / "ethernet-nagle-on.pcapng", reread_bytes=0)
    assert again.together is not None
    assert report.data(again) == report.data(nagle)
