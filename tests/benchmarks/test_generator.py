"""The synthetic captures of the benchmarks are valid TCP.

tshark checks every segment of a small version of each capture.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from tests.support import needs
from tests.support.peers import tshark
from tests.support.places import ROOT

if TYPE_CHECKING:
    from pathlib import Path

GENERATOR = ROOT / "benchmarks" / "traffic" / "make_captures.py"
DIVISOR = 500
"""The full captures have 10 million packets. The tests use captures of 10 million / 500 = 20,000 packets."""
NAMES = (f"mixed-96-{DIVISOR}th", f"full-{DIVISOR}th", f"single-96-{DIVISOR}th", f"short-96-{DIVISOR}th")
LOSSY_NAMES = NAMES[:3]
FIN, SYN = 1, 2
EXPECTED_ANALYSIS = {"retransmission", "fast_retransmission", "duplicate_ack"}
"""The analysis flags of tshark that are allowed. These flags belong to the intended losses and to the reactions of the hosts."""


def make(folder: Path) -> None:
    subprocess.run([sys.executable, str(GENERATOR), "--divisor", str(DIVISOR), "--into", str(folder)], check=True, capture_output=True)


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the small versions of the benchmark captures."""
    folder = tmp_path_factory.mktemp("benchmarks")
    make(folder)
    return folder


def facts(captures: Path, name: str) -> dict[str, Any]:
    """Return the contents of the JSON file that the generator wrote beside a capture."""
    loaded: dict[str, Any] = json.loads((captures / f"{name}.json").read_text())
    return loaded


def fields(capture: Path, *names: str, options: tuple[str, ...] = ()) -> list[list[str]]:
    command = [needs.program("tshark"), "-n", "-r", str(capture), *options, "-T", "fields"]
    for name in names:
        command += ["-e", name]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [line.split("\t") for line in done.stdout.splitlines()]


@pytest.mark.parametrize("name", NAMES)
def test_tshark_counts_what_was_intended(captures: Path, name: str) -> None:
    opinion = tshark.opinion(captures / f"{name}.pcap")
    intended = facts(captures, name)
    flags = opinion.segments["flags"]
    assert {
        "packets": opinion.packets,
        "connections": opinion.connections,
        "fin_segments": (flags & FIN != 0).sum(),
        "data_segments": (opinion.segments["payload_bytes"] > 0).sum(),
    } == {key: intended[key] for key in ("packets", "connections", "fin_segments", "data_segments")}
    assert (flags == SYN).sum() == opinion.connections, "every connection opens with its SYN, and no pair of ports is used twice"


@pytest.mark.parametrize("name", NAMES)
def test_only_intended_losses_are_repaired_and_nothing_else_is_remarkable(captures: Path, name: str) -> None:
    segments = tshark.opinion(captures / f"{name}.pcap").segments
    remarks = segments["analysis"].explode().drop_nulls()
    assert set(remarks) <= EXPECTED_ANALYSIS
    resent = segments.filter(pl.col("payload_bytes") > 0).select(pl.struct("conn", "source", "seq").is_first_distinct().not_().sum()).item()
    intended = facts(captures, name)["retransmissions"]
    assert (remarks == "fast_retransmission").sum() == intended
    assert (remarks == "retransmission").sum() == intended
    assert resent == intended
    assert (intended > 0) == (name in LOSSY_NAMES)


@pytest.mark.parametrize("name", LOSSY_NAMES)
def test_a_fast_retransmission_follows_three_duplicate_acks_that_sack_later_data(captures: Path, name: str) -> None:
    segments = tshark.opinion(captures / f"{name}.pcap").segments
    for again in segments.filter(pl.col("analysis").list.contains("fast_retransmission")).iter_rows(named=True):
        duplicates = segments.filter(
            pl.col("conn") == again["conn"],
            pl.col("target") == again["source"],
            pl.col("frame") < again["frame"],
            pl.col("ack") == again["seq"],
            pl.col("analysis").list.contains("duplicate_ack"),
        )
        assert len(duplicates) == 3
        assert all(blocks[0] == again["seq"] + again["payload_bytes"] < blocks[1] for blocks in duplicates["sack_blocks"])


@pytest.mark.parametrize("name", NAMES)
def test_an_acknowledgement_never_covers_bytes_that_were_not_yet_seen(captures: Path, name: str) -> None:
    segments = tshark.opinion(captures / f"{name}.pcap").segments
    sent: dict[tuple[int, str], int] = {}
    for row in segments.iter_rows(named=True):
        occupies = row["payload_bytes"] + bool(row["flags"] & SYN) + bool(row["flags"] & FIN)
        mine, theirs = (row["conn"], row["source"]), (row["conn"], row["target"])
        sent[mine] = max(sent.get(mine, 0), row["seq"] + occupies)
        if row["flags"] != SYN:
            assert row["ack"] <= sent[theirs]


@pytest.mark.parametrize("name", NAMES)
def test_time_stamps_echo_what_the_other_side_sent(captures: Path, name: str) -> None:
    segments = tshark.opinion(captures / f"{name}.pcap").segments
    said: dict[tuple[int, str], set[int]] = {}
    for row in segments.iter_rows(named=True):
        said.setdefault((row["conn"], row["source"]), set()).add(row["tsval"])
        if row["flags"] != SYN:
            assert row["tsecr"] in said[row["conn"], row["target"]]


def test_all_checksums_of_uncut_frames_are_right(captures: Path) -> None:
    checking = ("-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE")
    name = NAMES[1]
    rows = fields(captures / f"{name}.pcap", "ip.checksum.status", "tcp.checksum.status", options=checking)
    good = "1"
    assert rows == [[good, good]] * facts(captures, name)["packets"]


def test_frames_are_cut_at_the_snap_length_and_remember_their_length(captures: Path) -> None:
    rows = fields(captures / f"{NAMES[0]}.pcap", "frame.cap_len", "frame.len")
    lengths = {(int(captured), int(original)) for captured, original in rows}
    assert all(captured == min(original, 96) for captured, original in lengths)
    assert (96, 1514) in lengths


def test_a_thousand_short_connections_of_ten_packets_are_open_at_once(captures: Path) -> None:
    segments = tshark.opinion(captures / f"{NAMES[3]}.pcap").segments
    lives = segments.group_by("conn").agg(pl.len(), first=pl.col("ts_ns").min(), last=pl.col("ts_ns").max())
    assert lives["len"].unique().to_list() == [10]
    changes = pl.concat((lives.select(at="first", by=1), lives.select(at="last", by=-1))).sort("at")
    assert 700 < changes["by"].cum_sum().max() < 1300  # type: ignore[operator]  # `by` is a column of integers


def test_the_same_seed_gives_the_same_bytes(captures: Path, tmp_path: Path) -> None:
    make(tmp_path)
    for name in NAMES:
        first, second = (hashlib.sha256((folder / f"{name}.pcap").read_bytes()).digest() for folder in (captures, tmp_path))
        assert first == second
