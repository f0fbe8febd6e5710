"""Turns a readable TCP exchange, written as text, into a capture file.

Tests describe the packets in a notation like that of tcpdump and packetdrill. This module builds the packets with Scapy and writes them
with exact integer times (dpkt). One line is one frame:

    0.000  C > S  S   0:0(0)            win 65535  <mss 1460, wscale 7, sackOK, TS val 10 ecr 0>
    0.010  S > C  S.  0:0(0)     ack 1  win 65160  <mss 1460, wscale 7>
    0.020  C > S  .   1:1(0)     ack 1  win 512
    +1ms   C > S  P.  1:1461(1460) ack 1 win 512   {id 77, ttl 63, ecn 3}
    +0     C > S  udp 100

Grammar, in which square brackets mark optional parts:

    line     =  "" | "#" remark | host | segment | datagram
    host     =  "host" NAME ADDRESS:PORT ["isn" N]     IPv6 addresses in brackets; names are words
    segment  =  TIME NAME ">" NAME FLAGS [FIRST:END["(" LENGTH ")"]] ["ack" N] ["win" N] ["<" options ">"] ["{" header "}"]
    datagram =  TIME NAME ">" NAME "udp" LENGTH ["{" header "}"]
    TIME     =  ["+"]NUMBER["s"|"ms"|"us"|"ns"]        seconds from BASE_NS; "+" counts from the line before
    FLAGS    =  "-" | letters of tcpdump: S SYN, F FIN, R RST, P PSH, . ACK, U URG, E ECE, W CWR, e AE
    options  =  mss N | wscale N | sackOK | sack A:B [A:B ...] | TS val N ecr N | nop | eol | opt KIND HEX, with commas
    header   =  id N | ttl N | ecn N | vlan N[/N ...] | ipopt HEX | ext NAME[/NAME ...] | pad N | iplen N | doff N | snap N

- FIRST, END, ack and sack are offsets relative to the ISN of the host concerned: SYN = 0, first byte = 1. Offsets can be negative or above
  4 GiB; on the wire they are taken modulo 2^32. LENGTH must equal END - FIRST; it is only a check.
- If FIRST is left out, it is the end of this sender's stream so far. If ack is left out, it is the end of the other host's stream so
  far. If win is left out, it is the last win of this sender.
- win is the 16-bit field of the header, unscaled.
- Declared by default: `host C 10.0.0.1:40000 isn 1000` and `host S 10.0.0.2:80 isn 5000`. A name declared again is a new
  endpoint with a new stream, so a port that is reused is written as a second name with the same address.
- vlan: tags from the outside in (802.1ad, the innermost 802.1Q). ext: IPv6 extension headers hop, dst, rt, frag.
  pad: bytes after the IP packet. iplen: the length field of the IP header. doff: the data offset in words.
  snap: captured bytes of this frame.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import dpkt.pcap
import dpkt.pcapng
from scapy.layers.inet import IP, TCP, UDP, IPOption
from scapy.layers.inet6 import IPv6, IPv6ExtHdrDestOpt, IPv6ExtHdrFragment, IPv6ExtHdrHopByHop, IPv6ExtHdrRouting
from scapy.layers.l2 import CookedLinux, CookedLinuxV2, Dot1AD, Dot1Q, Ether, Loopback
from scapy.packet import Packet, Raw

if TYPE_CHECKING:
    from pathlib import Path

BASE_NS = 1_700_000_000_000_000_000
"""Time 0 of an exchange, nanoseconds since 1970."""

SNAPLEN_BYTES = 262_144
"""Default snaplen, as in tcpdump."""

SEQ_SPACE = 1 << 32
LINKS = {"null": 0, "ethernet": 1, "raw12": 12, "raw": 101, "loop": 108, "sll": 113, "ipv4": 228, "ipv6": 229, "sll2": 276}
"""Maps a link name to its LINKTYPE_ number (https://www.tcpdump.org/linktypes.html)."""

_FLAG_BITS = {"F": 1, "S": 2, "R": 4, "P": 8, ".": 16, "U": 32, "E": 64, "W": 128, "e": 256, "-": 0}
_UNIT_NS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1, None: 10**9}
_ETHERTYPE = {4: 0x0800, 6: 0x86DD}
_BSD_FAMILY = {4: 2, 6: 30}
"""Address family of BSD loopback headers: AF_INET, and AF_INET6 as Darwin numbers it."""
_EXTENSIONS: dict[str, type[Packet]] = {
    "hop": IPv6ExtHdrHopByHop,
    "dst": IPv6ExtHdrDestOpt,
    "rt": IPv6ExtHdrRouting,
    "frag": IPv6ExtHdrFragment,
}

