"""Captures are damaged at random. A rule explains every difference from tshark and tcptrace."""

from __future__ import annotations

import random
import struct
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tcptrace_lab.verify import verify
from tcptrace_lab.verify.differences import UNEXPLAINED
from tests.support import needs, packets
from tests.support.captures.damage import KINDS, of_one_side, read, write
from tests.support.captures.fragmented import DATA_FRAME, exchange, in_parts
from tests.support.peers.explanations import HANDSHAKE, reported

if TYPE_CHECKING:
    from pathlib import Path

LARGEST_BYTES = 100_000
LITTLE_ENDIAN_PCAP = (struct.pack("<I", 0xA1B2C3D4), struct.pack("<I", 0xA1B23C4D))
SEEDS = range(27)
"""Random seeds. Each kind of damage is tested three times, on random captures of other projects."""


def plain_captures() -> list[Path]:
    """Return the small captures whose file format `damage` can read."""
    files = (path for path in sorted(needs.SHARED.glob("*.pcap")) if 2_000 < path.stat().st_size < LARGEST_BYTES)
    return [path for path in files if path.read_bytes()[:4] in LITTLE_ENDIAN_PCAP]


@needs.shared_captures
@pytest.mark.parametrize("seed", SEEDS)
def test_damage_leaves_nothing_unexplained(seed: int, tmp_path: Path) -> None:
    needs.tshark_4_0()
    chance = random.Random(seed)  # noqa: S311  (for no secret)
    source, kind = chance.choice(plain_captures()), list(KINDS)[seed % len(KINDS)]
    link_type, packets = read(source)
    damaged = KINDS[kind](packets, chance)
    done = verify(write(tmp_path / f"{kind}.pcap", link_type, damaged))
    assert [str(one) for one in done.account.differences.get(UNEXPLAINED, [])] == [], f"{source.name}, {kind}"


def test_an_ack_that_came_late_is_a_keepalive_to_tshark(tmp_path: Path) -> None:
    """Only the client's direction was captured.

    The last ACK arrives late: the client sent it before the FIN. So its sequence number is one below the highest number.
    """
    text = """
        0.0000 C > S S  0:0(0)         win 64240 <mss 1460>
        0.0110 C > S .  1:1(0) ack 1
        0.0220 C > S F. 1:1(0) ack 201
        0.0221 C > S .  1:1(0) ack 101
    """
    rule = reported(tmp_path, text, "tshark-keepalive-is-a-place")
    assert rule[4, "keep_alive"].endswith("its ACK 101 is older than 201: it was sent earlier and arrived late")


def test_an_ack_behind_an_old_one_is_a_window_update_only_by_what_it_is_held_against(tmp_path: Path) -> None:
    """Frame 6 is an old ACK with another window. Frame 7 repeats the ACK number of frame 5.

    tshark compares frame 7 with frame 6, which has another ACK number.
    """
    text = f"""{HANDSHAKE}
        0.0200 S > C P. 1:101   ack 1
        0.0201 S > C P. 101:201 ack 1
        0.0220 C > S .  1:1(0)  ack 201 win 500
        0.0221 C > S .  1:1(0)  ack 101 win 502
        0.0222 C > S .  1:1(0)  ack 201 win 501
    """
    assert reported(tmp_path, text, "tshark-compares-with-old-acks")[8, "window_update"] == (
        "the previous ACK of this direction is older than an earlier one: tshark compares with it, tcptrace-lab with ACK 201"
    )


def test_a_window_after_a_reset_is_an_update_to_tshark(tmp_path: Path) -> None:
    """The RST has a window of 0. tshark takes it for an advertised window."""
    text = f"""{HANDSHAKE}
        0.0200 C > S F. 1:1(0) ack 1
        0.0300 S > C R. 1:1(0) ack 2 win 0
        0.0301 S > C .  1:1(0) ack 2 win 509
    """
    rule = reported(tmp_path, text, "tshark-compares-with-old-acks")
    assert rule[6, "window_update"].startswith("the previous ACK of this direction is in a RST")


