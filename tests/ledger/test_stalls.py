"""Stalls: intervals of the ledger that last longer than two RTTs. The expected evidence of each is computed by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from tcptrace_lab import analyze, schema
from tcptrace_lab.ledger import stalls
from tests.support.ledgers import judged, judged_text
from tests.support.places import CAPTURES

if TYPE_CHECKING:
    from pathlib import Path

OPENED = """
    0.000 C > S  S   0:0(0)        win 8192 <mss 1460>
    0.020 S > C  S.  0:0(0) ack 1  win 8192 <mss 1460>
    0.020 C > S  .          ack 1  win 8192
"""


def found(tmp_path: Path, text: str) -> list[dict[str, Any]]:
    """Return the stalls of the client's direction, in order of time."""
    tables = judged_text(tmp_path, OPENED + text)
    rows = stalls.stalls(tables.ledger).filter(pl.col("from_client")).collect().sort("start_ns")
    return list(rows.iter_rows(named=True))


def waits_for_acks(late_ms: list[float]) -> str:
    """Return two writes of 100 bytes that the client makes every 0.5 s.

    The second write waits for the ACK of the first, which arrives after 20 ms plus the given delay.
    """
    text, end = "", 1
    for number, late in enumerate(late_ms):
        begin_ms, ack_ms = 100 + number * 500, 120 + number * 500 + late
        text += f"{begin_ms / 1000:.4f} C > S P. {end}:{end + 100} ack 1\n{ack_ms / 1000:.4f} S > C . ack {end + 100}\n"
        text += (
            f"{(ack_ms + 0.1) / 1000:.4f} C > S P. {end + 100}:{end + 200} ack 1\n{(ack_ms + 20.1) / 1000:.4f} S > C . ack {end + 200}\n"
        )
        end += 200
    return text


def test_a_wait_for_a_delayed_ack_is_proved_by_its_frames_and_its_lateness(tmp_path: Path) -> None:
    """Frame 4 has 100 bytes in flight, its ACK (frame 5) arrives 60 ms later, and frame 6 is sent at once.

    The receiver caused 40 ms of this wait of 60.1 ms.
    """
    (stall,) = [row for row in found(tmp_path, waits_for_acks([40.0])) if row["cause"] == "nagle-delayed-ack"]
    assert (stall["frame_before"], stall["ack_frame"], stall["frame_after"]) == (4, 5, 6)
    assert stall["end_ns"] - stall["start_ns"] == 60_100_000
    assert (stall["threshold_ns"], stall["base_rtt_ns"]) == (40_000_000, 20_000_000)
    assert (stall["ack_lag_ns"], stall["ack_late_ns"], stall["timer"]) == (60_000_000, 40_000_000, "ack-40ms")
    assert (stall["flight_before_bytes"], stall["flight_after_bytes"], stall["payload_bytes"]) == (100, 0, 100)
    assert (stall["smss_bytes"], stall["usable_window_before_bytes"]) == (1460, 8092)
    reported = (
        "100 bytes in flight, a delayed segment of 100 bytes (a full segment has 1,460), ACK in frame 5 came 40 ms late, wait ended by the "
        "delayed-ACK timer of 40 ms"
    )
    assert stalls.proof(stall) == reported


@pytest.mark.parametrize(
    ("late_ms", "timer"), [(36.0, "ack-40ms"), (55.0, "ack-50ms"), (70.0, None), (100.0, "ack-100ms"), (150.0, None), (200.0, "ack-200ms")]
)
def test_the_timer_is_identified_by_how_late_the_ack_was(tmp_path: Path, late_ms: float, timer: str | None) -> None:
    """docs/how-it-decides.md, 2.5, has the range of delays of each timer. A delay outside these ranges belongs to no timer."""
    stalled = [row for row in found(tmp_path, waits_for_acks([late_ms])) if row["cause"] == "nagle-delayed-ack"]
    assert [row["timer"] for row in stalled] == [timer]


def test_acks_that_keep_to_one_phase_of_200_ms_are_a_heartbeats(tmp_path: Path) -> None:
    """The application writes at any time, but all ACKs arrive at multiples of 200 ms."""
    text, end = "", 1
    for number in range(16):
        begin_ms = 1000 + number * 400 + 9 * number
        ack_ms = -(-(begin_ms + 20.5) // 200) * 200
        text += f"{begin_ms / 1000:.4f} C > S P. {end}:{end + 100} ack 1\n{ack_ms / 1000:.4f} S > C . ack {end + 100}\n"
        text += (
            f"{(ack_ms + 0.1) / 1000:.4f} C > S P. {end + 100}:{end + 200} ack 1\n{(ack_ms + 20.1) / 1000:.4f} S > C . ack {end + 200}\n"
        )
        end += 200
    stalled = [row for row in found(tmp_path, text) if row["cause"] == "nagle-delayed-ack"]
    assert len(stalled) > 8
    assert {row["timer"] for row in stalled} == {"ack-heartbeat"}


def test_a_wait_of_less_than_two_round_trips_is_no_stall(tmp_path: Path) -> None:
    """The application writes after 39, 45 and 41.5 ms. The RTT is 20 ms, so waits longer than 40 ms are stalls."""
    text = "".join(
        f"{at / 1000:.4f} C > S P. {1 + 100 * place}:{101 + 100 * place} ack 1\n{(at + 20) / 1000:.4f} S > C . ack {101 + 100 * place}\n"
        for place, at in enumerate([100, 139, 184, 225.5])
    )
    rows = [row for row in found(tmp_path, text) if row["frame_after"] is not None and row["frame_after"] > 4]
    assert [(row["cause"], row["frame_after"], row["end_ns"] - row["start_ns"]) for row in rows] == [
        ("application", 8, 45_000_000),
        ("application", 10, 41_500_000),
    ]


def test_a_timeout_is_the_retransmission_timers(tmp_path: Path) -> None:
    text = """
        0.100 C > S P. 1:101 ack 1
        0.400 C > S P. 1:101 ack 1
        0.420 S > C . ack 101
    """
    (stall,) = [row for row in found(tmp_path, text) if row["cause"] == "timeout"]
    assert (stall["frame_before"], stall["frame_after"], stall["timer"]) == (4, 5, "retransmission")
    assert stalls.proof(stall) == "100 bytes in flight, wait ended by the retransmission timer"


def test_stalls_are_the_ledgers_long_intervals_one_by_one() -> None:
    """In one direction of a live Ethernet capture, Nagle's algorithm causes eleven waits of about 44 ms.

    Each of these waits is an interval of the ledger.
    """
    tables = judged(CAPTURES / "ethernet-nagle-on.pcapng")
    rows = stalls.stalls(tables.ledger).collect()
    own = tables.ledger.select(schema.LEDGER.names).collect()
    assert rows.select(own.columns).join(own, on=own.columns, nulls_equal=True).height == rows.height
    shorter = own.join(rows, on=["conn", "from_client", "start_ns"], how="anti")
    assert max((shorter["end_ns"] - shorter["start_ns"]).to_list()) < rows["threshold_ns"].to_list()[0]
    nagle = rows.filter(pl.col("cause") == "nagle-delayed-ack")
    assert nagle["timer"].unique().to_list() == ["ack-40ms"]
    kept = analyze(CAPTURES / "ethernet-nagle-on.pcapng").stalls
    assert kept.filter(pl.col("cause") == "nagle-delayed-ack").height == nagle.height == 11