_TIME = r"(?P<plus>\+?)(?P<number>[\d_]*\.?\d+)(?P<unit>s|ms|us|ns)?"
_LINE = re.compile(rf"{_TIME}\s+(?P<source>\w+)\s+>\s+(?P<target>\w+)\s+(?P<rest>.*)", re.ASCII)
_SEGMENT = re.compile(
    r"(?P<flags>[FSRP.UEWe]+|-)(?:\s+(?P<first>-?[\d_]+):(?P<end>-?[\d_]+)(?:\((?P<length>\d+)\))?)?"
    r"(?:\s+ack\s+(?P<ack>-?[\d_]+))?(?:\s+win\s+(?P<win>\d+))?(?:\s+<(?P<options>[^>]*)>)?(?:\s+\{(?P<header>[^}]*)\})?",
    re.ASCII,
)
_DATAGRAM = re.compile(r"udp\s+(?P<length>\d+)(?:\s+\{(?P<header>[^}]*)\})?")
_HOST = re.compile(r"host\s+(?P<name>\w+)\s+(?P<address>\[[^\]]+\]|[^\s:]+):(?P<port>\d+)(?:\s+isn\s+(?P<isn>[\d_]+))?")


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame of a capture: its time, its captured bytes, and its length on the wire."""

    ts_ns: int
    data: bytes
    wire_bytes: int


@dataclass(slots=True)
class Host:
    """One endpoint, and the sequence number that its stream has reached."""

    address: str
    port: int
    isn: int
    number: int
    end: int = 0
    window: int = 65_535
    packets: int = 0

    @property
    def version(self) -> int:
        """The IP version of the address, 4 or 6."""
        return ipaddress.ip_address(self.address).version

    @property
    def mac(self) -> str:
        """A locally administered MAC address for this host."""
        return f"02:00:00:00:00:{self.number:02x}"


@dataclass(frozen=True, slots=True)
class _Header:
    """The header fields in the braces of a line. They replace the default fields."""

    ip_id: int | None = None
    ttl: int = 64
    ecn: int = 0
    vlans: tuple[int, ...] = ()
    ip_options: bytes = b""
    extensions: tuple[str, ...] = ()
    padding_bytes: int = 0
    ip_length: int | None = None
    data_offset_words: int | None = None
    captured_bytes: int | None = None


@dataclass(slots=True)
class _Exchange:
    """The state of the exchange while its lines are read."""

    link: str
    now_ns: int = 0
    frames: list[Frame] = field(default_factory=list)
    hosts: dict[str, Host] = field(default_factory=lambda: {"C": Host("10.0.0.1", 40_000, 1000, 1), "S": Host("10.0.0.2", 80, 5000, 2)})


def capture(path: Path, text: str, *, link: str = "ethernet", snaplen_bytes: int = SNAPLEN_BYTES) -> Path:
    """Write the exchange `text` to `path` and return `path`.

    Args:
        path: the file; its suffix chooses the format, `.pcap` (nanoseconds) or `.pcapng` (if_tsresol 9).
        text: the exchange, in the grammar of this module.
        link: a key of `LINKS`.
        snaplen_bytes: longer frames are truncated to this length.

    Raises:
        ValueError: the text is not an exchange, or the suffix is unknown.
    """
    kept = [replace(frame, data=frame.data[:snaplen_bytes]) for frame in frames(text, link=link)]
    writers = {".pcap": write_pcap, ".pcapng": write_pcapng}
    if path.suffix not in writers:
        raise ValueError(f"{path}: the suffix must be one of {', '.join(writers)}")
    writers[path.suffix](path, kept, link=link, snaplen_bytes=snaplen_bytes)
    return path


def frames(text: str, *, link: str = "ethernet") -> list[Frame]:
    """Return the frames of the exchange `text`, in the order of its lines.

    Raises:
        ValueError: a line is not in the grammar, names an unknown host, or contradicts itself.
    """
    exchange = _Exchange(link)
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split("#", 1)[0].strip()
        if not words:
            continue
        try:
            _read_line(exchange, words)
        except (ValueError, KeyError) as error:
            raise ValueError(f"line {number}: {line.strip()!r}: {error}") from error
    return exchange.frames


def write_pcap(path: Path, frames: list[Frame], *, link: str = "ethernet", snaplen_bytes: int = SNAPLEN_BYTES) -> None:
    """Write a little-endian pcap file with nanosecond times."""
    header = dpkt.pcap.LEFileHdr(magic=dpkt.pcap.TCPDUMP_MAGIC_NANO, snaplen=snaplen_bytes, linktype=LINKS[link])
    with path.open("wb") as file:
        file.write(bytes(header))
        for frame in frames:
            seconds, nanoseconds = divmod(frame.ts_ns, 10**9)
            file.write(bytes(dpkt.pcap.LEPktHdr(tv_sec=seconds, tv_usec=nanoseconds, caplen=len(frame.data), len=frame.wire_bytes)))
            file.write(frame.data)


def write_pcapng(path: Path, frames: list[Frame], *, link: str = "ethernet", snaplen_bytes: int = SNAPLEN_BYTES) -> None:
    """Write a little-endian pcapng file: one section, one interface, enhanced packet blocks with nanosecond times."""
    resolution = dpkt.pcapng.PcapngOptionLE(code=dpkt.pcapng.PCAPNG_OPT_IF_TSRESOL, data=b"\x09")
    options = [resolution, dpkt.pcapng.PcapngOptionLE()]
    with path.open("wb") as file:
        file.write(bytes(dpkt.pcapng.SectionHeaderBlockLE()))
        file.write(bytes(dpkt.pcapng.InterfaceDescriptionBlockLE(linktype=LINKS[link], snaplen=snaplen_bytes, opts=options)))
        for frame in frames:
            high, low = divmod(frame.ts_ns, 1 << 32)
            block = bytearray(bytes(dpkt.pcapng.EnhancedPacketBlockLE(ts_high=high, ts_low=low, pkt_data=frame.data)))
            block[24:28] = frame.wire_bytes.to_bytes(4, "little")  # dpkt writes the captured length into both length fields
            file.write(block)


def _read_line(exchange: _Exchange, words: str) -> None:
    """Read one line, which declares a host or adds a frame to the exchange."""
    if host := _HOST.fullmatch(words):
        number = len(exchange.hosts) + 1
        exchange.hosts[host["name"]] = Host(host["address"].strip("[]"), int(host["port"]), int(host["isn"] or 1000), number)
        return
    line = _LINE.fullmatch(words)
    if line is None:
        raise ValueError("neither a host nor a frame")
    time_ns = Decimal(line["number"].replace("_", "")) * _UNIT_NS[line["unit"]]
    if time_ns != int(time_ns):
        raise ValueError("a time below one nanosecond")
    exchange.now_ns = int(time_ns) + (exchange.now_ns if line["plus"] else 0)
    source, target = exchange.hosts[line["source"]], exchange.hosts[line["target"]]
    if datagram := _DATAGRAM.fullmatch(line["rest"]):
        header = _header(datagram["header"] or "")
        transport: Packet = UDP(sport=source.port, dport=target.port) / Raw(_payload(0, int(datagram["length"])))
    elif segment := _SEGMENT.fullmatch(line["rest"]):
        header = _header(segment["header"] or "")
        transport = _transport(segment, source, target, header)
    else:
        raise ValueError("not a segment")
    exchange.frames.append(_frame(exchange, transport, source, target, header))


def _frame(exchange: _Exchange, transport: Packet, source: Host, target: Host, header: _Header) -> Frame:
    """Return the complete frame. It is padded and truncated as `header` says."""
    source.packets += 1
    packet = _network(source, target, header) / transport
    data = _linked(exchange.link, packet, source, target, header) + bytes(header.padding_bytes)
    return Frame(BASE_NS + exchange.now_ns, data[: header.captured_bytes], len(data))


def _transport(segment: re.Match[str], source: Host, target: Host, header: _Header) -> Packet:
    """Return the TCP segment of one line. Advance the sender's stream."""
    flags = sum(_FLAG_BITS[letter] for letter in segment["flags"])
    first = source.end if segment["first"] is None else int(segment["first"])
    payload_bytes = 0 if segment["first"] is None else int(segment["end"]) - first
    if payload_bytes < 0 or int(segment["length"] or payload_bytes) != payload_bytes:
        raise ValueError(f"length {segment['length']}, but the offsets are {payload_bytes} apart")
    ack = target.end if segment["ack"] is None else int(segment["ack"])
    source.end = max(source.end, first + payload_bytes + bool(flags & 2) + bool(flags & 1))
    source.window = source.window if segment["win"] is None else int(segment["win"])
    tcp = TCP(
        sport=source.port,
        dport=target.port,
        seq=(source.isn + first) % SEQ_SPACE,
        ack=(target.isn + ack) % SEQ_SPACE if flags & 16 else 0,
        flags=flags,
        window=source.window,
        options=[_tcp_option(option.split(), target.isn) for option in _items(segment["options"] or "")],
        dataofs=header.data_offset_words,
    )
    return tcp / Raw(_payload(first, payload_bytes)) if payload_bytes else tcp


