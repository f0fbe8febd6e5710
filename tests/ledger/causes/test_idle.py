"""The cause "idle": a long silence in which nobody expects data does not count as slowness.

The captures are hand-written, as if recorded at the client.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.ledgers import lasted, lasted_of_server

if TYPE_CHECKING:
    from pathlib import Path

OPENED = """
0      C > S  S   0:0(0)         win 65535 <mss 1460>
+20ms  S > C  S.  0:0(0)   ack 1 win 65535 <mss 1460>
+0ms   C > S  .            ack 1 win 65535
"""


def page(items: int, think_ms: float = 30) -> str:
    """Return `items` requests of a page, one after the other. Each request has 200 bytes, each answer 1,000.

    The server needs 5 ms per answer.
    """
    lines = []
    for _ in range(items):
        lines += [f"+{think_ms}ms C > S P. @ask", "+25ms S > C P. @answer", "+0ms C > S . @ack"]
    return "\n".join(lines)


def written(text: str) -> str:
    """Return the text with stream offsets filled in. Each request has 200 bytes, each answer 1,000."""
    asked = answered = 1
    lines = []
    for line in text.splitlines():
        if "@ask" in line:
            lines.append(line.replace("@ask", f"{asked}:{asked + 200} ack {answered}"))
            asked += 200
        elif "@answer" in line:
            lines.append(line.replace("@answer", f"{answered}:{answered + 1000} ack {asked}"))
            answered += 1000
        else:
            lines.append(line.replace("@ack", f"ack {answered}").replace("@end", f"ack {asked}"))
    return "\n".join(lines)


def test_a_pause_of_25_s_between_two_page_loads_is_idle_in_both_directions(tmp_path: Path) -> None:
    text = written(OPENED + page(5) + "\n+25s C > S . @ack\n" + page(5))
    client, server = lasted(tmp_path, text), lasted_of_server(tmp_path, text)
    assert client["idle"] == pytest.approx(25_030, abs=25), "the pause, and what the program thinks behind it"
    assert server["idle"] == pytest.approx(25_030, abs=25)
    assert client["application"] == pytest.approx(8 * 30 + 30, abs=35), "the usual pauses stay the program's"


def test_a_finished_transfer_that_is_kept_open_for_a_minute_is_idle_until_the_close(tmp_path: Path) -> None:
    text = written(OPENED + page(3) + "\n+60s C > S F. @ack\n+20ms S > C F. @end\n+0ms C > S . @ack\n")
    assert lasted(tmp_path, text)["idle"] == pytest.approx(60_000, abs=25)


def test_keepalives_alone_make_no_work_of_a_silence(tmp_path: Path) -> None:
    """Without keepalives, a silence is idle time if it is longer than ten usual pauses: here, longer than 30 s.

    With a keepalive every 12 s, a silence of 25 s is idle time, too.
    """
    probes = "\n+12s C > S . 2200:2201(1)\n+20ms S > C . ack 2201" * 2
    text = written(
        OPENED
        + page(10, 3000)
        + "\n+500ms C > S P. @ask\n+25ms S > C P. @answer\n+0ms C > S . @ack"
        + probes
        + "\n+1s C > S P. @ask\n+20ms S > C P. @answer"
    )
    assert lasted(tmp_path, text)["idle"] == pytest.approx(25_040, abs=60)
    without = text.replace(probes, "\n+24040ms C > S . @ack")
    assert "idle" not in lasted(tmp_path, written(without)), "a silence of eight usual pauses, without keepalives, is the program's"


def test_a_producer_at_5_ms_intervals_is_not_idle(tmp_path: Path) -> None:
    pieces = "\n".join(f"+5ms C > S P. {1 + 100 * at}:{101 + 100 * at} ack 1\n+2ms S > C . ack {101 + 100 * at}" for at in range(400))
    reported = lasted(tmp_path, OPENED.replace("+20ms", "+2ms") + pieces)
    assert "idle" not in reported
    assert reported["application"] > 400 * 4


def test_a_program_that_asks_every_30_s_has_a_rhythm(tmp_path: Path) -> None:
    reported = lasted(tmp_path, written(OPENED + page(6, 30_000)))
    assert "idle" not in reported
    assert reported["application"] == pytest.approx(180_000, abs=200)


def test_an_answer_after_25_s_is_the_servers_slowness(tmp_path: Path) -> None:
    text = written(OPENED + page(5) + "\n+30ms C > S P. @ask\n+20ms S > C . @end\n+25s S > C P. @answer\n+0ms C > S . @ack\n" + page(2))
    client, server = lasted(tmp_path, text), lasted_of_server(tmp_path, text)
    assert "idle" not in client
    assert "idle" not in server
    assert server["application"] == pytest.approx(25_000, abs=80)
    assert client["peer"] == pytest.approx(25_000, abs=80)


def test_a_sender_that_stops_in_the_middle_of_its_data_is_not_idle(tmp_path: Path) -> None:
    """The last segments are full and have no PSH, so the sender's message is not complete."""
    full = "\n".join(
        f"+{20 if at else 1}ms C > S . {1 + 1460 * at}:{1461 + 1460 * at} ack 1\n+20ms S > C . ack {1461 + 1460 * at}" for at in range(20)
    )
    text = OPENED + full + "\n+25s C > S P. 29201:29301 ack 1\n+20ms S > C . ack 29301"
    assert "idle" not in lasted(tmp_path, text)