def test_an_option_that_the_capture_cut_is_shown_by_tshark_as_far_as_it_goes(tmp_path: Path) -> None:
    """The capture has 62 bytes of frame 4: 54 bytes of headers and 8 bytes of options.

    The 8 bytes are two no-operations, and the kind, the length and the value of a timestamp. The echoed timestamp is cut off.
    """
    text = f"{HANDSHAKE}\n0.0200 C > S . 1:1(0) ack 1 <nop, nop, TS val 77 ecr 5> {{snap 62}}"
    assert reported(tmp_path, text, "tshark-reads-cut-options") == {
        (4, "tsval"): "62 of 66 bytes were captured, and the option extends beyond them"
    }


def test_a_scale_cut_off_a_syn_is_unknown_to_us_and_none_to_tshark(tmp_path: Path) -> None:
    text = """
        0.000 C > S  S   0:0(0)        win 64240 <mss 1460, nop, wscale 7>
        0.010 S > C  S.  0:0(0) ack 1  win 65160 <mss 1460, nop, wscale 7> {snap 58}
        0.011 C > S  .          ack 1  win 502
    """
    assert reported(tmp_path, text, "tshark-scales-by-cut-syns")[3, "window_known"].startswith(
        "the capture cut options of the server's SYN"
    )


def test_sack_blocks_that_the_capture_cut_are_shown_by_tshark_as_far_as_they_go(tmp_path: Path) -> None:
    """The capture has 66 bytes of frame 5: 54 bytes of headers and 12 bytes of options.

    The 12 bytes are two no-operations, the kind and the length of a SACK option, and its first block. The second block is cut off.
    """
    text = f"""{HANDSHAKE}
        0.020 S > C . 1:1(0) ack 1
        0.030 C > S . 1:1(0) ack 1 <nop, nop, sack 1001:2001 3001:4001> {{snap 66}}
    """
    assert (5, "sack_blocks") in reported(tmp_path, text, "tshark-reads-cut-options")


def test_a_syn_on_used_ports_with_cut_options_is_counted_by_tshark_and_not_reported(tmp_path: Path) -> None:
    text = f"""{HANDSHAKE}
        0.100 C > S R. 1:1(0) ack 1
        host C 10.0.0.1:40000 isn 70000
        9.000 C > S S  0:0(0) win 64240 <mss 1460, nop, wscale 7> {{snap 60}}
    """
    found = reported(tmp_path, text, "tshark-tells-no-reuse-of-cut-headers")
    assert found.keys() == {(5, "reused_ports"), (5, "completeness")}


def test_fragments_of_which_the_capture_cut_one_are_no_segment_to_tshark(tmp_path: Path) -> None:
    """The first fragment is complete and contains the TCP header.

    The last fragment is truncated to 24 bytes: the IP header and 4 bytes of data.
    """
    needs.tshark_4_0()
    frames = exchange()
    whole = frames[DATA_FRAME]
    parts = [packets.Frame(whole.ts_ns, part, len(part)) for part in in_parts(whole.data)]
    parts[-1] = replace(parts[-1], data=parts[-1].data[:24])
    path = tmp_path / "fragments.pcap"
    packets.write_pcap(path, [*frames[:DATA_FRAME], *parts, *frames[DATA_FRAME + 1 :]], link="raw")
    found = verify(path, ["tshark"]).account.differences
    assert UNEXPLAINED not in found
    (only,) = found["tshark-joins-no-cut-fragments"]
    assert (only.frame, only.item) == (DATA_FRAME + len(parts), "frame_only_ours")
    assert "ip/fragments/tcp" in only.words


