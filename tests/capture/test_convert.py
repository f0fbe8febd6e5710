"""Captures in formats of other programs are read through Wireshark's editcap. If that fails, an error says what to do.

The expected values come from tshark, or from the capture before Wireshark converted it. Shell scripts take the place of editcap and fail:
one writes nothing, one never ends, and one exits with an error.
"""

from __future__ import annotations

import json
import lzma
import os
import shutil
import subprocess
import threading
import time
from typing import IO, TYPE_CHECKING

import polars as pl
import pytest

from tcptrace_lab import errors, read
from tcptrace_lab.capture import editcap, streams
from tcptrace_lab.udp.datagrams import read_datagrams
from tests.support import needs
from tests.support.command import PROGRAM, new_process, only_line, tcptrace_lab
from tests.support.peers import tshark
from tests.support.peers.comparison import count_differences, differences
from tests.support.places import ROOT

if TYPE_CHECKING:
    from pathlib import Path

SNOOP = ROOT / "tests" / "data" / "solaris.snoop"
ORIGINAL = ROOT / "captures" / "ethernet-reordering.pcapng"

EXACT = ("snoop", "netmon2")
"""File formats that keep timestamps in microseconds and the original lengths of packets."""

COARSE = ("lanalyzer", "netmon1", "ngsniffer")
PER_PACKET = ("commview-ncf", "k12text", "nettl")
"""File formats that state the link type of each packet."""

SNOOP_HEADER = b"snoop\0\0\0" + (2).to_bytes(4, "big") + (4).to_bytes(4, "big")
"""The file header of snoop version 2 for Ethernet (RFC 1761)."""


@pytest.fixture(scope="module", autouse=True)
def _editcap() -> None:
    needs.program("editcap")


def _in_format(form: str, original: Path, folder: Path) -> Path:
    made = folder / f"capture.{form}"
    subprocess.run([needs.program("editcap"), "-F", form, original, made], check=True, capture_output=True)
    return made


