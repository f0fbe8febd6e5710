"""The footer of a report states where the report comes from. Its facts about a connection agree with tshark."""

from __future__ import annotations

import re
import subprocess
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

import polars as pl
import pytest

from tcptrace_lab import analyze, schema
from tcptrace_lab.ledger import snd_lim
from tcptrace_lab.report.parts import connection_table, provenance
from tests.support import needs, packets, transfer
from tests.support.command import TIME_LIMIT_S, tcptrace_lab
from tests.support.places import CAPTURES

if TYPE_CHECKING:
    from pathlib import Path

LOSS = CAPTURES / "ethernet-loss.pcapng"
NOW = datetime(2026, 11, 24, 15, 0, 1, tzinfo=timezone(timedelta(hours=1), "CET"))


def test_the_footer_names_program_command_file_hash_date_and_time_zone(tmp_path: Path) -> None:
    path = packets.capture(tmp_path / "my transfer.pcap", transfer.TEXT)
    assert tcptrace_lab("analyze", path.name, "-o", "r.html", folder=tmp_path).returncode == 0
    page = (tmp_path / "r.html").read_text()
    reported = re.findall(r'<p class="provenance"><bdi>(.*?)</bdi></p>', page)
    digest = subprocess.run(["sha256sum", path], capture_output=True, text=True, timeout=TIME_LIMIT_S, check=True).stdout.split()[0]
    assert re.fullmatch(
        r"tcptrace-lab [\d.]+, \d{4}-\d\d-\d\d \d\d:\d\d:\d\d \w+ \(UTC[+-]\d{4}\); times on this page are UTC\.", reported[0]
    )
    assert reported[1] == "Command: tcptrace-lab analyze &#39;my transfer.pcap&#39; -o r.html"
    assert re.fullmatch(rf"File: my transfer\.pcap, {path.stat().st_size:,} bytes \(.*\), SHA-256 {digest}", reported[2])


def test_the_time_zone_is_that_of_the_date_and_a_large_file_is_not_hashed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provenance, "MAX_HASHED_BYTES", 1)
    path = packets.capture(tmp_path / "transfer.pcap", transfer.TEXT)
    made, command, file, stdin = provenance.lines(["tcptrace-lab"], [str(path), "-"], NOW)
    assert ", 2026-11-24 15:00:01 CET (UTC+0100)" in made
    assert command == "Command: tcptrace-lab"
    assert file.endswith("SHA-256 not computed for a large file")
    assert stdin == "File: standard input"


def test_every_cause_is_in_one_term_of_rfc_4898_or_outside() -> None:
    assert sorted([*snd_lim.SND, *snd_lim.RWIN, *snd_lim.CWND, *snd_lim.OUTSIDE]) == sorted(schema.CAUSES)


def test_the_terms_of_rfc_4898_are_sums_of_the_ledger() -> None:
    """The receive window limits the sender for 5 + 7 ns. Congestion limits it for 1 + 2 + 3 ns.

    The sender itself is the limit for the rest of the time, except for the handshake.
    """
    account: dict[str, int | None] = {f"client_{cause.replace('-', '_')}_ns": 0 for cause in schema.CAUSES}
    account |= {"client_receiver_window_ns": 5, "client_zero_window_ns": 7, "client_timeout_ns": 1, "client_network_ns": 2}
    account |= {
        "client_slow_start_ns": 3,
        "client_application_ns": 11,
        "client_nagle_ns": 13,
        "client_idle_ns": 17,
        "client_handshake_ns": 19,
    }
    assert snd_lim.times_ns(account, "client") == {"SndLimTimeSnd": 41, "SndLimTimeRwin": 12, "SndLimTimeCwnd": 6}
    direction = analyze(LOSS).to_dict()["connections"][0]["client_to_server"]
    outside = sum(direction["ledger_s"][cause] for cause in ("handshake", "close", "unknown"))
    assert sum(direction["snd_lim_s"].values()) + outside == pytest.approx(direction["life_s"])


