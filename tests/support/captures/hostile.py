"""A capture with host names and addresses in every place that can have them. A search finds them in all output."""

from __future__ import annotations

import base64
import contextlib
import ipaddress
import os
import re
import struct
import zipfile
import zlib
from typing import TYPE_CHECKING

import polars as pl

from tests.support import packets

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

SECRETS = ("198.51.100.77", "203.0.113.45", "2001:db8:77::abcd", "2001:db8:99::1", "203.0.113.99")
NAMES = ("customer-db", "alice-laptop", "intern.example", "Top-Secret")

EXCHANGE = """
    host C 198.51.100.77:40000 isn 1000
    host S 203.0.113.45:80 isn 5000
    host D [2001:db8:77::abcd]:41000 isn 7000
    host T [2001:db8:99::1]:443 isn 9000
    host U 198.51.100.77:53000
    host V 203.0.113.99:53
    0.000 C > S  S   0:0(0)        win 65535 <mss 1460, sackOK, wscale 7, opt 30 0012c6336400cb00712d>
    0.020 S > C  S.  0:0(0) ack 1  win 65535 <mss 1460, sackOK, wscale 7>
    0.020 C > S  .          ack 1  win 512
    0.021 C > S  P.  1:101  ack 1  win 512
    0.041 S > C  .          ack 101
    0.042 S > C  P.  1:1461 ack 101
    0.042 C > S  .          ack 1461
    1.500 C > S  P.  101:201  ack 1461
    1.800 C > S  P.  101:201  ack 1461
    2.400 C > S  P.  101:201  ack 1461
    2.420 S > C  .          ack 201
    2.500 U > V udp 60
    2.510 V > U udp 100
    3.000 D > T  S   0:0(0)        win 65535 <mss 1440>
    3.020 T > D  S.  0:0(0) ack 1  win 65535 <mss 1440>
    3.020 D > T  .          ack 1
    3.021 D > T  P. 1:501   ack 1
    3.041 T > D  .          ack 501
    3.300 T > D  P. 1:1441  ack 501
    3.300 D > T  .          ack 1441
"""


def write(path: Path) -> Path:
    """Write a capture whose interface, comment and payload contain names of hosts."""
    packets.capture(path, EXCHANGE)
    data = path.read_bytes()
    request = f"GET /{NAMES[3]} HTTP/1.1\r\nHost: {NAMES[2]}\r\nX: 198.51.100.77\r\n\r\n".encode()
    head = struct.pack("!HHI", 40_000, 80, 1001)
    payload = data.index(head, data.index(head) + 1) + 20  # the payload of the second segment with this sequence number
    data = data[:payload] + request + data[payload + len(request) :]
    assert len(request) <= 100
    comment = f"captured at {NAMES[1]} 198.51.100.77".encode()
    option = struct.pack("<HH", 1, len(comment)) + comment + bytes(-len(comment) % 4) + bytes(4)
    size = 28 + len(option)
    section = struct.pack("<IIIHHq", 0x0A0D0D0A, size, 0x1A2B3C4D, 1, 0, -1) + option + struct.pack("<I", size)
    first = struct.unpack_from("<I", data, 4)[0]
    path.write_bytes(section + data[first:])
    return path


def spellings() -> Iterator[bytes]:
    """Yield every name and every form of every address.

    The forms are short and long text, bytes in both orders, and hexadecimal digits.
    """
    for text in SECRETS:
        address = ipaddress.ip_address(text)
        yield from {text.encode(), address.exploded.encode(), address.exploded.upper().encode(), str(address).encode()}
        yield from (address.packed, address.packed[::-1], address.packed.hex().encode(), address.packed.hex(":").encode())
        yield text.replace(".", "-").encode()
        yield str(int(address)).encode()
    for number in range(1, 7):
        yield bytes((2, 0, 0, 0, 0, number))  # MAC addresses as `packets` writes them
        yield f"02:00:00:00:00:{number:02x}".encode()
    yield from (name.encode() for name in NAMES)


def written(folder: Path) -> dict[str, bytes]:
    """Map the path of each file in a folder to its content.

    Data packed in pages, parts and Parquet files are unpacked.
    """
    found: dict[str, bytes] = {}
    for path in folder.rglob("*"):
        if path.is_file():
            name, data = str(path.relative_to(folder)), path.read_bytes()
            found |= {name: data} | {f"{name}: {number}": each for number, each in enumerate(_unpacked(path, data))}
    return found


def leaks(outputs: Mapping[str, bytes]) -> list[tuple[bytes, str]]:
    """Return each (spelling, output) where the output's content or name contains the spelling."""
    return [(secret, name) for secret in spellings() for name, data in outputs.items() if secret in data or secret in os.fsencode(name)]


_PACKED = re.compile(rb"[A-Za-z0-9+/]{60,}={0,2}")
"""Base64 text of deflated data."""


def _unpacked(path: Path, data: bytes) -> Iterator[bytes]:
    if path.suffix == ".html":
        for text in _PACKED.findall(data):
            with contextlib.suppress(zlib.error, ValueError):
                yield zlib.decompress(base64.b64decode(text))
    elif path.suffix == ".part":
        with zipfile.ZipFile(path) as archive:
            yield from map(archive.read, archive.namelist())
    elif path.suffix == ".parquet":
        yield pl.read_parquet(path, hive_partitioning=False).write_json().encode()