def test_the_first_fragment_alone_is_a_segment_to_tcptrace(tmp_path: Path) -> None:
    needs.program("tcptrace")
    whole = packets.frames("0 C > S P. 1:1401 ack 1", link="raw")[0]
    path = tmp_path / "fragment.pcap"
    first = in_parts(whole.data)[0]
    packets.write_pcap(path, [packets.Frame(whole.ts_ns, first, len(first))], link="raw")
    found = verify(path, ["tcptrace"]).account.differences
    assert UNEXPLAINED not in found
    (only,) = found["tcptrace-reads-first-fragments"]
    assert (only.ours, only.theirs) == (0, 1)
    assert "1 first fragment with a TCP header" in only.words


def test_the_first_fragment_in_a_connection_is_a_segment_to_tcptrace(tmp_path: Path) -> None:
    """The second fragment of a packet is missing.

    tcptrace-lab does not count the first fragment as a segment. tcptrace counts it.
    """
    needs.program("tcptrace")
    frames = exchange()
    whole = frames[DATA_FRAME]
    first = in_parts(whole.data)[0]
    path = tmp_path / "fragments.pcap"
    packets.write_pcap(path, [*frames[:DATA_FRAME], packets.Frame(whole.ts_ns, first, len(first)), *frames[DATA_FRAME + 1 :]], link="raw")
    found = verify(path, ["tcptrace"]).account.differences
    assert UNEXPLAINED not in found
    (only,) = found["tcptrace-reads-first-fragments"]
    assert (only.item, only.theirs - only.ours) == ("segments_read", 1)


def test_options_of_a_header_longer_than_its_packet_are_read_by_tshark(tmp_path: Path) -> None:
    """According to its length field, the TCP header has 40 bytes. The packet has only 32 bytes for it.

    tcptrace-lab applies the window scale of 7 to this segment. tshark applies no scale.
    """
    handshake = HANDSHAKE.replace("wscale 7", "wscale 7, TS val 5 ecr 0")
    text = f"{handshake}\n0.020 C > S . 1:1(0) ack 1 win 502 <nop, nop, TS val 77 ecr 5> {{doff 10}}"
    assert set(reported(tmp_path, text, "ours-reads-no-options-of-false-headers")) == {(4, "tsval"), (4, "tsecr")}
    assert "longer than its packet" in reported(tmp_path, text, "tshark-has-no-length")[4, "window_bytes"]


def test_an_option_of_half_a_sack_block_ends_tsharks_analysis(tmp_path: Path) -> None:
    """A SACK option of 6 bytes has only one edge, but a block needs two.

    tshark stops its analysis at this option. Only tcptrace-lab measures the RTT of the acknowledged segment.
    """
    text = f"""{HANDSHAKE}
        0.020 C > S P. 1:101 ack 1
        0.030 S > C .  ack 101 win 509 <nop, nop, opt 5 00000bb9, nop, nop>
    """
    assert {(5, "sack_blocks"), (5, "ack_rtt_ns")} <= set(reported(tmp_path, text, "tshark-stops-in-odd-options"))


def test_data_behind_a_header_shorter_than_any_is_some_to_tcptrace(tmp_path: Path) -> None:
    needs.program("tcptrace")
    path = packets.capture(tmp_path / "exchange.pcap", f"{HANDSHAKE}\n0.020 C > S P. 1:101 ack 1 {{doff 4}}")
    found = verify(path, ["tcptrace"]).account.differences
    assert UNEXPLAINED not in found
    assert [one.item for one in found["tcptrace-believes-header-lengths"]] == ["segments_read"]


def test_a_header_shorter_than_any_is_a_segment_to_us_alone(tmp_path: Path) -> None:
    text = f"{HANDSHAKE}\n0.020 C > S . 1:1(0) ack 1 {{doff 4}}"
    assert set(reported(tmp_path, text, "tshark-reads-no-flags-of-short-headers")) == {(4, "frame_only_ours")}


