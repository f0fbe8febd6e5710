"""In truncated or damaged captures, everything before the damage is read. The engine never crashes.

A panic of the engine fails the test, because `pyo3_runtime.PanicException` is not an `EngineError`.
"""

from __future__ import annotations

import functools
import gzip
import itertools
import lzma
import zlib
from typing import TYPE_CHECKING, Literal

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tcptrace_lab._core import EngineError
from tcptrace_lab.engine.revisions import REVISED
from tests.support import engine, needs
from tests.support.packets import BASE_NS, LINKS, Frame, capture, frames, write_pcap, write_pcapng

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

REAL = (
    "seladb-PcapPlusPlus__one_tcp_stream.pcap",
    "zeek-zeek__pppoe-over-qinq.pcap",
    "chrissanders-packets__tcp_ports.pcapng",
    "hadrielk-pcapng-test-generator__output_le_difficult__test202.pcapng",
    "secdev-scapy__http_tcp_psh.pcap.gz",
    "secdev-scapy__dcerpc_privacy_ntlm.pcapng.gz",
)

EXCHANGE = """
    host A [2001:db8::1]:40000
    host B [2001:db8::2]:80
    0.000 C > S S  0:0(0)        <mss 1460, sackOK, wscale 7, TS val 1 ecr 0>
    0.010 S > C S. 0:0(0) ack 1  <mss 1460, sackOK, wscale 7, TS val 2 ecr 1>
    0.011 C > S .  ack 1
    0.012 A > B S  0:0(0)        <mss 1440> {vlan 5/6}
    0.020 C > S P. 1:61 ack 1    <nop, nop, TS val 3 ecr 2>
    0.021 C > S P. 121:181 ack 1 {ipopt 94040000}
    0.030 S > C .  ack 61        <sack 121:181>
    0.031 B > A S. 0:0(0) ack 1  {ext hop/dst}
    0.040 C > S P. 61:121 ack 1
    0.041 C > S udp 9
    0.050 S > C R. 1:1(0) ack 181
"""

PCAP_HEADER_BYTES = 24
PCAP_RECORD_BYTES = 16
PCAPNG_MAGIC = b"\n\r\r\n"
BIG_ENDIAN_MARK = b"\x1a\x2b\x3c\x4d"
SMALLEST_BLOCK_BYTES = 12
XZ_MAGIC = b"\xfd7zXZ\0"
LOOK_AHEAD_BYTES = 20
"""Number of input bytes that a decoder possibly needs before it returns another symbol (LZMA_REQUIRED_INPUT_MAX of the LZMA SDK)."""
NUMBERED_BLOCKS = {2, 3, 6, 0x0BAD, 0x4000_0BAD}
"""Blocks that Wireshark counts as frames: obsolete, simple and enhanced packet blocks (pcapng, 4.3, 4.4, appendix A), and custom blocks."""

RELAXED = settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])

_numbers = itertools.count()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hostile")


def read_bytes(folder: Path, data: bytes) -> engine.Read | EngineError:
    """Write `data` to a file. Return what the engine reads from the file, or the engine's error."""
    path = folder / f"{next(_numbers)}.bin"
    path.write_bytes(data)
    try:
        return engine.read(path)
    except EngineError as error:
        return error
    finally:
        path.unlink()


def unpack(data: bytes) -> bytes:
    """Return the bytes that can be decompressed from `data`, or `data` itself if it is not compressed."""
    if data.startswith(b"\x1f\x8b"):
        return zlib.decompressobj(wbits=31).decompress(data)
    return lzma.LZMADecompressor().decompress(data) if data.startswith(XZ_MAGIC) else data


