"""Senders whose limits change during a connection, senders that differ from Linux, and segments that the path delays.

The captures are hand-written, as if recorded at the client. The RTT is 20 ms unless stated otherwise. Expected durations follow from the
times in each capture.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

from tests.support.ledgers import advised, judged_text, parts
from tests.support.opened import MS, OPENED, causes, lasted, tables

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tcptrace_lab.engine.segments import Tables


def question(start_ms: int, seq: int, answered: int, first: int, second: int, *, waits: bool) -> Iterator[str]:
    """Yield a message in two pieces, and its answer of 10 bytes.

    If `waits` is true, the second piece is sent when the delayed ACK of the first arrives.
    """
    asked, end = start_ms / 1000, seq + first + second
    second_at = asked + 0.0601 if waits else asked + 0.0001
    yield f"{asked:.4f} C > S P. {seq}:{seq + first} ack {answered}"
    if waits:
        yield f"{asked + 0.060:.4f} S > C . ack {seq + first}"
    yield f"{second_at:.4f} C > S P. {seq + first}:{end} ack {answered}"
    yield f"{second_at + 0.020:.4f} S > C P. {answered}:{answered + 10} ack {end}"


def questions(pieces: tuple[int, int], waits: list[bool]) -> str:
    """Return messages in two `pieces`, one message every 100 ms.

    `waits` says for each message whether its second piece waits.
    """
    lines: list[str] = []
    seq, answered = 1, 1
    for place, wait in enumerate(waits):
        lines += question(100 * (place + 1), seq, answered, *pieces, waits=wait)
        seq, answered = seq + sum(pieces), answered + 10
    return "\n".join(lines)


def nagle_ms(found: Tables) -> list[float]:
    return lasted(found, "nagle-delayed-ack")


def confidences(found: Tables) -> dict[str, str]:
    return {each.id: str(each.confidence) for each in advised(found).findings}


def test_stalls_before_nodelay_is_set_are_found_and_none_after(tmp_path: Path) -> None:
    found = tables(tmp_path, questions((100, 100), [True] * 4 + [False] * 4))
    assert nagle_ms(found) == [pytest.approx(60.1)] * 4
    assert confidences(found)["nagle-delayed-ack"] == "proved"


def test_stalls_after_nodelay_is_taken_back_are_found_from_the_fourth_on(tmp_path: Path) -> None:
    """After writes that did not wait, only three consecutive waits show that TCP_NODELAY is off again.

    The cause of these three waits stays unknown.
    """
    found = tables(tmp_path, questions((100, 100), [False] * 3 + [True] * 6))
    assert nagle_ms(found) == [pytest.approx(60.1)] * 3


def test_stalls_of_a_program_that_sets_nodelay_behind_its_second_message_are_found_and_not_proved(tmp_path: Path) -> None:
    """100 bytes in flight fill neither the congestion window nor a send buffer.

    So the cause is Nagle's algorithm. The probability that both waits are chance is (1 in 600)².
    """
    found = tables(tmp_path, questions((100, 100), [True, True, False, False]))
    assert nagle_ms(found) == [pytest.approx(60.1)] * 2
    assert confidences(found)["nagle-delayed-ack"] != "proved"


def test_small_segments_that_leave_a_while_after_the_ack_before_any_passed_are_the_programs(tmp_path: Path) -> None:
    """The second piece is sent 0.9 ms after an ACK that was 60 ms late. By chance, this happens to one of 67 segments."""
    text = questions((100, 100), [True, True, False, False]).replace("0.1601 C", "0.1609 C").replace("0.2601 C", "0.2609 C")
    assert nagle_ms(tables(tmp_path, text)) == []


def test_an_ack_lets_nothing_go_where_small_segments_pass_and_no_window_or_buffer_is_short(tmp_path: Path) -> None:
    """The first message shows TCP_NODELAY. Later, an ACK is delayed, and 0.9 ms after it another piece is sent."""
    later = "\n".join(question(200, 201, 11, 40, 40, waits=True)).replace("0.2601 C", "0.2609 C").replace("0.2801 S", "0.2809 S")
    found = tables(tmp_path, f"{questions((100, 100), [False])}\n{later}")
    assert nagle_ms(found) == []
    assert lasted(found, "delayed-ack") == []
    assert lasted(found, "application")[-1] == pytest.approx(79.9 + 60.9, abs=0.1)  # between the messages and between the pieces


def test_a_bsd_sender_holds_a_small_segment_behind_a_full_one(tmp_path: Path) -> None:
    """Each message has 1,460 + 100 bytes.

    Linux sends the 100 bytes at once (Minshall). BSD delays them while any data are unacknowledged (RFC 896).
    """
    found = tables(tmp_path, questions((1460, 100), [True] * 3))
    assert nagle_ms(found) == [pytest.approx(60.1)] * 3
    assert confidences(found)["nagle-delayed-ack"] == "proved"


def test_two_small_segments_behind_full_ones_prove_nothing(tmp_path: Path) -> None:
    """Twice, a small segment waits behind a full one. Nagle's algorithm or a congestion window of one segment can be the cause."""
    assert nagle_ms(tables(tmp_path, questions((1460, 100), [True] * 2))) == []


