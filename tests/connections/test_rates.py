"""How fast both ends of a direction are: rates that were made, measured by hand beside them, from either end.

Hand-written exchanges have a round trip of 20 ms. Captured at the client, its ACK follows the SYN-ACK at once; captured at the server, the
SYN-ACK follows the SYN at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from tcptrace_lab.connections import rates
from tcptrace_lab.engine.segments import read
from tcptrace_lab.lab.experiment import Experiment, run
from tcptrace_lab.lab.hosts.applications import Bulk
from tcptrace_lab.lab.networks.network import Medium
from tcptrace_lab.lab.networks.path import PathModel
from tests.support import packets
from tests.support.peers import tshark

if TYPE_CHECKING:
    from pathlib import Path

FULL = 1460

OPENED_AT_CLIENT = """
    0.000 C > S  S   0:0(0)        win 65535 <mss 1460>
    0.020 S > C  S.  0:0(0) ack 1  win 65535 <mss 1460>
    0.020 C > S  .          ack 1  win 65535
"""
OPENED_AT_SERVER = """
    0.000 C > S  S   0:0(0)        win 65535 <mss 1460>
    0.000 S > C  S.  0:0(0) ack 1  win 65535 <mss 1460>
    0.020 C > S  .          ack 1  win 65535
"""


def direction(tmp_path: Path, text: str) -> dict[str, Any]:
    """The client's direction of an exchange."""
    found = read(packets.capture(tmp_path / "exchange.pcap", text))
    row: dict[str, Any] = rates.table(found.connections).filter(pl.col("from_client")).collect().row(0, named=True)
    return row


def lines(moments: list[tuple[float, str]]) -> str:
    """Moments in milliseconds, sorted (those of one instant stay in their order)."""
    return "".join(f"{at_ms / 1000:.6f} {line}\n" for at_ms, line in sorted(moments, key=lambda moment: moment[0]))


def sent(count: int, gap_ms: float, ack_ms: list[float], *, from_ms: float = 40.0) -> str:
    """Full segments every `gap_ms`, and the moments at which each is acknowledged."""
    moments = []
    for number in range(count):
        end = 1 + (number + 1) * FULL
        moments.append((from_ms + number * gap_ms, f"C > S . {end - FULL}:{end} ack 1"))
        moments.append((ack_ms[number], f"S > C . ack {end} win 65535"))
    return lines(moments)


def drained(count: int, gap_ms: float, drain_ms: float) -> str:
    """Full segments every `gap_ms` that leave a queue every `drain_ms` and are acknowledged a round trip later."""
    return sent(count, gap_ms, [60 + number * drain_ms for number in range(count)])


def test_a_program_that_writes_every_millisecond_sends_at_that_pace(tmp_path: Path) -> None:
    """1460 bytes in 1 ms are 11.68 Mb/s. No ACK comes within 20 ms: the first 20 gaps are free of any, less those of the first four."""
    row = direction(tmp_path, OPENED_AT_CLIENT + sent(20, 1.0, [60 + number * 1.0 for number in range(20)]))
    assert row["send_bps"] == pytest.approx(11.68e6)
    assert row["send_samples"] == 17
    assert row["idle_share"] == pytest.approx(0), "all 20 leave at that pace, though three gaps are no samples"
    assert row["base_rtt_ns"] == 20_000_000
    assert row["send_buffer_needed_bytes"] == 29_200  # 20 segments: what is in transit in a round trip


def mixed(sizes: list[int], gap_ms: float) -> str:
    """Segments of these sizes every `gap_ms`, acknowledged from 60 ms on."""
    moments, end = [], 1
    for number, size in enumerate(sizes):
        moments.append((40 + number * gap_ms, f"C > S . {end}:{end + size} ack 1"))
        end += size
    return lines([*moments, (40 + len(sizes) * gap_ms + 20, f"S > C . ack {end} win 65535")])


def test_a_burst_of_full_segments_with_a_small_end_shows_the_senders_rate(tmp_path: Path) -> None:
    """19 full segments and 100 bytes, 1 ms apart: on average 27,840 bytes in 19 ms, less the twentieth of the first, which took no time.

    The 17 gaps that count show 11.04 Mb/s, less than that, for the small one is among them.
    """
    row = direction(tmp_path, OPENED_AT_CLIENT + mixed([FULL] * 19 + [100], 1.0))
    assert row["send_bps"] == pytest.approx(27_840 * 8 / 0.019 * 19 / 20)


def test_bursts_of_small_and_full_segments_show_no_rate_of_the_sender(tmp_path: Path) -> None:
    """100 bytes and 1,460 in turns: 6.24 Mb/s, which is the rate of neither."""
    row = direction(tmp_path, OPENED_AT_CLIENT + mixed([100, FULL] * 10, 1.0))
    assert (row["send_bps"], row["bound_bps"], row["send_buffer_needed_bytes"]) == (None, None, None)