def _tcp_option(words: list[str], other_isn: int) -> tuple[str | int, Any]:
    """Return one TCP option in Scapy's notation."""
    option: tuple[str | int, Any]
    match words:
        case ["mss" | "wscale" as name, value]:
            option = {"mss": "MSS", "wscale": "WScale"}[name], int(value)
        case ["nop" | "eol" as name]:
            option = name.upper(), None
        case ["sackOK"]:
            option = "SAckOK", b""
        case ["sack", *blocks]:
            edges = [int(edge) for block in blocks for edge in block.split(":")]
            option = "SAck", tuple((other_isn + edge) % SEQ_SPACE for edge in edges)
        case ["TS", "val", value, "ecr", echo]:
            option = "Timestamp", (int(value), int(echo))
        case ["opt", kind, *data]:
            option = int(kind), bytes.fromhex("".join(data))
        case _:
            raise ValueError(f"unknown TCP option {' '.join(words)!r}")
    return option


def _header(text: str) -> _Header:
    """Parse the braces of a line."""
    values: dict[str, Any] = {}
    for item in _items(text):
        name, _, value = item.partition(" ")
        match name:
            case "vlan":
                values["vlans"] = tuple(int(tag) for tag in value.split("/"))
            case "ipopt":
                values["ip_options"] = bytes.fromhex(value)
            case "ext":
                values["extensions"] = tuple(value.split("/"))
            case "id" | "ttl" | "ecn" | "pad" | "iplen" | "doff" | "snap":
                names = {"id": "ip_id", "pad": "padding_bytes", "iplen": "ip_length", "doff": "data_offset_words", "snap": "captured_bytes"}
                values[names.get(name, name)] = int(value)
            case _:
                raise ValueError(f"unknown header word {name!r}")
    return _Header(**values)


