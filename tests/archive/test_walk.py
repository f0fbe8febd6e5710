"""The files of a folder are grouped into captures. All files of one ring buffer become one capture."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tcptrace_lab.archive.sources.rotation import joined
from tcptrace_lab.archive.sources.walk import walk
from tcptrace_lab.errors import CaptureUnreadable, UsageError
from tests.support.captures import archives

if TYPE_CHECKING:
    from pathlib import Path


def test_files_of_a_dumpcap_ring_are_one_capture_in_the_order_of_their_numbers() -> None:
    ring = [f"r/net_{number:05}_2026112106{number:02}00.pcapng" for number in (9, 10, 11)]
    assert joined(reversed(ring)) == [tuple(ring)]


def test_a_ring_that_was_started_again_is_another_capture() -> None:
    first = ["net_00001_20261121060000.pcapng", "net_00002_20261121061000.pcapng"]
    second = ["net_00001_20261121070000.pcapng"]
    assert joined([*second, *first]) == [tuple(second), tuple(first)]


def test_a_gap_in_the_numbers_ends_a_set() -> None:
    assert joined(["a_00001_20261121060000.pcap", "a_00003_20261121062000.pcap"]) == [
        ("a_00001_20261121060000.pcap",),
        ("a_00003_20261121062000.pcap",),
    ]


def test_times_may_come_before_the_numbers() -> None:
    ring = ["net_20261121060000_00001.pcapng", "net_20261121061000_00002.pcapng"]
    assert joined(ring) == [tuple(ring)]


def test_tcpdump_numbers_behind_the_name_are_one_capture_the_first_without_one() -> None:
    assert joined(["x.pcap2", "x.pcap", "x.pcap1", "x.pcap10"]) == [("x.pcap", "x.pcap1", "x.pcap2"), ("x.pcap10",)]


def test_tcpdump_numbers_with_leading_zeros_are_one_capture_also_compressed() -> None:
    ring = [f"x.pcap{number:02}.gz" for number in range(12)]
    assert joined(ring) == [tuple(ring)]


def test_names_that_only_end_in_numbers_are_no_set() -> None:
    alone = ["test1.pcap", "test2.pcap", "net_00001.pcapng", "net_00002.pcapng"]
    assert joined(alone) == [(path,) for path in alone]


def test_folders_are_walked_and_every_file_is_accounted_for(tmp_path: Path) -> None:
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    named = archives.capture(tmp_path / "one.pcap", 1)
    by_content = archives.capture(deep / "two", 2)
    other = tmp_path / "notes.txt"
    other.write_text("slow on Monday")
    (tmp_path / ".hidden.pcap").write_bytes(b"half written")
    found = walk([str(tmp_path)])
    assert sorted(found.captures) == [(str(by_content),), (str(named),)]
    assert found.others == (str(other),)
    assert found.files == 3


def test_the_archive_itself_is_not_walked(tmp_path: Path) -> None:
    archives.capture(tmp_path / "one.pcap", 1)
    (tmp_path / "out").mkdir()
    archives.capture(tmp_path / "out" / "left.pcap", 2)
    assert walk([str(tmp_path)], but=str(tmp_path / "out")).files == 1


def test_a_file_that_is_named_is_taken_whatever_it_is_called(tmp_path: Path) -> None:
    odd = tmp_path / "notes.txt"
    odd.write_text("no capture")
    assert walk([str(odd)]).captures == ((str(odd),),)


def test_a_glob_takes_what_matches(tmp_path: Path) -> None:
    for number in range(3):
        archives.capture(tmp_path / f"{number}.pcap", number)
    assert walk([str(tmp_path / "[01].pcap")]).files == 2


@pytest.mark.parametrize(("source", "kind"), [("nothing/*.pcap", UsageError), ("nothing.pcap", CaptureUnreadable)])
def test_what_is_not_there_is_said(source: str, kind: type[Exception]) -> None:
    with pytest.raises(kind, match="nothing"):
        walk([source])
