"""`read` returns the engine's tables in Python.

The rows are kept in memory or in temporary files, or they are read again from the capture.
"""

from __future__ import annotations

import gc
import gzip
import os
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from tcptrace_lab import errors, read, schema
from tests.support import packets, transfer

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcptrace_lab.engine.segments import Tables

FAR = 10**12
"""A limit (rows or bytes) that no test reaches."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return packets.capture(tmp_path / "transfer.pcap", transfer.TEXT)


@pytest.fixture
def expected(path: Path) -> pl.DataFrame:
    return read(path, spill_rows=FAR, reread_bytes=FAR).segments.collect()


WAYS: dict[str, Callable[[Path], Tables]] = {
    "in memory": lambda path: read(path, spill_rows=FAR, reread_bytes=FAR),
    "in temporary files": lambda path: read(path, spill_rows=0, reread_bytes=FAR),
    "read again": lambda path: read(path, reread_bytes=0),
}


@pytest.mark.parametrize("way", WAYS)
def test_tables_have_the_columns_and_types_of_the_schema(path: Path, way: str) -> None:
    tables = WAYS[way](path)
    assert dict(tables.segments.collect().schema) == schema.SEGMENTS.polars_schema()
    assert dict(tables.segments.collect_schema()) == schema.SEGMENTS.polars_schema()
    assert dict(tables.connections.collect_schema()) == schema.CONNECTIONS.polars_schema()
    assert dict(tables.connections.collect().schema) == schema.CONNECTIONS.polars_schema()


@pytest.mark.parametrize("way", WAYS)
def test_rows_are_the_same_however_they_are_kept(path: Path, expected: pl.DataFrame, way: str) -> None:
    segments = WAYS[way](path).segments
    assert_frame_equal(segments.collect(), expected)
    assert_frame_equal(segments.collect(engine="streaming"), expected)


@pytest.mark.parametrize("way", WAYS)
def test_queries_give_the_same_however_rows_are_kept(path: Path, expected: pl.DataFrame, way: str) -> None:
    segments = WAYS[way](path).segments
    resent = pl.col("kind").is_in(schema.RESENT)
    assert segments.filter(resent).select("frame").collect().to_series().to_list() == [10]
    assert_frame_equal(
        segments.filter(~pl.col("from_client")).select("seq", "sack_blocks").collect(),
        expected.filter(~pl.col("from_client")).select("seq", "sack_blocks"),
    )
    assert_frame_equal(segments.head(5).collect(), expected.head(5))
    assert segments.select(pl.len()).collect().item() == transfer.SEGMENTS
    assert_frame_equal(segments.select("ts_ns", "frame").tail(2).collect(), expected.select("ts_ns", "frame").tail(2))


def test_queries_for_some_connections_give_the_same_when_read_again(tmp_path: Path) -> None:
    hosts = "\n".join(f"host H{number} 10.0.1.{number}:50000" for number in range(5))
    data = "\n".join(f"{number + 10 * turn} H{number} > S P. ack 1" for turn in range(3) for number in range(5))
    path = packets.capture(tmp_path / "five.pcap", f"{hosts}\n{data}")
    conn = pl.col("conn")
    queries = [
        conn == 3,
        conn.is_in([0, 4]) & (pl.col("frame") > 5),
        (conn == 1) | (pl.col("frame") == 3),
        (conn != 2) & (conn < 4) & ~pl.col("from_client"),
        (conn > 1) ^ (conn > 3),
        pl.col("frame") % 5 == conn,
        conn > 99,
    ]
    kept, again = read(path, reread_bytes=FAR).segments, read(path, reread_bytes=0).segments
    for query in queries:
        assert_frame_equal(again.filter(query).collect(), kept.filter(query).collect())


def test_codes_of_the_engine_get_their_names(expected: pl.DataFrame) -> None:
    kinds = dict(expected.select("frame", "kind").iter_rows())
    assert (kinds[4], kinds[3], kinds[9]) == ("new", "ack", "duplicate_ack")
    assert kinds[10] in schema.RESENT
    released = dict(expected.select("frame", "released_by").iter_rows())
    assert released[3] is None  # frame 3 carries no data
    assert released[6] == "burst"


def test_a_request_and_its_answer_are_one_connection(path: Path) -> None:
    connection = read(path).connections.collect().row(0, named=True)
    assert {name: connection[f"client_{name}"] for name in transfer.CLIENT} == transfer.CLIENT
    assert {name: connection[f"server_{name}"] for name in transfer.SERVER} == transfer.SERVER
    assert (connection["client_known_by"], connection["closed_by"]) == ("syn", "fin")


def test_two_parts_of_a_capture_are_merged_by_time(tmp_path: Path, expected: pl.DataFrame) -> None:
    frames = packets.frames(transfer.TEXT)
    parts = [tmp_path / "even.pcap", tmp_path / "odd.pcapng"]
    packets.write_pcap(parts[0], frames[0::2])
    packets.write_pcapng(parts[1], frames[1::2])
    for tables in (read(parts), read(reversed(parts)), read([str(part) for part in parts], reread_bytes=0)):
        assert_frame_equal(tables.segments.collect(), expected)
    assert read(parts).info["format"] == "pcap, pcapng"


def test_an_empty_capture_has_empty_tables(tmp_path: Path) -> None:
    tables = read(packets.capture(tmp_path / "nothing.pcap", ""))
    assert tables.segments.collect().is_empty()
    assert tables.connections.collect().is_empty()
    assert tables.complete
    assert dict(tables.segments.collect().schema) == schema.SEGMENTS.polars_schema()


def test_spilled_rows_outlive_everything_but_the_frame_that_scans_them(path: Path, expected: pl.DataFrame) -> None:
    before = spilled_files()
    derived = read(path, spill_rows=0, reread_bytes=FAR).segments.filter(pl.col("frame") > 0)
    gc.collect()
    assert spilled_files() == before + 1
    assert_frame_equal(derived.collect(), expected)
    del derived
    gc.collect()
    assert spilled_files() == before


def spilled_files() -> int:
    """Count the open temporary files of this process. These files have no name, because they are deleted right after opening."""
    links = [str(entry.readlink()) for entry in Path("/proc/self/fd").iterdir() if entry.is_symlink()]
    return sum(link.startswith(tempfile.gettempdir()) and link.endswith("(deleted)") for link in links)


def test_no_room_for_temporary_files_is_said(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda **_: Path("/dev/full").open("w+b"))  # noqa: SIM115  (`read` closes it)
    with pytest.raises(errors.OutputUnwritable, match=r"cannot write: .*(room|No space left).*: temporary files in .*; set TMPDIR"):
        read(path, spill_rows=0, reread_bytes=FAR)


def test_a_missing_temporary_directory_is_said(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    with pytest.raises(errors.OutputUnwritable, match=r"No such file or directory: temporary files in .*gone; set TMPDIR"):
        read(path, spill_rows=0, reread_bytes=FAR)


def together(tables: Tables) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the segments and the ledger of the first connection, which one pass reads together."""
    assert tables.together is not None
    segments, waits = zip(*tables.together([0], ["frame", "kind"], ["conn", "start_ns", "cause"]), strict=True)
    return pl.concat(segments), pl.concat(waits)


