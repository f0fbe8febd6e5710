"""The annotated copy has all packets of the capture. The copy has comments at the frames that findings and waits name.

tshark reads the copy.
"""

from __future__ import annotations

import gzip
import io
import lzma
import os
import shutil
import struct
import subprocess
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tcptrace_lab import analyze
from tcptrace_lab.capture import pcapng_copy
from tcptrace_lab.outputs import annotate
from tests.support import needs, packets, transfer
from tests.support.command import new_process, only_line, tcptrace_lab
from tests.support.exchanges import LATE_ACK
from tests.support.places import CAPTURES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NAGLE = CAPTURES / "ethernet-nagle-on.pcapng"

PACKET_FIELDS = (
    "frame.number",
    "frame.time_epoch",
    "frame.len",
    "frame.cap_len",
    "frame.protocols",
    "frame.encap_type",
    "tcp.checksum",
    "eth.fcs",
)


def fields(path: Path, *names: str, shown: str = "frame") -> list[list[str]]:
    """Return the values of the fields `names` in each frame that the filter `shown` selects. tshark prints the values."""
    asked = [part for name in names for part in ("-e", name)]
    command: list[str | Path] = [needs.program("tshark"), "-n", "-r", path, "-Y", shown, "-T", "fields", "-E", "aggregator=\x1f", *asked]
    done = subprocess.run(command, capture_output=True, timeout=60, check=True)
    return [line.split("\t") for line in done.stdout.decode().splitlines()]


def comments(path: Path) -> dict[int, list[str]]:
    found = fields(path, "frame.number", "frame.comment", shown="frame.comment")
    return {int(frame): text.split("\x1f") for frame, text in found}


def octets(path: Path) -> list[str]:
    done = subprocess.run([needs.program("tshark"), "-n", "-r", path, "-x"], capture_output=True, timeout=60, check=True)
    return [line[:54] for line in done.stdout.decode().splitlines()]


def annotated(path: Path | str, folder: Path) -> Path:
    done = tcptrace_lab("annotate", path, "-o", "out.pcapng", folder=folder)
    assert done.returncode == 0, done.stderr.decode()
    return folder / "out.pcapng"


def assert_a_copy(copy: Path, original: Path, names: tuple[str, ...] = PACKET_FIELDS) -> None:
    assert fields(copy, *names) == fields(original, *names)
    assert octets(copy) == octets(original)


def as_it_is(folder: Path) -> Path:
    return Path(shutil.copy(NAGLE, folder / "in.pcapng"))


def as_pcap(folder: Path, form: str = "nsecpcap") -> Path:
    subprocess.run([needs.program("editcap"), "-F", form, NAGLE, folder / "in.pcap"], capture_output=True, timeout=60, check=True)
    return folder / "in.pcap"


def as_pcap_of_microseconds(folder: Path) -> Path:
    return as_pcap(folder, "pcap")


def as_modified_pcap(folder: Path) -> Path:
    return as_pcap(folder, "modpcap")


