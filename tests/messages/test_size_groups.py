"""Slow message sizes are found in captures built by hand.

Some captures have known stalls. In other captures, messages only look slow.
"""

from __future__ import annotations

import json
import random
from importlib import resources
from itertools import cycle
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from tcptrace_lab import analyze, report
from tests.support import packets
from tests.support.captures.size_sweeps import FULL, OPENED, PIECE, SIZES, SLOW, Message, exchange, shuffled, swept

if TYPE_CHECKING:
    from pathlib import Path

    from tcptrace_lab import Analysis


def analyzed(folder: Path, text: str) -> Analysis:
    return analyze(packets.capture(folder / "sweep.pcap", text))


def measured(analysis: Analysis) -> list[tuple[int, int]]:
    return [(one.from_bytes, one.to_bytes) for group in analysis.message_sizes for one in group.measured]


def named(analysis: Analysis) -> list[str]:
    return [finding.id for finding in analysis.findings]


def test_a_sweep_shows_the_range_that_stalls(tmp_path: Path) -> None:
    analysis = analyzed(tmp_path, exchange(shuffled(swept())))
    inside = [size for size in SIZES if SLOW[0] <= size <= SLOW[1]]
    assert measured(analysis) == [(inside[0], inside[-1])]
    (group,) = [group for group in analysis.message_sizes if group.measured]
    (one,) = group.measured
    assert (group.conn, group.from_client, group.messages) == (0, True, len(SIZES))
    assert one.messages == len(inside)
    assert one.stalled_share == 1
    assert one.min_from_bytes is not None
    assert one.min_from_bytes <= SLOW[0] <= one.from_bytes
    assert 40_000_000 <= one.stalled_median_ns <= 41_000_000
    assert one.normal_median_ns < 1_000_000
    assert group.parameters.copy_bytes == PIECE
    assert group.parameters.mss_bytes == FULL


@pytest.mark.parametrize(
    ("messages", "confidence"),
    [(swept(), "possible"), (swept() * 2, "proved"), (shuffled(swept()), "proved")],
    ids=["upwards", "upwards twice", "in any order"],
)
def test_sizes_that_were_sent_in_one_stretch_of_time_may_have_stalled_by_the_time(
    tmp_path: Path, messages: list[Message], confidence: str
) -> None:
    """The sizes are sent in several orders.

    If they are sent once in ascending order, a receiver that is busy for a while looks like a slow range. The other orders rule this out.
    """
    analysis = analyzed(tmp_path, exchange(messages))
    (finding,) = [finding for finding in analysis.findings if finding.id == "anomalous-message-sizes"]
    assert str(finding.confidence) == confidence
    assert ("were sent in one period" in finding.limits) == (confidence == "possible")


def test_waits_of_a_timer_that_always_comes_soon_show_the_range(tmp_path: Path) -> None:
    """The delayed ACK always comes after 6 ms. Such a wait is too short for a stall.

    Only messages in the slow range wait for the delayed ACK, so the range is still found.
    """
    messages = [Message(size, held_ms=6.0 if SLOW[0] <= size <= SLOW[1] else 0.0) for size in SIZES]
    analysis = analyzed(tmp_path, exchange(shuffled(messages)))
    assert measured(analysis) == [(4200, 5550)]
    (group,) = [group for group in analysis.message_sizes if group.measured]
    assert group.causes == ("nagle",)
    assert len(group.frames) == 3


def test_a_timer_that_comes_at_any_time_shows_the_range_though_some_waits_are_short(tmp_path: Path) -> None:
    """In the slow range, messages wait 4, 14, 25 or 36 ms. A wait of 4 ms is too short for a stall."""
    waits_ms = dict(zip((size for size in SIZES if SLOW[0] <= size <= SLOW[1]), cycle((4.0, 14.0, 25.0, 36.0)), strict=False))
    messages = [Message(size, held_ms=waits_ms.get(size, 0.0)) for size in SIZES]
    assert measured(analyzed(tmp_path, exchange(shuffled(messages)))) == [(4200, 5550)]


def test_a_busy_receiver_whose_acks_are_a_little_late_at_any_size_hides_no_range_and_makes_none(tmp_path: Path) -> None:
    """A third of the messages wait 6 ms. In the second case, all messages of one range of sizes also wait 40 ms."""
    sizes = range(PIECE + 4, 16_000, 110)

    def late_ms(place: int, size: int, slow_ms: float) -> float:
        return slow_ms if slow_ms and 8000 <= size <= 10_000 else 6.0 * (place % 3 == 0)

    for slow_ms, expected in ((0.0, []), (40.0, [(8060, 9930)])):
        messages = [Message(size, held_ms=late_ms(place, size, slow_ms)) for place, size in enumerate(sizes)]
        found = measured(analyzed(tmp_path, exchange(shuffled(messages))))
        assert found == expected


def test_the_longer_waits_of_larger_messages_do_not_hide_where_waiting_begins(tmp_path: Path) -> None:
    """Messages larger than one piece wait. Above 9,000 bytes, each of them waits 40 ms.

    Up to 9,000 bytes, one message in seven waits 40 ms, and the others wait 6 ms.
    """
    sizes = range(3700, 16_000, 110)
    messages = [
        Message(size, held_ms=0.0 if size <= PIECE else 40.0 if size > 9000 or place % 7 == 0 else 6.0) for place, size in enumerate(sizes)
    ]
    inside = [size for size in sizes if size > PIECE]
    assert measured(analyzed(tmp_path, exchange(shuffled(messages)))) == [(inside[0], inside[-1])]