def _network(source: Host, target: Host, header: _Header) -> Packet:
    """Return the IP header with its IPv4 options or IPv6 extension headers."""
    if source.version == 4:
        ip_id = source.packets if header.ip_id is None else header.ip_id
        options = [IPOption(header.ip_options)] if header.ip_options else []
        return IP(src=source.address, dst=target.address, id=ip_id, ttl=header.ttl, tos=header.ecn, len=header.ip_length, options=options)
    packet: Packet = IPv6(src=source.address, dst=target.address, hlim=header.ttl, tc=header.ecn, plen=header.ip_length)
    for name in header.extensions:
        packet = packet / _EXTENSIONS[name]()
    return packet


def _linked(link: str, packet: Packet, source: Host, target: Host, header: _Header) -> bytes:
    """Return the bytes of the frame, which are the link header and `packet`."""
    if header.vlans and link not in ("ethernet", "sll", "sll2"):
        raise ValueError(f"no VLAN tags on link {link!r}")
    protocol = _ETHERTYPE[source.version]
    for tag in reversed(header.vlans):
        innermost = protocol in _ETHERTYPE.values()
        packet = (Dot1Q if innermost else Dot1AD)(vlan=tag, type=protocol) / packet
        protocol = 0x8100 if innermost else 0x88A8
    incoming = 0 if source.number > target.number else 4  # Linux packet types: 0 to us, 4 sent by us
    station: dict[str, Any] = {
        "pkttype": incoming,
        "lladdrtype": 1,
        "lladdrlen": 6,
        "src": bytes.fromhex(source.mac.replace(":", "")) + b"\0\0",
        "proto": protocol,
    }
    match link:
        case "ethernet":
            packet = Ether(src=source.mac, dst=target.mac, type=protocol) / packet
        case "null":
            packet = Loopback(type=_BSD_FAMILY[source.version]) / packet
        case "loop":
            return _BSD_FAMILY[source.version].to_bytes(4, "big") + bytes(packet)
        case "sll":
            packet = CookedLinux(**station) / packet
        case "sll2":
            packet = CookedLinuxV2(ifindex=2, **station) / packet
        case "raw" | "raw12" | "ipv4" | "ipv6":
            pass
        case _:
            raise ValueError(f"unknown link {link!r}")
    return bytes(packet)


def _payload(first: int, payload_bytes: int) -> bytes:
    """Return payload bytes that depend only on their offset. A retransmitted byte therefore equals the original."""
    pattern = bytes(range(256))
    start = first % 256
    return (pattern * (payload_bytes // 256 + 2))[start : start + payload_bytes]


def _items(text: str) -> list[str]:
    """Return the comma-separated parts of `text`. Empty parts are left out."""
    return [item.strip() for item in text.split(",") if item.strip()]