def test_segments_and_ledger_of_one_pass_are_those_of_two(path: Path) -> None:
    tables = read(path, reread_bytes=0, worth=())
    segments, waits = together(tables)
    assert waits.height > 0
    assert_frame_equal(segments, tables.segments.select("frame", "kind").collect(), check_column_order=False)
    assert_frame_equal(waits, tables.ledger.select("conn", "start_ns", "cause").collect(), check_column_order=False)
    assert read(path, worth=()).together is None, "both are kept"


def test_frames_that_were_written_later_are_left_out_when_a_growing_file_is_read_again(tmp_path: Path) -> None:
    frames = packets.frames(transfer.TEXT)
    path = tmp_path / "growing.pcap"
    packets.write_pcap(path, frames[:8])
    tables = read(path, reread_bytes=0)
    packets.write_pcap(tmp_path / "whole.pcap", frames)
    with path.open("ab") as growing:
        growing.write((tmp_path / "whole.pcap").read_bytes()[path.stat().st_size :])
    assert tables.segments.collect()["frame"].to_list() == list(range(1, 9))
    assert together(tables)[0]["frame"].to_list() == list(range(1, 9))
    assert read(path).segments.collect().height == transfer.SEGMENTS


def test_a_file_that_was_replaced_is_not_taken_for_the_one_that_was_read(path: Path) -> None:
    tables = read(path, reread_bytes=0)
    packets.capture(path.with_name("other.pcap"), "0 C > S S 0:0(0)").replace(path)
    with pytest.raises(errors.CaptureUnreadable, match="changed while it was read"):
        tables.segments.collect()
    with pytest.raises(errors.CaptureUnreadable, match="changed while it was read"):
        together(tables)