def test_a_program_of_small_writes_alone_has_the_rate_of_those(tmp_path: Path) -> None:
    """100 bytes each ms are 0.8 Mb/s, whatever a full segment might reach: nothing shows it."""
    row = direction(tmp_path, OPENED_AT_CLIENT + mixed([100] * 20, 1.0))
    assert row["send_bps"] == pytest.approx(0.8e6)


def test_the_pace_of_segments_shows_nothing_of_the_sender_at_the_other_end(tmp_path: Path) -> None:
    text = sent(20, 1.0, [40.1 + number * 1.0 for number in range(20)])
    row = direction(tmp_path, OPENED_AT_SERVER + text)
    assert (row["send_bps"], row["idle_share"], row["receive_bps"], row["bound_bps"]) == (None, None, None, None)
    assert rates.sentence(row) == ""


def test_a_burst_that_leaves_a_queue_one_by_one_shows_the_rate_of_the_queue(tmp_path: Path) -> None:
    """One each 2 ms is 5.84 Mb/s, one each 0.1 ms 116.8 Mb/s."""
    row = direction(tmp_path, OPENED_AT_CLIENT + drained(30, 0.1, 2.0))
    assert row["drain_bps"] == row["receive_bps"] == pytest.approx(5.84e6)
    assert row["send_bps"] == pytest.approx(116.8e6)
    assert row["ratio"] == pytest.approx(20)
    assert (row["bound_by"], row["receive_buffer_needed_bytes"]) == ("receive", 14_600)
    assert row["window_segments"] == 65_535 // 1460


def test_acks_that_follow_their_segments_show_no_queue(tmp_path: Path) -> None:
    row = direction(tmp_path, OPENED_AT_CLIENT + drained(30, 1.0, 1.0))
    assert (row["drain_bps"], row["drain_samples"]) == (None, 0)


def test_a_program_that_reads_slowly_moves_its_window_so(tmp_path: Path) -> None:
    """The application reads 1460 bytes every 10 ms (1.168 Mb/s) from a buffer of 8 segments that the sender keeps full.

    The capture is made at the receiver, so the rate at which the sender's application writes (λ) is unknown.
    """
    window = 8 * FULL
    opened = OPENED_AT_SERVER.replace("win 65535", f"win {window}")
    moments = [(40.0, f"C > S . 1:{1 + window} ack 1 win 65535"), (40.1, f"S > C . ack {1 + window} win 0")]
    for number in range(20):
        at_ms, end = 50.0 + 10 * number, 1 + window + number * FULL
        moments += [
            (at_ms, f"S > C . ack {end} win {FULL}"),
            (at_ms + 5, f"C > S . {end}:{end + FULL} ack 1 win 65535"),
            (at_ms + 5.1, f"S > C . ack {end + FULL} win 0"),
        ]
    row = direction(tmp_path, opened + lines(moments))
    assert row["read_bps"] == row["bound_bps"] == pytest.approx(1.168e6, rel=0.03)
    assert (row["send_bps"], row["drain_bps"], row["bound_by"]) == (None, None, "receive")
    assert row["reached_share"] == pytest.approx(1, abs=0.05)


def test_a_queue_before_a_line_of_ten_megabits_names_the_line(tmp_path: Path) -> None:
    """A full segment takes 1538 bytes of Ethernet, 1.2304 ms at 10 Mb/s; of them 1460 are data: 9.493 Mb/s."""
    row = direction(tmp_path, OPENED_AT_CLIENT + drained(70, 0.1, 1.2304))
    assert (row["link_bps"], row["bound_by"]) == (10_000_000.0, "receive")
    assert row["link_bound_bps"] == pytest.approx(9.493e6, rel=1e-3)
    assert direction(tmp_path, OPENED_AT_CLIENT + drained(70, 0.1, 1.30))["link_bps"] is None


