"""The cause "close": retransmissions to a host that has closed the connection. No application waits for them.

The captures are hand-written, as if recorded at the server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.ledgers import lasted_of_server

if TYPE_CHECKING:
    from pathlib import Path

ANSWERED = """
0      C > S  S   0:0(0)          win 65535 <mss 1460, sackOK>
+0ms   S > C  S.  0:0(0)    ack 1 win 65535 <mss 1460, sackOK>
+20ms  C > S  .             ack 1 win 65535
+1ms   C > S  P.  1:201     ack 1
+1ms   S > C  P.  1:1001    ack 201
+20ms  C > S  .             ack 1001
"""
LEAVES = """
+100ms C > S  F.  201:201(0) ack 1001
+0ms   S > C  .              ack 202
"""
GOODBYE = "S > C PF. 1001:1032 ack 202\n"
REPEATED = f"+1s {GOODBYE}+0.3s {GOODBYE}+0.6s {GOODBYE}+1.2s {GOODBYE}"


@pytest.mark.parametrize(
    ("text", "close_ms", "timeout_ms"),
    [
        pytest.param(LEAVES + REPEATED, 2100, 0, id="silent"),
        pytest.param(f"{LEAVES}+1s {GOODBYE}+0.3s {GOODBYE}+20ms C > S R. 202:202(0) ack 1001\n", 320, 0, id="a-reset-answers"),
        pytest.param(f"{LEAVES}{REPEATED}+20ms C > S . ack 1033\n", 20, 2100, id="half-closed-and-still-reading"),
        pytest.param(REPEATED.replace("ack 202", "ack 201"), 0, 2100, id="never-closed"),
    ],
)
def test_only_what_nobody_reads_any_more_is_the_close(tmp_path: Path, text: str, close_ms: float, timeout_ms: float) -> None:
    """The server sends 31 bytes with its FIN. Timers of 0.3, 0.6 and 1.2 s (2.1 s in all) retransmit this segment.

    The client answers 20 ms after the last retransmission, or never.
    """
    reported = lasted_of_server(tmp_path, ANSWERED + text)
    assert reported.get("close", 0) == pytest.approx(close_ms, abs=1)
    assert reported.get("timeout", 0) == pytest.approx(timeout_ms, abs=1)