@pytest.fixture(name="microseconds", scope="module")
def _microseconds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pcap file with timestamps in microseconds, the resolution of the other formats."""
    return _in_format("pcap", ORIGINAL, tmp_path_factory.mktemp("original"))


def _snoop(folder: Path) -> Path:
    return _in_format("snoop", ORIGINAL, folder)


def _script(folder: Path, text: str) -> None:
    """Write the shell script `text` to a file named editcap. Its folder comes first on the PATH."""
    program = folder / "bin" / "editcap"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{text}\n")
    program.chmod(0o755)


def _played(folder: Path) -> dict[str, str]:
    return {"PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"}


def test_snoop_equals_tshark_column_by_column() -> None:
    theirs = tshark.opinion(SNOOP)
    ours = read(SNOOP)
    segments = ours.segments.collect()
    counted = count_differences(
        {"packets": ours.info["packets"], "tcp_segments": segments.height, "connections": ours.info["connections"]},
        {"packets": theirs.packets, "tcp_segments": theirs.segments.height, "connections": theirs.connections},
    )
    assert (counted, differences(segments, theirs.segments)) == ({}, {})
    assert (ours.info["packets"], segments.height, ours.info["connections"]) == (250, 15, 1)
    assert (ours.complete, ours.info["format"]) == (True, "snoop")


@pytest.mark.parametrize("form", EXACT)
def test_a_capture_in_another_format_gives_the_same_segments(form: str, microseconds: Path, tmp_path: Path) -> None:
    ours, original = read(_in_format(form, microseconds, tmp_path)), read(microseconds)
    assert ours.segments.collect().equals(original.segments.collect())
    assert ours.connections.collect().equals(original.connections.collect())
    assert ours.info["format"] == form


@pytest.mark.parametrize("form", PER_PACKET)
def test_formats_without_a_link_type_for_the_file_are_read_if_all_is_ethernet(form: str, microseconds: Path, tmp_path: Path) -> None:
    made = _in_format(form, microseconds, tmp_path)
    ours, theirs = read(made), tshark.opinion(made)
    assert (ours.info["packets"], ours.info["format"]) == (theirs.packets, form)
    assert (ours.complete, differences(ours.segments.collect(), theirs.segments)) == (True, {})


@pytest.mark.parametrize("form", COARSE)
def test_formats_with_coarse_times_give_the_same_numbers(form: str, tmp_path: Path) -> None:
    made = _in_format(form, ORIGINAL, tmp_path)
    columns = ["frame", "conn", "from_client", "seq", "ack", "payload_bytes", "flags", "window_bytes", "sack_blocks", "tsval", "ip_id"]
    ours = read(made).segments.collect()
    assert ours.select(columns).equals(read(ORIGINAL).segments.select(columns).collect())
    assert differences(ours, tshark.opinion(made).segments) == {}


def test_the_conversion_is_announced_in_one_line(tmp_path: Path) -> None:
    capture = _snoop(tmp_path)
    done = tcptrace_lab("export", capture, "-o", tmp_path / "out.parquet", folder=tmp_path)
    assert done.returncode == errors.EXIT_DONE
    announced, written = done.stderr.decode().splitlines()
    assert announced == f"tcptrace-lab: {capture}: Sun snoop, read through Wireshark's editcap"
    assert written.startswith("tcptrace-lab: table segments as parquet written: ")
    assert pl.read_parquet(tmp_path / "out.parquet").height == read(ORIGINAL).segments.collect().height


def test_quiet_says_nothing_of_the_conversion(tmp_path: Path) -> None:
    done = tcptrace_lab("export", _snoop(tmp_path), "-o", tmp_path / "out.parquet", "--quiet", folder=tmp_path)
    assert (done.returncode, done.stderr) == (errors.EXIT_DONE, b"")


def test_the_json_shows_the_format_that_the_file_had(tmp_path: Path) -> None:
    capture = _snoop(tmp_path)
    done = tcptrace_lab("analyze", capture, "--json", "-", "--quiet", folder=tmp_path)
    reported = json.loads(done.stdout)["capture"]
    assert (reported["path"], reported["format"], reported["problems"]) == (str(capture), "snoop", [])


def test_datagrams_come_through_too() -> None:
    ours = read_datagrams(SNOOP)
    assert (ours.datagrams.collect().height, ours.info["format"]) == (55, "snoop")


@pytest.mark.parametrize("name", ["-r", "-", "--help", "a file; touch x", "ü\n.snoop"])
def test_no_file_name_is_taken_for_an_option(name: str, tmp_path: Path) -> None:
    shutil.copy(SNOOP, tmp_path / name)
    done = tcptrace_lab("export", "--format", "csv", "--", os.path.join(".", name), folder=tmp_path)  # noqa: PTH118  (keeps the dot)
    assert (done.returncode, len(done.stdout.splitlines())) == (errors.EXIT_DONE, 1 + 15)
    if name != "-":
        again = tcptrace_lab("export", "--format", "csv", "--", name, folder=tmp_path)
        assert again.stdout == done.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == [name]


def test_standard_input_is_converted(tmp_path: Path) -> None:
    done = new_process("export", "-", "--format", "csv", stdin=SNOOP.read_bytes(), folder=tmp_path, environment={"TMPDIR": str(tmp_path)})
    assert (done.returncode, len(done.stdout.splitlines())) == (errors.EXIT_DONE, 1 + 15)
    assert only_line(done.stderr) == "tcptrace-lab: standard input: Sun snoop, read through Wireshark's editcap"
    assert list(tmp_path.iterdir()) == []


def test_a_pipe_of_the_shell_is_converted(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    with os.fdopen(writer, "wb") as stream:
        feeder = threading.Thread(target=_write_and_close, args=(stream, SNOOP.read_bytes()))
        feeder.start()
        done = subprocess.run(
            [PROGRAM, "export", f"/dev/fd/{reader}", "--format", "csv"], pass_fds=[reader], capture_output=True, cwd=tmp_path, check=False
        )
        feeder.join()
    os.close(reader)
    assert (done.returncode, len(done.stdout.splitlines())) == (errors.EXIT_DONE, 1 + 15)


def _write_and_close(stream: IO[bytes], data: bytes) -> None:
    with stream:
        stream.write(data)


def test_a_temporary_directory_that_is_full_is_said(tmp_path: Path) -> None:
    environment = {"TMPDIR": str(tmp_path / "none"), "TEMP": "", "TMP": ""}
    command = f"ulimit -f 1; exec {PROGRAM} export - --format csv --quiet"
    done = subprocess.run(
        ["/bin/sh", "-c", command], input=SNOOP.read_bytes() * 9, capture_output=True, env={**os.environ, **environment}, check=False
    )
    assert done.returncode == errors.EXIT_USAGE
    assert "set TMPDIR" in only_line(done.stderr)


def test_a_fifo_with_a_name_is_converted(tmp_path: Path) -> None:
    done = _through_a_fifo(SNOOP.read_bytes(), tmp_path, "export", "--format", "csv")
    assert (done.returncode, len(done.stdout.splitlines())) == (errors.EXIT_DONE, 1 + 15)
    assert only_line(done.stderr) == f"tcptrace-lab: {tmp_path / 'fifo'}: Sun snoop, read through Wireshark's editcap"


def test_a_fifo_of_a_format_that_the_engine_reads_is_read_as_ever(tmp_path: Path) -> None:
    """The capture is larger than any pipe buffer. It is also larger than the part of a stream that the reader keeps in memory."""
    whole = b"".join([ORIGINAL.read_bytes()] * (2 * streams.KEPT_BYTES // ORIGINAL.stat().st_size + 1))
    done = _through_a_fifo(whole, tmp_path, "analyze", "--json", "-", "-q", "-o", str(tmp_path / "report.html"))
    capture = json.loads(done.stdout)["capture"]
    assert (done.returncode, done.stderr, capture["format"]) == (errors.EXIT_DONE, b"", "pcapng")
    assert capture["packets"] == tshark.opinion(ORIGINAL).packets * (len(whole) // ORIGINAL.stat().st_size)


def test_a_problem_in_a_fifo_has_its_name_and_byte(tmp_path: Path) -> None:
    done = _through_a_fifo(ORIGINAL.read_bytes()[:-1], tmp_path, "export", "--format", "csv")
    assert done.returncode == errors.EXIT_READ_IN_PART
    assert f": {tmp_path / 'fifo'}, frame " in only_line(done.stderr)
    assert ", byte " in only_line(done.stderr)


def _through_a_fifo(data: bytes, folder: Path, command: str, *options: str) -> subprocess.CompletedProcess[bytes]:
    fifo = folder / "fifo"
    os.mkfifo(fifo)
    feeder = threading.Thread(target=fifo.write_bytes, args=(data,))
    feeder.start()
    done = tcptrace_lab(command, fifo, *options, folder=folder)
    feeder.join()
    return done


def test_files_of_several_formats_are_merged_by_time(microseconds: Path, tmp_path: Path) -> None:
    snoop, netmon = _in_format("snoop", microseconds, tmp_path), _in_format("netmon2", microseconds, tmp_path)
    merged, plain = read([snoop, microseconds, netmon]), read([microseconds] * 3)
    assert merged.segments.collect().equals(plain.segments.collect())
    assert merged.info["format"] == "pcap, snoop, netmon2"
    assert read([ORIGINAL, snoop]).info["format"] == "pcapng, snoop"


def test_standard_input_is_converted_beside_files(microseconds: Path, tmp_path: Path) -> None:
    snoop = _in_format("snoop", microseconds, tmp_path)
    done = new_process("export", microseconds, "-", snoop, "--format", "csv", stdin=snoop.read_bytes(), folder=tmp_path)
    assert done.returncode == errors.EXIT_DONE
    assert len(done.stdout.splitlines()) == 1 + 3 * read(microseconds).segments.collect().height
    assert len(done.stderr.splitlines()) == 2


def test_a_stream_that_was_begun_waits_for_a_conversion(tmp_path: Path) -> None:
    snoop, rows = _snoop(tmp_path), read(ORIGINAL).segments.collect().height
    done = new_process("export", "-", snoop, "--format", "csv", stdin=ORIGINAL.read_bytes(), folder=tmp_path)
    assert (done.returncode, len(done.stdout.splitlines())) == (errors.EXIT_DONE, 1 + 2 * rows)
    with ORIGINAL.open("rb") as redirected:
        again = subprocess.run([PROGRAM, "export", "-", snoop, "--format", "csv"], stdin=redirected, capture_output=True, check=False)
    assert (again.returncode, again.stdout) == (errors.EXIT_DONE, done.stdout)


def test_a_cut_file_gives_what_it_holds_and_says_so(tmp_path: Path) -> None:
    cut = tmp_path / "cut.snoop"
    cut.write_bytes(SNOOP.read_bytes()[:5000])
    tables = read(cut)
    assert tables.info["packets"] == tshark.opinion(cut).packets == 44
    [problem] = tables.problems
    assert (problem["path"], problem["loses_data"]) == (str(cut), True)
    assert "cut short in the middle of a packet" in problem["what"]
    assert not tables.complete
    done = tcptrace_lab("export", cut, "--quiet", "-o", tmp_path / "out", folder=tmp_path)
    assert (done.returncode, "cut short" in only_line(done.stderr)) == (errors.EXIT_READ_IN_PART, True)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (SNOOP_HEADER + bytes(range(7, 255)) * 3, "damaged or corrupt"),
        (SNOOP_HEADER[:8] + b"\x77" * 600, "version 2004318071 unsupported"),
        (b"GMBU" + b"\xff" * 40, "Wireshark"),
        (b"RTSS", "Wireshark"),
    ],
)
def test_garbage_behind_a_magic_is_no_capture(content: bytes, reason: str, tmp_path: Path) -> None:
    garbage = tmp_path / "garbage"
    garbage.write_bytes(content)
    done = tcptrace_lab("export", garbage, folder=tmp_path)
    assert done.returncode == errors.EXIT_UNREADABLE
    line = only_line(done.stderr)
    assert reason in line
    assert str(garbage) in line


@pytest.mark.parametrize("content", [b"", b"\0", b"some words\n", b'{"a": 1}\n', os.urandom(3000), b"\x89PNG\r\n\x1a\n" + bytes(90)])
def test_what_is_no_capture_for_the_engine_and_for_wireshark_is_none(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(content)
    for done in (tcptrace_lab("export", file, folder=tmp_path), new_process("export", "-", stdin=content, folder=tmp_path)):
        assert done.returncode == errors.EXIT_UNREADABLE
        assert "give a pcap or pcapng file" in only_line(done.stderr)


def test_a_capture_without_packets_is_one_if_its_magic_says_so(tmp_path: Path) -> None:
    empty = tmp_path / "empty.snoop"
    empty.write_bytes(SNOOP_HEADER)
    tables = read(empty)
    assert (tables.info["packets"], tables.complete, tables.segments.collect().height) == (0, True, 0)


PACKERS = {"gz": ["gzip", "--stdout"], "xz": ["xz", "--stdout"], "zst": ["zstd", "--stdout"], "lz4": ["lz4", "-c"]}


@pytest.mark.parametrize("packing", PACKERS)
def test_a_packed_file_of_another_format_is_read_from_disk_stdin_and_fifo(packing: str, tmp_path: Path) -> None:
    """Wireshark 4.0 decompresses only gzip, so the engine decompresses files of other compression formats."""
    packed = tmp_path / f"capture.snoop.{packing}"
    program, *options = PACKERS[packing]
    packed.write_bytes(subprocess.run([needs.program(program), *options, SNOOP], capture_output=True, check=True).stdout)
    space = tmp_path / "space"
    space.mkdir()
    environment = {"TMPDIR": str(space)}
    from_disk = new_process("export", packed, "--format", "csv", folder=tmp_path, environment=environment)
    from_stdin = new_process("export", "-", "--format", "csv", stdin=packed.read_bytes(), folder=tmp_path, environment=environment)
    from_fifo = _through_a_fifo(packed.read_bytes(), tmp_path, "export", "--format", "csv")
    for done in (from_disk, from_stdin, from_fifo):
        assert (done.returncode, len(done.stdout.splitlines())) == (errors.EXIT_DONE, 1 + 15)
        assert only_line(done.stderr).endswith(": Sun snoop, read through Wireshark's editcap")
    assert list(space.iterdir()) == []


def test_a_packed_file_of_another_format_that_is_cut_says_so(tmp_path: Path) -> None:
    cut = tmp_path / "cut.snoop.xz"
    cut.write_bytes(lzma.compress(SNOOP.read_bytes())[:-20])
    tables = read(cut)
    assert not tables.complete
    assert "the xz data end too early; everything before it was read" in [problem["what"] for problem in tables.problems]
    assert {problem["path"] for problem in tables.problems} == {str(cut)}


def test_what_is_packed_and_no_capture_is_not_unpacked(tmp_path: Path) -> None:
    packed = tmp_path / "words.xz"
    packed.write_bytes(lzma.compress(b"some words\n" * 1000))
    done = tcptrace_lab("export", packed, folder=tmp_path)
    assert done.returncode == errors.EXIT_UNREADABLE
    assert only_line(done.stderr).startswith(f"tcptrace-lab: text, not a capture: {packed}; ")


def test_without_editcap_a_known_format_misses_a_tool(tmp_path: Path) -> None:
    nothing = {"PATH": str(tmp_path)}
    done = new_process("export", SNOOP, folder=tmp_path, environment=nothing)
    assert done.returncode == errors.EXIT_MISSING_TOOL
    line = only_line(done.stderr)
    assert line.startswith(f"tcptrace-lab: a Sun snoop capture, which is not read directly: {SNOOP}; ")
    assert "editcap" in line
    assert "not installed" in line


def test_without_editcap_an_unknown_file_is_no_capture(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"\x01\x02\x03\xff" * 50)
    done = new_process("export", file, folder=tmp_path, environment={"PATH": str(tmp_path)})
    assert (done.returncode, "not a capture" in only_line(done.stderr)) == (errors.EXIT_UNREADABLE, True)


def test_an_editcap_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A script in place of editcap writes half of a capture and then hangs. The written half is analyzed."""
    half = tmp_path / "half"
    half.write_bytes(ORIGINAL.read_bytes()[:40_000])
    _script(tmp_path, f"cat '{half}'; exec sleep 1000")
    monkeypatch.setenv("PATH", _played(tmp_path)["PATH"])
    monkeypatch.setattr(editcap, "NO_PROGRESS_S", 0.5)
    begun = time.monotonic()
    tables = read(SNOOP)
    assert time.monotonic() - begun < 30
    assert 100 < tables.info["packets"] < read(ORIGINAL).info["packets"]
    assert "Wireshark's editcap produced no output for 0.5 s and was stopped; everything that it converted was read" in [
        problem["what"] for problem in tables.problems
    ]