def pcap_records(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Yield the time, the length on the wire and the captured bytes of each record.

    `data` is a little-endian pcap file with nanoseconds.
    """
    at = 24
    while at < len(data):
        seconds, fraction, captured, original = struct.unpack_from("<IIII", data, at)
        yield seconds * 10**9 + fraction, original, data[at + 16 : at + 16 + captured]
        at += 16 + captured


def as_pcap_of_the_other_byte_order(folder: Path) -> Path:
    data = as_pcap(folder).read_bytes()
    swapped = struct.pack(">IHHIIII", *struct.unpack_from("<IHHIIII", data))
    for ts_ns, original, frame in pcap_records(data):
        swapped += struct.pack(">IIII", *divmod(ts_ns, 10**9), len(frame), original) + frame
    (folder / "big.pcap").write_bytes(swapped)
    return folder / "big.pcap"


def as_pcap_with_a_frame_check_sequence(folder: Path) -> Path:
    """Write a pcap file whose header says that each frame ends with an FCS of 4 bytes."""
    data = bytearray(as_pcap(folder).read_bytes())
    data[20:24] = struct.pack("<I", 1 | 0x0400_0000 | 2 << 28)
    (folder / "fcs.pcap").write_bytes(data)
    return folder / "fcs.pcap"


def packed_by_gzip(folder: Path) -> Path:
    (folder / "in.pcapng.gz").write_bytes(gzip.compress(NAGLE.read_bytes()))
    return folder / "in.pcapng.gz"


def pcap_packed_by_gzip(folder: Path) -> Path:
    (folder / "in.pcap.gz").write_bytes(gzip.compress(as_pcap(folder).read_bytes()))
    return folder / "in.pcap.gz"


def modified_pcap_packed_by_gzip(folder: Path) -> Path:
    (folder / "in.pcap.gz").write_bytes(gzip.compress(as_modified_pcap(folder).read_bytes()))
    return folder / "in.pcap.gz"


def as_snoop(folder: Path) -> Path:
    return as_pcap(folder, "snoop")


def as_erf(folder: Path) -> Path:
    """Write an ERF file with records of type 2 (Ethernet), without padding.

    ERF times are in units of 2^-32 s.
    """
    records = b""
    for ts_ns, original, data in pcap_records(as_pcap(folder).read_bytes()):
        time = (ts_ns << 32) // 10**9
        records += struct.pack("<Q", time) + struct.pack(">BBHHHxx", 2, 4, 18 + len(data), 0, original) + data
    (folder / "in.erf").write_bytes(records)
    return folder / "in.erf"


FORMS: list[Callable[[Path], Path]] = [
    as_it_is,
    as_pcap,
    as_pcap_of_microseconds,
    as_modified_pcap,
    as_pcap_of_the_other_byte_order,
    as_pcap_with_a_frame_check_sequence,
    packed_by_gzip,
    pcap_packed_by_gzip,
    modified_pcap_packed_by_gzip,
    as_snoop,
    as_erf,
]


@pytest.mark.parametrize("form", FORMS)
def test_every_packet_is_the_same_and_comments_stand_at_the_frames_of_findings_and_waits(
    tmp_path: Path, form: Callable[[Path], Path]
) -> None:
    original = form(tmp_path)
    copy = annotated(original.name, tmp_path)
    assert_a_copy(copy, original)
    assert comments(original) == {}
    analysis = analyze(original)
    expected = {frame for finding in analysis.findings for frame in finding.evidence_frames}
    for name in ("frame_before", "frame_after"):
        expected |= set(analysis.stalls.filter(analysis.stalls["frame_after"].is_not_null())[name].drop_nulls())
    expected |= {1}  # the first frame of the connection
    found = comments(copy)
    assert set(found) == expected
    assert found[17][0].startswith("nagle-delayed-ack (high, ")  # the confidence depends on the fields that the format stores


def test_what_lz4_and_zstd_and_xz_hold_is_copied(tmp_path: Path) -> None:
    (tmp_path / "in.pcapng.xz").write_bytes(lzma.compress(NAGLE.read_bytes()))
    assert_a_copy(annotated("in.pcapng.xz", tmp_path), NAGLE)
    packed = CAPTURES / "atm9188-bulk.pcapng.zst"
    assert_a_copy(annotated(packed, tmp_path), packed)


def test_a_wait_is_reported_with_its_length_its_cause_and_the_frame_before(tmp_path: Path) -> None:
    """The data in frame 4 are acknowledged after 60 ms. The ACK releases frame 6, which follows frame 4 by 60.1 ms."""
    path = packets.capture(tmp_path / "in.pcap", LATE_ACK)
    found = comments(annotated(path, tmp_path))
    proof = (
        "100 bytes in flight, a delayed segment of 100 bytes (a full segment has 1,460), ACK in frame 5 came 40 ms late, wait ended by the "
        "delayed-ACK timer of 40 ms"
    )
    ends = next(words for words in found[6] if words.startswith("waited"))
    assert ends.startswith(
        f"waited 60.1 ms: nagle-delayed-ack (consistent; {proof}), since frame 4. Would be disproved by: a small segment "
    )
    assert "Remedy (nagle-delayed-ack): write each message with one call" in ends
    assert "a wait of 60.1 ms follows, until frame 6: nagle-delayed-ack" in found[4]


def test_a_finding_is_reported_in_full_at_its_first_frame_and_named_at_the_others_and_at_the_start_of_its_connection(
    tmp_path: Path,
) -> None:
    finding = analyze(NAGLE).findings[0]
    assert finding.id == "nagle-delayed-ack"
    found = comments(annotated(NAGLE, tmp_path))
    first, *others = finding.evidence_frames
    full = next(words for words in found[first] if words.startswith(finding.id))
    parts = (finding.title, "from the client", "Cause: ", "Cost: 477 ms (91% of the active time)", "Remedy: ", "Would be disproved by: ")
    assert all(part in full for part in parts)
    assert all(remedy in full for remedy in finding.remedy)
    for frame in others:
        assert any(words.endswith(f"{finding.title} (in full: frame {first})") for words in found[frame])
    listed = next(words for words in found[1] if words.startswith("findings of connection 0: "))
    assert f"nagle-delayed-ack, from the client, 477 ms (91% of the active time), frame {first}" in listed


def test_a_wait_of_a_proved_finding_is_proved(tmp_path: Path) -> None:
    """At least three waits show this finding, so each of them is proved (docs/how-it-decides.md, 2.4).

    Waits with other causes keep their confidence.
    """
    found = comments(annotated(CAPTURES / "ethernet-nagle-on.pcapng", tmp_path))
    waits = [words for reported in found.values() for words in reported if words.startswith("waited") and "nagle-delayed-ack" in words]
    assert len(waits) == 11
    assert all("nagle-delayed-ack (proved; " in words for words in waits)
    others = [words for reported in found.values() for words in reported if words.startswith("waited") and "application" in words]
    assert others
    assert not any("application (proved" in words for words in others)


def test_comments_and_options_that_were_there_stay_and_so_do_interfaces_and_names(tmp_path: Path) -> None:
    """The capture has a comment of the user, and two interfaces with different link types.

    Its section header contains the length of the section.
    """
    one, two = CAPTURES / "ethernet-nagle-on.pcapng", CAPTURES / "cooked-bulk.pcapng"
    subprocess.run(
        [needs.program("mergecap"), "-F", "pcapng", "-w", tmp_path / "merged.pcapng", one, two], capture_output=True, timeout=60, check=True
    )
    command: list[str | Path] = [needs.program("editcap"), "-a", "17:of the user", tmp_path / "merged.pcapng", tmp_path / "in.pcapng"]
    subprocess.run(command, capture_output=True, timeout=60, check=True)
    copy = annotated("in.pcapng", tmp_path)
    assert_a_copy(
        copy,
        tmp_path / "in.pcapng",
        (*PACKET_FIELDS, "frame.interface_id", "frame.interface_name", "frame.interface_description", "sll.etype"),
    )
    assert len({row[0] for row in fields(copy, "frame.interface_id")}) == 2
    assert comments(tmp_path / "in.pcapng") == {17: ["of the user"]}
    assert comments(copy)[17][-1] == "of the user"
    assert len(comments(copy)) > 17


def test_a_file_of_several_sections_in_both_byte_orders_is_copied(tmp_path: Path) -> None:
    big = swapped_pcapng(packets.frames(transfer.TEXT))
    (tmp_path / "in.pcapng").write_bytes(NAGLE.read_bytes() + big)
    assert_a_copy(annotated("in.pcapng", tmp_path), tmp_path / "in.pcapng")


def swapped_pcapng(frames: list[packets.Frame]) -> bytes:
    """Return a big-endian pcapng section with one interface whose timestamps are in nanoseconds."""

    def block(kind: int, body: bytes) -> bytes:
        return struct.pack(">II", kind, 12 + len(body)) + body + struct.pack(">I", 12 + len(body))

    data = block(0x0A0D0D0A, struct.pack(">IHHq", 0x1A2B3C4D, 1, 0, -1))
    data += block(1, struct.pack(">HHI", 1, 0, 262_144) + b"\x00\x09\x00\x01\x09\0\0\0" + bytes(4))
    for frame in frames:
        head = struct.pack(">IIIII", 0, frame.ts_ns >> 32, frame.ts_ns & 0xFFFF_FFFF, len(frame.data), frame.wire_bytes)
        data += block(6, head + frame.data + bytes(-len(frame.data) % 4))
    return data


def test_a_big_endian_section_has_its_comments(tmp_path: Path) -> None:
    (tmp_path / "in.pcapng").write_bytes(swapped_pcapng(packets.frames(transfer.TEXT)))
    copy = annotated("in.pcapng", tmp_path)
    assert_a_copy(copy, tmp_path / "in.pcapng")
    assert set(comments(copy)) == set(annotate.comments(analyze(tmp_path / "in.pcapng"))) != set()


def test_the_filter_of_each_finding_is_reported_and_shows_its_frames(tmp_path: Path) -> None:
    done = tcptrace_lab("annotate", NAGLE, "-o", "out.pcapng", folder=tmp_path)
    lines = done.stderr.decode().splitlines()
    findings = analyze(NAGLE).findings
    assert len(lines) == len(findings) + 1
    for line, finding in zip(lines, findings, strict=False):
        start = f"tcptrace-lab: {finding.severity}, {finding.id}, connection {finding.conn}: "
        assert line.startswith(start)
        shown = fields(tmp_path / "out.pcapng", "frame.number", shown=line.removeprefix(start))
        assert tuple(int(row[0]) for row in shown) == finding.evidence_frames
    assert lines[-1] == "tcptrace-lab: copy written: out.pcapng"


def test_the_copy_goes_to_the_reports_by_default_or_to_standard_output(tmp_path: Path) -> None:
    assert tcptrace_lab("annotate", NAGLE, "-q", folder=tmp_path).stderr == b""
    written = (tmp_path / "reports" / "ethernet-nagle-on-annotated.pcapng").read_bytes()
    assert tcptrace_lab("annotate", NAGLE, "-o", "-", folder=tmp_path).stdout == written


def test_a_stream_is_annotated_too(tmp_path: Path) -> None:
    annotated(NAGLE, tmp_path)
    expected = (tmp_path / "out.pcapng").read_bytes()
    assert new_process("annotate", "-", "-o", "-", stdin=NAGLE.read_bytes()).stdout == expected
    os.mkfifo(tmp_path / "fifo")
    writer = threading.Thread(target=(tmp_path / "fifo").write_bytes, args=(NAGLE.read_bytes(),))
    writer.start()
    done = tcptrace_lab("annotate", "fifo", "-o", "-", folder=tmp_path)
    writer.join()
    assert done.stdout == expected


@pytest.mark.parametrize("form", [as_snoop, as_erf, pcap_packed_by_gzip])
def test_a_stream_of_any_format_is_annotated_too(tmp_path: Path, form: Callable[[Path], Path]) -> None:
    original = form(tmp_path)
    expected = annotated(original, tmp_path).read_bytes()
    done = new_process("annotate", "-", "-o", "-", stdin=original.read_bytes())
    assert (done.returncode, done.stdout) == (0, expected)


@pytest.mark.parametrize("missing", [1, 50])
def test_a_cut_capture_is_copied_up_to_the_cut_and_exits_with_4(tmp_path: Path, missing: int) -> None:
    whole = packets.capture(tmp_path / "whole.pcap", transfer.TEXT)
    (tmp_path / "cut.pcap").write_bytes(whole.read_bytes()[:-missing])
    done = tcptrace_lab("annotate", "cut.pcap", "-o", "out.pcapng", folder=tmp_path)
    assert done.returncode == 4
    assert fields(tmp_path / "out.pcapng", *PACKET_FIELDS) == fields(whole, *PACKET_FIELDS)[:-1]
    done = new_process("annotate", "-", "-o", "-", "-q", stdin=(tmp_path / "cut.pcap").read_bytes())
    assert (done.returncode, done.stdout) == (4, (tmp_path / "out.pcapng").read_bytes())
    assert f": standard input, frame {transfer.SEGMENTS}" in only_line(done.stderr)


def test_a_pcapng_block_that_is_cut_or_damaged_ends_the_copy(tmp_path: Path) -> None:
    for name, data in (("cut", NAGLE.read_bytes()[:-3]), ("damaged", NAGLE.read_bytes() + struct.pack("<IIII", 5, 16, 0, 20))):
        (tmp_path / f"{name}.pcapng").write_bytes(data)
        assert tcptrace_lab("annotate", f"{name}.pcapng", "-o", "out.pcapng", folder=tmp_path).returncode == 4
        assert fields(tmp_path / "out.pcapng", *PACKET_FIELDS) == fields(NAGLE, *PACKET_FIELDS)


def test_the_capture_is_never_overwritten(tmp_path: Path) -> None:
    path = as_it_is(tmp_path)
    (tmp_path / "link.pcapng").symlink_to(path)
    for target in ("in.pcapng", "link.pcapng"):
        done = tcptrace_lab("annotate", "in.pcapng", "-o", target, folder=tmp_path)
        assert done.returncode == 2
        assert "the output would overwrite the capture" in only_line(done.stderr)
    assert path.read_bytes() == NAGLE.read_bytes()


def test_what_is_no_capture_is_one_line_and_exits_with_3(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("Nothing that was captured.\n" * 20)
    for name, shown in (("notes.txt", "notes.txt"), ("missing.pcap", "missing.pcap"), ("-", "standard input")):
        done = new_process("annotate", name, "-o", "out.pcapng", folder=tmp_path, stdin=b"words" * 100)
        assert done.returncode == 3
        assert shown in only_line(done.stderr)
        assert not (tmp_path / "out.pcapng").exists()


def test_a_format_that_needs_editcap_is_refused_without_it(tmp_path: Path) -> None:
    path = as_erf(tmp_path)
    (tmp_path / "bin").mkdir()
    done = new_process("annotate", path.name, "-o", "out.pcapng", folder=tmp_path, environment={"PATH": str(tmp_path / "bin")})
    assert done.returncode == 5
    assert "editcap" in only_line(done.stderr)
    assert not (tmp_path / "out.pcapng").exists()


def test_simple_packet_blocks_keep_their_bytes_and_have_no_comments() -> None:
    body = struct.pack("<I", 4) + b"data"
    simple = struct.pack("<II", 3, 12 + len(body)) + body + struct.pack("<I", 12 + len(body))
    section = struct.pack("<IIIHHqI", 0x0A0D0D0A, 28, 0x1A2B3C4D, 1, 0, -1, 28)
    target = io.BytesIO()
    assert pcapng_copy.copy_pcapng(io.BytesIO(section + simple), target, {1: ["nowhere to go"]}, 1) == 1
    assert target.getvalue() == section + simple
