"""`simulate --host` simulates the hosts of published studies. One command line reproduces the values that the authors measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

from tests.support.command import tcptrace_lab
from tests.support.engine import read

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(("send", "receive", "slow"), [("16K", "24K", True), ("16K", "16K", False)])
def test_a_cell_of_comer_and_lin_is_one_line(tmp_path: Path, send: str, receive: str, *, slow: bool) -> None:
    """In Comer and Lin's Table 2, the slow pair of buffers has less than 2 Mb/s, and the fast pair has nearly 20 Mb/s."""
    hosts = f"--stack sunos4 --host sparc-ipc --mss 9148 --send-buffer {send} --receive-buffer {receive}"
    line = f"{hosts} --rate 100M --delay 10us --framing atm"
    done = tcptrace_lab("simulate", *line.split(), "--client", "write 1M/4K", "--server", "read", "-o", "cell.pcap", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    cell = read(tmp_path / "cell.pcap")
    assert f"capture written: cell.pcap ({cell.segments.height:,} packets)" in done.stderr.decode()
    connections = cell.connections
    mbps = 8 * 2**20 / 1e6 / ((connections["last_ts_ns"][0] - connections["first_ts_ns"][0]) / 1e9)
    assert (mbps < 2) == slow, mbps


@pytest.mark.parametrize(
    ("size", "acks_per_write", "interval_ms"),
    [(1, None, 5.5), (113, 0.1645, None), (1023, 1.0095, None)],
    ids=["smallest packet", "an ACK for 717 bytes", "an ACK for each"],
)
def test_a_vax_of_mosher_is_one_line(tmp_path: Path, size: int, acks_per_write: float | None, interval_ms: float | None) -> None:
    """The expected values come from Mosher's paper.

    Section 2 gives an interval of 5.5 ms between the smallest packets. Table 3 gives the number of calls of tcp_input for 10,000 writes.
    """
    hosts = "--stack bsd4.2 --host vax-750 --mss 1024 --send-buffer 2K --receive-buffer 2K"
    line = f"{hosts} --rate 2.94M --delay 5us --framing ethernet"
    done = tcptrace_lab("simulate", *line.split(), "--client", f"1000 * (write {size})", "-o", "vax.pcap", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = read(tmp_path / "vax.pcap").segments
    data, acks = rows.filter(pl.col("payload_bytes") > 0), rows.filter(~pl.col("from_client"))
    if acks_per_write is not None:
        assert acks.height / 1_000 == pytest.approx(acks_per_write, rel=0.05)
    if interval_ms is not None:
        assert data["ts_ns"].diff().median() == pytest.approx(interval_ms * 1e6, rel=0.01)


def test_a_pc_of_abrams_and_chen_is_one_line(tmp_path: Path) -> None:
    """In Abrams and Chen's section 3.3, 40 KB are sent in segments of 1,460 and 588 bytes.

    From the first packet to the last read, the transfer takes 345.452 ms.
    """
    hosts = "--stack md-dos --host pc-386 --send-buffer 2K --receive-buffer 2K --rate 10M --delay 5us --framing ethernet"
    programs = ["--client", "write 40K/1K", "--server", "read 40K/1K"]
    done = tcptrace_lab("simulate", *hosts.split(), *programs, "--at", "server", "-o", "pc.pcap", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = read(tmp_path / "pc.pcap").segments
    data = rows.filter(pl.col("payload_bytes") > 0)
    assert data["payload_bytes"].to_list() == [1460, 588] * 20
    opens_again = ~pl.col("from_client") & (pl.col("ts_ns") > data["ts_ns"][-1]) & (pl.col("window_bytes") == 2048)
    all_read_ns = rows.filter(opens_again)["ts_ns"][0]
    assert (all_read_ns - data["ts_ns"][0]) / 1e6 == pytest.approx(345.452, rel=0.03)
