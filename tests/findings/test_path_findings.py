"""Findings on the path (apart from packet loss) and on what a capture lacks, with their frames."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import dpkt.pcap
import pytest

import tcptrace_lab
from tests.support import packets
from tests.support.places import CAPTURES

if TYPE_CHECKING:
    from pathlib import Path

    from tcptrace_lab.findings.finding import Finding


OPENED = """
    0.000 C > S  S   0:0(0)        win 65535 <mss 1460, sackOK>
    0.020 S > C  S.  0:0(0) ack 1  win 65535 <mss 1460, sackOK>
    0.020 C > S  .          ack 1  win 65535
"""


def found(path: Path, finding: str) -> list[Finding]:
    return [one for one in tcptrace_lab.analyze(path).findings if one.id == finding]


def overtaken(times: int) -> str:
    """Return a capture at the receiver, with `times` pairs of segments. In each pair, the second segment arrives first.

    The IP ID of the second segment is one higher.
    """
    lines = []
    for number in range(times):
        at_s, seq, ip_id = 0.1 + number / 10, 1 + number * 2920, 100 + number * 2
        lines += [
            f"{at_s:.3f} C > S . {seq + 1460}:{seq + 2920} ack 1 {{id {ip_id + 1}}}",
            f"{at_s:.3f} S > C . ack {seq} win 65535 <sack {seq + 1460}:{seq + 2920}>",
            f"{at_s + 0.001:.3f} C > S . {seq}:{seq + 1460} ack 1 {{id {ip_id}}}",
            f"{at_s + 0.001:.3f} S > C . ack {seq + 2920} win 65535",
        ]
    return "\n".join(lines)


def test_segments_overtaken_three_times_are_reordering_with_both_frames(tmp_path: Path) -> None:
    """Frames 4, 8 and 12 overtook frames 6, 10 and 14."""
    (reported,) = found(packets.capture(tmp_path / "late.pcap", OPENED + overtaken(3)), "reordering")
    assert reported.title.startswith("3 of 6 segments arrived out of order")
    assert (reported.conn, reported.from_client, reported.cost_ns) == (0, True, None)
    assert reported.evidence_frames == (4, 6, 8, 10, 12, 14)


def test_segments_overtaken_twice_are_no_finding(tmp_path: Path) -> None:
    assert found(packets.capture(tmp_path / "late.pcap", OPENED + overtaken(2)), "reordering") == []


@pytest.mark.parametrize("name", ["ethernet-reordering", "ethernet-reordering-at-server"])
def test_repairs_of_what_was_only_overtaken_are_not_reported_as_losses(name: str) -> None:
    """The log of the relay shows that it delayed three segments and lost none."""
    truth = json.loads((CAPTURES / f"{name}.json").read_text())
    assert truth["relay"]["forward"]["log"]["lost_indexes"] == []
    findings = tcptrace_lab.analyze(CAPTURES / f"{name}.pcapng").findings
    assert not {one.id for one in findings} & {"loss", "timeout"}
    (reported,) = (one for one in findings if one.id == "spurious-retransmission")
    assert "segments that were not lost" in reported.title
    assert reported.cost_ns


def test_repairs_of_true_losses_are_reported_as_losses() -> None:
    truth = json.loads((CAPTURES / "ethernet-loss.json").read_text())
    assert truth["relay"]["forward"]["log"]["lost_indexes"]
    ids = {one.id for one in tcptrace_lab.analyze(CAPTURES / "ethernet-loss.pcapng").findings}
    assert "loss" in ids
    assert "spurious-retransmission" not in ids


def test_a_queue_before_a_narrow_link_is_bufferbloat_of_the_size_that_the_relay_had() -> None:
    """The relay delays packets by 10 ms in each direction. The rest of each round trip was spent in the relay's queue."""
    truth = json.loads((CAPTURES / "ethernet-bottleneck.json").read_text())["relay"]
    delay_ms = 1000 * (truth["forward"]["delay_s"] + truth["backward"]["delay_s"])
    (reported,) = found(CAPTURES / "ethernet-bottleneck.pcapng", "bufferbloat")
    assert delay_ms == pytest.approx(20)
    assert reported.title.endswith(", base RTT 20.4 ms")
    assert len(reported.evidence_frames) == 10


def test_a_path_without_a_queue_shows_no_bufferbloat() -> None:
    assert found(CAPTURES / "ethernet-small-receive-window.pcapng", "bufferbloat") == []


