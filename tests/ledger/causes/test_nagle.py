"""Waits of a small segment that Nagle's algorithm and a full send buffer explain equally well.

Two senders produce equal frames: Nagle's algorithm delays the one, and the send buffer of the other (with TCP_NODELAY) is full. Both send
the small rest of a write when the ACK of its first part arrives. If more bytes were in flight earlier, the send buffer had room for the
rest. The confidence depends on how well the frames distinguish the two causes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

from tcptrace_lab import analyze, verdict
from tests.support import ledgers, packets
from tests.support.judged import judged_text

if TYPE_CHECKING:
    from pathlib import Path

    from tcptrace_lab.engine.segments import Tables
    from tcptrace_lab.findings.finding import Finding

MSS = 9_148
OPENED = f"""
    0.0000 C > S S  0:0(0)       win 65535 <mss {MSS}>
    0.0010 S > C S. 0:0(0) ack 1 win 65535 <mss {MSS}>
    0.0010 C > S .         ack 1 win 65535
    """
LATE_MS = 60
"""Delay (ms) of each ACK for which a segment waits."""


def exchanges(first: int, rest: int, count: int, *, answer: int = 50, before: int = 0, late_ms: int = LATE_MS) -> str:
    """Return exchanges. Every 100 ms, the client sends two pieces, and the server answers.

    The second piece is sent when the delayed ACK of the first arrives. Before these exchanges, the client sends `before` bytes at once.
    """
    lines, seq, got = [OPENED], 1, 1
    if before:
        lines += [f"0.0200 C > S . 1:{1 + before} ack 1", f"0.0210 S > C . ack {1 + before}"]
        seq += before
    for place in range(count):
        at_ms = 100 * (place + 1)
        lines.append(f"{at_ms}ms C > S P. {seq}:{seq + first} ack {got}")
        lines.append(f"{at_ms + late_ms}ms S > C . ack {seq + first}")
        lines.append(f"{at_ms + late_ms + 0.1}ms C > S P. {seq + first}:{seq + first + rest} ack {got}")
        seq += first + rest
        end = f"P. {got}:{got + answer} ack {seq}" if answer else f". ack {seq}"
        lines.append(f"{at_ms + late_ms + 1.1}ms S > C {end}")
        got += answer
    return "\n".join(lines)


def judged(tmp_path: Path, text: str) -> tuple[Tables, Finding]:
    found = ledgers.judged_text(tmp_path, text)
    return found, next(each for each in ledgers.advised(found).findings if each.id == "nagle-delayed-ack")


def stalls(found: Tables) -> pl.DataFrame:
    return found.ledger.filter(pl.col("cause") == "nagle-delayed-ack").collect()


@pytest.mark.parametrize(
    ("first", "answer", "before", "confidence"),
    [
        (4_096, 50, 0, "consistent"),
        (4_096, 0, 0, "possible"),
        (4_096, 50, 3 * MSS, "proved"),
        (4_096, 0, 3 * MSS, "proved"),
        (2_000, 50, 0, "proved"),
    ],
    ids=["answered", "never-answered", "more-in-flight-before", "never-answered-more-before", "below-any-buffer"],
)
def test_a_rest_that_a_full_buffer_explains_as_well_proves_nothing(
    tmp_path: Path, first: int, answer: int, before: int, confidence: str
) -> None:
    """4,096 bytes in flight possibly fill the send buffer, unless 27,444 bytes were in flight before.

    No stack has a buffer as small as 2,000 bytes.
    """
    found, finding = judged(tmp_path, exchanges(first, 904, 5, answer=answer, before=before))
    assert stalls(found)["frame_after"].to_list() == [(8 if before else 6) + 4 * place for place in range(5)]
    assert str(finding.confidence) == confidence
    doubted = confidence != "proved"
    assert ("a full send buffer looks the same" in finding.limits) == doubted
    assert any("raise the send buffer" in words for words in finding.remedy) == doubted


def test_a_segment_more_than_the_flight_is_what_distinguishes_a_buffer_from_a_hold(tmp_path: Path) -> None:
    """The client sends 4,096 bytes. If 13,244 bytes were in flight before, the send buffer has room for a full segment (9,148) as well.

    If only 13,243 bytes were in flight before, the send buffer is possibly too small.
    """
    assert str(judged(tmp_path, exchanges(4_096, 904, 5, before=13_244))[1].confidence) == "proved"
    assert str(judged(tmp_path, exchanges(4_096, 904, 5, before=13_243))[1].confidence) == "consistent"


ROUND_MS = 20.1
SEGMENT = 1_460


def flights(sizes: list[list[int]], rtt_ms: float = 20.0, mss: int = SEGMENT) -> str:
    """Return one flight for each list of segment sizes. Each is sent 0.1 ms after the ACK of the previous flight.

    Each flight has one ACK, after one RTT.
    """
    lines, seq, at_ms = [OPENED.replace(str(MSS), str(mss))], 1, 100.0
    for burst in sizes:
        for place, size in enumerate(burst):
            lines.append(f"{at_ms + 0.05 * place:.2f}ms C > S P. {seq}:{seq + size} ack 1")
            seq += size
        lines.append(f"{at_ms + rtt_ms:.2f}ms S > C . ack {seq}")
        at_ms += rtt_ms + 0.1
    return "\n".join(lines)


def held_ms(tmp_path: Path, text: str) -> dict[str, float]:
    """Return the milliseconds of each cause of the client's waits that ended with a segment.

    The last wait is omitted, because the capture ends within it.
    """
    found = ledgers.judged_text(tmp_path, text)
    ended = pl.col("from_client") & (pl.col("frame_before") > 3) & pl.col("frame_after").is_not_null()
    mine = found.ledger.filter(ended)
    sums = mine.group_by(pl.col("cause").cast(pl.String)).agg(ns=(pl.col("end_ns") - pl.col("start_ns")).sum()).collect()
    return {cause: ns / 1e6 for cause, ns in sums.iter_rows()}


@pytest.mark.parametrize(("full_ones", "cause"), [(3, "send-buffer"), (2, "nagle")])
def test_a_rest_behind_a_flight_at_which_full_segments_stop_waits_for_the_buffer(tmp_path: Path, full_ones: int, cause: str) -> None:
    """The application writes 8,192 bytes at a time into a send buffer of 4,096 bytes.

    So two flights alternate: 1,460 + 1,460 + 1,176 bytes, and 1,176 + 1,460 + 1,460 bytes. Nagle's algorithm does not delay full segments.
    So a flight that begins with a full segment waited for room in the send buffer. Three such flights show that the send buffer has 4,096
    bytes. Two such flights can be chance, so six waits have the cause Nagle's algorithm.
    """
    small_first, full_first = [1_176, SEGMENT, SEGMENT], [SEGMENT, SEGMENT, 1_176]
    sizes = [full_first] + [small_first, full_first] * full_ones + [small_first] * (6 - full_ones)
    reported = held_ms(tmp_path, flights(sizes))
    assert reported[cause] == pytest.approx((9 if cause == "send-buffer" else 6) * ROUND_MS, abs=9 * 0.2)  # minus the serialization time
    assert ("nagle" in reported) == (cause == "nagle")


@pytest.mark.parametrize(("first", "confidence"), [(2_047, "proved"), (2_048, "consistent")])
def test_a_sender_whose_buffer_may_be_full_is_not_proved_to_follow_nagles_rule(tmp_path: Path, first: int, confidence: str) -> None:
    """4.2BSD has the smallest send buffer: 2,048 bytes. Fewer bytes in flight fill no send buffer."""
    reported = judged_text(tmp_path, exchanges(first, 904, 5))
    assert (reported["client_nagle"], reported["client_nagle_confidence"]) == ("on", confidence)


def test_pieces_of_nearly_a_segment_are_no_full_ones_at_which_a_sender_stops(tmp_path: Path) -> None:
    """With an MSS of 4,312, segments of 4,096 bytes could be full segments of a tunnel.

    But only one of them is in flight at a time, so they are writes of 4,096 bytes.
    """
    found, _ = judged(tmp_path, exchanges(4_096, 4_096, 5).replace(str(MSS), "4312, sackOK"))
    assert stalls(found)["frame_after"].to_list() == [6 + 4 * place for place in range(5)]


@pytest.mark.parametrize(
    ("sizes", "told_ms"),
    [
        ([6_705] * 8, {"nagle": ROUND_MS, "send-buffer": 6 * ROUND_MS}),
        ([6_705, 3_000] * 4, {"nagle": ROUND_MS, "unknown": 6 * ROUND_MS}),
        ([1_000] * 8, {"nagle": 7 * ROUND_MS}),
        ([1_000] * 5 + [6_705] * 4, {"nagle": 8 * ROUND_MS}),
    ],
    ids=["of-one-size", "of-two-sizes", "below-any-buffer", "behind-some-that-were-surely-held"],
)
def test_small_segments_one_in_each_round_trip_were_not_in_the_buffer(tmp_path: Path, sizes: list[int], told_ms: dict[str, float]) -> None:
    """An application that keeps writing soon fills a full segment, which Nagle's algorithm does not delay.

    So if a small segment is sent alone after another small one, the application wrote it after the ACK arrived. Fewer than 2,048 bytes fill
    no send buffer. If such small segments wait for ACKs, Nagle's algorithm is on, and delays larger small segments, too.
    """
    reported = held_ms(tmp_path, flights([[size] for size in sizes], mss=MSS))
    assert {cause: reported.get(cause, 0.0) for cause in ("nagle", "send-buffer", "unknown")} == pytest.approx(
        {"nagle": 0.0, "send-buffer": 0.0, "unknown": 0.0} | told_ms, abs=8 * 0.2
    )


def test_a_larger_flight_before_shows_that_the_buffer_has_room_for_more_than_one_small_segment(tmp_path: Path) -> None:
    """In its first form (RFC 896), Nagle's algorithm also delays the first small segment after full segments."""
    reported = held_ms(tmp_path, flights([[MSS] * 3, *([6_705] for _ in range(8))], mss=MSS))
    assert reported["nagle"] == pytest.approx(8 * ROUND_MS, abs=8 * 0.2)
    assert not {"send-buffer", "unknown"} & reported.keys()


def test_an_answer_before_the_first_piece_leaves_the_second_to_nagles_rule(tmp_path: Path) -> None:
    """Each question has two pieces of equal size. The first piece waited for an answer, not for an ACK."""
    reported = held_ms(tmp_path, exchanges(3_000, 3_000, 6, late_ms=15))
    assert reported["nagle"] == pytest.approx(6 * 15.1, abs=6 * 0.2)
    assert not {"send-buffer", "unknown"} & reported.keys()


@pytest.mark.parametrize(
    ("sizes", "said"),
    [([[1_000]] * 8, "Most likely"), ([[1_176, SEGMENT, SEGMENT]] * 8, "Possibly")],
    ids=["below-any-buffer", "as-much-as-a-buffer"],
)
def test_the_verdict_is_as_sure_of_nagles_rule_alone_as_its_waits_are(tmp_path: Path, sizes: list[list[int]], said: str) -> None:
    """No ACK is delayed, so there is no finding. A flight of 4,096 bytes can fill a send buffer, a flight of 1,000 bytes cannot."""
    reported = verdict.sentence(analyze([packets.capture(tmp_path / "exchange.pcap", flights(sizes))]))
    assert reported.startswith(f"{said} Nagle's algorithm (small segments delayed by one RTT) took ")
