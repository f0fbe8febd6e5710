"""The answers of a host wait in a queue. Another connection between the two hosts shows this queue to the ledger.

The exchanges are written by hand. The path delays each direction by 10 ms. Other traffic fills a queue, which delays the packets of the
captured host. Expected durations are sums of the delays in the exchanges. Each exchange has a similar counterpart without a queue.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from tcptrace_lab import causes
from tcptrace_lab._core import Engine
from tcptrace_lab.engine import reread
from tcptrace_lab.engine.segments import read
from tests.support import packets
from tests.support.ledgers import lasted, lasted_of_server

if TYPE_CHECKING:
    from pathlib import Path

MSS = 1_460
SIZE = MSS - 12
TURNS = 12
FIRST_MS = 200 - 20
"""Time from the handshake to the client's first question."""
BEGIN_MS, END_MS, EVERY_MS = 40, 2_200, 5
SHORT_MS = 10 + 2 + 1
"""The ledger's queueing delay is allowed to be too short by this many milliseconds.

The number is the sum of the 10 ms between two packets that show the queue, two ticks of the timestamp clock, and 1 ms.
"""
OTHER_HOST = "10.0.0.9"


def opened(client: str, server: str, at_ms: float, *, at_server: bool, round_trip_ms: int = 20) -> list[str]:
    """Return a handshake, captured at one of the hosts.

    Timestamp clocks count milliseconds from 1000. A packet takes 10 ms. In a capture at the server, the SYN-ACK takes `round_trip_ms` - 10.
    """
    options = f"mss {MSS}, sackOK, wscale 7"
    syn, answer = 1000 + int(at_ms), 1000 + int(at_ms) + (0 if at_server else 10)
    asked, answered, last = (syn - 10, at_ms + 0.05, at_ms + round_trip_ms + 0.05) if at_server else (syn, at_ms + 20, at_ms + 20.05)
    return [
        f"{at_ms}ms {client} > {server} S 0:0(0) win 64240 <{options}, TS val {asked} ecr 0>",
        f"{answered}ms {server} > {client} S. 0:0(0) ack 1 win 65160 <{options}, TS val {answer} ecr {asked}>",
        f"{last}ms {client} > {server} . ack 1 win 502 <TS val {asked + round_trip_ms} ecr {answer}>",
    ]


def stream(sender: str, receiver: str, round_trip_ms: int, begin_ms: int = BEGIN_MS) -> list[str]:
    """Return full segments captured at their receiver.

    An ACK that reaches the sender releases a segment. This segment arrives `round_trip_ms` after that ACK was sent.
    """
    lines = []
    for number, at_ms in enumerate(range(begin_ms, END_MS, EVERY_MS)):
        first, end = 1 + SIZE * number, 1 + SIZE * (number + 1)
        echo = 1000 + max(at_ms - round_trip_ms, 20)
        lines.append(f"{at_ms}.1ms {sender} > {receiver} . {first}:{end} ack 1 win 502 <TS val {1000 + at_ms - 10} ecr {echo}>")
        lines.append(f"{at_ms}.15ms {receiver} > {sender} . ack {end} win 4000 <TS val {1000 + at_ms} ecr {1000 + at_ms - 10}>")
    return lines


def download(sender: str, receiver: str, round_trip_ms: int) -> list[str]:
    """Return full segments captured at their sender. The ACK of each segment arrives `round_trip_ms` after it."""
    lines = []
    for number, at_ms in enumerate(range(BEGIN_MS, END_MS, EVERY_MS)):
        first, end = 1 + SIZE * number, 1 + SIZE * (number + 1)
        back_ms = at_ms + round_trip_ms
        lines.append(f"{at_ms}.1ms {sender} > {receiver} . {first}:{end} ack 1 win 502 <TS val {1000 + at_ms} ecr {1000 + at_ms - 10}>")
        lines.append(f"{back_ms}.1ms {receiver} > {sender} . ack {end} win 4000 <TS val {1000 + back_ms - 10} ecr {1000 + at_ms}>")
    return lines


def turns(far: str, near: str, *, late_ms: int, far_begins: bool) -> list[str]:
    """Return messages of the host far from the capture point, and replies of the captured host.

    Each message arrives `20 + late_ms` after the previous reply. Its timestamp shows no queue between the far host and the capture point.
    The captured host replies at once.
    """
    lines, at_ms = [], 200 if far_begins else 200 + 20 + late_ms
    if not far_begins:
        lines.append(f"200.05ms {near} > {far} P. 1:101 ack 1 win 502 <TS val 1200 ecr 1010>")
    for turn in range(TURNS):
        far_at, near_at = 1 + 300 * turn, 1 + 100 * (turn + (not far_begins))
        clock, echo = 1000 + at_ms - 10, 1000 + at_ms - 20 - late_ms
        lines.append(f"{at_ms}.05ms {far} > {near} P. {far_at}:{far_at + 300} ack {near_at} win 502 <TS val {clock} ecr {echo}>")
        reply = f"{near_at}:{near_at + 100} ack {far_at + 300}"
        lines.append(f"{at_ms}.05ms {near} > {far} P. {reply} win 502 <TS val {1000 + at_ms} ecr {clock}>")
        at_ms += 20 + late_ms
    return lines