def test_an_editcap_that_says_nothing_at_all_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _script(tmp_path, "exec sleep 1000")
    monkeypatch.setenv("PATH", _played(tmp_path)["PATH"])
    monkeypatch.setattr(editcap, "NO_PROGRESS_S", 0.2)
    with pytest.raises(errors.CaptureUnreadable, match=r"produced no output for 0\.2 s and was stopped"):
        read(SNOOP)


def test_a_slow_reader_is_not_taken_for_a_hang(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The capture is larger than the pipe's buffer. The reader takes longer than the timeout to process the first rows."""
    big = tmp_path / "big.pcap"
    packets = _in_format("pcap", ORIGINAL, tmp_path).read_bytes()
    big.write_bytes(packets[:24] + packets[24:] * 400)
    snoop = _in_format("snoop", big, tmp_path)
    monkeypatch.setattr(editcap, "NO_PROGRESS_S", 0.3)
    waited: list[int] = []

    def wait(segments: int, _share: float | None) -> None:
        if not waited:
            time.sleep(1)
        waited.append(segments)

    tables = read(snoop, progress=wait)
    assert len(waited) > 1
    assert tables.complete
    assert tables.info["packets"] == 400 * read(ORIGINAL).info["packets"]
    assert tables.segments.select(pl.len()).collect().item() == tables.info["tcp_segments"]


@pytest.mark.parametrize(
    ("ending", "said"),
    [
        ("exit 7", "ended with exit code 7"),
        ("kill -SEGV $$", "ended with signal 11"),
        ("echo 'editcap: \033[31m it is\nworn \a out.' >&2; exit 1", "says: ?[31m it is worn ? out"),
        ("head -c 100000 /dev/zero | tr '\\0' x >&2; exit 1", "says: " + "x" * 300 + "…"),
    ],
)
def test_what_editcap_ends_with_is_reported_on_one_line(ending: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _script(tmp_path, f"cat '{ORIGINAL}'; {ending}")
    monkeypatch.setenv("PATH", _played(tmp_path)["PATH"])
    tables = read(SNOOP)
    [problem] = tables.problems
    assert problem["what"] == f"Wireshark's editcap {said}; everything that it converted was read"
    assert (tables.complete, tables.info["packets"]) == (False, read(ORIGINAL).info["packets"])


def test_no_editcap_outlives_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reader stops after the first rows, before the stream ends."""
    number = tmp_path / "pid"
    _script(tmp_path, f"echo $$ > '{number}'; cat '{ORIGINAL}'; exec sleep 1000")
    monkeypatch.setenv("PATH", _played(tmp_path)["PATH"])
    monkeypatch.setattr(editcap, "NO_PROGRESS_S", 600.0)

    def stop(_: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        read(SNOOP, say=stop)
    with pytest.raises(ProcessLookupError):
        os.kill(int(number.read_text()), 0)


def test_an_offset_in_the_converted_stream_is_not_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine reports a problem in the converted stream. The message names the capture file and no byte offset."""
    half = tmp_path / "half"
    half.write_bytes(ORIGINAL.read_bytes()[:40_001])
    _script(tmp_path, f"cat '{half}'")
    monkeypatch.setenv("PATH", _played(tmp_path)["PATH"])
    [problem] = read(SNOOP).problems
    assert (problem["path"], problem["offset"]) == (str(SNOOP), None)
    assert problem["frame"] is not None
