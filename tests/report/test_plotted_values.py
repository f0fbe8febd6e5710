"""The values in figures equal those of tshark. If tshark has no value, the value equals that of the kernel."""

from __future__ import annotations

import json
from functools import cache
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from tcptrace_lab import analyze, report
from tcptrace_lab.report.figures import words
from tcptrace_lab.text.numbers import NS_PER_S
from tests.support.peers import tshark
from tests.support.places import CAPTURES

if TYPE_CHECKING:
    from collections.abc import Mapping

US = 1e-6
"""Tolerance of plotted times in seconds. The timestamps of the captures have a resolution of 1 µs."""

FIELDS = (
    *("frame.number", "frame.time_epoch", "tcp.dstport", "tcp.len", "tcp.seq", "tcp.window_size", "tcp.ack", "tcp.options.sack_le"),
    *("tcp.options.sack_re", "tcp.analysis.bytes_in_flight", "tcp.analysis.ack_rtt", "tcp.analysis.acks_frame"),
)


class Seen(NamedTuple):
    """One frame, as tshark sees it.

    `t_s` is the time since the first frame. A value that tshark does not have is None.
    """

    t_s: float
    from_client: bool
    payload_bytes: int
    seq: int
    window_bytes: int
    ack: int
    sack: list[tuple[int, int]]
    in_flight_bytes: int | None
    rtt_s: float | None
    acks_frame: int | None


@cache
def by_tshark(name: str) -> dict[int, Seen]:
    rows = list(tshark.frames(CAPTURES / f"{name}.pcapng", FIELDS))
    times_ns = [tshark.time_ns(row["frame.time_epoch"]) or 0 for row in rows]
    return {
        int(row["frame.number"]): Seen(
            (time_ns - times_ns[0]) / NS_PER_S,
            row["tcp.dstport"] == rows[0]["tcp.dstport"],
            int(row["tcp.len"]),
            int(row["tcp.seq"]),
            int(row["tcp.window_size"]),
            int(row["tcp.ack"]),
            list(zip(*(map(int, row[f"tcp.options.sack_{edge}"].split(",")) for edge in ("le", "re")), strict=True))
            if row["tcp.options.sack_le"]
            else [],
            int(row["tcp.analysis.bytes_in_flight"] or 0) or None,
            float(row["tcp.analysis.ack_rtt"]) if row["tcp.analysis.ack_rtt"] else None,
            int(row["tcp.analysis.acks_frame"]) if row["tcp.analysis.acks_frame"] else None,
        )
        for row, time_ns in zip(rows, times_ns, strict=True)
    }


@cache
def report_of(name: str) -> Mapping[str, Any]:
    return report.data(analyze(CAPTURES / f"{name}.pcapng"))


def look(name: str, finding_id: str, key: str) -> dict[str, Any]:
    """Return the figure that best shows the finding `finding_id`. Its kind must be `key`."""
    found = next(one["zoom"]["look"] for one in report_of(name)["findings"] if one["id"] == finding_id)
    assert found["key"] == key
    return dict(found["figure"])


def trace(figure: Mapping[str, Any], name: str) -> dict[str, Any]:
    return next(dict(one) for one in figure["data"] if one["name"].startswith(name))


def connection_figure(name: str, key: str) -> dict[str, Any]:
    return next(dict(one["figure"]) for one in report_of(name)["drawn"][0]["figures"] if one["key"] == key)


@pytest.mark.parametrize(
    ("name", "finding_id"),
    [
        ("ethernet-small-receive-window", "receiver-window-limited"),
        ("ethernet-slow-reader", "zero-window"),
        ("ethernet-small-send-buffer", "send-buffer-limited"),
        ("ethernet-loss", "loss"),
        ("ethernet-slow-start", "slow-start-limited"),
        ("ethernet-tail-loss", "timeout"),
    ],
)
def test_flight_and_window_are_those_of_tshark(name: str, finding_id: str) -> None:
    """Bytes in flight are compared at each data frame, and windows are compared at each ACK.

    Frames after SACK blocks are left out, because tshark subtracts the bytes in those blocks.
    """
    seen, figure = by_tshark(name), look(name, finding_id, "flight")
    in_flight = trace(figure, "bytes in flight")
    compared = 0
    for t_s, y, frame in zip(in_flight["x"], in_flight["y"], in_flight["customdata"], strict=True):
        assert t_s == pytest.approx(seen[frame].t_s, abs=US)
        last_ack = max((each for each in range(1, frame) if not seen[each].from_client), default=0)
        if seen[frame].from_client and (theirs := seen[frame].in_flight_bytes) and not (last_ack and seen[last_ack].sack):
            assert y == theirs, f"frame {frame}"
            compared += 1
    window = trace(figure, "window offered")
    for y, frame in zip(window["y"], window["customdata"], strict=True):
        if not seen[frame].from_client:
            assert y == seen[frame].window_bytes, f"frame {frame}"
            compared += 1
    assert compared > 5


