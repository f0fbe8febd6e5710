"""If a capture lacks some bytes, the cause of the time until their ACK is unknown. Later time has a known cause.

In these exchanges, the client's second request is missing. It was sent between the first answer and the second answer, which acknowledges
it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.ledgers import lasted

if TYPE_CHECKING:
    from pathlib import Path


def _requests(third_s: float, third_seq: int = 2101) -> str:
    """Return three requests, of which the second one (bytes 101 to 2101) is missing from the capture.

    The third request begins with byte `third_seq`.
    """
    end = third_seq + 100
    return f"""
        0.000 C > S S  0:0(0) <mss 1460>
        0.020 S > C S. 0:0(0) ack 1 <mss 1460>
        0.020 C > S .  ack 1
        1.000 C > S P. 1:101 ack 1
        1.020 S > C P. 1:201 ack 101
        1.020 C > S .  101:101(0) ack 201
        10.000 S > C P. 201:401 ack 2101
        10.000 C > S .  2101:2101(0) ack 401
        {third_s:.3f} C > S P. {third_seq}:{end} ack 401
        {third_s + 0.02:.3f} S > C P. 401:601 ack {end}
        {third_s + 0.02:.3f} C > S .  {end}:{end}(0) ack 601
    """


@pytest.mark.parametrize(("third_s", "cause"), [(14, "application"), (40, "idle")])
def test_a_pause_after_the_ack_of_missing_bytes_is_known(tmp_path: Path, third_s: int, cause: str) -> None:
    """The first request is sent at 1.0 s. The cause of the time from 1.0 s to 10.0 s is unknown.

    After 10.0 s, the client has nothing in flight and sends nothing.
    """
    reported = lasted(tmp_path, _requests(third_s))
    assert reported["unknown"] == pytest.approx(9000)
    assert reported[cause] == pytest.approx((third_s - 10) * 1000 + (960 if cause == "application" else 0), abs=25)


def test_an_ack_of_a_part_of_the_missing_bytes_leaves_the_rest_of_the_pause_unknown(tmp_path: Path) -> None:
    """The third request begins 2,000 bytes later, so 2,000 more bytes are missing.

    No ACK shows when they were sent. Possibly, they were sent just before the third request.
    """
    assert lasted(tmp_path, _requests(14, third_seq=4101))["unknown"] == pytest.approx(13_000)
