"""Sending, draining and reading rates of a direction, compared with rates calculated by hand, in captures at either end.

Hand-written exchanges have a round trip of 20 ms. In captures at the client, the client's ACK follows the SYN-ACK at once. In captures at
the server, the SYN-ACK follows the SYN at once.
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
    """Return the rates of the client's direction of an exchange."""
    found = read(packets.capture(tmp_path / "exchange.pcap", text))
    row: dict[str, Any] = rates.table(found.connections).filter(pl.col("from_client")).collect().row(0, named=True)
    return row


def lines(moments: list[tuple[float, str]]) -> str:
    """Return the lines of an exchange, sorted by their time in milliseconds. Lines of the same time keep their order."""
    return "".join(f"{at_ms / 1000:.6f} {line}\n" for at_ms, line in sorted(moments, key=lambda moment: moment[0]))


def sent(count: int, gap_ms: float, ack_ms: list[float], *, from_ms: float = 40.0) -> str:
    """Return `count` full segments, one every `gap_ms`. The ACK of each segment arrives at its time in `ack_ms`."""
    moments = []
    for number in range(count):
        end = 1 + (number + 1) * FULL
        moments.append((from_ms + number * gap_ms, f"C > S . {end - FULL}:{end} ack 1"))
        moments.append((ack_ms[number], f"S > C . ack {end} win 65535"))
    return lines(moments)


def drained(count: int, gap_ms: float, drain_ms: float) -> str:
    """Return `count` full segments that enter a queue, one every `gap_ms`.

    The queue releases one segment every `drain_ms`. The ACK of the segment arrives one RTT later.
    """
    return sent(count, gap_ms, [60 + number * drain_ms for number in range(count)])


def test_a_program_that_writes_every_millisecond_sends_at_that_pace(tmp_path: Path) -> None:
    """A segment of 1460 bytes per millisecond is 11.68 Mb/s.

    No ACK arrives within 20 ms, so no ACK triggers one of the 20 segments. The first three segments give no sample.
    """
    row = direction(tmp_path, OPENED_AT_CLIENT + sent(20, 1.0, [60 + number * 1.0 for number in range(20)]))
    assert row["send_bps"] == pytest.approx(11.68e6)
    assert row["send_samples"] == 17
    assert row["idle_share"] == pytest.approx(0), "all 20 leave at that pace, though three gaps are no samples"
    assert row["base_rtt_ns"] == 20_000_000
    assert row["send_buffer_needed_bytes"] == 29_200  # 20 segments: the bytes in flight during one RTT


def mixed(sizes: list[int], gap_ms: float) -> str:
    """Return segments of these sizes, one every `gap_ms`. One ACK of all segments arrives 20 ms after the last."""
    moments, end = [], 1
    for number, size in enumerate(sizes):
        moments.append((40 + number * gap_ms, f"C > S . {end}:{end + size} ack 1"))
        end += size
    return lines([*moments, (40 + len(sizes) * gap_ms + 20, f"S > C . ack {end} win 65535")])


def test_a_burst_of_full_segments_with_a_small_end_shows_the_senders_rate(tmp_path: Path) -> None:
    """A burst of 19 full segments and one of 100 bytes has 27,840 bytes and takes 19 ms.

    These 19 ms are the gaps between the 20 segments, so the rate counts only 19/20 of the bytes. The last 17 segments alone would show only
    11.04 Mb/s, because one of them is the small segment.
    """
    row = direction(tmp_path, OPENED_AT_CLIENT + mixed([FULL] * 19 + [100], 1.0))
    assert row["send_bps"] == pytest.approx(27_840 * 8 / 0.019 * 19 / 20)


def test_bursts_of_small_and_full_segments_show_no_rate_of_the_sender(tmp_path: Path) -> None:
    """Segments of 100 and 1,460 bytes alternate: the average of 6.24 Mb/s is the rate of neither size."""
    row = direction(tmp_path, OPENED_AT_CLIENT + mixed([100, FULL] * 10, 1.0))
    assert (row["send_bps"], row["bound_bps"], row["send_buffer_needed_bytes"]) == (None, None, None)