@pytest.mark.parametrize("name", ["ethernet-loss", "ethernet-queue-overflow"])
def test_estimates_of_the_sender_are_those_of_its_kernel(name: str) -> None:
    """The expected values are `tcpi_snd_ssthresh` and `tcpi_snd_cwnd` of the sender's kernel.

    The kernel counts both values in segments of `tcpi_snd_mss` bytes. Both values were read after all data had been acknowledged.
    """
    (connection,) = json.loads((CAPTURES / f"{name}.json").read_text())["connections"]
    kernel = connection["client"]["tcp_info"]
    figure = look(name, "loss", "flight")
    window, threshold = trace(figure, "congestion window"), trace(figure, "slow-start threshold")
    assert threshold["y"][-1] == kernel["tcpi_snd_ssthresh"] * kernel["tcpi_snd_mss"]
    last = max(place for place, y in enumerate(window["y"]) if y is None and place < len(window["y"]) - 3)
    largest = max(y for y in window["y"][last:] if y is not None)
    assert largest == pytest.approx(kernel["tcpi_snd_cwnd"] * kernel["tcpi_snd_mss"], abs=kernel["tcpi_snd_mss"])


def test_a_sawtooth_is_seen() -> None:
    """The figure shows the congestion window except during recoveries. After each recovery, it starts below its earlier peak."""
    window = trace(look("ethernet-queue-overflow", "loss", "flight"), "congestion window")["y"]
    teeth = [list(part) for is_known, part in groupby(window, key=lambda y: y is not None) if is_known]
    assert len(teeth) >= 3
    assert all(after[0] < max(before) for before, after in pairwise(teeth))


def test_no_window_is_estimated_far_from_the_sender() -> None:
    names = [one["name"] for one in look("ethernet-loss-at-server", "loss", "flight")["data"]]
    assert names == ["window offered", "bytes in flight"]


def test_rtt_against_flight_is_that_of_tshark() -> None:
    seen = by_tshark("ethernet-bottleneck")
    samples = trace(look("ethernet-bottleneck", "bufferbloat", "rtt-flight"), "RTT sample")
    compared = 0
    for flight, rtt_s, (frame, sent_s) in zip(samples["x"], samples["y"], samples["customdata"], strict=True):
        if (acked := seen[frame].acks_frame) is None or (in_flight := seen[acked].in_flight_bytes) is None:
            continue
        assert rtt_s == pytest.approx(seen[frame].rtt_s, abs=US)
        assert sent_s == pytest.approx(seen[acked].t_s, abs=US)
        assert flight == in_flight
        compared += 1
    assert compared > 100
    assert max(samples["y"]) > 5 * min(samples["y"]), "the queue shows"


def test_the_ladder_has_the_exchange_of_tshark() -> None:
    seen, figure = by_tshark("ethernet-nagle-on"), look("ethernet-nagle-on", "nagle-delayed-ack", "ladder")
    drawn = {}
    for name, from_client in (("client", True), ("server", False)):
        arrows = trace(figure, name)
        assert arrows["x"][:4] == ([0, 0.5, 1, None] if from_client else [1, 0.5, 0, None])
        for y, text, (frame, payload_bytes, t_s) in zip(arrows["y"][::4], arrows["text"][1::4], arrows["customdata"][::4], strict=True):
            assert seen[frame].from_client == from_client
            assert seen[frame].payload_bytes == payload_bytes
            assert seen[frame].t_s == pytest.approx(t_s, abs=US)
            assert text == f"{f'{payload_bytes} B' if payload_bytes else 'ACK'} (frame {frame})"
            drawn[frame] = y
    assert sorted(drawn) == list(range(min(drawn), max(drawn) + 1)), "every frame between the first and the last"
    assert sorted(drawn, key=lambda frame: drawn[frame]) == sorted(drawn), "downwards in order of time"
    wait = figure["layout"]["annotations"][0]
    before, after = (next(frame for frame in sorted(drawn, reverse=up) if (drawn[frame] < wait["y"]) == up) for up in (True, False))
    took_ms = 1000 * (seen[after].t_s - seen[before].t_s)
    assert wait["text"] == f"nagle-delayed-ack, {took_ms:.1f} ms"


