"""A receiver that stops answering is distinguished from a path that loses packets: both cause timeouts, but the remedies differ."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from polars.io.plugins import register_io_source

import tcptrace_lab
from tcptrace_lab import verdict
from tcptrace_lab.findings import path_mtu, stopped_answering
from tests.support import packets

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import polars as pl

TRANSFER = """
    0.000 C > S  S   0:0(0)        win 65535 <mss 1460, sackOK>
    0.020 S > C  S.  0:0(0) ack 1  win 65535 <mss 1460, sackOK>
    0.020 C > S  .          ack 1  win 65535
    0.021 C > S  P. 1:501 ack 1
    0.041 S > C  .  ack 501 win 65535
    0.050 C > S  P. 501:1001 ack 1
    0.270 C > S  P. 501:1001 ack 1
    0.710 C > S  P. 501:1001 ack 1
    1.590 C > S  P. 501:1001 ack 1
"""
ANSWER = "1.610 S > C  .  ack 1001 win 65535\n"


@pytest.mark.parametrize(("answer", "stopped"), [("", True), (ANSWER, False)])
def test_only_a_receiver_that_never_answers_again_has_stopped_answering(tmp_path: Path, answer: str, *, stopped: bool) -> None:
    analysis = tcptrace_lab.analyze(packets.capture(tmp_path / "t.pcap", TRANSFER + answer))
    (found,) = (one for one in analysis.findings if one.id in {"timeout", "path-outage"})
    assert ("stopped answering" in found.title) is stopped
    said = verdict.sentence(analysis)
    assert ("which had stopped answering," in said) is stopped
    assert ("a path without packet loss" in said) is not (stopped or found.id == "path-outage")


def test_a_receiver_whose_last_ack_did_not_reach_the_sender_has_stopped_answering(tmp_path: Path) -> None:
    """The capture is made at the receiver. No retransmit is answered.

    Every retransmit is spurious, because the ACK of its bytes had passed the capture point.
    """
    acked = TRANSFER.replace("    0.270 ", "    0.060 S > C  .  ack 1001 win 65535\n    0.270 ")
    analysis = tcptrace_lab.analyze(packets.capture(tmp_path / "t.pcap", acked))
    (found,) = (one for one in analysis.findings if one.id in {"timeout", "path-outage"})
    assert "stopped answering" in found.title
    assert any(one.title.startswith("3 of 3 retransmits were spurious") for one in analysis.findings)


def test_a_receiver_that_the_capture_does_not_show_has_stopped_answering_only_if_no_new_data_follows(tmp_path: Path) -> None:
    """Only the sender's direction of `TRANSFER` is captured. New data shows that the sender got answers, although none was captured."""
    own = "\n".join(line for line in TRANSFER.splitlines() if " S > C " not in line)
    for more, stopped in (("", True), ("1.700 C > S  P. 1001:1501 ack 1\n1.800 C > S  P. 1501:2001 ack 1", False)):
        analysis = tcptrace_lab.analyze(packets.capture(tmp_path / "t.pcap", f"{own}\n{more}"))
        assert any("stopped answering" in one.title for one in analysis.findings) is stopped


def test_a_receiver_that_answers_in_between_has_only_lost_packets(tmp_path: Path) -> None:
    """Two segments are lost, and each is repaired by its first timeout. The path loses packets, and the receiver answers to the end."""
    again = """
    2.000 C > S  P. 1001:1501 ack 1
    2.220 C > S  P. 1001:1501 ack 1
    2.240 S > C  .  ack 1501 win 65535
    """
    analysis = tcptrace_lab.analyze(packets.capture(tmp_path / "t.pcap", TRANSFER + ANSWER + again))
    assert not any("stopped answering" in one.title for one in analysis.findings)


def test_the_capture_is_read_once_for_both_ends_of_a_retransmission(tmp_path: Path) -> None:
    """From 0.041 s to 1.590 s, no answer arrives. Segments of 500 bytes pass every path, so the check of sizes needs no second read."""
    rows = tcptrace_lab.analyze(packets.capture(tmp_path / "t.pcap", TRANSFER)).segments.collect()
    reads = []

    def read(columns: list[str] | None, predicate: pl.Expr | None, _limit: int | None, _batch: int | None) -> Iterator[pl.DataFrame]:
        reads.append(columns)
        wanted = rows if predicate is None else rows.filter(predicate)
        yield wanted if columns is None else wanted.select(columns)

    segments, directions = register_io_source(read, schema=rows.schema), {(0, True)}
    resent = path_mtu.retransmits(segments, directions)
    assert resent["frame"].to_list() == [7, 8, 9]
    assert stopped_answering.silent_ns(resent, directions) == {(0, True): 1_549_000_000}
    assert path_mtu.found(segments, directions, resent) == {}
    assert len(reads) == 1


@pytest.mark.parametrize(("last_ack", "closed"), [(301, True), (302, False), (300, False)])
def test_an_ack_of_one_byte_more_shows_the_fin_of_a_peer_that_was_not_captured(tmp_path: Path, last_ack: int, *, closed: bool) -> None:
    """The sender has ACKed 300, and then `last_ack` in its last new data. Nothing that the peer sent is captured."""
    own = "\n".join(line.replace("ack 1", "ack 300") for line in TRANSFER.splitlines() if " S > C " not in line)
    text = own.replace("501:1001 ack 300", f"501:1001 ack {last_ack}")
    analysis = tcptrace_lab.analyze(packets.capture(tmp_path / "t.pcap", text))
    (found,) = (one for one in analysis.findings if one.id == "timeout")
    assert ("had probably closed the connection" in found.title) is closed
    assert ("stopped answering" in found.title) is not closed
    assert ("which had probably closed the connection," in verdict.sentence(analysis)) is closed
