"""A damaged gzip file is read up to the damage. The message says how much was read, that the rest is lost, and what to do.

The reader reports no garbage from the decoder. The frames before the damage equal those of the uncompressed capture. As a second source,
gzip(1) shows whether a file is intact.
"""

from __future__ import annotations

import gzip
import re
import subprocess
from typing import TYPE_CHECKING

import polars as pl
import pytest

from tcptrace_lab import errors, read
from tests.support import needs
from tests.support.command import only_line, tcptrace_lab
from tests.support.places import CAPTURES

if TYPE_CHECKING:
    from pathlib import Path

PLAIN = (CAPTURES / "ethernet-loss.pcapng").read_bytes()
PARTS = [gzip.compress(PLAIN[place : place + 20_000], mtime=0) for place in range(0, len(PLAIN), 20_000)]
"""The capture as several gzip members. No member ends at the end of a frame."""
MIDDLE = len(PARTS[1]) // 2

SURE = 50
"""At least this many frames come before the damage in each file."""


def damaged(part: bytes, place: int, count: int = 4) -> bytes:
    begin = place % len(part)
    return part[:begin] + bytes(byte ^ 0x5A for byte in part[begin : begin + count]) + part[begin + count :]


FILES = {
    "bytes": [PARTS[0], damaged(PARTS[1], MIDDLE), *PARTS[2:]],
    "checksum": [PARTS[0], damaged(PARTS[1], -8), *PARTS[2:]],
    "length": [PARTS[0], damaged(PARTS[1], -4), *PARTS[2:]],
    "header": [PARTS[0], damaged(PARTS[1], 0, 2), *PARTS[2:]],
    "gap": [PARTS[0], PARTS[1][:MIDDLE], *PARTS[2:]],
    "one member": [damaged(gzip.compress(PLAIN, mtime=0), len(PLAIN) // 8)],
}
SAYS = re.compile(
    r"the gzip data are damaged before byte (\d+) of the compressed file \((.*)\); "
    r"everything before it was read, the rest is lost \(copy or capture it again\)"
)


@pytest.fixture(name="file", params=FILES)
def _file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "capture.pcapng.gz"
    path.write_bytes(b"".join(FILES[request.param]))
    return path


def test_one_line_says_what_was_read_what_is_lost_and_what_to_do(file: Path, tmp_path: Path) -> None:
    assert subprocess.run([needs.program("gzip"), "-t", file], capture_output=True, check=False).returncode in {1, 2}
    tables = read(file)
    (problem,) = tables.problems
    said = SAYS.fullmatch(problem["what"])
    assert said, problem
    assert len(PARTS[0]) <= int(said[1]) <= file.stat().st_size
    assert (problem["frame"], problem["offset"]) == (tables.info["packets"] + 1, None)
    done = tcptrace_lab("analyze", file, "-o", tmp_path / "report.html", "--quiet", folder=tmp_path)
    assert done.returncode == errors.EXIT_READ_IN_PART
    assert only_line(done.stderr).startswith(f"tcptrace-lab: {problem['what']}: {file}, frame {problem['frame']}; ")


def test_frames_before_the_damaged_member_are_read(file: Path) -> None:
    ours, whole = read(file).segments.collect(), read(CAPTURES / "ethernet-loss.pcapng").segments.collect()
    assert SURE <= ours.height <= whole.height
    columns = pl.col("frame", "seq", "ack", "payload_bytes", "ts_ns")
    assert ours.select(columns).head(SURE).equals(whole.select(columns).head(SURE))


def test_a_capture_that_is_damaged_itself_is_not_blamed_on_gzip(tmp_path: Path) -> None:
    path = tmp_path / "capture.pcapng.gz"
    path.write_bytes(gzip.compress(PLAIN[:20_000] + damaged(PLAIN[20_000:], 0, 200), mtime=0))
    (problem,) = read(path).problems
    assert "gzip" not in problem["what"]
    assert problem["what"].endswith("; everything before it was read, the rest is lost (copy or capture it again)")


def test_zeros_between_members_are_padding(tmp_path: Path) -> None:
    path = tmp_path / "capture.pcapng.gz"
    path.write_bytes(bytes(512).join(PARTS))
    tables = read(path)
    assert (tables.problems, tables.complete, tables.info["packets"]) == ((), True, 505)
