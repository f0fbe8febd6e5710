"""Network Monitor captures with link types that pcapng lacks are read through tshark. They keep Wireshark's frame numbers.

Wireshark converts a real capture to Network Monitor 2. The tests then give each record its own network type, as format 2.3 allows. Network
Monitor does this when it captures on several adapters. The expected values are those that tshark shows for this file.
"""

from __future__ import annotations

import struct
import subprocess
from typing import TYPE_CHECKING, NamedTuple

import polars as pl
import pytest

from tcptrace_lab import errors, read
from tests.support import needs
from tests.support.command import new_process, only_line
from tests.support.peers import tshark
from tests.support.peers.comparison import differences
from tests.support.places import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ORIGINAL = ROOT / "captures" / "ethernet-reordering.pcapng"

ETHERNET, WIFI, TUNNEL, EVENT, INFORMATION = 1, 6, 7, 0xFFE0, 0xFFFB
"""Network types of records. The first three are link types, and Network Monitor itself adds records of the last two types."""

HEADER_BYTES, RECORD = 128, struct.Struct("<QII")
"""Size of the file header in bytes, and the format of a record header: time since the start (µs), length, captured length."""

MAC_BYTES, LLC = 14, bytes.fromhex("aaaa03000000")
RADIO = struct.pack("<BHIIIIiBQ", 2, 32, 0, 0, 0, 0, 0, 0, 0)
"""Network Monitor's header of an 802.11 frame, with all fields unknown."""


class Packet(NamedTuple):
    """A record of a Network Monitor file.

    It has a time, a network type, its captured bytes, and the number of its bytes that were not captured.
    """

    time_us: int
    network: int
    data: bytes
    missing_bytes: int = 0


@pytest.fixture(name="ethernet", scope="module")
def _ethernet(tmp_path_factory: pytest.TempPathFactory) -> list[Packet]:
    """The packets of the original Ethernet capture."""
    made = tmp_path_factory.mktemp("netmon") / "original.cap"
    subprocess.run([needs.program("editcap"), "-F", "netmon2", ORIGINAL, made], check=True, capture_output=True)
    content = made.read_bytes()
    (table, table_bytes) = struct.unpack_from("<II", content, 24)
    packets = []
    for (place,) in struct.iter_unpack("<I", content[table : table + table_bytes]):
        time_us, length, captured = RECORD.unpack_from(content, place)
        begin = place + RECORD.size
        packets.append(Packet(time_us, ETHERNET, content[begin : begin + captured], length - captured))
    return packets


def wifi(packet: Packet) -> Packet:
    """Return the packet as an 802.11 data frame to the access point."""
    receiver, sender, kind = packet.data[:6], packet.data[6:12], packet.data[12:14]
    header = bytes.fromhex("08010000") + receiver + sender + receiver + bytes(2)
    return packet._replace(network=WIFI, data=RADIO + header + LLC + kind + packet.data[MAC_BYTES:])


def tunnel(packet: Packet) -> Packet:
    return packet._replace(network=TUNNEL, data=packet.data[MAC_BYTES:])


def write(path: Path, packets: list[Packet]) -> Path:
    """Write a Network Monitor file of format 2.3.

    Each record ends with its network type, its process, and its time in units of 100 ns since 1601.
    """
    body, places, begin = bytearray(), [], 132_000_000_000_000_000
    for time_us, network, data, missing_bytes in packets:
        places.append(HEADER_BYTES + len(body))
        body += RECORD.pack(time_us, len(data) + missing_bytes, len(data)) + data
        body += struct.pack("<HIQB", network, 0xFFFF_FFFF, begin + 10 * time_us, 0)
    table = struct.pack(f"<{len(places)}I", *places)
    header = b"GMBU" + bytes([3, 2]) + struct.pack("<9HII", ETHERNET, 2019, 4, 2, 16, 18, 40, 0, 0, HEADER_BYTES + len(body), len(table))
    path.write_bytes(header.ljust(HEADER_BYTES, b"\0") + body + table)
    return path


