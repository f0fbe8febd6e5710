"""An empty segment overtakes data.

The sequence number of the empty segment shows that the data were sent earlier (RFC 9293, 3.10.7.4: SND.NXT).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.engine import column, read_text
from tests.support.verdicts import AT_SERVER, HANDSHAKE, figures, judged, verdicts

if TYPE_CHECKING:
    from pathlib import Path

COUNTS = ("retransmitted_segments", "retransmitted_bytes", "out_of_order_segments", "unique_bytes", "not_captured_bytes")


def test_a_fin_behind_the_ack_that_was_sent_after_it_is_late(tmp_path: Path) -> None:
    """The host increments the IP identification per packet.

    The FIN has ID 50 and the ACK has ID 51, so the FIN was sent first. Nothing was sent twice.
    """
    read = read_text(
        tmp_path,
        f"""{HANDSHAKE}
        0.0200 S > C P. 1:101    ack 1
        0.0201 C > S .  2:2(0)   ack 101 {{id 51}}
        0.0202 C > S F. 1:1(0)   ack 1   {{id 50}}
        """,
    )
    assert verdicts(read, 5, 6) == [("ack", "sequence", None, "proved"), ("out_of_order", "ip_id", 5, "consistent")]
    assert figures(read, "client", *COUNTS) == (0, 0, 1, 0, 0)


def test_a_request_lost_before_the_capture_is_known_by_the_ack_behind_it(tmp_path: Path) -> None:
    """The capture is made next to the server.

    An ACK sent at 120 ms has sequence number 501, so bytes 1 to 500 were sent before. They arrive with a timestamp of 150 ms, so they are a
    retransmission.
    """
    read = read_text(
        tmp_path,
        f"""{AT_SERVER}
        0.100 S > C P. 1:101       ack 1   <TS val 1 ecr 1>
        0.120 C > S .  501:501(0)  ack 101 <TS val 120 ecr 1>
        0.150 C > S P. 1:501       ack 101 <TS val 150 ecr 1>
        0.151 S > C .              ack 501 <TS val 2 ecr 150>
        """,
    )
    assert verdicts(read, 6) == [("retransmit", "timestamp", 5, "proved")]
    assert column(read.segments, "transmission", 6) == [2]
    assert column(read.segments, "rtt_ns", 7) == [None], "Karn: the first transmission may be the one that is answered"
    assert figures(read, "client", *COUNTS) == (1, 500, 0, 500, 0)


def test_data_that_goes_on_where_the_last_ack_stood_is_new(tmp_path: Path) -> None:
    text = f"{HANDSHAKE}\n0.0200 C > S . 1:1(0) ack 1\n0.0300 C > S P. 1:501 ack 1\n0.0301 C > S P. 501:601 ack 1"
    assert [kind for kind, *_ in judged(tmp_path, text, 5, 6)] == ["new", "new"]


def test_a_number_that_a_reset_made_up_shows_nothing(tmp_path: Path) -> None:
    """A RST can be forged (RFC 5961), so its sequence number does not show what the sender has sent."""
    text = f"{HANDSHAKE}\n0.0200 C > S R. 501:501(0) ack 1\n0.0300 C > S P. 1:501 ack 1"
    assert judged(tmp_path, text, 5) == [("new", "sequence", None, "proved")]


def test_options_of_a_syn_count_as_far_as_they_were_captured(tmp_path: Path) -> None:
    """The SYN has 54 bytes of headers.

    Its options follow: MSS (4 bytes), NOP (1), window scale (3) and SACK permitted (2). Options that were truncated are unknown, not
    absent.
    """
    names = ("mss_bytes", "window_scale", "sack_permitted", "timestamps", "full_segment_bytes")
    known = {
        54: (None, None, None, None, None),
        58: (1460, None, None, None, None),
        61: (1460, None, None, None, None),
        62: (1460, 7, None, None, None),
        66: (1460, 7, True, False, 1400),
    }
    for captured, reported in known.items():
        folder = tmp_path / str(captured)
        folder.mkdir()
        read = read_text(
            folder,
            f"""
            0.000 C > S S  0:0(0)        win 64240 <mss 1460, nop, wscale 7, sackOK> {{snap {captured}}}
            0.010 S > C S. 0:0(0) ack 1  win 65160 <mss 1400, nop, wscale 6, sackOK> {{snap {captured}}}
            0.011 C > S .         ack 1  win 502
            """,
        )
        assert figures(read, "client", *names) == reported
        assert column(read.segments, "window_bytes", 3) == [502 << 7 if captured >= 62 else None]