def test_writes_are_the_data_of_tshark() -> None:
    """The application wrote 20,000 bytes 16 times, with pauses of 50 ms. The JSON of the capture has this schedule."""
    schedule = json.loads((CAPTURES / "ethernet-application-limited.json").read_text())["schedule"]
    seen = by_tshark("ethernet-application-limited")
    stems = trace(look("ethernet-application-limited", "application-limited", "writes"), "written")
    for t_s, y, (first, last, segments) in zip(stems["x"], stems["y"], stems["customdata"], strict=True):
        data = [seen[frame] for frame in range(first, last + 1) if seen[frame].from_client and seen[frame].payload_bytes]
        assert t_s == pytest.approx(seen[first].t_s, abs=US)
        assert (y, segments) == (sum(each.payload_bytes for each in data), len(data))
        assert y == schedule["write_bytes"]
    assert len(stems["x"]) >= 3


def test_sack_blocks_and_duplicate_acks_are_those_of_tshark() -> None:
    """A duplicate ACK repeats the last ACK number and has SACK blocks (RFC 6675, 2).

    tshark also requires that the window does not change.
    """
    seen, figure = by_tshark("ethernet-loss"), connection_figure("ethernet-loss", "time-sequence")
    blocks = trace(figure, "SACK block")
    drawn = {
        (frame, left, left + length)
        for (frame, _), left, length in zip(blocks["customdata"], blocks["y"], blocks["error_y"]["array"], strict=True)
    }
    assert drawn == {(frame, *edges) for frame, each in seen.items() for edges in each.sack}
    again = trace(figure, "duplicate ACK")
    theirs = [(frame, each) for frame, each in seen.items() if not each.from_client]
    assert {frame for frame, _ in again["customdata"]} == {
        frame for (_, before), (frame, each) in pairwise(theirs) if each.sack and each.ack == before.ack
    }


def strokes(figure: Mapping[str, Any]) -> set[tuple[int, int, int]]:
    """Return the frame, the first byte and the end of each data segment in a sequence graph.

    The graph draws a segment either in the line `data` or as a mark.
    """
    data = trace(figure, "data")
    drawn = {
        (frame, low, high)
        for low, high, (frame, last_frame, *_) in zip(data["y"][::3], data["y"][1::3], data["customdata"][::3], strict=True)
        if frame == last_frame
    }
    for marks in figure["data"]:
        if "error_y" in marks and not marks["name"].startswith("SACK"):
            drawn |= {(frame, low, low + length) for (frame, length), low in zip(marks["customdata"], marks["y"], strict=True)}
    return drawn


@pytest.mark.parametrize("name", ["ethernet-loss", "ethernet-tail-loss", "ethernet-two-way"])
def test_the_sequence_graph_has_the_data_acks_and_window_of_tshark(name: str) -> None:
    seen = by_tshark(name)
    figure = next(one["figure"] for one in report_of(name)["drawn"][0]["figures"] if (one["key"], one["by"]) == ("time-sequence", "client"))
    assert strokes(figure) == {
        (frame, each.seq, each.seq + each.payload_bytes) for frame, each in seen.items() if each.from_client and each.payload_bytes
    }
    for line, beyond_ack in (("acknowledged", 0), ("window (right", 1)):
        drawn = trace(figure, line)
        frames = [frame for frame in drawn["customdata"] if not seen[frame].from_client]
        assert len(frames) > 5
        for t_s, y, frame in zip(drawn["x"], drawn["y"], drawn["customdata"], strict=True):
            if not seen[frame].from_client:
                assert t_s == pytest.approx(seen[frame].t_s, abs=US)
                assert y == seen[frame].ack + beyond_ack * seen[frame].window_bytes, f"{line}, frame {frame}"


