"""The table of departures: one row per sent segment, with its whole wait and the cause of most of the wait."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

from tcptrace_lab import read, schema
from tcptrace_lab.ledger.departures import departures
from tests.support import packets
from tests.support.places import CAPTURES

if TYPE_CHECKING:
    from pathlib import Path

REQUEST = """
    0     C > S S 0:0(0) win 64240 <mss 1460>
    0.02  S > C S. 0:0(0) ack 1 win 65160 <mss 1460>
    0.04  C > S . ack 1 win 64240
    0.04  C > S P. 1:101 ack 1 win 64240
    0.06  S > C . ack 101 win 65160
    0.56  S > C P. 1:201 ack 101 win 65160
    0.58  C > S . ack 201 win 64240
"""


def test_the_cause_of_most_of_a_wait_is_its_cause(tmp_path: Path) -> None:
    """Frame 6 is the server's answer, captured at the client.

    The wait for this answer begins with the SYN-ACK. Its cause is the application, except for one RTT.
    """
    tables = read(packets.capture(tmp_path / "request.pcap", REQUEST), worth=())
    found = departures(tables.ledger).filter(pl.col("frame") == 6).collect()
    assert dict(found.schema) == schema.DEPARTURES.polars_schema()
    (row,) = found.rows(named=True)
    assert (row["conn"], row["from_client"], row["cause"], row["wait_ns"]) == (0, False, "application", 540_000_000)
    assert 480_000_000 <= row["cause_ns"] <= 520_000_000


@pytest.mark.parametrize("name", ["ethernet-loss.pcapng", "ethernet-nagle-on.pcapng"])
@pytest.mark.parametrize("reread_bytes", [0, 1 << 40])
def test_waits_are_the_times_between_departures(name: str, reread_bytes: int) -> None:
    tables = read(CAPTURES / name, worth=(), reread_bytes=reread_bytes)
    found = departures(tables.ledger).collect()
    segments = tables.segments.filter(pl.col("wait_ns").is_not_null()).select("conn", "from_client", "frame", "ts_ns", "wait_ns").collect()
    both = segments.join(found, on=["conn", "from_client", "frame"], how="left", maintain_order="left")
    assert both.height == segments.height > 0
    assert both["wait_ns"].equals(both["wait_ns"])
    assert both["ts_ns_right"].equals(both["ts_ns"])
    assert (both["cause_ns"] <= both["wait_ns"]).all()
    assert both["cause"].null_count() == 0
