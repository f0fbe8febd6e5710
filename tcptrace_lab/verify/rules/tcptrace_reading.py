"""Rules on the connections that tcptrace lists, and on the segments that it reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcptrace_lab.schema import SIDES
from tcptrace_lab.text.numbers import counted
from tcptrace_lab.verify.differences import Rule
from tcptrace_lab.verify.tcptrace_model import LARGEST_FRAME, follows

if TYPE_CHECKING:
    from tcptrace_lab.verify.figures import FigureCase

_SOURCE = "tcptrace's manual, and what version 6.6.7 prints"

_LARGEST_FIELD = (1 << 16) - 1

_LARGEST_IP_DATA = _LARGEST_FIELD - 40
"""Largest TCP payload of an IPv4 packet without options (RFC 791, 3.1)."""

LARGEST_OPTIONS = 40
"""Maximum bytes of options in a TCP header (RFC 9293, 3.1). tcptrace counts truncated options as missing data."""

_INCOMPLETE = "fragments of an IP packet are missing"
"""Text of the engine's message about a packet with missing fragments."""

_FRAGMENT_HEADER = 8
"""Bytes of an IPv6 fragment header (RFC 8200, 4.5)."""


def _tunnelled(case: FigureCase) -> str | None:
    if case.theirs_listed or not case.layers or follows(case.layers):
        return None
    return f"the segments came in {case.layers}; tcptrace does not read these layers"


def _stopped(case: FigureCase) -> str | None:
    if case.refused is None or len(case.theirs_listed) >= len(case.ours_listed):
        return None
    return f"tcptrace stopped reading: {case.refused}"


def _split_by_fragmentation(case: FigureCase) -> str | None:
    """Tcptrace and we start a new connection at different segments."""
    if not case.ours_listed or not case.theirs_listed or len(case.ours_listed) + len(case.theirs_listed) < len("ab") + 1:
        return None
    ours = sum(row["client_segments"] + row["server_segments"] for row in case.ours_listed)
    kinds = [f"{side}_{kind}_duplicates" for side in SIDES for kind in ("capture", "network")]
    copies = sum(row[kind] for row in case.ours_listed for kind in kinds)
    theirs = sum(int(figures["total_packets"]) for one in case.theirs_listed for figures in one.figures)
    if theirs not in {ours, ours + copies, case.readable}:
        return None
    return (
        f"the same {theirs:,} segments are {len(case.ours_listed)} connections for tcptrace-lab and {len(case.theirs_listed)} for tcptrace"
    )


def _joined_by_offload(case: FigureCase) -> str | None:
    if case.theirs_listed or case.largest_bytes <= LARGEST_FRAME:
        return None
    return f"a segment has {case.largest_bytes:,} bytes, more than a standard frame: with offload, its IP length is 0"


def _extension_as_ports(case: FigureCase) -> str | None:
    if case.ours_listed or not case.theirs_listed or not any(":" in end[0] for end in case.theirs_listed[0].ends):
        return None
    ports = " and ".join(str(end[1]) for end in case.theirs_listed[0].ends)
    return f"no TCP header between these IPv6 addresses has the ports {ports}: tcptrace reads an extension header as TCP"


def _first_fragments(case: FigureCase) -> str | None:
    """Tcptrace reads more packets than we do. The excess is at most the number of packets with missing fragments."""
    incomplete = case.survived(_INCOMPLETE)
    ours = case.readable if case.model is None else sum(tally.packets for tally in case.model.sides.values())
    listed = sum(int(figures["total_packets"]) for one in case.theirs_listed for figures in one.figures)
    packets = listed if case.model is None else int(case.theirs)
    if not 0 < packets - ours <= incomplete:
        return None
    return f"fragments are missing: tcptrace counts {counted(packets - ours, 'first fragment')} with a TCP header as segments"


def strange(case: FigureCase) -> str | None:
    """Name the layers that tcptrace does not read, with the number of their segments."""
    if case.model is None or not case.model.strange:
        return None
    evidence_text = ", ".join(f"{counted(number, 'segment')} in {layers}" for layers, number in sorted(case.model.strange.items()))
    return f"tcptrace does not read these layers: {evidence_text}"


def _offloaded(case: FigureCase) -> str | None:
    """With offload, the IP length can be 0. tcptrace rejects such a packet, because 0 is less than the length of its header."""
    model = case.model
    if model is None:
        return None
    larger, ours = sum(model.larger.values()), sum(tally.packets for tally in model.sides.values())
    missing = ours - int(case.theirs)
    if not 0 < missing <= larger:
        return None
    return (
        f"with offload, {counted(larger, 'segment')} are larger than the MSS (or than a standard frame); {missing} of them have an IP "
        "length of 0, and tcptrace ignores these"
    )


def _beyond_ip(case: FigureCase) -> str | None:
    model = case.model
    largest = 0 if model is None else max(tally.largest for tally in model.sides.values())
    return f"a segment has {largest:,} bytes of data, more than the IP length field can express" if largest > _LARGEST_IP_DATA else None