def frame_ends(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield the end of each record of an uncompressed capture, and the number of frames up to this end.

    The ends are offsets from the beginning of the file, including the file header of a pcap. A pcap must be little-endian. Each section of
    a pcapng states its own byte order.
    """
    pcapng = data.startswith(PCAPNG_MAGIC)
    position, count = 0 if pcapng else PCAP_HEADER_BYTES, 0
    order: Literal["little", "big"] = "little"
    while position <= len(data):
        yield position, count
        if data.startswith(PCAPNG_MAGIC, position):
            order = "big" if data.startswith(BIG_ENDIAN_MARK, position + 8) else "little"
        words = [int.from_bytes(data[position + at : position + at + 4], order) for at in (0, 4, 8)]
        if pcapng:
            position, count = position + max(words[1], SMALLEST_BLOCK_BYTES), count + (words[0] in NUMBERED_BLOCKS)
        else:
            position, count = position + PCAP_RECORD_BYTES + words[2], count + 1


def frames_inside(data: bytes, ends: dict[int, int]) -> int:
    """Return the number of complete frames in `data`, which is the first part of a capture.

    `ends` maps the end of each record of the whole capture to the number of frames up to this end.
    """
    plain_bytes = len(unpack(data))
    return max((count for end, count in ends.items() if end <= plain_bytes), default=0)


def check_prefix(folder: Path, data: bytes, whole: pl.DataFrame, ends: dict[int, int], cut: int) -> None:
    """Read the first `cut` bytes of `data`, and compare the result with the rows `whole` of the whole file."""
    read = read_bytes(folder, data[:cut])
    plain_bytes = len(unpack(data[:cut]))
    compressed = plain_bytes != cut
    inside = frames_inside(data[:cut], ends)
    if isinstance(read, EngineError):
        header_bytes = PCAP_HEADER_BYTES if 0 not in ends else min(end for end in ends if end)
        assert plain_bytes < header_bytes or (compressed and inside == 0), f"refused with {plain_bytes} bytes: {read.what}"
        return
    looks_ahead = data.startswith(XZ_MAGIC) and LOOK_AHEAD_BYTES < cut < len(data)
    fewest = frames_inside(data[: cut - LOOK_AHEAD_BYTES], ends) if looks_ahead else inside
    assert fewest <= read.info["packets"] <= inside
    before = whole.filter(pl.col("frame") <= read.info["packets"])
    assert read.segments.drop(REVISED).equals(before.drop(REVISED)), "but for what later segments would have shown"
    clean = plain_bytes in ends and (not compressed or cut == len(data))
    assert read.info["complete"] == clean
    assert read.loses_data != clean


@functools.cache
def as_pcap(path: Path) -> bytes:
    return capture(path / "whole.pcap", EXCHANGE).read_bytes()


@functools.cache
def as_pcapng(path: Path) -> bytes:
    return capture(path / "whole.pcapng", EXCHANGE).read_bytes()


@functools.cache
def as_gzip(path: Path) -> bytes:
    return gzip.compress(as_pcap(path), mtime=0)


@functools.cache
def as_xz(path: Path) -> bytes:
    return lzma.compress(as_pcapng(path))


@pytest.mark.parametrize("form", [as_pcap, as_pcapng, as_gzip, as_xz])
def test_every_prefix_gives_the_rows_before_the_cut(folder: Path, form: Callable[[Path], bytes]) -> None:
    data = form(folder)
    whole = read_bytes(folder, data)
    assert isinstance(whole, engine.Read)
    assert whole.segments.height == 10
    ends = dict(frame_ends(unpack(data)))
    for cut in range(len(data) + 1):
        check_prefix(folder, data, whole.segments, ends, cut)


@needs.shared_captures
@pytest.mark.parametrize("name", REAL)
@RELAXED
@given(data=st.data())
def test_prefix_of_a_real_capture_gives_the_rows_before_the_cut(folder: Path, name: str, data: st.DataObject) -> None:
    content = (needs.SHARED / name).read_bytes()
    whole = engine.read(needs.SHARED / name)
    cut = data.draw(st.integers(0, len(content)))
    check_prefix(folder, content, whole.segments, dict(frame_ends(unpack(content))), cut)


FLIPS = st.lists(st.tuples(st.integers(0, 1 << 20), st.integers(1, 255)), min_size=1, max_size=12)
"""Lists of pairs. A pair has an offset, modulo the length of the data, and a value that is XORed to the byte at this offset."""


def flipped(data: bytes, flips: list[tuple[int, int]]) -> bytes:
    """Return `data` with flipped bits. `flips` has the position and the mask of each flip."""
    changed = bytearray(data)
    for place, mask in flips:
        changed[place % len(changed)] ^= mask
    return bytes(changed)


def check_sane(read: engine.Read | EngineError) -> None:
    """Check the properties that the engine's result must have for any input."""
    if isinstance(read, engine.Read):
        in_order = read.segments.filter(pl.col("kind") != "link_damaged")  # a damaged segment can have the number of a later frame
        assert in_order["frame"].is_sorted()
        assert read.segments["conn"].n_unique() == read.connections.height
        assert read.segments.filter(~pl.col("captured_payload_bytes").is_between(0, pl.col("payload_bytes"))).is_empty()


@pytest.mark.parametrize("form", [as_pcap, as_pcapng, as_gzip, as_xz])
@RELAXED
@given(flips=FLIPS)
def test_flipped_bytes_of_a_file_never_crash(folder: Path, form: Callable[[Path], bytes], flips: list[tuple[int, int]]) -> None:
    check_sane(read_bytes(folder, flipped(form(folder), flips)))


@needs.shared_captures
@pytest.mark.parametrize("name", REAL)
@RELAXED
@given(flips=FLIPS)
def test_flipped_bytes_of_a_real_capture_never_crash(folder: Path, name: str, flips: list[tuple[int, int]]) -> None:
    check_sane(read_bytes(folder, flipped((needs.SHARED / name).read_bytes(), flips)))


@functools.cache
def undamaged(link: str) -> list[Frame]:
    """Return the frames of `EXCHANGE`, without the extra headers that the braces in its text stand for."""
    return frames("\n".join(line.split("{")[0] for line in EXCHANGE.splitlines()), link=link)


@pytest.mark.parametrize("link", sorted(LINKS))
@RELAXED
@given(flips=st.lists(FLIPS, min_size=12, max_size=12))
def test_flipped_bytes_inside_frames_lose_no_other_frame(folder: Path, link: str, flips: list[list[tuple[int, int]]]) -> None:
    """Only bytes inside of frames are damaged, so every frame is still counted."""
    damaged = [
        Frame(frame.ts_ns, flipped(frame.data, places), frame.wire_bytes) for frame, places in zip(undamaged(link), flips, strict=False)
    ]
    path = folder / f"{next(_numbers)}.pcapng"
    write_pcapng(path, damaged, link=link)
    read = engine.read(path)
    path.unlink()
    assert read.info["packets"] == len(damaged)
    check_sane(read)


@RELAXED
@given(contents=st.lists(st.binary(max_size=200), max_size=20), link=st.sampled_from(sorted(LINKS)))
def test_frames_of_random_bytes_are_counted(folder: Path, contents: list[bytes], link: str) -> None:
    path = folder / f"{next(_numbers)}.pcap"
    write_pcap(path, [Frame(BASE_NS + index, data, len(data)) for index, data in enumerate(contents)], link=link)
    read = engine.read(path)
    path.unlink()
    assert read.info["packets"] == len(contents)
    check_sane(read)


@RELAXED
@given(
    data=st.binary(max_size=300),
    magic=st.sampled_from([b"", b"\xd4\xc3\xb2\xa1", b"\xa1\xb2\x3c\x4d", PCAPNG_MAGIC, b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd"]),
)
def test_random_bytes_behind_a_magic_number_never_crash(folder: Path, data: bytes, magic: bytes) -> None:
    check_sane(read_bytes(folder, magic + data))


def test_connections_of_damaged_addresses_stay_apart(folder: Path) -> None:
    """A packet with a flipped bit in its port opens another connection. This packet is not a damaged row of the first connection."""
    whole = frames("0 C > S P. 1:11 ack 1\n1 C > S P. 11:21 ack 1\n2 C > S P. 21:31 ack 1")
    port = 14 + 20
    damaged = bytearray(whole[1].data)
    damaged[port] ^= 0x10
    write_pcap(folder / "port.pcap", [whole[0], Frame(whole[1].ts_ns, bytes(damaged), len(damaged)), whole[2]])
    assert engine.column(engine.read(folder / "port.pcap").segments, "conn") == [0, 1, 0]