def test_a_sender_as_fast_as_its_line_is_bound_by_the_line(tmp_path: Path) -> None:
    """A segment each 1.2304 ms, 9.493 Mb/s, is all that a line of 10 Mb/s leaves for data: its bursts show the line's own rate."""
    row = direction(tmp_path, OPENED_AT_CLIENT + sent(70, 1.2304, [84.5 + 24.608 * (number // 20) for number in range(70)]))
    assert row["send_bps"] == pytest.approx(9.493e6, rel=1e-3)
    assert (row["link_bps"], row["bound_by"]) == (10_000_000.0, "link")
    assert rates.reached(row) == "100% of the bound of 9.49 Mb/s"


def flights(sizes: list[int], round_ms: float = 20.0) -> str:
    """Flights of this many full segments. Their ACKs come one RTT later, and each releases a segment of the next flight at once."""
    moments, end = [], 1
    for number, size in enumerate(sizes):
        for place in range(size):
            at_ms = 40 + number * round_ms + place * 0.5
            moments.append((at_ms, f"C > S . {end}:{end + FULL} ack 1"))
            end += FULL
            moments.append((at_ms + round_ms - 0.01, f"S > C . ack {end} win 65535"))
    return lines(moments)


@pytest.mark.parametrize(
    ("sizes", "estimate"),
    [
        ([2, 4, 6, 6, 6, 6, 6, 6, 6], 6 * FULL),  # six segments, round after round, in a window of 44
        ([2, 4, 6, 8, 10, 12, 14, 16, 18], None),  # still growing
        ([2, 4, 6, 6, 6, 6], None),  # four rounds are no plateau
        ([10, 20, 43, 43, 43, 43, 43, 43, 43], None),  # the window's
    ],
)
def test_flights_that_stay_the_same_below_the_window_are_a_send_buffer(tmp_path: Path, sizes: list[int], estimate: int | None) -> None:
    assert direction(tmp_path, OPENED_AT_CLIENT + flights(sizes))["send_buffer_estimate_bytes"] == estimate


@pytest.mark.parametrize(("apart_ms", "estimate"), [(3.0, None), (0.01, 7 * FULL)])
def test_what_comes_evenly_spread_to_a_receiver_reveals_no_send_buffer(tmp_path: Path, apart_ms: float, estimate: int | None) -> None:
    """Seven segments in each round trip of 21 ms, acknowledged at once: as the path takes them, or in flights with pauses between."""
    moments, end = [(0.0, "C > S S 0:0(0) win 64240 <mss 1460>"), (0.01, "S > C S. 0:0(0) ack 1 win 65535 <mss 1460>")], 1
    moments.append((21.0, "C > S . ack 1 win 64240"))
    for number in range(84):
        at_ms = 21.1 + number // 7 * 21.0 + number % 7 * apart_ms
        moments.append((at_ms, f"C > S . {end}:{end + FULL} ack 1"))
        end += FULL
        moments.append((at_ms + 0.005, f"S > C . ack {end} win 65535"))
    assert direction(tmp_path, lines(moments))["send_buffer_estimate_bytes"] == estimate


@pytest.mark.live
def test_a_bottleneck_of_a_known_rate_is_measured_at_the_sender(tmp_path: Path) -> None:
    """5 Mb/s for frames of 1514 bytes with 1448 of data: 4.782 Mb/s, or less if the path's process came late: as fast as the data arrived.

    At the receiver nothing shows that the path had a queue.
    """
    narrow = PathModel(delay_s=0.010, rate_bps=5_000_000, queue_bytes=500_000)
    experiment = Experiment(Medium("tap", 1500, forward=narrow, backward=PathModel(delay_s=0.010)), Bulk(1_000_000))
    captures = run(experiment, tmp_path).captures
    at_sender, at_receiver = (
        rates.table(read(captures[end]).connections).filter(pl.col("from_client")).collect().row(0, named=True)
        for end in ("client", "server")
    )
    arrived = [row for row in tshark.frames(captures["server"], ("frame.time_epoch", "tcp.len")) if row["tcp.len"] not in ("", "0")]
    first, last = float(arrived[0]["frame.time_epoch"]), float(arrived[-1]["frame.time_epoch"])
    arrived_bps = 8 * sum(int(row["tcp.len"]) for row in arrived[1:]) / (last - first)
    assert 0.98 * arrived_bps < at_sender["drain_bps"] < 1.02 * 5e6 * 1448 / 1514
    assert at_sender["send_bps"] > at_sender["drain_bps"]
    assert (at_receiver["send_bps"], at_receiver["receive_bps"]) == (None, None)


def test_a_bound_below_what_was_delivered_is_none(tmp_path: Path) -> None:
    """3,000 segments in 3 s are 11.68 Mb/s. Fourteen before them, acknowledged every 20 ms, show a "queue" of 0.58 Mb/s."""
    slow = drained(14, 0.1, 20.0)
    moments: list[tuple[float, str]] = []
    for number in range(3_000):
        end = 1 + (14 + number + 1) * FULL
        moments += [(400 + number, f"C > S . {end - FULL}:{end} ack 1"), (420 + number, f"S > C . ack {end} win 65535")]
    row = direction(tmp_path, OPENED_AT_CLIENT + slow + lines(moments))
    assert row["sent_bps"] == pytest.approx(3_014 * FULL * 8 / 3.359, rel=1e-3)
    assert (row["drain_bps"], row["receive_bps"], row["reached_share"]) == (None, None, 1 if row["bound_by"] == "send" else None)
    assert "bound" not in rates.sentence(row)
    alone = direction(tmp_path, OPENED_AT_CLIENT + slow)
    assert alone["drain_bps"] == pytest.approx(0.584e6), "alone, they are the queue of this transfer"
    assert alone["reached_share"] is not None
    assert alone["reached_share"] <= 1
