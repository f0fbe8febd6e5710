"""Some captures can be rewritten as TCP over ATM. All other captures are refused with an error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tcptrace_lab.capture import atm
from tcptrace_lab.capture.atm import AtmForm
from tcptrace_lab.errors import CaptureUnreadable, NotACapture, UsageError
from tests.support import packets
from tests.support.places import CAPTURES

if TYPE_CHECKING:
    from pathlib import Path

EXCHANGE = """
0.000000001  C > S  S   0:0(0)          win 65535  <mss 1460>
+1ms         S > C  S.  0:0(0)   ack 1  win 65535  <mss 1460>
+1ms         C > S  .   1:1(0)   ack 1
+1ms         C > S  P.  1:1001   ack 1  {header}
+1ms         S > C  udp 100
"""


@pytest.mark.parametrize("link", sorted(packets.LINKS))
@pytest.mark.parametrize("suffix", [".pcap", ".pcapng"])
def test_every_source_link_gives_the_same_file(tmp_path: Path, link: str, suffix: str) -> None:
    """Each link type gives the file that the raw IP capture gives."""
    hosts = "host C [2001:db8::1]:40000\nhost S [2001:db8::2]:80\n" if link == "ipv6" else ""
    words = hosts + EXCHANGE.format(header="")
    source = packets.capture(tmp_path / f"source{suffix}", words, link=link)
    measure = packets.capture(tmp_path / "measure.pcap", words, link="raw")
    done = [atm.convert(path, path.with_suffix(".atm"), AtmForm.RFC1483_LLC) for path in (source, measure)]
    assert done == [atm.Converted(packets=5, skipped=0, padded=0, cells=None)] * 2
    assert source.with_suffix(".atm").read_bytes() == measure.with_suffix(".atm").read_bytes()


def test_vlan_tags_and_ethernet_padding_stay_behind(tmp_path: Path) -> None:
    plain, tagged = (
        packets.capture(tmp_path / f"{at}.pcap", EXCHANGE.format(header=header)) for at, header in enumerate(["", "{vlan 5/6, pad 30}"])
    )
    written = []
    for path in (plain, tagged):
        atm.convert(path, path.with_suffix(".atm"), AtmForm.RFC1483_VCMUX)
        written.append(path.with_suffix(".atm").read_bytes())
    assert written[0] == written[1]


def test_frames_without_ip_are_left_out(tmp_path: Path) -> None:
    arp = packets.Frame(packets.BASE_NS, bytes(12) + b"\x08\x06" + bytes(28), 42)
    source = tmp_path / "arp.pcap"
    packets.write_pcap(source, [arp, *packets.frames(EXCHANGE.format(header=""))])
    assert atm.convert(source, tmp_path / "out.pcap", AtmForm.SUNATM) == atm.Converted(packets=5, skipped=1, padded=0, cells=None)


@pytest.mark.parametrize(
    ("header", "settings", "what"),
    [
        ("", {"form": "rfc1483"}, "there is no form 'rfc1483'"),
        ("", {"form": "erf-cells", "vpi": 256}, "VPI 256 or VCI 32 is out of range.*frame 1"),
        ("", {"form": "sunatm", "vci": 65_536}, "VPI 0 or VCI 65536 is out of range"),
        ("", {"form": "clip", "lose_cells": [0]}, "the form clip has no cells to lose"),
        ("", {"form": "erf-cells", "lose_cells": [5, 1000]}, "a cell to lose does not exist: the capture has cells 0 to "),
        ("{snap 100}", {"form": "clip", "pad_cut": False}, "the snap length cut 954 bytes.*frame 4"),
        ("{snap 50}", {"form": "clip"}, "the snap length cut the packet's headers.*frame 4"),
    ],
)
def test_a_call_that_cannot_be_right_says_why_and_leaves_nothing(tmp_path: Path, header: str, settings: dict[str, Any], what: str) -> None:
    source = packets.capture(tmp_path / "source.pcap", EXCHANGE.format(header=header))
    with pytest.raises(UsageError, match=what):
        atm.convert(source, tmp_path / "target", **settings)
    assert [path.name for path in tmp_path.iterdir()] == ["source.pcap"]


def test_a_packet_longer_than_a_pdu_is_refused(tmp_path: Path) -> None:
    """An AAL5 PDU has at most 65,535 bytes. The longest loopback packets have that size, so LLC/SNAP no longer fits."""
    source = CAPTURES / "loopback-bulk.pcapng"
    assert atm.convert(source, tmp_path / "target", AtmForm.FORE_IP).packets == 79
    with pytest.raises(UsageError, match=r"not 65543: .*loopback-bulk\.pcapng, frame 18"):
        atm.convert(source, tmp_path / "target", AtmForm.SUNATM)


@pytest.mark.parametrize(("kept", "error"), [(0, NotACapture), (3, NotACapture), (20, CaptureUnreadable), (70, CaptureUnreadable)])
def test_a_cut_source_is_refused(tmp_path: Path, kept: int, error: type[CaptureUnreadable]) -> None:
    for suffix in (".pcap", ".pcapng"):
        source = packets.capture(tmp_path / f"source{suffix}", EXCHANGE.format(header=""))
        source.write_bytes(source.read_bytes()[:kept])
        with pytest.raises(error, match=source.name):
            atm.convert(source, tmp_path / "target", AtmForm.CLIP)
        assert not (tmp_path / "target").exists()


def test_a_capture_is_not_written_over_itself(tmp_path: Path) -> None:
    source = packets.capture(tmp_path / "source.pcap", EXCHANGE.format(header=""))
    before = source.read_bytes()
    with pytest.raises(UsageError, match="source and target are one file"):
        atm.convert(source, source, AtmForm.CLIP)
    assert source.read_bytes() == before