def test_a_sender_that_once_let_a_small_segment_pass_a_full_one_is_no_bsd(tmp_path: Path) -> None:
    text = "0.0400 C > S P. 1:1461 ack 1\n0.0450 C > S P. 1461:1561 ack 1\n0.0800 S > C P. 1:11 ack 1561\n"
    shifted = questions((1460, 100), [True] * 3)
    found = tables(tmp_path, text + _moved(shifted, 1560, 10))
    assert nagle_ms(found) == []


def _moved(text: str, client: int, server: int) -> str:
    """Add `client` to all sequence numbers of the client in an exchange, and `server` to all sequence numbers of the server."""
    lines = []
    for line in text.splitlines():
        words = line.split()
        own, other = (client, server) if words[1] == "C" else (server, client)
        if ":" in words[5]:
            first, last = map(int, words[5].split(":"))
            words[5] = f"{first + own}:{last + own}"
        words[-1] = str(int(words[-1]) + other)
        lines.append(" ".join(words))
    return "\n".join(lines)


def rounds(start_ms: float, seq: int, flight: int, count: int, *, window: int) -> Iterator[str]:
    """Yield `count` flights of `flight` full segments. The ACK of each flight releases the next one."""
    for place in range(count):
        at = (start_ms + 20.1 * place) / 1000
        for _ in range(flight):
            yield f"{at:.4f} C > S . {seq}:{seq + 1460} ack 1"
            seq += 1460
        yield f"{at + 0.0200:.4f} S > C . ack {seq} win {window}"


def test_a_window_and_then_a_send_buffer_are_distinguished(tmp_path: Path) -> None:
    """Eight flights of four segments fill a window of 46 << 7 = 5888 bytes.

    Then the window is ten times as large, and eight flights have three segments each.
    """
    first = list(rounds(40, 1, 4, 8, window=46))
    first[-1] = first[-1].replace("win 46", "win 460")
    second = rounds(40 + 20.1 * 8, 1 + 8 * 4 * 1460, 3, 8, window=460)
    opening = "0.0300 S > C . ack 1 win 46\n"
    reported = dict.fromkeys(("receiver-window", "send-buffer"), 0.0)
    for name, ms in causes(tables(tmp_path, opening + "\n".join([*first, *second]))):
        reported[name] = reported.get(name, 0.0) + ms
    assert reported["receiver-window"] == pytest.approx(20.1 * 8, abs=0.2)
    assert reported["send-buffer"] == pytest.approx(20.1 * 7, abs=0.2)


def test_a_segment_that_takes_the_last_of_the_window_waited_for_more(tmp_path: Path) -> None:
    """The window has room for 512 bytes.

    A sender sends so little only when its persist timer expires: here after 210 ms (RFC 9293, 3.8.6.2.1).
    """
    text = """
        0.0300 S > C . ack 1 win 23
        0.0400 C > S . 1:1461 ack 1
        0.0400 C > S P. 1461:2445 ack 1
        0.0600 S > C . ack 2445 win 4
        0.2500 C > S P. 2445:2957 ack 1
        0.2700 S > C . ack 2957 win 460
    """
    assert lasted(tables(tmp_path, text), "receiver-window") == [pytest.approx(210.0)]


SEEN_AT_SERVER = """
    0.0000 C > S S  0:0(0)        win 64240 <mss 1460, sackOK, TS val 1000 ecr 0, wscale 7>
    0.0001 S > C S. 0:0(0) ack 1  win 65160 <mss 1460, sackOK, TS val 5000 ecr 1000, wscale 7>
    0.0201 C > S .          ack 1  win 502 <TS val 1020 ecr 5000>
"""


