"""The RTT of a connection is the RTT of the whole path, wherever the capture was made.

The expected values come from tshark or from calculation by hand.
"""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from tcptrace_lab import read
from tcptrace_lab.report.parts import connection_table
from tests.support import needs, packets

if TYPE_CHECKING:
    from pathlib import Path

MS = 1_000_000


def download(to_server_ms: float, to_client_ms: float) -> str:
    """Return a download over a path with an RTT of 90 ms, captured between the hosts.

    In the handshake, the server takes 4 ms to answer, and the client takes 2 ms.
    """
    moments = [
        (0.0, "C > S S 0:0(0) win 64240 <mss 1460>"),
        (to_server_ms + 4, "S > C S. 0:0(0) ack 1 win 65160 <mss 1460>"),
        (to_server_ms + to_client_ms + 6, "C > S . ack 1"),
        (200.0, "C > S P. 1:101 ack 1"),
        (200 + to_server_ms, "S > C . ack 101"),
        (400.0, "S > C P. 1:1461 ack 101"),
        (400 + to_client_ms, "C > S . ack 1461"),
    ]
    return "\n".join(f"{at_ms:.3f}ms {line}" for at_ms, line in moments)


@pytest.mark.parametrize(("to_server_ms", "to_client_ms"), [(89.8, 0.2), (0.2, 89.8), (50, 40)])
def test_the_rtt_is_that_of_the_path_at_both_ends_and_between(to_server_ms: float, to_client_ms: float, tmp_path: Path) -> None:
    needs.program("tshark")
    path = packets.capture(tmp_path / "x.pcap", download(to_server_ms, to_client_ms))
    (connection,) = read(path).connections.collect().to_dicts()
    row = connection_table.row(connection, None)
    command = ["tshark", "-n", "-r", str(path), "-T", "fields", "-e", "tcp.analysis.initial_rtt", "-Y", "tcp.analysis.initial_rtt"]
    reported = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert row["initial_rtt_ns"] == pytest.approx(float(reported[0]) * 1e9, abs=1_000) == 96 * MS
    assert row["rtt_min_ns"] == pytest.approx(90 * MS, abs=1_000)


def test_a_window_probe_is_no_round_trip(tmp_path: Path) -> None:
    """The ACK of the data comes after 29 µs. Window probes follow after 3.4 s and 10.2 s. Their answers are no RTT samples."""
    text = """
    0.000000 S > C  P. 1:1345 ack 1 win 108
    0.000029 C > S  .  ack 1345 win 0
    3.410605 S > C  .  1344:1344 ack 1 win 108
    3.410636 C > S  .  ack 1345 win 0
    10.19476 S > C  .  1344:1344 ack 1 win 108
    10.19479 C > S  .  ack 1345 win 0
    """
    (connection,) = read(packets.capture(tmp_path / "probes.pcap", text)).connections.collect().to_dicts()
    assert connection_table.row(connection, None)["rtt_min_ns"] is None
