"""The causes do not change if the capture's format, clock, addresses or snaplen change, and they hardly change if it is cut.

In a capture that begins late or ends early, the cause of a wait can become unknown. A cut capture is allowed to name another cause than the
whole capture for at most `cuts.SHARE` of a direction's lifetime. Larger deviations are in `DEVIATIONS`, with the reason. A test fails if a
deviation is not listed there, if it exceeds its entry, or if an entry is no longer needed.

All of `captures/` and the captures named in `OTHERS` are cut; `cuts.main` cuts and compares any other capture.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pytest

from tests.support import needs
from tests.support.captures import cuts, damage
from tests.support.places import CAPTURES

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


OTHERS = {
    "Zious11-wirerust__tcp-ethereal-file1.trace": "an upload from a host that acknowledges late, in 2004",
    "chrissanders-packets__http_espn_fail.pcapng": "connections that stay idle for a minute and a half, others that are never opened",
    "chrissanders-packets__http_post.pcapng": "an upload behind a window of 64 KB",
    "ntop-nDPI__ipp.pcap": "a printer that takes what it prints in windows smaller than a segment",
    "seladb-PcapPlusPlus__http-packets.pcap": "questions and answers of several connections, few of which are in either part",
    "seladb-PcapPlusPlus__one_tcp_stream.pcap": "one question and answer, and ten seconds until the end",
    "simsong-tcpflow__test5-lines.pcap": "lines that a program writes",
    "zeek-zeek__206_example_b.pcap": "a browser's downloads, in pieces",
    "zeek-zeek__reassembly.pcap": "an upload to a server that has closed its side long before",
    "zeek-zeek__socks.pcap": "a FIN that nobody answers, sent again for four minutes",
}
"""Maps the name of each capture to a description of what it shows."""

PATHS = [*sorted(CAPTURES.glob("*.pcap*")), *(needs.SHARED / name for name in OTHERS)]

SNAPLEN = 96
"""A snaplen (bytes) that keeps the Ethernet, IPv6 and TCP headers with all options."""
LATER_NS = 86_400_123_456_789


@dataclass(frozen=True, slots=True)
class Deviation:
    """The largest allowed deviation of a cut capture, as a share of a direction's lifetime, and the reason."""

    share: float
    reason: str


FRAMES, HALF, TIME, END = (
    "without the first quarter of its frames",
    "without the first half of its frames",
    "without the first quarter of its time",
    "without the last quarter of its frames",
)
_FEW = Deviation(1.0, "one message and two FINs are left, and no round trip")

DEVIATIONS: Mapping[tuple[str, str], Deviation] = {
    ("ethernet-reordering-at-server.pcapng", FRAMES): Deviation(
        0.16, "at the receiver: waits of a recovery are called network in the first round trips, before it is known how far the sender is"
    ),
    ("ethernet-short-connections.pcapng", FRAMES): _FEW,
    ("ethernet-short-connections.pcapng", TIME): _FEW,
    ("ethernet-two-way.pcapng", TIME): Deviation(
        0.07, "one wait of 6 ms for the window, whose scale is not known, is called the application's"
    ),
    ("seladb-PcapPlusPlus__http-packets.pcap", HALF): Deviation(
        0.12, "45 ms are left of a connection of which the whole leaves most unknown"
    ),
    ("raw-bulk.pcapng", END): Deviation(
        0.19, "the last segment is on its way for one of five round trips, and nothing shows that more waited"
    ),
}
"""Maps (capture, cut) to the allowed deviation."""

every_capture = pytest.mark.parametrize("path", needs.each(PATHS))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for short-lived files."""
    return tmp_path_factory.mktemp("cut")


def ledger_of(folder: Path, link_type: int, packets: list[damage.Packet]) -> Mapping[cuts.Direction, list[cuts.Span]]:
    return cuts.reported(damage.write(folder / "changed.pcap", link_type, packets)).spans


@every_capture
def test_what_is_left_of_a_capture_names_no_other_cause(folder: Path, path: Path) -> None:
    found = {name: off[0].share for name, off in cuts.otherwise(path, folder).items()}
    allowed = {cut: deviation.share for (name, cut), deviation in DEVIATIONS.items() if name == path.name}
    assert found.keys() == allowed.keys()
    assert {cut: share for cut, share in found.items() if share > allowed[cut]} == {}


@every_capture
def test_frames_cut_behind_their_headers_say_the_same(folder: Path, path: Path) -> None:
    link_type, packets = cuts.source(path, folder)
    cut = [replace(packet, data=packet.data[:SNAPLEN]) for packet in packets]
    assert ledger_of(folder, link_type, cut) == ledger_of(folder, link_type, packets)


@every_capture
def test_a_clock_that_is_wrong_by_a_day_says_the_same_a_day_later(folder: Path, path: Path) -> None:
    link_type, packets = cuts.source(path, folder)
    later = [replace(packet, ts_ns=packet.ts_ns + LATER_NS) for packet in packets]
    expected = {
        direction: [cuts.Span(span.start_ns + LATER_NS, span.end_ns + LATER_NS, span.cause) for span in spans]
        for direction, spans in ledger_of(folder, link_type, packets).items()
    }
    assert ledger_of(folder, link_type, later) == expected


@every_capture
def test_another_format_says_the_same(folder: Path, path: Path) -> None:
    """The capture is converted to pcap with nanoseconds, and to pcapng."""
    expected = cuts.reported(path).spans
    for form in ("nsecpcap", "pcapng"):
        other = folder / f"other.{form}"
        subprocess.run([needs.program("editcap"), "-F", form, path, other], check=True, capture_output=True)
        assert cuts.reported(other).spans == expected


@pytest.mark.parametrize("path", needs.each(path for path in PATHS if not path.name.startswith("loopback-")))
def test_hosts_that_exchange_their_addresses_say_the_same(folder: Path, path: Path) -> None:
    link_type, packets = cuts.source(path, folder)
    turned = cuts.turned(path, packets)
    assert turned != packets
    assert ledger_of(folder, link_type, turned) == ledger_of(folder, link_type, packets)


SEVERAL = [
    CAPTURES / "ethernet-short-connections.pcapng",
    *(needs.SHARED / name for name in OTHERS if name.startswith(("chris", "ntop", "seladb", "zeek"))),
]


@pytest.mark.parametrize("path", needs.each(SEVERAL))
def test_a_connection_alone_says_what_it_says_among_others(folder: Path, path: Path) -> None:
    link_type, packets = cuts.source(path, folder)
    whole = cuts.reported(damage.write(folder / "whole.pcap", link_type, packets))
    for conn in sorted({conn for conn, _ in whole.spans}):
        alone = ledger_of(folder, link_type, cuts.only_connection(whole, packets, conn))
        assert alone == {
            (0, from_client): whole.spans[conn, from_client] for from_client in (True, False) if (conn, from_client) in whole.spans
        }