def test_the_finding_names_sizes_cost_frames_and_remedy(tmp_path: Path) -> None:
    analysis = analyzed(tmp_path, exchange(shuffled(swept())))
    (finding,) = [finding for finding in analysis.findings if finding.id == "anomalous-message-sizes"]
    stalls = sum(bool(message.held_ms) for message in swept())
    assert finding.cost_ns is not None
    assert abs(finding.cost_ns - stalls * 40_020_000) < stalls * 1_000_000
    assert str(finding.confidence) == "proved"
    assert "4,200 to 5,550" in finding.title
    assert "nagle-delayed-ack" in finding.mechanism
    assert any("TCP_NODELAY" in remedy for remedy in finding.remedy)
    assert finding.evidence_frames
    costs = [one.cost_ns for one in analysis.findings if one.cost_ns is not None]
    assert costs == sorted(costs, reverse=True)


def test_the_json_holds_measured_ranges_and_parameters(tmp_path: Path) -> None:
    document = analyzed(tmp_path, exchange(shuffled(swept()))).to_dict()
    published: dict[str, Any] = json.loads(resources.files("tcptrace_lab").joinpath("outputs/schemas/analysis.schema.json").read_text())
    jsonschema.Draft202012Validator(published).validate(document)
    sizes = [one for one in document["message_sizes"] if one["measured"]]
    assert [(one["from_bytes"], one["to_bytes"]) for one in sizes[0]["measured"]] == [(4200, 5550)]
    assert sizes[0]["parameters"]["mss_bytes"] == FULL


def test_many_short_connections_of_a_pair_are_one_group(tmp_path: Path) -> None:
    """Each connection has only two requests."""
    messages = shuffled(swept(range(300, 9000, 300)) * 2)
    hosts = "\n".join(f"host X{n} 10.0.0.1:{41000 + n} isn {n}" for n in range(len(messages) // 2))
    text = hosts + "".join("\n" + exchange(messages[2 * n : 2 * n + 2], f"X{n}") for n in range(len(messages) // 2))
    analysis = analyzed(tmp_path, text)
    (group,) = [group for group in analysis.message_sizes if group.measured]
    assert group.conn is None
    assert group.name == "10.0.0.1 → 10.0.0.2:80"
    assert measured(analysis) == [(4200, 5400)]


def test_bigger_messages_that_take_longer_are_no_finding(tmp_path: Path) -> None:
    """The application writes one segment every 2 ms, so larger messages take longer. A few messages of any size stall."""
    held = random.Random(5).sample(range(len(SIZES)), 6)  # noqa: S311
    messages = [Message(size, held_ms=40.0 if place in held and size > PIECE else 0.0, segment_us=2000) for place, size in enumerate(SIZES)]
    assert "anomalous-message-sizes" not in named(analyzed(tmp_path, exchange(shuffled(messages))))


def test_stalls_at_any_size_are_no_finding(tmp_path: Path) -> None:
    messages = [Message(size, held_ms=40.0 if size > PIECE and size % 450 == 300 else 0.0) for size in range(PIECE + 4, 24_000, 150)]
    assert measured(analyzed(tmp_path, exchange(shuffled(messages)))) == []


def test_a_few_messages_are_no_finding(tmp_path: Path) -> None:
    assert measured(analyzed(tmp_path, exchange(swept(range(300, 9000, 900))))) == []


def test_thinking_before_messages_of_some_sizes_is_no_finding(tmp_path: Path) -> None:
    """Before a message of certain sizes, the application waits 50 ms. TCP delays no message."""
    messages = [Message(size, think_ms=50.0 if SLOW[0] <= size <= SLOW[1] else 2.0) for size in SIZES]
    assert measured(analyzed(tmp_path, exchange(shuffled(messages)))) == []


def test_a_program_that_pauses_within_messages_of_some_sizes_is_no_finding(tmp_path: Path) -> None:
    """In messages of certain sizes, the application waits 50 ms between two writes. The second write is then a message of its own."""
    messages = [Message(size, pause_ms=50.0 if SLOW[0] <= size <= SLOW[1] else 0.0) for size in SIZES]
    analysis = analyzed(tmp_path, exchange(shuffled(messages)))
    assert "anomalous-message-sizes" not in named(analysis)


def test_a_bulk_transfer_is_not_looked_at(tmp_path: Path) -> None:
    text = OPENED.format(c="C") + "\n".join(
        f"+10us C > S . {1 + FULL * n}:{1 + FULL * (n + 1)} ack 1\n+40ms S > C . ack {1 + FULL * (n + 1)}" for n in range(40)
    )
    assert analyzed(tmp_path, text).message_sizes == ()


def test_the_report_draws_sizes_against_time_with_the_range_shaded(tmp_path: Path) -> None:
    analysis = analyzed(tmp_path, exchange(shuffled(swept())))
    data = report.data(analysis)
    (look,) = data["sizes"]
    assert [(one["from_bytes"], one["to_bytes"]) for one in look["ranges"]] == [(4200, 5550)]
    (shade,) = look["figure"]["layout"]["shapes"]
    assert (shade["x0"], shade["x1"]) == (4199.5, 5550.5)
    points = [len(trace["x"]) for trace in look["figure"]["data"] if trace["x"] != [None]]
    assert sum(points) == len(SIZES)
    assert 'id="sizes"' in report.render(data)
    assert 'id="sizes"' not in report.render(report.data(analyzed(tmp_path, exchange(swept(range(300, 9000, 900))))))