def test_a_departure_that_the_path_held_up_is_the_networks_by_the_senders_clock(tmp_path: Path) -> None:
    """By the sender's clock, it sends a small message every 50 ms, but the fifth one arrives 35 ms late.

    In the wait before the fifth message, 50 ms belong to the application and 35 ms to the path.
    """
    lines = []
    for place in range(8):
        at, tsval, seq = 0.100 + 0.050 * place + (0.035 if place == 4 else 0.0), 1100 + 50 * place, 1 + 100 * place
        echo = 5000 + 50 * (place if place != 5 else 4)  # the ACK of the late message had not reached the sender when it sent the next one
        lines.append(f"{at:.4f} C > S P. {seq}:{seq + 100} ack 1 <TS val {tsval} ecr {echo}>")
        lines.append(f"{at + 0.0001:.4f} S > C . ack {seq + 100} <TS val {5050 + 50 * place} ecr {tsval}>")
    found = judged_text(tmp_path, SEEN_AT_SERVER + "\n".join(lines))
    (network, network_ns), (rest, rest_ns) = parts(found, 12)
    assert network_ns + rest_ns == 85 * MS
    assert (network, rest) == ("network", "application")
    assert network_ns == pytest.approx(35 * MS, abs=3 * MS)
    assert rest_ns == pytest.approx(50 * MS, abs=3 * MS)


def test_a_late_ack_of_one_segment_on_a_short_path_is_no_queue(tmp_path: Path) -> None:
    """Each write is one segment, released by an ACK that arrives after 200 ms; the RTT is 0.2 ms."""
    text = "\n".join(
        f"{0.1 + 0.2002 * place:.4f} C > S . {1 + 1460 * place}:{1461 + 1460 * place} ack 1\n"
        f"{0.1 + 0.2002 * place + 0.2:.4f} S > C . ack {1461 + 1460 * place}"
        for place in range(4)
    )
    short = OPENED.replace("0.020", "0.0002")
    found = judged_text(tmp_path, short + text)
    assert sum(lasted(found, "delayed-ack")) == pytest.approx(3 * 200.2, abs=0.5)
    assert MS * max(lasted(found, "network")) < 2 * MS


def test_late_acks_of_small_writes_at_a_steady_pace_are_no_queue(tmp_path: Path) -> None:
    """The application has set TCP_NODELAY and writes 100 bytes every 50 ms. An ACK arrives 87 ms after every second write.

    At most the first RTT of a wait has the cause network. After it, the sender waits for the application's next write.
    """
    lines = ["0.1000 C > S P. 1:101 ack 1", "0.1201 S > C . ack 101"]
    for place in range(3, 23):
        lines.append(f"{0.05 * place:.4f} C > S P. {100 * place - 199}:{100 * place - 99} ack 1")
        if place % 2 == 0:
            lines.append(f"{0.05 * place + 0.037:.4f} S > C . ack {100 * place - 99}")
    found = tables(tmp_path, "\n".join(lines))
    assert sum(lasted(found, "network")) <= 21 * 22
    assert sum(lasted(found, "application")) >= 20 * 27
    assert {name for name, _ in causes(found)} <= {"handshake", "network", "application", "unknown"}
    assert lasted(found, "unknown") == [pytest.approx(37 - 20)], "the last, which the capture's end cuts off"


def test_without_an_ack_for_a_round_trip_no_queue_held_the_sender(tmp_path: Path) -> None:
    """An ACK arrives 60 ms after three segments, which looks like a queue.

    Later, the sender waits 100 ms before its last segment, and no ACK of the previous three segments arrives. A queue explains only 0.1 ms
    of this wait, the time of one segment on the line. Nothing shows what delayed the sender for the rest.
    """
    found = tables(
        tmp_path,
        """
        0.0400 C > S .  1:1461      ack 1
        0.0401 C > S .  1461:2921   ack 1
        0.0402 C > S P. 2921:4381   ack 1
        0.1002 S > C .  ack 4381
        0.2000 C > S .  4381:5841   ack 1
        0.2001 C > S .  5841:7301   ack 1
        0.2002 C > S P. 7301:8761   ack 1
        0.3002 C > S P. 8761:10221  ack 1
        0.3502 S > C .  ack 10221
        """,
    )
    *before, (rest, rest_ns) = parts(found, 11)
    assert sum(ns for _, ns in before) + rest_ns == 100 * MS
    assert {cause for cause, _ in before} == {"network"}
    assert rest == "unknown"
    assert rest_ns == pytest.approx((100 - 0.1) * MS, abs=0.05 * MS)