def test_what_a_remedy_saves_is_no_more_than_the_path_leaves() -> None:
    """A full queue drops packets. Loss recovery takes time, but the path needs most of this time to send the data anyway."""
    (reported,) = found(CAPTURES / "ethernet-queue-overflow.pcapng", "loss")
    truth = json.loads((CAPTURES / "ethernet-queue-overflow.json").read_text())
    rate_bps, sent_bytes = truth["relay"]["forward"]["rate_bps"], truth["schedule"]["total_bytes"]
    assert reported.cost_ns is not None
    assert reported.cost_share
    assert reported.gain_ns is not None
    life_ns = reported.cost_ns / reported.cost_share
    assert reported.gain_ns < reported.cost_ns
    assert reported.gain_ns <= life_ns - sent_bytes * 8e9 / rate_bps


def test_a_capture_that_holds_packets_twice_says_so_with_the_copies(tmp_path: Path) -> None:
    """Each data segment is captured twice, 20 µs apart: frames 5 and 8 are copies of frames 4 and 7."""
    lines = []
    for number in range(2):
        at_s, seq = 0.1 + number / 10, 1 + number * 100
        sent = f"C > S P. {seq}:{seq + 100} ack 1 {{id {50 + number}}}"
        lines += [f"{at_s:.5f} {sent}", f"{at_s + 2e-5:.5f} {sent}", f"{at_s + 0.02:.5f} S > C . ack {seq + 100} win 65535"]
    (reported,) = found(packets.capture(tmp_path / "span.pcap", OPENED + "\n".join(lines)), "capture-duplicates")
    assert reported.evidence_frames == (5, 8)
    assert (reported.conn, reported.from_client, reported.cost_ns) == (None, None, None)
    assert "2 captured segments are copies of others" in reported.title


def test_acknowledged_bytes_that_are_not_there_make_a_capture_incomplete(tmp_path: Path) -> None:
    """Bytes 101 to 200 were never captured, but frame 6 acknowledges them."""
    text = """
    0.100 C > S P. 1:101 ack 1
    0.120 S > C .  ack 101 win 65535
    0.220 S > C .  ack 201 win 65535
    0.300 C > S P. 201:301 ack 1
    0.320 S > C .  ack 301 win 65535
    """
    (reported,) = found(packets.capture(tmp_path / "holes.pcap", OPENED + text), "capture-incomplete")
    assert 6 in reported.evidence_frames
    assert "1 segment was ACKed but is missing from the capture" in reported.title


def test_a_connection_without_its_beginning_or_its_other_half_is_a_part_of_one(tmp_path: Path) -> None:
    """The capture has no SYN and nothing from the server. Between the captured segments, no bytes are known to be missing."""
    text = "0.100 C > S P. 1:101 ack 1\n0.120 C > S P. 101:201 ack 1\n"
    (reported,) = found(packets.capture(tmp_path / "half.pcap", text), "capture-incomplete")
    assert reported.title.startswith("Some connections are captured only in part")
    assert "1 connection of 1 has one direction only" in reported.title
    assert "1 connection of 1 lacks its start" in reported.title
    assert str(reported.severity) == "medium"  # the quality is 0.5 (one direction) × 0.9 (no start) = 0.45


def test_super_segments_of_offload_are_reported(tmp_path: Path) -> None:
    text = """
    0.100 C > S P. 1:14601 ack 1
    0.120 S > C .  ack 14601 win 65535
    """
    (reported,) = found(packets.capture(tmp_path / "tso.pcap", OPENED + text), "offload")
    assert reported.evidence_frames == (4,)


def test_a_clock_that_goes_back_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "back.pcap"
    whole = packets.capture(tmp_path / "whole.pcap", OPENED + "0.100 C > S P. 1:101 ack 1\n0.120 S > C . ack 101 win 65535")
    with whole.open("rb") as stream, path.open("wb") as out:
        frames = list(dpkt.pcap.Reader(stream))
        writer = dpkt.pcap.Writer(out)
        for number, (at_s, frame) in enumerate(frames):
            writer.writepkt(frame, ts=float(at_s) - (5 if number >= 3 else 0))
    (reported,) = found(path, "clock")
    assert "1 timestamp runs backwards" in reported.title


def test_a_faultless_capture_has_no_finding_about_itself() -> None:
    ids = {one.id for one in tcptrace_lab.analyze(CAPTURES / "ethernet-nagle-on.pcapng").findings}
    assert not ids & {"capture-incomplete", "capture-duplicates", "offload", "clock"}