INFO = Packet(0, INFORMATION, struct.pack("<HI", 1, 0) + bytes(40))
"""A record about the adapters, which Network Monitor 3 writes before the first packet."""


@pytest.mark.parametrize(
    "shaped",
    [
        pytest.param(lambda packets: [INFO, *packets], id="ethernet"),
        pytest.param(lambda packets: [*map(wifi, packets)], id="wifi"),
        pytest.param(lambda packets: [INFO, *map(tunnel, packets)], id="tunnel"),
        pytest.param(lambda packets: [INFO, *packets[:50], INFO._replace(network=EVENT), *map(wifi, packets[50:])], id="several"),
    ],
)
def test_all_segments_are_those_of_tshark(shaped: Callable[[list[Packet]], list[Packet]], ethernet: list[Packet], tmp_path: Path) -> None:
    packets = shaped(ethernet)
    made = write(tmp_path / "made.cap", packets)
    ours, theirs = read(made), tshark.opinion(made)
    assert (ours.info["packets"], ours.info["format"]) == (len(packets), "netmon2")
    assert (ours.complete, ours.problems, differences(ours.segments.collect(), theirs.segments)) == (True, (), {})
    assert ours.segments.select(pl.len()).collect().item() == read(ORIGINAL).segments.select(pl.len()).collect().item() > 0


def test_it_is_announced_and_read_from_a_stream_too(ethernet: list[Packet], tmp_path: Path) -> None:
    made = write(tmp_path / "made.cap", [INFO, *map(wifi, ethernet)])
    from_disk = new_process("export", made, "--format", "csv", folder=tmp_path)
    from_stdin = new_process("export", "-", "--format", "csv", stdin=made.read_bytes(), folder=tmp_path)
    assert from_disk.returncode == from_stdin.returncode == errors.EXIT_DONE
    assert from_disk.stdout == from_stdin.stdout
    assert only_line(from_disk.stderr).endswith(": Microsoft Network Monitor 2, read through Wireshark's tshark (its IP packets)")


def test_comments_of_a_copy_are_at_the_frames_of_the_original(ethernet: list[Packet], tmp_path: Path) -> None:
    made, copy = write(tmp_path / "made.cap", [INFO, *map(wifi, ethernet)]), tmp_path / "copy.pcapng"
    assert new_process("annotate", made, "-o", copy, "--quiet", folder=tmp_path).returncode == errors.EXIT_DONE
    fields = ("-T", "fields", "-e", "frame.number", "-e", "tcp.seq_raw", "-e", "tcp.ack_raw", "-Y", "tcp")
    of_copy, of_made = (
        subprocess.run([needs.program("tshark"), "-r", file, *fields], capture_output=True, check=True).stdout for file in (copy, made)
    )
    assert of_copy == of_made
    command = [needs.program("tshark"), "-r", str(copy), "-Y", "frame.comment && !tcp"]
    assert subprocess.run(command, capture_output=True, check=True).stdout == b""


def test_without_tshark_it_says_what_to_install(ethernet: list[Packet], tmp_path: Path) -> None:
    made, programs = write(tmp_path / "made.cap", [INFO, *map(wifi, ethernet)]), tmp_path / "bin"
    programs.mkdir()
    for name in ("editcap", "captype", "capinfos"):
        (programs / name).symlink_to(needs.program(name))
    for command in ("analyze", "annotate"):
        done = new_process(command, made, "-o", tmp_path / "out", folder=tmp_path, environment={"PATH": str(programs)})
        assert done.returncode == errors.EXIT_MISSING_TOOL
        assert only_line(done.stderr).endswith("tshark can read them, but is not installed (Debian: apt-get install tshark)")


def test_a_damaged_file_is_not_blamed_on_its_link_types(ethernet: list[Packet], tmp_path: Path) -> None:
    made = write(tmp_path / "made.cap", [INFO, *map(wifi, ethernet)])
    made.write_bytes(made.read_bytes()[:-1_000])
    done = new_process("export", made, "--format", "csv", folder=tmp_path)
    assert done.returncode == errors.EXIT_UNREADABLE
    assert "cut short" in only_line(done.stderr)