def at_time(lines: list[str]) -> str:
    """Return the lines in order of time. Lines that declare hosts come first."""
    return "\n".join(sorted(lines, key=lambda line: 0.0 if line.startswith("host") else float(line.split("ms")[0])))


def beside_a_stream(*, late_ms: int, round_trip_ms: int | None, address: str = "10.0.0.1", downloads: bool = False) -> str:
    """Return a capture at the server. A client sends the next question when it has the answer to the last one.

    At the same time, `address` uploads or downloads.
    """
    lines = opened("C", "S", 0, at_server=True) + turns("C", "S", late_ms=late_ms, far_begins=True)
    if round_trip_ms is not None:
        lines += [f"host D {address}:40001 isn 9000", "host T 10.0.0.2:80 isn 7000"]
        lines += opened("D", "T", 0.5, at_server=True)
        lines += download("T", "D", round_trip_ms) if downloads else stream("D", "T", round_trip_ms)
    return at_time(lines)


def beside_two_hosts(late_ms: int, queues_ms: tuple[int, int], far_ms: int) -> str:
    """Return a capture at the server. A client asks as in `turns`, and two other hosts upload over paths with queues.

    The RTT between the server and the other hosts is `far_ms` without a queue.
    """
    lines = opened("C", "S", 0, at_server=True) + turns("C", "S", late_ms=late_ms, far_begins=True)
    for number, queue_ms in enumerate(queues_ms):
        sender, receiver = "DE"[number], "TU"[number]
        lines += [f"host {sender} 10.0.0.{8 + number}:4000{number} isn 9000", f"host {receiver} 10.0.0.2:8{number} isn 7000"]
        lines += opened(sender, receiver, 0.5 + number, at_server=True, round_trip_ms=far_ms)
        lines += stream(sender, receiver, far_ms + queue_ms, begin_ms=150)
    return at_time(lines)


def asked(
    tmp_path: Path, *, late_ms: int, round_trip_ms: int | None, address: str = "10.0.0.1", downloads: bool = False
) -> dict[str, float]:
    """Return the ledger of the client in `beside_a_stream`."""
    return lasted(tmp_path, beside_a_stream(late_ms=late_ms, round_trip_ms=round_trip_ms, address=address, downloads=downloads))


def served(tmp_path: Path, *, late_ms: int, round_trip_ms: int | None) -> dict[str, float]:
    """Return the ledger of a server, captured at the client.

    The server answers requests, while the client downloads from this server.
    """
    lines = opened("C", "S", 0, at_server=False) + turns("S", "C", late_ms=late_ms, far_begins=False)
    if round_trip_ms is not None:
        lines += ["host D 10.0.0.1:40001 isn 9000", "host T 10.0.0.2:80 isn 7000"]
        lines += opened("D", "T", 0.5, at_server=False) + stream("T", "D", round_trip_ms)
    return lasted_of_server(tmp_path, at_time(lines))


@pytest.mark.parametrize("downloads", [False, True])
@pytest.mark.parametrize("late_ms", [40, 80])
def test_a_question_that_others_show_to_have_waited_for_its_answer_in_a_queue_is_the_paths(
    tmp_path: Path, late_ms: int, *, downloads: bool
) -> None:
    """The path takes all of the time between messages: 20 ms plus the queue. Only the upload or download shows the queue."""
    alone = asked(tmp_path, late_ms=late_ms, round_trip_ms=None)
    assert alone["application"] == pytest.approx(FIRST_MS + (TURNS - 1) * late_ms, abs=TURNS)
    reported = asked(tmp_path, late_ms=late_ms, round_trip_ms=20 + late_ms, downloads=downloads)
    assert (TURNS - 1) * (20 + late_ms - SHORT_MS) <= reported["network"] <= TURNS * (20 + late_ms)
    assert reported["application"] <= FIRST_MS + TURNS * SHORT_MS


def test_an_answer_whose_request_others_show_to_have_stood_in_a_queue_is_the_paths(tmp_path: Path) -> None:
    """A download from the same server shows a queue of 60 ms. The requests wait in it. The server's application takes no time."""
    alone = served(tmp_path, late_ms=60, round_trip_ms=None)
    assert alone["application"] == pytest.approx(TURNS * 60, abs=TURNS)
    reported = served(tmp_path, late_ms=60, round_trip_ms=80)
    assert reported.get("application", 0) <= TURNS * SHORT_MS


