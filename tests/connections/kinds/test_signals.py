"""RSTs, Fast Open, ECN, simultaneous SYNs and FINs, and reused ports. Each test names its RFC."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.engine import column, read_text
from tests.support.verdicts import HANDSHAKE, figures, verdicts

if TYPE_CHECKING:
    from pathlib import Path


def reset_kinds(folder: Path, text: str) -> list[str | None]:
    """Return the kinds of the RSTs in `text`, in their order."""
    read = read_text(folder, text)
    return [kind for kind in column(read.segments, "reset_kind") if kind is not None]


def test_the_answer_to_a_syn_is_a_refusal(tmp_path: Path) -> None:
    """A RST that refuses a SYN has SEQ=0 and ACK=SEG.SEQ+1 (RFC 9293, 3.10.7.1)."""
    assert reset_kinds(tmp_path, "0 C > S S 0:0(0)\n0.01 S > C R. -5000:-5000(0) ack 1 win 0") == ["refused"]


DATA = f"{HANDSHAKE}\n0.02 C > S P. 1:1001 ack 1\n0.03 S > C . ack 1001 win 500\n"


@pytest.mark.parametrize(
    ("rst", "kind"),
    [
        ("0.04 S > C R. 1:1(0) ack 1001 win 0", "exact"),
        ("0.04 S > C R  1:1(0) win 0", "exact"),
        ("0.04 S > C R  500:500(0) win 0", "in_window"),
        ("0.04 S > C R  90000:90000(0) win 0", "out_of_window"),
        ("0.04 S > C R  -900:-900(0) win 0", "out_of_window"),
    ],
)
def test_a_rst_is_obeyed_challenged_or_ignored_by_its_number(tmp_path: Path, rst: str, kind: str) -> None:
    """A host accepts, challenges or ignores a RST, depending on its sequence number (RFC 5961, 3.2).

    The client's window is 502 · 128 = 64,256 bytes.
    """
    assert reset_kinds(tmp_path, DATA + rst) == [kind]


def test_a_rst_behind_both_fins_ends_nothing(tmp_path: Path) -> None:
    """If a segment arrives for a connection that no longer exists, the host answers with a RST (RFC 9293, 3.10.7.1)."""
    text = f"""{HANDSHAKE}
        0.02 C > S F. 1:1(0) ack 1
        0.03 S > C F. 1:1(0) ack 2
        0.04 C > S .  2:2(0) ack 2
        0.05 C > S R  2:2(0) win 0
    """
    assert reset_kinds(tmp_path, text) == ["after_close"]


def test_a_second_rst_comes_after_the_end(tmp_path: Path) -> None:
    assert reset_kinds(tmp_path, f"{DATA}0.04 S > C R. 1:1(0) ack 1001 win 0\n0.05 S > C R 1:1(0) win 0 {{id 99}}") == [
        "exact",
        "after_close",
    ]


def test_a_rst_alone_cannot_be_judged(tmp_path: Path) -> None:
    assert reset_kinds(tmp_path, "0 C > S R 1:1(0) win 0") == ["unknown"]


def test_fast_open_asks_for_a_cookie_and_brings_data_with_it(tmp_path: Path) -> None:
    """An empty TCP option 34 requests a cookie; otherwise the option carries a cookie (RFC 7413, 4.1 and 4.2)."""
    ask = """
        0.00 C > S S  0:0(0)       <mss 1460, opt 34>
        0.01 S > C S. 0:0(0) ack 1 <mss 1460, opt 34 0102030405060708>
        0.02 C > S .  1:1(0) ack 1
    """
    assert column(read_text(tmp_path, ask).segments, "tfo") == ["cookie_request", "cookie_grant", None]
    use = """
        0.00 C > S S  0:100        <mss 1460, opt 34 0102030405060708>
        0.01 S > C S. 0:0(0) ack %d <mss 1460>
        0.02 C > S P. %d:101 ack 1
    """
    accepted = read_text(tmp_path, use % (101, 101))
    assert column(accepted.segments, "tfo") == ["data", "data_accepted", None]
    assert figures(accepted, "client", "retransmitted_segments", "unique_bytes") == (0, 100)
    refused = read_text(tmp_path, use % (1, 1))
    assert column(refused.segments, "tfo") == ["data", "data_refused", None]
    assert verdicts(refused, 3) == [("retransmit", "syn", 2, "proved")]
    assert column(refused.segments, "retransmit_trigger", 3) == ["handshake"]


def test_fast_open_in_its_experimental_form(tmp_path: Path) -> None:
    """Experimental Fast Open uses option 254 with the ExID 0xF989 (RFC 7413, 4.1.1; RFC 6994); a SYN can carry a cookie and no data."""
    text = "0 C > S S 0:0(0) <opt 254 f989>\n1 C > S S 0:0(0) <opt 254 f98901020304>\n2 C > S S 0:0(0) <opt 254 dead>"
    assert column(read_text(tmp_path, text).segments, "tfo") == ["cookie_request", "cookie", None]


def test_ecn_is_offered_accepted_echoed_and_answered(tmp_path: Path) -> None:
    """The exchange has all uses of the ECN flags: setup, acceptance, echo and CWR (RFC 3168, 6.1.1 to 6.1.3)."""
    text = """
        0.00 C > S SEW 0:0(0)       <mss 1460>
        0.01 S > C S.E 0:0(0) ack 1 <mss 1460>
        0.02 C > S .   1:1001 ack 1 {ecn 3}
        0.03 S > C .E  1:1(0) ack 1001
        0.04 C > S P.W 1001:2001 ack 1 {ecn 2}
        0.05 S > C .   1:1(0) ack 2001
    """
    read = read_text(tmp_path, text)
    assert column(read.segments, "ecn_signal") == ["setup", "accepted", None, "echo", "reduced", None]
    assert column(read.segments, "ce", 3) == [True]


def test_accurate_ecn_counts_with_the_flags(tmp_path: Path) -> None:
    """The SYN has all three ECN flags.

    If the SYN-ACK has CWR, the flags of both hosts are counters from then on (RFC 9768, 3.1.1 and 3.1.2).
    """
    text = """
        0.00 C > S SEWe 0:0(0)       <mss 1460>
        0.01 S > C S.W  0:0(0) ack 1 <mss 1460>
        0.02 C > S .E   1:1001 ack 1
    """
    assert column(read_text(tmp_path, text).segments, "ecn_signal") == ["accurate", "accurate", "accurate"]


def test_simultaneous_open_repeats_each_syn_as_the_answer_to_the_other(tmp_path: Path) -> None:
    """The first four SYNs are no retransmissions (RFC 9293, 3.5, figure 8); the fifth is sent by a timer."""
    read = read_text(
        tmp_path,
        """
        0.000 C > S S  0:0(0) <mss 1460>
        0.001 S > C S  0:0(0) <mss 1460>
        0.010 C > S S. 0:0(0) ack 1 <mss 1460>
        0.011 S > C S. 0:0(0) ack 1 <mss 1460>
        0.030 C > S .  1:1(0) ack 1
        1.020 S > C S. 0:0(0) ack 1 <mss 1460>
        """,
    )
    assert verdicts(read, 1, 2, 3, 4, 6) == [
        ("new", "sequence", None, "proved"),
        ("new", "sequence", None, "proved"),
        ("new", "syn", 2, "proved"),
        ("new", "syn", 3, "proved"),
        ("syn_retransmit", "syn", None, "proved"),
    ]
    assert read.connections.height == 1
    assert figures(read, "client", "retransmitted_segments") == (0,)


def test_both_sides_close_at_a_time(tmp_path: Path) -> None:
    """Both hosts send a FIN before they receive the other's, and acknowledge each other's FIN (RFC 9293, 3.6, figure 13)."""
    read = read_text(
        tmp_path,
        f"""{HANDSHAKE}
        0.020 C > S F. 1:1(0) ack 1
        0.021 S > C F. 1:1(0) ack 1
        0.030 C > S .  2:2(0) ack 2
        0.031 S > C .  2:2(0) ack 2
        """,
    )
    assert column(read.segments, "kind", 4, 5, 6, 7) == ["new", "new", "ack", "ack"]
    assert read.connections["closed_by"].to_list() == ["fin"]
    assert figures(read, "client", "retransmitted_segments", "not_captured_bytes") == (0, 0)


def test_ports_used_again_begin_with_a_clean_slate(tmp_path: Path) -> None:
    """The new connection has a new ISN, so sequence numbers that look old belong to new data (RFC 9293, 3.6.1; RFC 6191)."""
    text = f"""{HANDSHAKE}
        0.02 C > S P. 1:1001 ack 1
        0.03 S > C R. 1:1(0) ack 1001 win 0
        host D 10.0.0.1:40000 isn 400
        host T 10.0.0.2:80 isn 9000
        1.00 D > T S  0:0(0) <mss 1460>
        1.01 T > D S. 0:0(0) ack 1 <mss 1460>
        1.02 D > T P. 1:1001 ack 1
        1.03 T > D .  1:1(0) ack 1001
    """
    read = read_text(tmp_path, text)
    assert column(read.segments, "conn") == [0] * 5 + [1] * 4
    assert column(read.segments, "kind", 6, 7, 8, 9) == ["new", "new", "new", "ack"]
    assert read.connections["client_retransmitted_segments"].to_list() == [0, 0]
