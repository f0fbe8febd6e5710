"""Captures of `captures/` are converted to TCP over ATM.

tshark reads the segments, cells and PDUs of the conversion.
"""

from __future__ import annotations

import functools
import os
import struct
import subprocess
import tempfile
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import dpkt.pcap

from tcptrace_lab.capture import atm
from tcptrace_lab.capture.atm import AtmForm
from tests.support import engine, needs, packets
from tests.support.peers import tshark
from tests.support.places import CAPTURES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path


NAMES = (
    "atm9180-loss.pcap",
    "atm9180-nagle-on.pcapng",
    "atm9188-loss.pcapng",
    "cooked-bulk.pcapng",
    "cooked-v2-bulk.pcapng",
    "ethernet-ipv6-bulk.pcapng",
    "ethernet-tail-loss.pcapng",
    "loopback-nagle-on.pcapng",
    "raw-bulk.pcapng",
)


VPI, VCI = 3, 1077


WITNESSED_AS = {AtmForm.RFC1483_VCMUX: 101, AtmForm.FORE_IP: 101, AtmForm.CLIP: 100}
"""For ATM forms that tshark 4.0 does not decode, a link type with which tshark reads the bytes: RAW or ATM_RFC1483.

tshark expects LLC in ATM_RFC1483 and IP in ATM_CLIP.
"""


@dataclass(frozen=True, slots=True)
class Conversion:
    """A capture of `captures/` and its conversion to ATM."""

    source: Path
    target: Path
    form: AtmForm
    done: atm.Converted


TCP_FIELDS = ("frame.time_epoch", "tcp.stream", "tcp.seq", "tcp.ack", "tcp.len", "tcp.flags", "tcp.window_size_value", "ip.id", "ip.ttl")


def tshark_rows(path: Path, fields: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the fields of each frame, as tshark prints them."""
    command = [needs.program("tshark"), "-n", "-r", str(path), "-T", "fields", "-E", "separator=/t"]
    for preference in tshark.PREFERENCES:
        command += ["-o", preference]
    for name in fields:
        command += ["-e", name]
    with tempfile.TemporaryDirectory() as no_settings:
        environment = os.environ | {"WIRESHARK_CONFIG_DIR": no_settings}
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return [tuple(line.split("\t")) for line in done.stdout.splitlines()]


def tcp_rows(path: Path) -> list[tuple[str, ...]]:
    """Return the fields of each TCP segment, as tshark prints them. Fail if tshark finds a malformed packet."""
    rows = tshark_rows(path, (*TCP_FIELDS, "_ws.malformed"))
    assert [row for row in rows if row[-1]] == []
    return [row for row in rows if row[1]]


@functools.cache
def source_rows(name: str) -> list[tuple[str, ...]]:
    return tcp_rows(CAPTURES / name)


def under_link_type(path: Path, link_type: int) -> Path:
    """Return a copy of the pcap file with another link type in its header."""
    data = bytearray(path.read_bytes())
    data[20:24] = struct.pack("<I", link_type)
    other = path.with_suffix(f".{link_type}.pcap")
    other.write_bytes(data)
    return other


@functools.cache
def source_read(name: str) -> engine.Read:
    return engine.read(CAPTURES / name)


def cell_records(path: Path, *, bare: bool) -> list[bytes]:
    """Return the ERF records of a file of cells, in order, without padding."""
    if not bare:
        with path.open("rb") as file:
            return [bytes(data) for _, data in dpkt.pcap.Reader(file)]
    data, records = path.read_bytes(), []
    while data:
        record_bytes, wire_bytes = int.from_bytes(data[10:12], "big"), int.from_bytes(data[14:16], "big")
        records.append(data[: 16 + wire_bytes])
        data = data[record_bytes:]
    return records


def ends_pdu(record: bytes) -> bool:
    return record[19] & 0x02 != 0


def payload_of(pdu: bytes) -> bytes:
    """Return the payload of a PDU after checking its CRC.

    The CRC of AAL5 is zlib's CRC-32 with reversed bits in each byte and in the result.
    """
    mirrored = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))
    assert int(f"{zlib.crc32(pdu[:-4].translate(mirrored)):032b}"[::-1], 2) == int.from_bytes(pdu[-4:], "big")
    assert pdu[-8:-6] == b"\0\0"
    length = int.from_bytes(pdu[-6:-4], "big")
    assert set(pdu[length:-8]) <= {0}
    assert len(pdu) - length < 8 + 48
    return pdu[:length]


def reassembled(path: Path, *, bare: bool) -> Path:
    """Write the PDUs of a file of cells to a capture of link type ATM_RFC1483.

    Each PDU has the time at which its last cell was recorded (ERF).
    """
    target, pdu = path.with_suffix(".whole.pcap"), b""
    with target.open("wb") as file:
        file.write(bytes(dpkt.pcap.LEFileHdr(magic=dpkt.pcap.TCPDUMP_MAGIC_NANO, snaplen=packets.SNAPLEN_BYTES, linktype=100)))
        for record in cell_records(path, bare=bare):
            pdu += record[20:]
            if ends_pdu(record):
                fraction, seconds = struct.unpack_from("<II", record)
                payload, pdu = payload_of(pdu), b""
                file.write(struct.pack("<IIII", seconds, (fraction * 10**9) >> 32, len(payload), len(payload)) + payload)
    return target


LOSSY = "atm9188-loss.pcapng"


LOST_FROM = 20
"""Index (from 0) of a segment of 9148 bytes, both in the segments table and among the packets.

The next segment has 9148 bytes, too.
"""


SMALL = "atm9180-nagle-on.pcapng"


IPV6 = "ethernet-ipv6-bulk.pcapng"


@functools.cache
def pdu_cells(name: str) -> list[tuple[int, int]]:
    """Return the numbers of the first and the last cell of each packet. They are computed from tshark's IP lengths."""
    ranges, first = [], 0
    for v4_bytes, v6_payload_bytes in tshark_rows(CAPTURES / name, ("ip.len", "ipv6.plen")):
        ip_bytes = int(v4_bytes) if v4_bytes else int(v6_payload_bytes) + 40
        cells = (ip_bytes + 8 + 8 + 47) // 48
        ranges.append((first, first + cells - 1))
        first += cells
    return ranges


def converter(folder: Path) -> Callable[[str, AtmForm], Conversion]:
    """Return a function that converts a capture and writes it to `folder`.

    Its arguments are the capture's name and the ATM form. Each conversion is done only once.
    """

    @functools.cache
    def convert(name: str, form: AtmForm) -> Conversion:
        source = CAPTURES / name
        target = folder / f"{name}.{form}{'.erf' if form.is_bare else '.pcap'}"
        return Conversion(source, target, form, atm.convert(source, target, form, vpi=VPI, vci=VCI))

    return convert
