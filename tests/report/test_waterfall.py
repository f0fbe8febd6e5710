"""The waterfall shows all connections on one time axis.

For each connection, it shows when the connection was open and what its main cause is. It also has a link that opens the connection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcptrace_lab import analyze, report
from tcptrace_lab.report.parts import waterfall
from tests.support import packets

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

TWO = """
    host N 10.0.0.3:50000 isn 7
    0.000 C > S S  0:0(0)       win 65535 <mss 1460>
    0.010 S > C S. 0:0(0) ack 1 win 65535 <mss 1460>
    0.010 C > S .         ack 1
    0.010 C > S P. 1:101  ack 1
    0.020 S > C .         ack 101
    0.400 C > S P. 101:201 ack 1
    0.410 S > C .         ack 201
    0.600 N > S S  0:0(0)       win 65535 <mss 1460>
    0.990 S > N S. 0:0(0) ack 1 win 65535 <mss 1460>
    0.990 N > S .         ack 1
    0.990 N > S P. 1:101  ack 1
    1.000 S > N .         ack 101
"""


def test_lanes_have_the_place_of_their_connection_and_its_main_cause(tmp_path: Path) -> None:
    """The capture lasts 1 s, and its two connections do not overlap.

    The first connection lasts from 0 to 0.41 s, and its main cause is the application. The second connection lasts from 0.6 to 1 s, and its
    main cause is the handshake.
    """
    analysis = analyze(packets.capture(tmp_path / "my two.pcap", TWO))
    first, second = waterfall.lanes(analysis.connections.collect(), analysis.accounts, {1}, {0}, "my two.pcap")
    assert (first["conn"], round(first["left"], 4), round(first["width"], 4), first["cause"]) == (0, 0, 0.41, "application")
    assert (second["conn"], round(second["left"], 4), round(second["width"], 4), second["cause"]) == (1, 0.6, 0.4, "handshake")
    assert (first["drawn"], second["drawn"]) == (True, False)
    assert second["command"] == "tcptrace-lab analyze 'my two.pcap' --connection 1"
    assert second["label"] == "10.0.0.3:50000 → 10.0.0.2:80"


def test_connections_with_findings_come_before_larger_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hosts = "\n".join(f"host H{number} 10.0.1.{number}:50000" for number in range(5))
    data = "\n".join(f"{number} H{number} > S P. 1:{100 * (number + 1)} ack 1" for number in range(5))
    analysis = analyze(packets.capture(tmp_path / "many.pcap", f"{hosts}\n{data}"))
    monkeypatch.setattr(waterfall, "MAX_LANES", 3)
    shown = waterfall.lanes(analysis.connections.collect(), analysis.accounts, {0}, set(), "many.pcap")
    assert [lane["conn"] for lane in shown] == [0, 3, 4]


def test_one_connection_has_no_waterfall_and_two_have_one(tmp_path: Path) -> None:
    one = TWO[: TWO.index("0.600")].replace("host N 10.0.0.3:50000 isn 7", "")
    assert "waterfall-title" not in report.render(report.data(analyze(packets.capture(tmp_path / "one.pcap", one))))
    page = report.render(report.data(analyze(packets.capture(tmp_path / "two.pcap", TWO))))
    assert page.count('class="lane"') == 2
    assert '<a href="#connection-0"><bdi>0: 10.0.0.1:40000 → 10.0.0.2:80</bdi></a>' in page
