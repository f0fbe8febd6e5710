"""Each run writes the same bytes, however the threads are scheduled. Connection numbers decide the order of equal rows."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import polars as pl
import pytest

from tcptrace_lab import analyze
from tcptrace_lab.findings import costs
from tcptrace_lab.ledger import stalls
from tests.support import packets
from tests.support.ledgers import judged
from tests.support.places import CAPTURES, ROOT

if TYPE_CHECKING:
    from pathlib import Path

TIED = costs.MOST + 10
"""Number of connections with equal costs. It is higher than the maximum number of findings in a report."""


@pytest.fixture(scope="module")
def tied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A capture of connections whose times are equal to the nanosecond.

    The second SYN of each connection follows the first after one second. The connection then sends one request and ends.
    """
    lines = [f"host C{number} 10.0.1.{number + 1}:40000 isn 1000\nhost S{number} 10.0.0.2:80 isn 5000" for number in range(TIED)]
    for at_s, text in (
        (0.0, "C{n} > S{n} S 0:0(0) win 64240 <mss 1460>"),
        (1.0, "C{n} > S{n} S 0:0(0) win 64240 <mss 1460>"),
        (1.02, "S{n} > C{n} S. 0:0(0) ack 1 win 65160 <mss 1460>"),
        (1.04, "C{n} > S{n} P. 1:101 ack 1 win 64240"),
        (1.06, "S{n} > C{n} . ack 101 win 65160"),
    ):
        lines += [f"{at_s + number / 1000:.3f} {text.format(n=number)}" for number in range(TIED)]
    return packets.capture(tmp_path_factory.mktemp("tied") / "tied.pcap", "\n".join(lines))


_DIGESTS = "import sys; sys.path.insert(0, sys.argv[1]); from tests.support.digests import digests; print(digests(*sys.argv[2:]))"


def test_another_process_with_other_threads_writes_the_same_bytes(tied: Path) -> None:
    """In another process, Polars hashes with another seed. With another number of threads, it cuts tables at other rows."""
    paths = [str(tied), str(CAPTURES / "ethernet-loss.pcapng")]
    reported = set()
    for threads, rows in (("1", "100000"), ("4", "50")):
        done = subprocess.run(
            [sys.executable, "-c", _DIGESTS, str(ROOT), *paths],
            env=os.environ | {"POLARS_MAX_THREADS": threads, "POLARS_IDEAL_MORSEL_SIZE": rows},
            capture_output=True,
            timeout=120,
            check=True,
        )
        reported.add(done.stdout)
    assert len(reported) == 1


def test_of_connections_that_lose_the_same_time_the_first_are_reported(tied: Path) -> None:
    """Each connection waits one second until its SYN is retransmitted, and then 40 ms for the SYN-ACK.

    The capture point is 20 ms from both hosts.
    """
    slow = [(one.conn, one.cost_ns) for one in analyze(tied).findings if one.id == "handshake-slow"]
    assert slow == [(number, 1_040_000_000) for number in range(costs.MOST)]


def test_stalls_come_by_connection_and_in_order_of_time(tied: Path) -> None:
    """The first row of each connection is the client's wait before its second SYN. The ledger itself has another order."""
    tables = judged(tied)
    rows = stalls.stalls(tables.ledger).collect()
    first = rows.filter(pl.col("conn") == 0)
    assert [(row["from_client"], row["cause"], row["frame_after"]) for row in first.iter_rows(named=True)][:1] == [
        (True, "handshake", TIED + 1)
    ]
    keys = rows.select("conn", ~pl.col("from_client"), "start_ns").rows()
    assert keys == sorted(keys)
    assert first["from_client"].to_list() == sorted(first["from_client"].to_list(), reverse=True)
