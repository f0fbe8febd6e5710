"""Exchanges from live transfers, copied by hand. Loss, reordering and duplication are easily confused in them.

Each exchange is from a transfer of `tcptrace_lab.lab.trials`, whose path log shows what happened to each packet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.engine import column, read_text

if TYPE_CHECKING:
    from pathlib import Path

HANDSHAKE = """
    0.000 C > S  S   0:0(0)        win 64240 <mss 9140, sackOK, TS val 100 ecr 0, wscale 7> {id 7}
    0.001 S > C  S.  0:0(0) ack 1  win 65160 <mss 9140, sackOK, TS val 900 ecr 100, wscale 7> {id 0}
    0.041 C > S  .   1:1    ack 1  win 502 <TS val 140 ecr 900> {id 24}
"""


def test_late_original_is_out_of_order_though_its_numbers_resemble_those_of_another(tmp_path: Path) -> None:
    """The capture is made at the receiver. Packet 27 arrives after packet 31.

    The sequence numbers of packets 27 and 31 differ in one bit, and so do their IP identifications. Packet 27 was reordered (RFC 4737,
    3.3). It fills a hole, so it is no copy of packet 31.
    """
    text = f"""{HANDSHAKE}
    0.0811 C > S . 1:9129      ack 1 win 502 <TS val 180 ecr 900> {{id 25}}
    0.0812 C > S . 9129:18257  ack 1 win 502 <TS val 180 ecr 900> {{id 26}}
    0.0813 C > S . 27385:32769 ack 1 win 502 <TS val 180 ecr 900> {{id 28}}
    0.0814 C > S . 32769:41897 ack 1 win 502 <TS val 180 ecr 900> {{id 29}}
    0.0815 C > S . 41897:51025 ack 1 win 502 <TS val 180 ecr 900> {{id 30}}
    0.0816 C > S . 51025:60153 ack 1 win 502 <TS val 180 ecr 900> {{id 31}}
    0.1169 C > S . 18257:27385 ack 1 win 502 <TS val 180 ecr 900> {{id 27}}
    """
    read = read_text(tmp_path, text)
    assert column(read.segments, "kind", 9, 10) == ["new", "out_of_order"]
    assert read.connections["client_unique_bytes"].to_list() == [60_152]