def test_full_segments_of_a_sender_that_rounds_its_mss_do_not_show_that_nagle_is_off(tmp_path: Path) -> None:
    """IRIX rounds an MSS of 4,312 down to 4,096. So frame 7 is full, and Nagle's algorithm does not delay it.

    The 2,500 bytes of frame 6 are still in flight at that time. Three times, a small segment waits for the ACK of 8,192 bytes.
    """
    lines = [
        "0.0000 C > S S  0:0(0)       win 32768 <mss 4312>",
        "0.0200 S > C S. 0:0(0) ack 1 win 32768 <mss 4312>",
        "0.0200 C > S .         ack 1 win 32768",
        "0.0400 C > S P. 1:501        ack 1",
        "0.0600 S > C .  ack 501",
        "0.0600 C > S P. 501:3001     ack 1",
        "0.0610 C > S .  3001:7097    ack 1",
        "0.0620 C > S P. 7097:11193   ack 1",
        "0.0830 S > C .  ack 11193",
    ]
    for place in range(3):
        at, seq = 0.2 + 0.2 * place, 11193 + place * (2 * 4096 + 100)
        lines += [
            f"{at:.4f} C > S .  {seq}:{seq + 4096} ack 1",
            f"{at + 0.001:.4f} C > S .  {seq + 4096}:{seq + 8192} ack 1",
            f"{at + 0.022:.4f} S > C .  ack {seq + 8192}",
            f"{at + 0.022:.4f} C > S P. {seq + 8192}:{seq + 8292} ack 1",
            f"{at + 0.042:.4f} S > C .  ack {seq + 8292}",
        ]
    found = judged_text(tmp_path, "\n".join(lines))
    held = found.ledger.filter(pl.col("cause") == "nagle").collect()
    assert held["payload_bytes"].to_list() == [2500, 100, 100, 100]
    assert sum(lasted(found, "nagle")) == pytest.approx(20 + 3 * 21, abs=4 * 1.1)  # minus the serialization time of 1 ms


@pytest.mark.parametrize(("more", "cause"), [(3, "delayed-ack"), (2, "nagle-delayed-ack")])
def test_three_at_a_time_show_what_a_sender_rounds_its_mss_to_and_two_that_a_close_lets_go_do_not(
    tmp_path: Path, more: int, cause: str
) -> None:
    """The MSS is 4,312. Four segments of 4,096 bytes each wait 100 ms for an ACK.

    If three segments of 4,096 bytes are sent together afterwards, 4,096 is the size of a full segment. Then the waits show a congestion
    window of one segment. If only two are sent together, the second with a FIN, 4,096 bytes are possibly a small segment.
    """
    lines = ["0.000 C > S S 0:0(0) win 32768 <mss 4312>", "0.020 S > C S. 0:0(0) ack 1 win 32768 <mss 4312>"]
    lines += ["0.020 C > S . ack 1 win 32768"]
    for place in range(4):
        lines += [f"{40 + 100 * place}ms C > S . {1 + 4096 * place}:{4097 + 4096 * place} ack 1"]
        lines += [f"{140 + 100 * place}ms S > C . ack {4097 + 4096 * place}"]
    for place in range(4, 4 + more):
        flags = "." if place < 3 + more else "FP."
        lines += [f"{436 + place}ms C > S {flags} {1 + 4096 * place}:{4097 + 4096 * place} ack 1"]
    lines += [f"0.480 S > C . ack {4098 + 4096 * (3 + more)}"]
    found = judged_text(tmp_path, "\n".join(lines))
    assert sum(lasted(found, cause)) == pytest.approx(4 * 100, abs=4 * 1.1)  # minus the serialization time of 1 ms


@pytest.mark.parametrize(("options", "nagle"), [("", [100, 100, 100, 500]), (", sackOK", [100, 100, 100])])
def test_an_old_stack_that_follows_nagles_rule_holds_a_tail_behind_full_segments_too(
    tmp_path: Path, options: str, nagle: list[int]
) -> None:
    """Three small segments wait for the ACK of small ones. Then 500 bytes wait for the ACK of a full segment.

    Minshall's variant, which is younger than SACK, would send these 500 bytes at once.
    """
    lines = [f"0.000 C > S S 0:0(0) win 32768 <mss 1460{options}>", f"0.020 S > C S. 0:0(0) ack 1 win 32768 <mss 1460{options}>"]
    lines += ["0.020 C > S . ack 1 win 32768", "0.100 C > S P. 1:41 ack 1"]
    for place in range(1, 4):
        at, seq = f"{0.1 + 0.02 * place:.3f}", 100 * place - 59
        lines += [f"{at} S > C . ack {seq}", f"{at} C > S P. {seq}:{seq + 100} ack 1"]
    lines += ["0.180 S > C . ack 341", "0.300 C > S . 341:1801 ack 1", "0.320 S > C . ack 1801", "0.320 C > S P. 1801:2301 ack 1"]
    lines += ["0.340 S > C . ack 2301"]
    found = judged_text(tmp_path, "\n".join(lines))
    held = found.ledger.filter(pl.col("cause") == "nagle").collect()
    assert held["payload_bytes"].to_list() == nagle
