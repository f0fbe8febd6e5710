"""Rounds that only the delayed-ACK timer ends are reported as a throughput deadlock, with the bytes that the send buffer lacks.

The first exchange is a published deadlock over ATM (Comer & Lin), with a send buffer of 16 KB and a receive buffer of 24 KB. By
calculation, 8,192 bytes per 200 ms are 0.328 Mb/s; the authors measured 0.322. A full segment has 9,148 bytes. The receive buffer and the
largest window have 24,576 bytes. The receiver sends an ACK after 8,602 bytes, because 35% of its buffer is less than two full segments. The
sender sends again when 9,148 bytes are queued, because a full segment is less than half of the window. The send buffer contains 8,192 bytes
in flight and 8,192 bytes queued. These 16,384 bytes are 1,366 less than 8,602 + 9,148 = 17,750.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tcptrace_lab.findings import deadlock
from tests.support import packets
from tests.support.ledgers import advised, judged, judged_text
from tests.support.places import CAPTURES

if TYPE_CHECKING:
    from pathlib import Path

    from tcptrace_lab.findings.finding import Finding


LATE = {"nagle-delayed-ack", "delayed-ack", "throughput-deadlock"}


def opened(mss: int, window: int, rtt_ms: int = 1) -> str:
    return f"""
        0.0000 C > S  S   0:0(0)        win 24576 <mss {mss}>
        {rtt_ms / 1000} S > C  S.  0:0(0) ack 1  win {window} <mss {mss}>
        +0.1ms C > S  .          ack 1  win 24576
        """


def rounds(sizes: list[list[int]], window: int, lag_ms: int = 200, answer: int = 0, rtt_ms: int = 1) -> str:
    """Return rounds of segments with these sizes.

    Each round has one ACK, `lag_ms` later (in the first round, one RTT later). The next round is sent 0.1 ms after this ACK.
    """
    text, sent, got, now_us = "", 1, 1, 1000 + 1000 * rtt_ms
    for number, burst in enumerate(sizes):
        for size in burst:
            text += f"{now_us / 1e6:.6f} C > S P. {sent}:{sent + size} ack {got} win 24576\n"
            sent += size
        now_us += 1000 * (lag_ms if number else rtt_ms)
        text += f"{now_us / 1e6:.6f} S > C . {got}:{got} ack {sent} win {window}\n"
        if answer and number:
            text += f"{(now_us + 50) / 1e6:.6f} S > C P. {got}:{got + answer} ack {sent} win {window}\n"
            got += answer
        now_us += 100
    return text


def judge(path: Path) -> tuple[Finding, ...]:
    return advised(judged(path)).findings


def late(tmp_path: Path, text: str) -> list[Finding]:
    """Return the findings on late ACKs in an exchange."""
    return [finding for finding in judge(packets.capture(tmp_path / "exchange.pcap", text)) if finding.id in LATE]


def test_the_published_lock_of_16_and_24_kilobytes(tmp_path: Path) -> None:
    """Frame 4 is acknowledged at once, which shows the RTT. Six of the next seven segments wait 200.1 ms each."""
    (lock,) = late(tmp_path, opened(9148, 24576) + rounds([[8192]] * 8, 24576))
    assert (lock.id, str(lock.confidence), str(lock.severity), lock.from_client) == ("throughput-deadlock", "proved", "high", True)
    assert lock.cost_ns == 6 * 200_100_000
    assert "8,602 bytes" in lock.mechanism
    assert "328 kb/s" in lock.mechanism  # 8,192 bytes (65,536 bits) per 200.1 ms
    assert "17,750" in lock.mechanism
    assert "to at least 17,750 bytes, which is at most 1,366 more" in lock.remedy[0]
    assert "29,491 bytes are always enough" in lock.remedy[0]  # 3 × 9,148, plus 2,047 that 4.4BSD's socket can leave unused
    assert lock.remedy[1].startswith("set TCP_NODELAY at the sender")


def test_a_lock_in_which_no_more_was_ever_in_flight_may_be_that_of_a_full_buffer(tmp_path: Path) -> None:
    """A sender with TCP_NODELAY and a send buffer of 8,192 bytes would send the frames of this capture, too.

    Its send buffer would be 9,558 bytes too small (17,750 − 8,192).
    """
    (lock,) = late(tmp_path, opened(9148, 24576) + rounds([[8192]] * 8, 24576))
    assert "Either the bytes in flight fill the send buffer, or the sender delays 8,192 queued bytes" in lock.mechanism
    assert "or 9,558 more if the bytes in flight fill the buffer" in lock.remedy[0]
    assert lock.remedy[1].endswith("only if the send buffer has room for more than the bytes in flight")


def test_a_lock_of_a_sender_that_had_more_in_flight_before_is_nagles(tmp_path: Path) -> None:
    """Three full segments in flight, 27,444 bytes, show that 8,192 bytes do not fill the send buffer."""
    (lock,) = late(tmp_path, opened(9148, 65535) + rounds([[9148] * 3, *[[8192]] * 8], 65535))
    assert "Either" not in lock.mechanism
    assert lock.remedy[1].startswith("set TCP_NODELAY at the sender; alone it may not be enough, because an ACK needs 18,296 bytes")
    assert lock.remedy[1].endswith("the send buffer may be as small as 16,384 bytes")


def test_the_frames_of_a_lock_are_the_ends_of_its_waits_and_their_late_acks(tmp_path: Path) -> None:
    """Frames 4, 6, 8 and so on carry data; the frames between them are ACKs.

    The first wait for a late ACK lasts from frame 6 to frame 8.
    """
    (lock,) = late(tmp_path, opened(9148, 24576) + rounds([[8192]] * 8, 24576))
    assert lock.evidence_frames == tuple(range(6, 19))


def test_a_buffer_below_what_lets_an_ack_go_is_not_cured_by_nodelay_alone(tmp_path: Path) -> None:
    """With a receive buffer of 49,152 bytes, the receiver waits for 17,204 bytes (35%), and the sender for 9,148 queued bytes.

    The send buffer is 17,204 + 9,148 − 16,384 = 9,968 bytes too small. Its 16,384 bytes are even less than the 17,204 bytes for which the
    receiver waits.
    """
    (lock,) = late(tmp_path, opened(9148, 49152) + rounds([[8192]] * 8, 49152))
    assert lock.id == "throughput-deadlock"
    assert "which is at most 9,968 more" in lock.remedy[0]
    assert "an ACK needs 17,204 bytes in flight, but the send buffer may be as small as 16,384 bytes" in lock.remedy[1]


def test_a_full_buffer_locks_without_nagle(tmp_path: Path) -> None:
    """Two segments of 9,148 and 7,236 bytes fill the send buffer of 16,384 bytes.

    The send buffer is 820 bytes smaller than the 17,204 bytes that the receiver waits for. No small segment waits, so the deadlock is not
    proved. An ACK arrives after 122 ms, 22 ms more than the RTT. These 22 ms are not taken for queueing.
    """
    (lock,) = late(tmp_path, opened(9148, 49152, 100) + rounds([[9148, 7236]] * 8, 49152, lag_ms=122, rtt_ms=100))
    assert (lock.id, str(lock.confidence)) == ("throughput-deadlock", "consistent")
    assert "to at least 17,204 bytes, which is at most 820 more" in lock.remedy[0]
    assert not any("NODELAY" in remedy for remedy in lock.remedy)


def test_two_rounds_are_no_lock(tmp_path: Path) -> None:
    found = late(tmp_path, opened(9148, 24576) + rounds([[8192]] * 4, 24576))
    assert {finding.id for finding in found} == {"nagle-delayed-ack"}


def test_rounds_of_different_size_are_no_lock(tmp_path: Path) -> None:
    found = late(tmp_path, opened(9148, 24576) + rounds([[8192 - 7 * number] for number in range(8)], 24576))
    assert {finding.id for finding in found} == {"nagle-delayed-ack"}


def test_as_many_bytes_as_let_an_ack_go_are_no_lock(tmp_path: Path) -> None:
    """By 4.4BSD's rule, a receiver sends an ACK after half a buffer of data.

    Half of the buffer of 16,384 bytes is in flight, so such a receiver would not have waited.
    """
    assert "throughput-deadlock" not in {finding.id for finding in late(tmp_path, opened(9148, 16384) + rounds([[8192]] * 8, 16384))}


def test_questions_and_answers_in_pieces_are_no_lock(tmp_path: Path) -> None:
    """Each exchange is write, write, read. The second write waits for the ACK of the first, and the answer starts the next exchange."""
    text, sent, got, now = opened(1460, 24576), 1, 1, 0.002
    for number in range(6):
        text += f"{now:.6f} C > S P. {sent}:{sent + 100} ack {got} win 24576\n"
        now += 0.040 if number else 0.001
        text += f"{now:.6f} S > C . ack {sent + 100} win 24576\n"
        text += f"{now + 0.0001:.6f} C > S P. {sent + 100}:{sent + 200} ack {got} win 24576\n"
        text += f"{now + 0.0011:.6f} S > C P. {got}:{got + 50} ack {sent + 200} win 24576\n"
        sent, got, now = sent + 200, got + 50, now + 0.0013
    assert {finding.id for finding in late(tmp_path, text)} == {"nagle-delayed-ack"}


def test_data_of_the_other_side_between_the_rounds_is_no_lock(tmp_path: Path) -> None:
    found = judged_text(tmp_path, opened(9148, 24576) + rounds([[8192]] * 8, 24576, answer=10))
    assert not deadlock.locks(found.details([0]).locks)


@pytest.mark.parametrize("path", sorted(CAPTURES.glob("*.pcap*")), ids=lambda path: path.name)
def test_no_transfer_of_this_kernel_is_locked(path: Path) -> None:
    """No capture has a deadlock. The captures have bulk transfers, messages in pieces, losses and slow readers."""
    found = judged(path)
    conns = found.connections.select("conn").collect()["conn"].to_list()
    assert not deadlock.locks(found.details(conns).locks)