def test_a_file_that_is_gone_cannot_be_read_again(path: Path) -> None:
    tables = read(path, reread_bytes=0)
    path.unlink()
    with pytest.raises(errors.CaptureUnreadable, match="the file disappeared while it was read"):
        tables.segments.collect()


def test_compressed_captures_are_kept_whatever_their_size(path: Path, expected: pl.DataFrame) -> None:
    compressed = path.with_name("transfer.pcap.gz")
    compressed.write_bytes(gzip.compress(path.read_bytes()))
    tables = read(compressed, reread_bytes=0)
    compressed.unlink()
    assert_frame_equal(tables.segments.collect(), expected)


def test_a_capture_comes_through_a_fifo(path: Path, expected: pl.DataFrame) -> None:
    fifo = path.with_name("fifo")
    os.mkfifo(fifo)
    writer = threading.Thread(target=fifo.write_bytes, args=(path.read_bytes(),))
    writer.start()
    tables = read(fifo, reread_bytes=0)
    writer.join()
    assert_frame_equal(tables.segments.collect(), expected)


def test_watchers_see_every_row_once_in_order(path: Path, expected: pl.DataFrame) -> None:
    class Frames:
        columns = ("frame", "seq")

        def __init__(self) -> None:
            self.seen: list[pl.DataFrame] = []

        def add(self, rows: pl.DataFrame) -> None:
            self.seen.append(rows.select("frame", "seq"))

    for reread_bytes in (0, FAR):
        frames = Frames()
        read(path, reread_bytes=reread_bytes, watchers=[frames])
        assert_frame_equal(pl.concat(frames.seen), expected.select("frame", "seq"))


def test_progress_is_reported_in_segments(path: Path) -> None:
    reported: list[tuple[int, float | None]] = []
    read(path, progress=lambda rows, share: reported.append((rows, share)))
    assert reported[-1] == (transfer.SEGMENTS, 1.0)


def test_of_a_pipe_no_share_is_known(path: Path) -> None:
    reported: list[tuple[int, float | None]] = []
    reader, writer = os.pipe()
    try:
        os.write(writer, path.read_bytes())
        os.close(writer)
        read(f"/dev/fd/{reader}", progress=lambda rows, share: reported.append((rows, share)))
    finally:
        os.close(reader)
    assert reported[-1] == (transfer.SEGMENTS, None)


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"", errors.CaptureUnreadable),
        (b"Dear reader,\nthis is no capture.\n" * 9, errors.NotACapture),
        (b"\xd4\xc3\xb2\xa1\x02", errors.CaptureUnreadable),
    ],
)
def test_what_is_no_capture_is_refused(tmp_path: Path, content: bytes, error: type[errors.CaptureUnreadable]) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(error) as caught:
        read(path)
    assert caught.value.where.startswith(str(path))
    assert caught.value.remedy


def test_a_directory_and_a_missing_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(errors.CaptureUnreadable, match="directory"):
        read(tmp_path)
    with pytest.raises(errors.CaptureUnreadable, match=r"^No such file or directory: .*absent; give a file"):
        read(tmp_path / "absent")


def test_no_path_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(errors.UsageError):
        read([])


def test_a_cut_capture_gives_what_stands_before_the_cut(path: Path, expected: pl.DataFrame) -> None:
    whole = path.read_bytes()
    cut = path.with_name("cut.pcap")
    cut.write_bytes(whole[:-7])
    tables = read(cut)
    assert_frame_equal(tables.segments.collect(), expected.head(transfer.SEGMENTS - 1))
    assert not tables.complete
    assert tables.loss is not None
    assert f"{cut}, frame {transfer.SEGMENTS}, byte" in str(tables.loss)


def test_packets_of_an_unknown_link_type_are_counted_and_named(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[20] = 147  # LINKTYPE_USER0 is reserved for private use
    path.write_bytes(content)
    tables = read(path)
    assert tables.info["packets"] == transfer.SEGMENTS
    assert tables.info["tcp_segments"] == 0
    assert tables.loss is not None
    assert "147" in tables.loss.what
