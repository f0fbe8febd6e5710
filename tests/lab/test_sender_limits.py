"""What limited a sender, according to its TCP_INFO at one moment. The readings are written by hand.

The first readings come from a Linux 6.18 sender on a path with an RTT of 10 ms. `tcpi_rwnd_limited` is the time for which the receiver's
window limited the sender. If it grew during the RTT after a reading, the window is the expected limit.
"""

from __future__ import annotations

import socket
import struct

import pytest

from tcptrace_lab.lab.hosts.sender_limits import APPLICATION, LOSS, ON_THE_WAY, PEER, SLOW_START, WINDOW, Witness
from tcptrace_lab.lab.hosts.sockets import Pair

OFFSETS = {
    "ca_state": (1, "B"),
    "snd_mss": (16, "I"),
    "unacked": (24, "I"),
    "snd_ssthresh": (76, "I"),
    "snd_cwnd": (80, "I"),
    "total_retrans": (100, "I"),
    "pacing_rate": (104, "Q"),
    "bytes_acked": (120, "Q"),
    "notsent_bytes": (144, "I"),
    "min_rtt": (148, "I"),
    "bytes_sent": (200, "Q"),
    "bytes_retrans": (208, "Q"),
    "snd_wnd": (228, "I"),
}
"""Offsets of fields in the kernel's `struct tcp_info` (include/uapi/linux/tcp.h), written out by hand."""

INFO_BYTES = 248
MSS = 1_448
NEVER_CUT = 0x7FFFFFFF


def reading(**values: int) -> bytes:
    """Return the TCP_INFO of a sender that has much more data to send."""
    raw = bytearray(INFO_BYTES)
    usual = {"snd_mss": MSS, "notsent_bytes": 200_000, "snd_ssthresh": NEVER_CUT, "min_rtt": 10_150, "snd_wnd": 20_272}
    for name, value in (usual | values).items():
        offset, letter = OFFSETS[name]
        struct.pack_into("=" + letter, raw, offset, value)
    return bytes(raw)


def state(sleeps: str = "", /, **values: int) -> str:
    """Return what limits a sender that has these values.

    If `sleeps` is not empty, the program that it names sleeps meanwhile.
    """
    in_flight = values["unacked"] * MSS
    readings = [(0, b""), (1_000_000, reading(bytes_sent=in_flight, **values))]
    spent = [(sleeps, 0, 2_000_000)] if sleeps else []
    with socket.socket() as client, socket.socket() as server:
        (reported,) = Witness(Pair(client, server, spent), readings=readings).truth(0, 1_000_000, nodelay=True, forward=None)
    return reported


@pytest.mark.parametrize(
    ("congestion_window", "unacked", "pacing_rate", "held"),
    [
        (10, 10, 2_785_418, SLOW_START),  # the first flight
        (19, 14, 5_308_634, WINDOW),  # the window has no room
        (19, 12, 5_337_148, WINDOW),  # the window has room for two segments; Linux would send three in one burst
        (28, 11, 7_881_133, WINDOW),  # the window has room for three segments; Linux would send five in one burst
        (28, 10, 7_885_828, WINDOW),  # the window has room for four of five segments, which is less than a third of the window
        (12, 11, 7_885_828, SLOW_START),  # the window has room for three segments, but the congestion window has room for one
    ],
)
def test_room_for_less_than_goes_in_one_piece_is_counted_as_the_kernel_counts_it(
    congestion_window: int, unacked: int, pacing_rate: int, held: str
) -> None:
    assert state(snd_cwnd=congestion_window, unacked=unacked, pacing_rate=pacing_rate) == held


def test_room_for_a_whole_piece_or_a_third_of_the_window_is_not_waited_for() -> None:
    """At 1 MB/s, less than two segments fit into a millisecond. Linux sends bursts of at least two segments.

    The window has room for two segments, so it does not limit this sender.
    """
    assert state(snd_cwnd=19, unacked=12, pacing_rate=1_000_000) == SLOW_START
    assert state(snd_cwnd=28, unacked=9, pacing_rate=7_885_828) == SLOW_START


def test_the_last_bytes_wait_for_more_room_too_although_they_fit() -> None:
    """The sender waits for more window space, although its last bytes would fit.

    The congestion window has room for 17 segments, and the kernel names no limit.
    """
    assert state(snd_cwnd=28, unacked=11, pacing_rate=7_881_133, notsent_bytes=3_336) == WINDOW


def test_what_was_sent_again_needlessly_leaves_slow_start_what_it_is() -> None:
    """After a pause of 0.5 s, the congestion window starts again at ten segments. Only a loss sets the slow-start threshold."""
    anew = {"snd_cwnd": 10, "unacked": 10, "pacing_rate": 2_842_013, "total_retrans": 2}
    assert state(**anew) == SLOW_START
    assert state(**anew, snd_ssthresh=14) == LOSS


@pytest.mark.parametrize(
    ("unacked", "sleeps", "held"), [(1, PEER, PEER), (1, APPLICATION, ON_THE_WAY), (0, APPLICATION, APPLICATION), (1, "", ON_THE_WAY)]
)
def test_a_server_that_thinks_has_read_the_question_before_it_acknowledges_it(unacked: int, sleeps: str, held: str) -> None:
    """The server delays the ACK of the question and sends it with the answer.

    So the question has arrived, although the client's kernel counts its bytes as in flight.
    """
    assert state(sleeps, snd_cwnd=10, unacked=unacked, notsent_bytes=0) == held
