"""Exchanges whose cause is easily mistaken, each with a similar one whose cause is different. All are written by hand.

Expected durations follow from the times in each exchange.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.ledgers import lasted

if TYPE_CHECKING:
    from pathlib import Path

MSS = 1_460
TURNS = 20


def opened(round_trip_ms: float, options: str = f"mss {MSS}, wscale 7") -> str:
    return f"""
        0ms C > S S  0:0(0)        win 65535 <{options}>
        {round_trip_ms}ms S > C S. 0:0(0) ack 1  win 65535 <{options}>
        {round_trip_ms}.01ms C > S . ack 1 win 4000
        """


def at_time(lines: list[tuple[float, str]]) -> str:
    return "\n".join(f"{at_ms:.3f}ms {what}" for at_ms, what in sorted(lines))


def written(at_ms: float, first: int, size: int, ack: int = 1) -> list[tuple[float, str]]:
    """Return the segments of one write, 10 µs apart. The last one has PSH."""
    cuts = [*range(first, first + size, MSS), first + size]
    flags = ["."] * (len(cuts) - 2) + ["P."]
    return [
        (at_ms + 0.01 * place, f"C > S {flag} {begin}:{end} ack {ack}")
        for place, (flag, begin, end) in enumerate(zip(flags, cuts, cuts[1:], strict=False))
    ]


def replied(at_ms: float, first: int, size: int, ack: int) -> tuple[float, str]:
    return at_ms, f"S > C P. {first}:{first + size} ack {ack} win 4000"


@pytest.mark.parametrize("size", [200, 4_700])
@pytest.mark.parametrize("round_trip_ms", [16, 24, 90])
def test_writes_on_a_clock_are_the_applications_and_not_the_paths_or_the_buffers(tmp_path: Path, round_trip_ms: int, size: int) -> None:
    """An application writes every 30 ms, and does not wait for ACKs.

    With an RTT of 90 ms, small segments are sent while others are unacknowledged.
    """
    lines = []
    for turn in range(TURNS):
        at_ms = 200 + 30 * turn
        lines += written(at_ms, 1 + size * turn, size)
        lines.append((at_ms + round_trip_ms + 0.1, f"S > C . ack {1 + size * (turn + 1)} win 4000"))
    reported = lasted(tmp_path, opened(round_trip_ms) + at_time(lines))
    assert reported["application"] == pytest.approx(200 - round_trip_ms + 30 * (TURNS - 1), abs=0.1 * TURNS)


@pytest.mark.parametrize("replies", [False, True])
def test_a_pipeline_that_awaits_its_replies_fills_no_send_buffer(tmp_path: Path, *, replies: bool) -> None:
    """Each batch has 67,160 bytes in 46 segments and is acknowledged after 20.5 ms. The next batch is sent 0.1 ms later.

    Without replies, each batch of equal size begins just after an ACK. So the send buffer had no room before that ACK.
    """
    size, lines = 46 * MSS, []
    for turn in range(TURNS):
        at_ms, first, end = 100 + 20.6 * turn, 1 + size * turn, 1 + size * (turn + 1)
        lines += written(at_ms, first, size, 1 + 500 * turn if replies else 1)
        lines.append(replied(at_ms + 20.5, 1 + 500 * turn, 500, end) if replies else (at_ms + 20.5, f"S > C . ack {end} win 4000"))
    reported = lasted(tmp_path, opened(20) + at_time(lines))
    waited_ms = 20.6 * (TURNS - 1) - 0.45 * TURNS  # a batch takes 0.45 ms; slow start or the window can limit the first two
    assert reported.get("send-buffer", 0) == pytest.approx(0 if replies else waited_ms, abs=42)
    assert reported["network"] == pytest.approx(20 * TURNS if replies else 20, abs=21)


@pytest.mark.parametrize("thought_ms", [0.1, 7])
def test_a_request_of_several_segments_fills_no_send_buffer(tmp_path: Path, thought_ms: float) -> None:
    """Each request has 6,000 bytes, and its reply arrives after 20 ms. The next request is sent `thought_ms` later."""
    size, lines = 6_000, []
    for turn in range(TURNS):
        at_ms = 100 + (20.5 + thought_ms) * turn
        lines += written(at_ms, 1 + size * turn, size, 1 + 100 * turn)
        lines.append(replied(at_ms + 20.5, 1 + 100 * turn, 100, 1 + size * (turn + 1)))
    reported = lasted(tmp_path, opened(20) + at_time(lines))
    assert reported["application"] == pytest.approx(80 + thought_ms * (TURNS - 1), abs=TURNS * 0.1)
    assert "send-buffer" not in reported


def beside_another(*, queued: bool) -> str:
    """Return two connections, captured at their receiver. Ten segments of one and ten of the other arrive in turn, 1 ms apart.

    The RTT is 4 ms without a queue. Timestamps count milliseconds from 1000. If `queued` is true, the timestamps of a segment show that it
    was sent 4 ms after the ACK of the previous ten segments. Otherwise, the timestamps show that the segment was sent 2 ms before it
    arrived.
    """
    lines: list[tuple[float, str]] = []
    for begun_ms, sender, receiver in ((0, "C", "S"), (30, "D", "T")):
        options = f"mss {MSS}, sackOK, wscale 7"
        lines += [
            (begun_ms, f"{sender} > {receiver} S 0:0(0) win 65535 <{options}, TS val {998 + begun_ms} ecr 0>"),
            (
                begun_ms + 0.05,
                f"{receiver} > {sender} S. 0:0(0) ack 1 win 65535 <{options}, TS val {1000 + begun_ms} ecr {998 + begun_ms}>",
            ),
            (begun_ms + 4, f"{sender} > {receiver} . ack 1 win 4000 <TS val {1002 + begun_ms} ecr {1000 + begun_ms}>"),
        ]
        for number in range(10 * TURNS):
            turn, place = divmod(number, 10)
            at_ms, first = 100 + 20 * turn + place + (10 if sender == "D" else 0), 1 + MSS * number
            sent = 998 + at_ms - (0 if not queued else 16 if turn else place)
            echo = 1000 + max(at_ms - (20 if queued else 11), begun_ms)
            lines.append((at_ms, f"{sender} > {receiver} . {first}:{first + MSS} ack 1 win 4000 <TS val {sent} ecr {echo}>"))
            lines.append((at_ms + 0.05, f"{receiver} > {sender} . ack {first + MSS} win 4000 <TS val {1000 + at_ms} ecr {sent}>"))
    return "host D 10.0.0.1:40001 isn 9000\nhost T 10.0.0.2:80 isn 7000\n" + at_time(lines)


@pytest.mark.parametrize("queued", [False, True])
def test_at_the_receiver_a_gap_that_holds_the_data_of_another_connection_is_the_paths(tmp_path: Path, *, queued: bool) -> None:
    reported = lasted(tmp_path, beside_another(queued=queued))
    assert reported["network"] == pytest.approx(20 * TURNS if queued else 0, abs=20)
