"""The RTT of a single message includes its time on the lines of the path. FINs that directly follow data show this time.

Each message has 1,000 bytes. The path has 10 Mb/s Ethernet lines and 20 ms of delay. A SYN takes 84 bytes on the line (67.2 µs), a message
1,078 (862.4 µs). The applications take no time. The captures are hand-written, as if recorded at the client.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.ledgers import lasted

if TYPE_CHECKING:
    from pathlib import Path

SYN_US, MESSAGE_US, PATH_US = 67.2, 862.4, 20_000
EXCHANGES = 5
LONGER_MS = 2 * (MESSAGE_US - SYN_US) / 1000
"""How much longer an exchange of messages takes than the exchange of SYNs."""


def exchanges() -> tuple[str, float, int]:
    """Return exchanges in which each question is sent as soon as the previous answer has arrived.

    Also return the time of the last answer (µs) and the bytes per direction.
    """
    at_us = PATH_US + 2 * SYN_US
    lines = [
        "0 C > S S 0:0(0) win 65535 <mss 1460>",
        f"{at_us:.1f}us S > C S. 0:0(0) ack 1 win 65535 <mss 1460>",
        f"{at_us:.1f}us C > S . ack 1 win 65535",
    ]
    for place in range(EXCHANGES):
        first, end = 1 + place * 1000, 1001 + place * 1000
        lines.append(f"{at_us:.1f}us C > S P. {first}:{end} ack {first}")
        at_us += PATH_US + 2 * MESSAGE_US
        lines.append(f"{at_us:.1f}us S > C P. {first}:{end} ack {end}")
    return "\n".join(lines), at_us, 1 + EXCHANGES * 1000


@pytest.mark.parametrize(("behind_us", "by_peer"), [(SYN_US, 0), (1_000, EXCHANGES)])
def test_the_fin_behind_the_last_answer_shows_what_the_lines_took_of_each_exchange(tmp_path: Path, behind_us: float, by_peer: int) -> None:
    """The server's FIN arrives 67.2 µs after the last answer, as soon as the line can carry its 84 bytes, or 1 ms after the answer.

    The early FIN shows the rate of the line. The rate shows how much longer a message takes on the line than a SYN.
    """
    text, at_us, end = exchanges()
    text += f"\n{at_us:.1f}us C > S F. {end}:{end} ack {end}\n{at_us + behind_us:.1f}us S > C F. {end}:{end} ack {end}"
    reported = lasted(tmp_path, text)
    assert reported.get("peer", 0) == pytest.approx(by_peer * LONGER_MS, abs=0.02)
    assert reported["network"] == pytest.approx(EXCHANGES * 21.7248 - by_peer * LONGER_MS, abs=0.02)


@pytest.mark.parametrize(("behind_us", "by_peer"), [(MESSAGE_US, 0), (5_000, EXCHANGES - 1)])
def test_the_fin_behind_the_last_question_reveals_the_answers_line_too(tmp_path: Path, behind_us: float, by_peer: int) -> None:
    """A FIN that is sent as soon as the line is free shows the line's rate. A FIN that is sent 4.1 ms later shows nothing."""
    text, at_us, end = exchanges()
    *before, _ = text.splitlines()
    asked_us = at_us - PATH_US - 2 * MESSAGE_US
    after = f"{asked_us + behind_us:.1f}us C > S F. {end}:{end} ack {end - 1000}\n{at_us:.1f}us S > C P. {end - 1000}:{end} ack {end}"
    reported = lasted(tmp_path, "\n".join([*before, after]))
    assert reported.get("peer", 0) == pytest.approx(by_peer * LONGER_MS, abs=0.02)
