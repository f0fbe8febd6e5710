"""A capture that is converted to another file format gives the same rows. Truncated or damaged files never crash the engine."""

from __future__ import annotations

import gzip
import itertools
import struct
import subprocess
from typing import TYPE_CHECKING

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tcptrace_lab._core import EngineError
from tcptrace_lab.engine.revisions import REVISED
from tests.support import engine, needs
from tests.support.places import CAPTURES

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

every_capture = pytest.mark.parametrize("name", sorted(path.name for path in CAPTURES.glob("*.pcap*")))

FEW = settings(max_examples=5, suppress_health_check=[HealthCheck.function_scoped_fixture])
"""Settings for few examples per capture, because all captures are tried. `test_hostile` tries many examples on a few captures."""

HEADER_BYTES, RECORD_BYTES = 24, 16

_numbers = itertools.count()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("same")


def written(folder: Path, data: bytes) -> Path:
    path = folder / f"{next(_numbers)}.bin"
    path.write_bytes(data)
    return path


def in_format(form: str, name: str, folder: Path) -> Path:
    path = folder / f"{name}.{form}"
    if not path.exists():
        needs.program("tshark")  # editcap is installed with tshark
        subprocess.run([needs.program("editcap"), "-F", form, CAPTURES / name, path], check=True, capture_output=True)
    return path


def assert_same(read: engine.Read, name: str) -> None:
    """Check that the segments and connections that were read equal those of the unchanged capture `name`."""
    original = engine.read(CAPTURES / name)
    assert (read.info["packets"], read.info["complete"]) == (original.info["packets"], True)
    for ours, theirs in ((read.segments, original.segments), (read.connections, original.connections)):
        differing = [column for column in theirs.columns if not ours[column].equals(theirs[column], null_equal=True)]
        assert (ours.height, differing) == (theirs.height, [])


@every_capture
@pytest.mark.parametrize("form", ["nsecpcap", "pcapng"])
def test_pcap_and_pcapng_give_the_same_rows(folder: Path, name: str, form: str) -> None:
    assert_same(engine.read(in_format(form, name, folder)), name)


@every_capture
def test_gzip_gives_the_same_rows(folder: Path, name: str) -> None:
    packed = gzip.compress(in_format("pcapng", name, folder).read_bytes(), compresslevel=1)
    assert_same(engine.read(written(folder, packed)), name)


def records(pcap: bytes) -> list[tuple[int, bytes]]:
    """Return the timestamp and the bytes of each record of a little-endian pcap file with nanoseconds."""
    found, at = [], HEADER_BYTES
    while at < len(pcap):
        seconds, ns, captured = struct.unpack_from("<III", pcap, at)
        end = at + RECORD_BYTES + captured
        found.append((seconds * 10**9 + ns, pcap[at:end]))
        at = end
    return found


def assert_merged(folder: Path, name: str, parts: Sequence[Sequence[bytes]]) -> None:
    """Write each part to its own file. Check that all files together, read as one capture, give the rows of the original."""
    header = in_format("nsecpcap", name, folder).read_bytes()[:HEADER_BYTES]
    paths = [written(folder, header + b"".join(part)) for part in parts]
    assert_same(engine.read(*paths), name)
    for path in paths:
        path.unlink()


@every_capture
@FEW
@given(data=st.data())
def test_a_capture_in_two_files_one_after_the_other_gives_the_same_rows(folder: Path, name: str, data: st.DataObject) -> None:
    """The capture is cut into two files that follow each other, as a ring buffer writes them.

    The files are merged by time. So all timestamps before the cut must be earlier than those after it.
    """
    found = records(in_format("nsecpcap", name, folder).read_bytes())
    latest = list(itertools.accumulate((ts_ns for ts_ns, _ in found), max))
    earliest = list(itertools.accumulate((ts_ns for ts_ns, _ in reversed(found)), min))[::-1]
    places = [at for at in range(1, len(found)) if latest[at - 1] <= earliest[at]]
    at = data.draw(st.sampled_from(places))
    whole = [record for _, record in found]
    assert_merged(folder, name, [whole[:at], whole[at:]])


@every_capture
@FEW
@given(data=st.data())
def test_a_capture_dealt_out_to_two_files_gives_the_same_rows(folder: Path, name: str, data: st.DataObject) -> None:
    """The packets are distributed over two files, as if two interfaces had captured them.

    Packets with equal timestamps go to one file. So do the packets around a timestamp that runs backwards.
    """
    parts: tuple[list[bytes], list[bytes]] = ([], [])
    side, latest_ns = 0, -1
    for ts_ns, record in records(in_format("nsecpcap", name, folder).read_bytes()):
        if ts_ns > latest_ns:
            side = data.draw(st.integers(0, 1)) if len(parts[0]) + len(parts[1]) < 64 else 1 - side
        latest_ns = max(latest_ns, ts_ns)
        parts[side].append(record)
    assert_merged(folder, name, parts)


def assert_sane(folder: Path, data: bytes) -> engine.Read | None:
    """Read `data` with the engine, and check that its rows are consistent.

    Return None if the engine refuses `data`.
    """
    path = written(folder, data)
    try:
        read = engine.read(path)
    except EngineError:  # a panic is not an EngineError and fails the test
        return None
    finally:
        path.unlink()
    assert read.segments["conn"].n_unique() == read.connections.height
    assert read.segments.filter(~pl.col("captured_payload_bytes").is_between(0, pl.col("payload_bytes"))).is_empty()
    assert read.info["complete"] != read.loses_data
    return read


@every_capture
@FEW
@given(data=st.data())
def test_a_cut_capture_gives_the_rows_before_the_cut(folder: Path, name: str, data: st.DataObject) -> None:
    content = (CAPTURES / name).read_bytes()
    read = assert_sane(folder, content[: data.draw(st.integers(0, len(content) - 1))])
    if read is not None:
        whole = engine.read(CAPTURES / name).segments
        before = whole.filter(pl.col("frame") <= read.info["packets"])
        assert read.segments.drop(REVISED).equals(before.drop(REVISED), null_equal=True), "but for what later segments would have shown"


@every_capture
@FEW
@given(flips=st.lists(st.tuples(st.integers(0, 1 << 20), st.integers(1, 255)), min_size=1, max_size=12))
def test_a_capture_with_wrong_bytes_gives_rows_or_a_refusal(folder: Path, name: str, flips: list[tuple[int, int]]) -> None:
    changed = bytearray((CAPTURES / name).read_bytes())
    for place, mask in flips:
        changed[place % len(changed)] ^= mask
    assert_sane(folder, bytes(changed))
