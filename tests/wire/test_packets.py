"""The test helper that builds captures from text agrees with tshark. The parser of tshark's numbers is right."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

from tcptrace_lab.verify.tshark import nanoseconds
from tests.support.packets import BASE_NS, LINKS, capture, frames
from tests.support.peers.comparison import Differs, differences
from tests.support.peers.tshark import opinion, time_ns

if TYPE_CHECKING:
    from pathlib import Path

EXCHANGE = """
    # a remark
    host B [2001:db8::2]:443 isn 4294967295
    host A [2001:db8::1]:50000 isn 7
    0.000       C > S  S   0:0(0)         win 65535  <mss 1460, wscale 7, sackOK, TS val 10 ecr 0>
    10ms        S > C  S.  0:0(0)  ack 1  win 65160  <mss 1400, wscale 9>
    +1ns        C > S  P.  1:1461(1460)   win 512    {id 77, ttl 63, ecn 3}
    0.020       S > C  .   ack 1          win 100    <nop, nop, sack 11:21 31:41>
    0.5         C > S  udp 33
    1           A > B  S   0:0(0)                    {ttl 9, ecn 1}
    2           B > A  S.  0:0(0)
    3           A > B  FP. 1:11                      {ext hop/dst}
"""


@pytest.mark.parametrize("suffix", [".pcap", ".pcapng"])
@pytest.mark.parametrize("link", sorted(set(LINKS) - {"ipv4", "ipv6"}))
def test_tshark_reads_what_the_text_says(tmp_path: Path, link: str, suffix: str) -> None:
    read = opinion(capture(tmp_path / f"exchange{suffix}", EXCHANGE, link=link))
    segments = read.segments
    assert (read.packets, read.connections, segments["frame"].to_list()) == (8, 2, [1, 2, 3, 4, 6, 7, 8])
    assert [ts - BASE_NS for ts in segments["ts_ns"]] == [0, 10_000_000, 10_000_001, 20_000_000, 10**9, 2 * 10**9, 3 * 10**9]
    assert segments["seq"].to_list() == [0, 0, 1, 1, 0, 0, 1]
    assert segments["ack"].to_list()[1:4] == [1, 1, 1]
    assert segments["payload_bytes"].to_list() == [0, 0, 1460, 0, 0, 0, 10]
    assert segments["flags"].to_list() == [2, 18, 24, 16, 2, 18, 25]
    assert segments["window_bytes"].to_list()[:4] == [65_535, 65_160, 512 << 7, 100 << 9]
    assert segments["sack_blocks"].to_list()[2:4] == [None, [11, 21, 31, 41]]
    assert segments["mss_bytes"].to_list()[:3] == [1460, 1400, None]
    assert segments["tsval"].to_list()[:2] == [10, None]
    assert segments["ip_id"].to_list() == [1, 1, 77, 2, None, None, None]
    assert segments["ttl"].to_list() == [64, 64, 63, 64, 9, 64, 64]
    assert segments["ecn"].to_list() == [0, 0, 3, 0, 1, 0, 0]


def test_vlan_tags_padding_and_cuts_are_in_the_frame() -> None:
    plain, tagged, padded, cut = frames(
        "0 C > S S 0:0(0)\n1 C > S S 0:0(0) {vlan 5/6}\n2 C > S S 0:0(0) {pad 6}\n3 C > S S 0:0(0) {snap 20}"
    )
    assert [len(frame.data) for frame in (plain, tagged, padded, cut)] == [54, 62, 60, 20]
    assert [frame.wire_bytes for frame in (plain, tagged, padded, cut)] == [54, 62, 60, 54]
    assert (tagged.data[12:14], tagged.data[16:18], tagged.data[20:22]) == (b"\x88\xa8", b"\x81\x00", b"\x08\x00")


def test_a_resent_byte_is_the_same_byte() -> None:
    first, again = frames("0 C > S . 1:11\n1 C > S . 3:11")
    assert first.data[-8:] == again.data[-8:]


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("0 C > X S", "'X'"),
        ("0 C > S P. 1:11(9)", "offsets are 10 apart"),
        ("0 C > S Q", "not a segment"),
        ("soon C > S S", "neither a host nor a frame"),
        ("0.0000000001 C > S S", "below one nanosecond"),
        ("0 C > S S <mms 1460>", "unknown TCP option"),
        ("0 C > S S {tll 1}", "unknown header word"),
    ],
)
def test_mistakes_in_the_text_are_reported_with_their_line(line: str, word: str) -> None:
    with pytest.raises(ValueError, match=f"line 2: .*{word}"):
        frames(f"\n{line}")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1700000000.021000001", 1_700_000_000_021_000_001),
        ("1418145370.1000000000", 1_418_145_371_000_000_000),
        ("-1.500000000", -1_500_000_000),
        ("18446744073204.126329000", None),
        ("", None),
    ],
)
def test_tsharks_times_are_read_without_floats(text: str, expected: int | None) -> None:
    assert time_ns(text) == expected
    assert pl.DataFrame({"time": [text]}).select(nanoseconds("time")).item() == expected


def test_comparison_finds_each_planted_difference(tmp_path: Path) -> None:
    theirs = opinion(capture(tmp_path / "exchange.pcap", EXCHANGE)).segments
    ours = theirs.select(
        *("frame", "ts_ns", "conn", "seq", "payload_bytes", "flags", "sack_blocks", "tsval", "tsecr", "ip_id", "ttl"),
        pl.when(pl.col("flags") & 16 != 0).then("ack").alias("ack"),
        "window_bytes",
        pl.col("ecn").alias("ect"),
        (pl.col("ecn") == 3).alias("ce"),
    )
    assert differences(ours, theirs) == {}
    assert differences(ours.with_columns(pl.col("seq") - (1 << 32), pl.col("conn") + 5), theirs) == {}
    for name in ("ts_ns", "seq", "ack", "payload_bytes", "flags", "ttl", "ect", "tsval", "ip_id"):
        planted = ours.with_columns(
            pl.when(pl.col("frame") >= 7).then((pl.col(name).fill_null(0) + 1) % 250).otherwise(pl.col(name)).alias(name)
        )
        assert differences(planted, theirs) == {name: Differs(2, 7)}
    one_less = ours.with_columns(pl.when(pl.col("frame") == 8).then(0).otherwise("conn").alias("conn"))
    assert differences(one_less, theirs) == {"conn": Differs(1, 8)}
    blocks = ours.with_columns(pl.when(pl.col("frame") == 4).then([11, 21]).otherwise("sack_blocks").alias("sack_blocks"))
    assert differences(blocks, theirs) == {"sack_blocks": Differs(1, 4)}
    unknown = ours.with_columns(pl.when(pl.col("frame") == 4).then(None).otherwise("window_bytes").alias("window_bytes"))
    assert differences(unknown, theirs) == {"window_known": Differs(1, 4)}
    unscaled = ours.with_columns(pl.when(pl.col("frame") == 4).then(100).otherwise("window_bytes").alias("window_bytes"))
    assert differences(unscaled, theirs) == {"window_bytes": Differs(1, 4)}
    assert differences(ours.filter(pl.col("frame") != 3), theirs) == {"frame_only_theirs": Differs(1, 3)}
    assert differences(ours, theirs.filter(pl.col("frame") != 3)) == {"frame_only_ours": Differs(1, 3)}