def test_a_program_of_small_writes_alone_has_the_rate_of_those(tmp_path: Path) -> None:
    """Writes of 100 bytes each millisecond are 0.8 Mb/s. The capture does not show how fast full segments would be."""
    row = direction(tmp_path, OPENED_AT_CLIENT + mixed([100] * 20, 1.0))
    assert row["send_bps"] == pytest.approx(0.8e6)


def test_the_pace_of_segments_shows_nothing_of_the_sender_at_the_other_end(tmp_path: Path) -> None:
    text = sent(20, 1.0, [40.1 + number * 1.0 for number in range(20)])
    row = direction(tmp_path, OPENED_AT_SERVER + text)
    assert (row["send_bps"], row["idle_share"], row["receive_bps"], row["bound_bps"]) == (None, None, None, None)
    assert rates.sentence(row) == ""


def test_a_burst_that_leaves_a_queue_one_by_one_shows_the_rate_of_the_queue(tmp_path: Path) -> None:
    """The queue releases a segment every 2 ms: 5.84 Mb/s. The sender sends a segment every 0.1 ms: 116.8 Mb/s."""
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
    """A full segment occupies 1538 bytes of Ethernet, which take 1.2304 ms at 10 Mb/s. 1460 of these bytes are data: 9.493 Mb/s."""
    row = direction(tmp_path, OPENED_AT_CLIENT + drained(70, 0.1, 1.2304))
    assert (row["link_bps"], row["bound_by"]) == (10_000_000.0, "receive")
    assert row["link_bound_bps"] == pytest.approx(9.493e6, rel=1e-3)
    assert direction(tmp_path, OPENED_AT_CLIENT + drained(70, 0.1, 1.30))["link_bps"] is None


def test_a_sender_as_fast_as_its_line_is_bound_by_the_line(tmp_path: Path) -> None:
    """A line of 10 Mb/s carries one full segment per 1.2304 ms, which is 9.493 Mb/s of data. So the bursts show the rate of the line."""
    row = direction(tmp_path, OPENED_AT_CLIENT + sent(70, 1.2304, [84.5 + 24.608 * (number // 20) for number in range(70)]))
    assert row["send_bps"] == pytest.approx(9.493e6, rel=1e-3)
    assert (row["link_bps"], row["bound_by"]) == (10_000_000.0, "link")
    assert rates.reached(row) == "100% of the bound of 9.49 Mb/s"


def flights(sizes: list[int], round_ms: float = 20.0) -> str:
    """Return flights of full segments. `sizes` has the number of segments in each flight.

    Each ACK arrives one RTT after its segment and at once releases a segment of the next flight.
    """
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
        ([2, 4, 6, 6, 6, 6, 6, 6, 6], 6 * FULL),  # six segments in each RTT; the window has room for 44
        ([2, 4, 6, 8, 10, 12, 14, 16, 18], None),  # the flights still grow
        ([2, 4, 6, 6, 6, 6], None),  # four rounds are no plateau
        ([10, 20, 43, 43, 43, 43, 43, 43, 43], None),  # limited by the window
    ],
)
def test_flights_that_stay_the_same_below_the_window_are_a_send_buffer(tmp_path: Path, sizes: list[int], estimate: int | None) -> None:
    assert direction(tmp_path, OPENED_AT_CLIENT + flights(sizes))["send_buffer_estimate_bytes"] == estimate


@pytest.mark.parametrize(("apart_ms", "estimate"), [(3.0, None), (0.01, 7 * FULL)])
def test_what_comes_evenly_spread_to_a_receiver_reveals_no_send_buffer(tmp_path: Path, apart_ms: float, estimate: int | None) -> None:
    """In each RTT of 21 ms, seven segments arrive: evenly spaced by the path, or as one flight. Each is acknowledged at once."""
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
    """The bottleneck carries 5 Mb/s. A frame of 1514 bytes has 1448 bytes of data, so the data rate is 4.782 Mb/s.

    If the process that emulates the path runs late, the data arrive more slowly, and the expected rate is the rate of their arrival. A
    capture at the receiver does not show that the path had a queue.
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
    """Fourteen segments are acknowledged one by one, every 20 ms.

    This looks like a queue that drains at 0.58 Mb/s. But then 3,000 segments arrive in 3 s (11.68 Mb/s), so the path is faster.
    """
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