def _short_frames(case: FigureCase) -> str | None:
    """The IP length of some packets exceeds their frame. tcptrace counts the excess as truncated data, and we do not count it."""
    model = case.model
    if model is None:
        return None
    tallies = model.sides.values()
    ours, cut = sum(tally.data_bytes for tally in tallies), sum(tally.cut_bytes for tally in tallies)
    printed = [figures for one in case.theirs_listed for figures in one.figures]
    theirs, missing = (sum(int(figures[name]) for figures in printed) for name in ("actual_data_bytes", "truncated_data"))
    headers = sum(tally.cut_packets for tally in tallies) * LARGEST_OPTIONS
    if not 0 < theirs - ours <= missing - cut <= theirs - ours + headers:
        return None
    return f"the IP lengths exceed the frames by {theirs - ours:,} bytes in all; tcptrace counts these bytes as data, tcptrace-lab does not"


def _extension_header(case: FigureCase) -> str | None:
    """Tcptrace counts the 8 bytes of an IPv6 extension header as data, or does not find the TCP header behind this header."""
    if case.model is None or not case.theirs_listed or not any(":" in end[0] for end in case.theirs_listed[0].ends):
        return None
    tallies = list(case.model.sides.values())
    for one in case.theirs_listed:
        for figures in one.figures:
            packets, data = int(figures["total_packets"]), int(figures["actual_data_bytes"])
            more = any(packets == tally.packets and data == tally.data_bytes + _FRAGMENT_HEADER * packets for tally in tallies)
            if packets and more:
                return f"tcptrace counts the {_FRAGMENT_HEADER} bytes of an IPv6 extension header as data in each of {packets} segments"
            if not packets and any(tally.packets for tally in tallies):
                return "tcptrace counts no segment of one side: their TCP headers follow IPv6 extension headers"
    return None


def _false_headers(case: FigureCase) -> str | None:
    """Both tools count the same packets. For some of them, tcptrace's data length is wrong: it is negative, or includes the options."""
    false, model = case.false_headers, case.model
    if not false or model is None or int(case.theirs) != sum(tally.packets for tally in model.sides.values()):
        return None
    return f"{counted(false, 'TCP header')} with an impossible length: tcptrace counts data of these segments, tcptrace-lab does not"


RULES: tuple[Rule[FigureCase], ...] = (
    Rule(
        "tcptrace-follows-no-tunnels",
        "tcptrace reads few link types, and no tunnels",
        _SOURCE,
        frozenset({"connections"}),
        _tunnelled,
    ),
    Rule(
        "tcptrace-passes-big-packets-over",
        "tcptrace ignores packets with an IP length of 0",
        f"{_SOURCE}; Linux GSO, BIG TCP",
        frozenset({"connections"}),
        _joined_by_offload,
    ),
    Rule(
        "tcptrace-reads-extension-headers",
        "tcptrace reads IPv6 extension headers as TCP",
        "RFC 8200, 4",
        frozenset({"connections"}),
        _extension_as_ports,
    ),
    Rule(
        "tcptrace-reads-first-fragments",
        "tcptrace reads the first fragment of an IP packet as the whole packet",
        "RFC 791, 3.2",
        frozenset({"connections", "segments_read"}),
        _first_fragments,
    ),
    Rule(
        "tcptrace-parts-otherwise",
        "tcptrace uses another rule for when a new connection begins on the same ports",
        _SOURCE,
        frozenset({"connections"}),
        _split_by_fragmentation,
    ),
    Rule(
        "tcptrace-reads-no-tunnels",
        "tcptrace does not read segments in tunnels or fragments",
        _SOURCE,
        frozenset({"segments_read"}),
        strange,
    ),
    Rule(
        "tcptrace-parts-segments-otherwise",
        "tcptrace begins a new connection on the same ports at another segment",
        _SOURCE,
        frozenset({"segments_read"}),
        _split_by_fragmentation,
    ),
    Rule(
        "tcptrace-passes-offload-over",
        "tcptrace ignores packets with an IP length of 0",
        f"{_SOURCE}; Linux GSO",
        frozenset({"segments_read"}),
        _offloaded,
    ),
    Rule(
        "tcptrace-believes-ip-lengths",
        "tcptrace uses the IP length even if it exceeds the frame",
        "RFC 791, 3.1",
        frozenset({"segments_read"}),
        _short_frames,
    ),
    Rule(
        "tcptrace-knows-no-big-tcp",
        "tcptrace uses the IP length even for packets that are longer than this field can express",
        "RFC 2675; Linux BIG TCP",
        frozenset({"segments_read"}),
        _beyond_ip,
    ),
    Rule(
        "tcptrace-reads-no-extension-headers",
        "tcptrace does not skip IPv6 extension headers",
        "RFC 8200, 4",
        frozenset({"segments_read"}),
        _extension_header,
    ),
    Rule(
        "tcptrace-believes-header-lengths",
        "tcptrace uses the TCP header length even if it exceeds the packet or is below 20 bytes",
        "RFC 9293, 3.1",
        frozenset({"segments_read"}),
        _false_headers,
    ),
    Rule("tcptrace-stops", "tcptrace exits when it meets a format that it does not know", _SOURCE, frozenset({"connections"}), _stopped),
)
