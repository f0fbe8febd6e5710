"""PSH of an old sender: a segment without PSH shows that the send buffer had more data at that time (RFC 9293, 3.9.1.2).

The captures are hand-written, as if recorded at the sender. The RTT is 20 ms. Expected durations follow from the times in each capture. The
sender's SYN offers neither SACK nor timestamps, unless said otherwise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.ledgers import lasted

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

MSS = 1_460
ROUND_MS = 20.1
"""Time between flights: the ACK of a flight arrives after 20 ms and releases the next flight 0.1 ms later."""


def opened(options: str = f"mss {MSS}") -> str:
    """Return the handshake. The first data are sent at 40 ms."""
    return f"""
        0.0000 C > S S  0:0(0)        win 65535 <{options}>
        0.0200 S > C S. 0:0(0) ack 1  win 60000 <{options}>
        0.0200 C > S .         ack 1  win 65535
        """


def flights(sizes: Sequence[Sequence[int]], pushed: Sequence[int], seq: int = 1, from_s: float = 0.04) -> str:
    """Return one flight for each list of segment sizes. The ACK of a flight releases the next one.

    Flights in `pushed` end with PSH.
    """
    lines = []
    for place, flight in enumerate(sizes):
        at_s = from_s + place * ROUND_MS / 1000
        for size in flight:
            seq += size
            lines.append(f"{at_s:.4f} C > S {'P.' if seq in pushed else '.'} {seq - size}:{seq} ack 1")
        lines.append(f"{at_s + 0.02:.4f} S > C . ack {seq} win 60000")
    return "\n".join(lines)


def rest_after_100_ms(first: str, rest: int) -> str:
    """Return a full segment, its ACK after one RTT, and the rest of its write or a new write 80 ms later."""
    return f"""
        0.0400 C > S {first} 1:{1 + MSS}             ack 1
        0.0600 S > C .                               ack {1 + MSS} win 60000
        0.1400 C > S P. {1 + MSS}:{1 + MSS + rest}   ack 1
        0.1600 S > C .                               ack {1 + MSS + rest} win 60000
        """


@pytest.mark.parametrize("rest", [500, MSS], ids=["a timer lets the rest go", "the program fills it"])
def test_a_sender_that_had_more_and_let_it_go_by_itself_kept_it_back(tmp_path: Path, rest: int) -> None:
    reported = lasted(tmp_path, opened() + rest_after_100_ms(".", rest))
    assert reported["nagle"] == pytest.approx(100)
    assert reported.get("application", 0) == pytest.approx(20, abs=1)  # before the first segment


def test_behind_a_segment_with_psh_the_program_had_given_nothing(tmp_path: Path) -> None:
    reported = lasted(tmp_path, opened() + rest_after_100_ms("P.", 500))
    assert "nagle" not in reported
    assert reported["application"] == pytest.approx(100 + 20, abs=1)


def test_a_sender_of_today_leaves_out_psh_for_a_program_that_corks(tmp_path: Path) -> None:
    assert "nagle" not in lasted(tmp_path, opened(f"mss {MSS}, sackOK") + rest_after_100_ms(".", 500))


def test_a_sender_that_never_sets_psh_shows_nothing_by_that(tmp_path: Path) -> None:
    assert "nagle" not in lasted(tmp_path, opened() + rest_after_100_ms(".", 500).replace("P.", "."))


def test_what_was_kept_back_behind_a_full_window_is_the_windows_until_that_opens(tmp_path: Path) -> None:
    """Two segments leave room for 1,176 of 4,096 bytes. The ACK opens the window; 1,300 bytes are sent 80 ms later."""
    reported = lasted(tmp_path, behind_room_for_1176(1300))
    assert reported["receiver-window"] == pytest.approx(20)
    assert reported["nagle"] == pytest.approx(80)


def test_what_was_kept_back_though_it_fills_the_room_that_there_was_waited_for_no_window(tmp_path: Path) -> None:
    """With more than 1,176 bytes in the send buffer, the sender would have sent data when the window opened."""
    reported = lasted(tmp_path, behind_room_for_1176(1176))
    assert "receiver-window" not in reported
    assert reported["nagle"] == pytest.approx(100)


def behind_room_for_1176(last_bytes: int) -> str:
    end = 2921 + last_bytes
    return (
        opened().replace("win 60000", "win 4096")
        + f"""
        0.0400 C > S .  1:{1 + MSS}        ack 1
        0.0400 C > S .  {1 + MSS}:2921     ack 1
        0.0600 S > C .                     ack 2921 win 4096
        0.1400 C > S P. 2921:{end}         ack 1
        0.1600 S > C .                     ack {end} win 4096
        """
    )


def lost_first() -> str:
    """Return four segments that are sent at 40 ms.

    The first segment is lost and retransmitted, and all four are acknowledged at 80.1 ms.
    """
    sent = "\n".join(f"0.0400 C > S . {1 + place * MSS}:{1 + (place + 1) * MSS} ack 1" for place in range(4))
    again = f"0.0601 C > S . 1:{1 + MSS} ack 1\n0.0801 S > C . ack {1 + 4 * MSS} win 60000\n"
    return opened() + sent + "\n" + "0.0600 S > C . ack 1 win 60000\n" * 4 + again


BEHIND = 1 + 4 * MSS


@pytest.mark.parametrize(("flown", "by_nagle_ms"), [(4, ROUND_MS), (3, 0)])
def test_what_the_sender_had_and_flew_before_is_held_by_nagles_rule_behind_a_loss_too(
    tmp_path: Path, flown: int, by_nagle_ms: float
) -> None:
    """After the loss, the client sends a flight of four or three segments, then a flight of three, then 900 bytes.

    If the first flight had four segments, the congestion window had room for three segments and 900 bytes. If the first flight had three,
    the congestion window possibly had no room for the 900 bytes.
    """
    rest = BEHIND + (flown + 3) * MSS + 900
    sizes = [[MSS] * flown, [MSS] * 3, [900, MSS], [MSS]]
    reported = lasted(tmp_path, lost_first() + flights(sizes, [BEHIND + flown * MSS, rest + MSS], seq=BEHIND, from_s=0.0802))
    assert reported.get("nagle", 0) == pytest.approx(by_nagle_ms, abs=0.1)


@pytest.mark.parametrize(("pushed", "by_buffer"), [(True, 4), (False, 0)])
def test_flights_that_empty_the_buffer_again_and_again_are_held_by_it_behind_a_loss_too(
    tmp_path: Path, by_buffer: int, *, pushed: bool
) -> None:
    """Five flights of two segments do not grow. If each flight emptied the send buffer, the buffer has room for two segments."""
    ends = [BEHIND + place * 2 * MSS for place in range(1, 6)] if pushed else [BEHIND + 10 * MSS]
    reported = lasted(tmp_path, lost_first() + flights([[MSS, MSS]] * 5, ends, seq=BEHIND, from_s=0.0802))
    assert reported.get("send-buffer", 0) == pytest.approx(by_buffer * ROUND_MS, abs=0.1)
    assert reported.get("congestion-window", 0) == pytest.approx((4 - by_buffer) * ROUND_MS, abs=0.1)