@pytest.mark.parametrize(
    ("snap", "asked", "answered"),
    [(70, ", sackOK, TS val 5 ecr 0", ", sackOK, TS val 9 ecr 5"), (58, "", "")],
    ids=["behind timestamps", "alone"],
)
def test_a_syn_ack_that_answers_a_cut_scale_has_none_to_tcptrace(tmp_path: Path, snap: int, asked: str, answered: str) -> None:
    """The SYN is truncated before its window scale, and the SYN-ACK offers a scale.

    A SYN-ACK can offer a scale only if the SYN offered one (RFC 7323, 2.2).
    """
    needs.program("tcptrace")
    text = f"""
        0.000 C > S  S   0:0(0)        win 64240 <mss 1460{asked}, nop, wscale 7> {{snap {snap}}}
        0.010 S > C  S.  0:0(0) ack 1  win 65160 <mss 1460{answered}, nop, wscale 7>
        0.011 C > S  .          ack 1  win 502
        0.012 S > C  .   1:1(0) ack 1  win 501
    """
    found = verify(packets.capture(tmp_path / "exchange.pcap", text), ["tcptrace"]).account.differences
    assert UNEXPLAINED not in found
    reported = {(one.item, one.from_client): (one.ours, one.theirs) for one in found["tcptrace-needs-whole-syns"]}
    assert reported["min_win_adv", False] == (501 << 7, "501")


def test_what_tshark_alone_takes_for_a_segment_counts_in_its_completeness(tmp_path: Path) -> None:
    """The SYN is captured twice. The first copy is truncated to 52 bytes.

    These bytes contain the flags, but not the whole TCP header.
    """
    text = """
        0.000 C > S S  0:0(0)       win 8192 {snap 52}
        0.001 C > S S  0:0(0)       win 8192
        0.010 S > C S. 0:0(0) ack 1 win 8192
    """
    assert (2, "completeness") in reported(tmp_path, text, "tshark-counts-other-frames")


@needs.shared_captures
def test_numbers_that_come_round_leave_less_than_nothing_outstanding_to_tcptrace(tmp_path: Path) -> None:
    """Only one direction is captured. Its sequence numbers begin at 4,294,964,796, shortly before they wrap.

    No ACK is captured, so tcptrace's mean of outstanding bytes over time is meaningless.
    """
    source = needs.SHARED / "seladb-PcapPlusPlus__one_tcp_stream_max_seq.pcap"
    needs.program("tcptrace")
    link_type, packets = read(source)
    one_side = of_one_side(packets, random.Random())  # noqa: S311  (nothing is drawn)
    found = verify(write(tmp_path / "side.pcap", link_type, one_side), ["tcptrace"]).account.differences
    assert UNEXPLAINED not in found
    assert "wavg_owin" in {one.item for one in found["tcptrace-counts-below-0"]}


def test_a_header_cut_in_the_middle_is_a_segment_to_tshark(tmp_path: Path) -> None:
    text = f"{HANDSHAKE}\n0.0200 C > S . 1:101 ack 1 {{snap 50}}"
    assert reported(tmp_path, text, "tshark-fills-cut-headers") == {
        (
            4,
            "frame_only_theirs",
        ): "50 of 154 bytes were captured, less than the TCP header: tcptrace-lab reports a problem instead of a segment"
    }


def test_a_sack_block_cut_behind_its_left_edge_is_none(tmp_path: Path) -> None:
    """The capture has 62 bytes of frame 5: 54 bytes of headers and 8 bytes of options.

    The options end after the left edge of a SACK block. Both programs agree on the data after this segment.
    """
    text = f"""{HANDSHAKE}
        0.020 C > S . 1:1461    ack 1
        0.030 S > C . 1:1(0)    ack 1461 win 509 <nop, nop, sack 2921:4381> {{snap 62}}
        0.040 C > S . 1461:2921 ack 1
    """
    assert not {item for _, item in reported(tmp_path, text, "tshark-takes-off-sacked-bytes")}