def tshark(shown: str, field: str) -> list[float]:
    command = [needs.program("tshark"), "-r", str(LOSS), "-Y", shown, "-T", "fields", "-e", field]
    return [float(word) for word in subprocess.run(command, capture_output=True, timeout=TIME_LIMIT_S, check=True).stdout.split()]


def test_segments_retransmits_and_median_rtt_are_those_of_tshark() -> None:
    """The test counts a data segment as a retransmit if its sequence number was sent before.

    tshark calls one of the three retransmits out of order, so tshark's own count is not used.
    """
    row = analyze(LOSS).connections.collect().row(0, named=True)
    from_client = "tcp.srcport == 40001"
    sent = len(tshark(f"{from_client} && (tcp.len > 0 || tcp.flags.syn == 1 || tcp.flags.fin == 1)", "frame.number"))
    numbers = tshark(f"{from_client} && tcp.len > 0", "tcp.seq")
    again = len(numbers) - len(set(numbers))
    resent = f"retransmitted {again / sent:.1%} ({again} of {sent} segments)"
    assert connection_table.traffic(row, "client").startswith(f"{len(numbers)} data segments, {resent}; ")
    assert connection_table.direction_summary(row, "client").startswith(f"RTT 20.3 ms, {resent}, ")
    samples = tshark("tcp.srcport == 5001 && tcp.analysis.ack_rtt", "tcp.analysis.ack_rtt")
    half = min(tshark(f"{from_client} && tcp.analysis.ack_rtt", "tcp.analysis.ack_rtt"))
    assert connection_table.median_rtt_ns(row) == pytest.approx(1e9 * (pl.Series(samples[1:]).median() + half), rel=0.02)  # type: ignore[operator]


def test_retransmits_are_no_losses_and_those_without_their_original_are_counted_apart(tmp_path: Path) -> None:
    """The capture has a segment that is sent four times. The last copy is spurious.

    It also has a retransmit whose original is not in the capture.
    """
    text = """
    0.000 C > S S 0:0(0) win 64240 <mss 1000,nop,nop,sackOK>
    0.020 S > C S. 0:0(0) ack 1 win 64240 <mss 1000,nop,nop,sackOK>
    0.020 C > S . ack 1
    0.021 C > S . 1:1001 ack 1
    0.041 S > C . ack 1001
    0.042 C > S . 2001:3001 ack 1
    0.062 S > C . ack 1001 <nop,nop,sack 2001:3001>
    0.300 C > S . 1001:2001 ack 1
    0.320 S > C . ack 3001
    0.321 C > S P. 3001:4001 ack 1
    0.621 C > S P. 3001:4001 ack 1
    1.221 C > S P. 3001:4001 ack 1
    1.241 S > C . ack 4001
    1.242 C > S P. 3001:4001 ack 1
    1.262 S > C . ack 4001 <nop,nop,sack 3001:4001>
    1.300 C > S F. 4001:4001 ack 1
    1.320 S > C F. 1:1 ack 4002
    1.321 C > S . ack 2
    """
    path = packets.capture(tmp_path / "again.pcap", text)
    command = [needs.program("tshark"), "-r", str(path), "-T", "fields", "-e", "frame.number", "-Y"]

    def frames(shown: str) -> list[str]:
        return subprocess.run([*command, shown], capture_output=True, timeout=TIME_LIMIT_S, check=True, text=True).stdout.split()

    again = frames("tcp.analysis.retransmission")
    assert (again, frames("tcp.analysis.lost_segment")) == (["8", "11", "12", "14"], ["6"])
    (row,) = analyze(path).connections.collect().to_dicts()
    words = "retransmitted 44% (4 of 9 segments, 1 spurious, at least 1 without its original in the capture)"
    assert words in connection_table.traffic(row, "client")
    assert "nothing retransmitted" not in connection_table.traffic(row, "client")
