"""Tests of the relay that emulates a network.

Index and seed decide the fate of each packet. The relay also applies delays and rates, and forwards packets between two sockets.
"""

from __future__ import annotations

import socket
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from tcptrace_lab.lab.networks.path import Direction, Fate, PathModel
from tcptrace_lab.lab.networks.relay import Relay

if TYPE_CHECKING:
    from collections.abc import Iterator

MS_NS = 1_000_000
TIMEOUT_S = 5.0


def test_frame_is_delivered_after_the_delay() -> None:
    assert Direction(PathModel(delay_s=0.010)).accept(1500, 7 * MS_NS) == [17 * MS_NS]


def test_bottleneck_spaces_frames_by_their_transmission_time() -> None:
    """A frame of 1500 bytes takes 1 ms at 12 Mb/s."""
    direction = Direction(PathModel(delay_s=0.010, rate_bps=12_000_000))
    assert [direction.accept(1500, 0) for _ in range(3)] == [[11 * MS_NS], [12 * MS_NS], [13 * MS_NS]]
    assert direction.accept(1500, 100 * MS_NS) == [111 * MS_NS]


def test_full_queue_drops_until_it_has_drained() -> None:
    direction = Direction(PathModel(rate_bps=12_000_000, queue_bytes=3_000))
    assert [len(direction.accept(1500, 0)) for _ in range(4)] == [1, 1, 0, 0]
    assert len(direction.accept(1500, MS_NS)) == 1  # the first frame has been sent
    assert direction.log.indexes(Fate.QUEUE_FULL) == [2, 3]


def test_lost_duplicated_and_held_back_frames_are_those_named() -> None:
    direction = Direction(PathModel(delay_s=0.001, lost=frozenset({1}), duplicated=frozenset({2}), extra_delay_s={3: 0.005}))
    assert [direction.accept(100, 0) for _ in range(5)] == [[MS_NS], [], [MS_NS, MS_NS], [6 * MS_NS], [MS_NS]]
    assert [entry.fate for entry in direction.log.entries] == [Fate.FORWARDED, Fate.LOST, Fate.DUPLICATED, Fate.DELAYED, Fate.FORWARDED]


def test_random_loss_is_the_same_for_the_same_seed_whatever_the_time() -> None:
    def lost(seed: int, spacing_ns: int) -> list[int]:
        direction = Direction(PathModel(loss_share=0.1, seed=seed))
        for index in range(2_000):
            direction.accept(100, index * spacing_ns)
        return direction.log.indexes(Fate.LOST)

    assert lost(7, 1) == lost(7, MS_NS) != lost(8, 1)
    assert 150 <= len(lost(7, 1)) <= 250  # 200 losses are expected, with a standard deviation of 13


def test_jitter_delays_each_packet_anew_and_lets_none_overtake() -> None:
    direction = Direction(PathModel(delay_s=0.010, jitter_s=0.004, seed=5))
    due = [direction.accept(100, index * MS_NS)[0] for index in range(500)]
    late = [due_ns - (index + 10) * MS_NS for index, due_ns in enumerate(due)]
    assert due == sorted(due)
    assert min(late) >= 0
    assert max(late) <= 4 * MS_NS
    assert len(set(late)) > 100


def test_packets_leave_in_batches() -> None:
    direction = Direction(PathModel(delay_s=0.001, batch_s=0.005))
    assert [direction.accept(100, at_ms * MS_NS)[0] // MS_NS for at_ms in (0, 1, 4, 5, 9)] == [5, 5, 5, 10, 10]


def test_a_policer_drops_what_exceeds_its_bucket_and_delays_nothing() -> None:
    """The token bucket has room for two packets of 1,500 bytes. At 12 Mb/s, it gets tokens for one more packet every millisecond."""
    direction = Direction(PathModel(delay_s=0.010, rate_bps=12_000_000, queue_bytes=3_000, policed=True))
    assert [direction.accept(1500, 0) for _ in range(3)] == [[10 * MS_NS], [10 * MS_NS], []]
    assert direction.accept(1500, MS_NS) == [11 * MS_NS]


def test_in_an_outage_every_packet_is_lost() -> None:
    direction = Direction(PathModel(outages_s=((0.010, 0.020),)))
    for at_ms in (1_000, 1_009, 1_010, 1_019, 1_020):
        direction.accept(100, at_ms * MS_NS)
    assert direction.log.indexes(Fate.LOST) == [2, 3]


@pytest.mark.parametrize(
    "wrong", [{"jitter_s": -0.1}, {"delay_s": -1.0}, {"rate_bps": 0}, {"loss_share": 1.5}, {"extra_delay_s": {0: -1.0}}]
)
def test_impossible_paths_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"must|cannot"):
        PathModel(**wrong)  # type: ignore[arg-type]


@contextmanager
def relayed(forward: PathModel) -> Iterator[tuple[socket.socket, socket.socket, Relay]]:
    """Yield two sockets that preserve frame boundaries, and the relay between them."""
    near, near_inner = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    far, far_inner = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with near, near_inner, far, far_inner:
        near.settimeout(TIMEOUT_S)
        far.settimeout(TIMEOUT_S)
        relay = Relay(near_inner.fileno(), far_inner.fileno(), forward=forward, backward=PathModel())
        with relay.running():
            yield near, far, relay


def test_relay_carries_frames_both_ways_late_once_twice_or_never() -> None:
    with relayed(PathModel(delay_s=0.020, lost=frozenset({1}), duplicated=frozenset({2}), extra_delay_s={0: 0.030})) as (near, far, relay):
        started_s = time.monotonic()
        for frame in (b"held back", b"lost", b"twice", b"once"):
            near.send(frame)
        received = [(far.recv(100), time.monotonic() - started_s) for _ in range(4)]
        far.send(b"back")
        assert near.recv(100) == b"back"
    assert [frame for frame, _ in received] == [b"twice", b"twice", b"once", b"held back"]
    assert min(after_s for _, after_s in received) >= 0.020
    assert received[-1][1] >= 0.050
    assert relay.forward_log.describe() == {
        "frames": 4,
        "lost_indexes": [1],
        "queue_full_indexes": [],
        "duplicated_indexes": [2],
        "delayed_indexes": [0],
    }


def test_relay_sleeps_while_nothing_is_due() -> None:
    with relayed(PathModel(delay_s=0.2)) as (near, far, _):
        used_s = time.process_time()
        near.send(b"frame")
        assert far.recv(100) == b"frame"
        assert time.process_time() - used_s < 0.1


def test_error_of_the_loop_reaches_the_block_that_runs_it() -> None:
    near, near_inner = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    far, far_inner = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with near, near_inner, far_inner:
        far.close()
        relay = Relay(near_inner.fileno(), far_inner.fileno(), forward=PathModel(), backward=PathModel())
        near.send(b"to nobody")
        with pytest.raises(OSError, match=r"refused|not connected|reset"):
            run_until_first_frame(relay)


def run_until_first_frame(relay: Relay) -> None:
    with relay.running():
        while not relay.forward_log.entries:
            time.sleep(0.001)