@pytest.mark.parametrize(
    ("round_trip_ms", "address"),
    [(20, "10.0.0.1"), (80, OTHER_HOST), (200, "10.0.0.1")],
    ids=["no queue", "a queue on the way to another host", "a queue of its own, which the questions overtake"],
)
@pytest.mark.parametrize("downloads", [False, True])
def test_a_program_that_asks_late_beside_others_is_late(tmp_path: Path, round_trip_ms: int, address: str, *, downloads: bool) -> None:
    reported = asked(tmp_path, late_ms=60, round_trip_ms=round_trip_ms, address=address, downloads=downloads)
    assert reported["application"] == pytest.approx(FIRST_MS + (TURNS - 1) * 60, abs=TURNS)


@pytest.mark.parametrize(
    ("queues_ms", "paths_ms"),
    [((60, 60), 60), ((60, 0), 0), ((60, 30), 30)],
    ids=["both show the queue", "one shows none", "one shows a shorter one"],
)
def test_a_queue_that_two_other_hosts_show_is_in_the_part_that_all_paths_share(
    tmp_path: Path, queues_ms: tuple[int, int], paths_ms: int
) -> None:
    """The questions arrive 60 ms late. The path caused the part of these 60 ms that both other hosts show."""
    reported = lasted(tmp_path, beside_two_hosts(60, queues_ms, 20))
    least_ms = FIRST_MS + (TURNS - 1) * (60 - paths_ms)
    assert least_ms - TURNS <= reported["application"] <= least_ms + TURNS * (SHORT_MS if paths_ms else 1)


def test_a_host_nearer_than_the_queue_does_not_wait_in_it(tmp_path: Path) -> None:
    """The other hosts are 50 ms away, and the client, which asks 60 ms late, is 20 ms away."""
    reported = lasted(tmp_path, beside_two_hosts(60, (60, 60), 50))
    assert reported["application"] == pytest.approx(FIRST_MS + (TURNS - 1) * 60, abs=TURNS)


def test_of_a_pause_that_is_longer_than_the_queue_the_rest_is_the_programs(tmp_path: Path) -> None:
    """The upload shows a queue of 30 ms, but the questions arrive 60 ms later than the path explains."""
    reported = asked(tmp_path, late_ms=60, round_trip_ms=50)
    assert FIRST_MS + (TURNS - 1) * 30 - TURNS <= reported["application"] <= FIRST_MS + (TURNS - 1) * 30 + TURNS * SHORT_MS


def test_neighbours_that_answer_as_late_show_no_queue(tmp_path: Path) -> None:
    """One application has both connections and pauses before each question. So neither connection shows how long the path takes."""
    lines = opened("C", "S", 0, at_server=True) + turns("C", "S", late_ms=60, far_begins=True)
    lines += ["host D 10.0.0.1:40001 isn 9000", "host T 10.0.0.2:80 isn 7000"]
    lines += opened("D", "T", 0.5, at_server=True) + turns("D", "T", late_ms=60, far_begins=True)
    assert lasted(tmp_path, at_time(lines))["application"] == pytest.approx(FIRST_MS + (TURNS - 1) * 60, abs=TURNS)


def test_one_connection_that_is_read_again_is_judged_with_its_neighbours(tmp_path: Path) -> None:
    path = packets.capture(tmp_path / "exchange.pcap", beside_a_stream(late_ms=40, round_trip_ms=60))
    kept, again = read(path, worth=causes.worth()), read(path, worth=causes.worth(), reread_bytes=0)
    columns, own = ("conn", "start_ns", "cause"), pl.col("conn") == 0
    expected = kept.ledger.filter(own).select(columns).collect()
    assert_frame_equal(again.ledger.filter(own).select(columns).collect(), expected)
    assert again.together is not None
    segments, waits = map(pl.concat, zip(*again.together([0], ["frame"], ["start_ns", "cause"]), strict=True))
    assert_frame_equal(waits, expected.select("start_ns", "cause"), check_row_order=False)
    assert_frame_equal(segments, kept.segments.filter(own).select("frame").collect())


def test_neither_threads_nor_batches_nor_the_spool_change_what_neighbours_show(tmp_path: Path) -> None:
    path = packets.capture(tmp_path / "exchange.pcap", beside_a_stream(late_ms=40, round_trip_ms=60))
    expected = read(path, worth=causes.worth()).ledger.select("conn", "start_ns", "cause").sort("conn", "start_ns").collect()
    for threads, batch_rows, waits_memory_bytes in ((1, 7, 1_000), (2, 100_000, 1_000), (8, 50, 1 << 26)):
        engine = Engine(
            [str(path)],
            batch_rows,
            columns=[],
            ledger=["conn", "start_ns", "cause"],
            waits_memory_bytes=waits_memory_bytes,
            threads=threads,
        )
        reported = pl.concat(rows.ledger for rows in reread.pulled_all(engine))
        assert_frame_equal(reported, expected, check_row_order=False)