@pytest.mark.parametrize("name", ["ethernet-loss", "ethernet-bottleneck"])
def test_round_trips_are_those_of_tshark(name: str) -> None:
    """Every RTT sample of the figure is also a sample of tshark.

    The figure lacks some samples of tshark, because Karn's rule excludes samples after a retransmit.
    """
    seen, samples = by_tshark(name), trace(connection_figure(name, "rtt"), "round-trip time")
    assert len(samples["x"]) > 100
    for t_s, rtt_s, frame in zip(samples["x"], samples["y"], samples["customdata"], strict=True):
        assert t_s == pytest.approx(seen[frame].t_s, abs=US)
        assert rtt_s == pytest.approx(seen[frame].rtt_s, abs=US), f"frame {frame}"


@pytest.mark.parametrize("name", ["ethernet-loss", "ethernet-nagle-on"])
def test_segment_sizes_are_those_of_tshark(name: str) -> None:
    seen, sizes = by_tshark(name), trace(connection_figure(name, "segment-sizes"), "payload of a segment")
    drawn = dict(zip(sizes["customdata"], zip(sizes["x"], sizes["y"], strict=True), strict=True))
    sent = {frame: each for frame, each in seen.items() if each.from_client and each.payload_bytes}
    assert {frame: size for frame, (_, size) in drawn.items()} == {frame: each.payload_bytes for frame, each in sent.items()}
    assert all(t_s == pytest.approx(sent[frame].t_s, abs=US) for frame, (t_s, _) in drawn.items())


@pytest.mark.parametrize("name", ["ethernet-loss", "ethernet-two-way"])
def test_throughput_is_the_new_data_of_tshark_in_each_bin(name: str) -> None:
    """New data are bytes beyond the highest sequence number so far.

    The captures were made at the sender, so they contain even the data that were lost on the path.
    """
    seen, figure = by_tshark(name), connection_figure(name, "throughput")
    for line, from_client in (("client", True), ("server", False)):
        try:
            drawn = trace(figure, line)
        except StopIteration:
            assert not any(each.payload_bytes for each in seen.values() if each.from_client == from_client)
            continue
        bin_s = drawn["x"][1] - drawn["x"][0]
        new, highest = [0] * len(drawn["x"]), 1
        for each in seen.values():
            if each.from_client == from_client and each.payload_bytes:
                new[round(each.t_s * NS_PER_S) // round(bin_s * NS_PER_S)] += max(each.seq + each.payload_bytes - highest, 0)
                highest = max(highest, each.seq + each.payload_bytes)
        assert drawn["y"] == pytest.approx([each * 8 / bin_s for each in new])
        assert sum(new) > 0


def test_a_figure_is_described_from_its_data() -> None:
    line = {"type": "scatter", "name": "bytes in flight", "x": [0.0, 0.01, 0.02], "y": [0, 2896, 1448]}
    marks = {"type": "scatter", "name": "SYN (1)", "x": [0.5], "y": [0]}
    skipped = {"type": "scatter", "name": "full segment, 1,448 bytes", "hoverinfo": "skip", "x": [0, 1], "y": [1448, 1448]}
    reported = words.figure({"data": [line, marks, skipped], "layout": {"yaxis": {"ticksuffix": "B"}}})
    assert reported == (
        "bytes in flight: from 0 B to 2.9 kB, highest at 10 ms, 1.45 kB at the end. SYN (1): at 500 ms. full segment, 1,448 bytes."
    )


@pytest.mark.parametrize("name", ["ethernet-loss", "ethernet-nagle-on", "ethernet-bottleneck", "ethernet-two-way"])
def test_every_figure_has_a_text(name: str) -> None:
    made = report_of(name)
    figures = [one for connection in made["drawn"] for one in connection["figures"]]
    figures += [one["zoom"]["look"] for one in made["findings"] if one["zoom"] and one["zoom"]["look"]]
    assert all(len(one["text"]) > 20 for one in figures if one["figure"]["data"])
