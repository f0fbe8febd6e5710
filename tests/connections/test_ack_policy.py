"""When hosts send ACKs, and whether they use Nagle's algorithm: captures of known schedules, and hand-written exchanges of other stacks."""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING

import polars as pl
import pytest

from tcptrace_lab import analyze
from tcptrace_lab.connections import behaviour
from tests.support import packets
from tests.support.judged import judged, judged_text, scenario, scenarios
from tests.support.places import CAPTURES

if TYPE_CHECKING:
    from pathlib import Path

TRUTH = scenarios()
ONE = [name for name, made in TRUTH.items() if made["connections_ended"] == 1]
HELD = [name for name in ONE if "nagle-on" in name]
SMALL_WRITES = [name for name in ONE if "nagle-off" in name or "small-send-buffer" in name or name == "loopback-loss"]
"""Captures in which the application writes less than the MSS while an earlier small write is unacknowledged."""

HANDSHAKE = """
    0.000 C > S S  0:0(0)        win 16384 <mss 1460>
    0.001 S > C S. 0:0(0) ack 1  win 16384 <mss 1460>
    0.001 C > S .         ack 1
"""
"""A handshake with an RTT of 1 ms, no option except the MSS, and windows of 16 KB."""


@pytest.mark.parametrize("name", HELD)
def test_held_writes_prove_nagle(name: str) -> None:
    """11 of the 12 exchanges wait for a delayed ACK (README of the captures). Linux acknowledges the first exchange at once."""
    found = scenario(name)
    assert (found["client_nagle"], found["client_nagle_confidence"], found["client_nagle_holds"]) == ("on", "proved", 11)
    assert found["server_nagle"] == "unknown", "it writes once per exchange"


@pytest.mark.parametrize("name", SMALL_WRITES)
def test_small_writes_behind_small_ones_prove_nodelay(name: str) -> None:
    assert TRUTH[name]["socket_options"]["TCP_NODELAY"]
    found = scenario(name)
    assert (found["client_nagle"], found["client_nagle_confidence"]) == ("off", "proved")


@pytest.mark.parametrize("name", ONE)
def test_no_verdict_on_nagle_contradicts_the_socket_option(name: str) -> None:
    expected = {"unknown", "off" if TRUTH[name]["socket_options"]["TCP_NODELAY"] else "on"}
    found = scenario(name)
    assert {found["client_nagle"], found["server_nagle"]} <= expected


@pytest.mark.parametrize("name", HELD)
def test_the_delayed_ack_timer_of_linux_is_found(name: str) -> None:
    """The delayed-ACK timer TCP_DELACK_MIN is 40 ms (include/net/tcp.h). The kernel's timer wheel can add one tick."""
    found = scenario(name)
    assert (found["server_ack_timer_ms"], found["server_ack_timer_kind"], found["server_delayed_acks"]) == (40, "fixed", 11)
    assert 38 <= found["server_ack_delay_from_ms"] <= found["server_ack_delay_to_ms"] <= 48


def test_from_both_ends_the_same_is_found() -> None:
    ends = [scenario(name) for name in ("ethernet-nagle-on", "ethernet-nagle-on-at-server")]
    names = (
        "nagle",
        "nagle_holds",
        "ack_policy",
        "ack_timer_ms",
        "delayed_acks",
        "acks_by_segments",
        "initial_flight_bytes",
        "stack_guess",
    )
    first, second = ({f"{side}_{name}": end[f"{side}_{name}"] for side in ("client", "server") for name in names} for end in ends)
    assert first == second


@pytest.mark.parametrize("name", ["ethernet-bbr", "ethernet-bottleneck", "ethernet-queue-overflow", "ethernet-small-receive-window"])
def test_linux_acknowledges_every_second_full_segment_of_a_slow_stream(name: str) -> None:
    assert scenario(name)["server_ack_policy"] == "per-2"


def test_the_first_flight_of_linux_is_ten_segments() -> None:
    """Linux starts with ten segments (RFC 6928; TCP_INIT_CWND). The RTT is at least 20 ms, so no ACK arrives during the first flight."""
    for name in ("ethernet-bottleneck", "ethernet-slow-start", "ethernet-loss", "ethernet-loss-at-server", "ethernet-ipv6-bulk"):
        found = scenario(name)
        assert (found["client_initial_flight_segments"], found["client_initial_flight_bytes"]) == (
            10,
            10 * found["client_full_segment_bytes"],
        ), name


def exchange(*requests: tuple[float, float]) -> str:
    """Return a handshake, then small requests.

    Each request has a time and the delay of its ACK, both in ms. The server sends no data.
    """
    lines = [HANDSHAKE]
    for number, (at_ms, delay_ms) in enumerate(requests):
        first = 1 + 100 * number
        lines += [
            f"{at_ms:.3f}ms C > S P. {first}:{first + 100} ack 1",
            f"{at_ms + 1 + delay_ms:.3f}ms S > C . ack {first + 100}",
        ]
    return "\n".join(lines)


def test_a_heartbeat_of_200_ms_is_identified_by_its_phase(tmp_path: Path) -> None:
    """4.4BSD sends delayed ACKs 70 ms into each period of 200 ms, no matter when the request arrives."""
    random.seed(1)
    requests = []
    for beat in range(5, 45, 2):
        delay_ms = random.uniform(3, 197)  # noqa: S311  (no secret)
        requests.append((200 * beat + 70 - delay_ms - 1, delay_ms))
    found = judged_text(tmp_path, exchange(*requests))
    assert (found["server_ack_timer_kind"], found["server_ack_timer_ms"], found["server_delayed_acks"]) == ("heartbeat", 200, 20)
    assert found["server_heartbeat_concentration"] > 0.99


@pytest.mark.parametrize(("acks", "kind"), [(20, "heartbeat"), (12, None)])
def test_two_phases_a_quarter_apart_are_a_heartbeat_only_if_many_acks_show_them(tmp_path: Path, acks: int, kind: str | None) -> None:
    """Half of the ACKs are sent 70 ms into each period of 200 ms, the other half 120 ms into it.

    As unit vectors, the two phases are at a right angle; the length R of their mean is |1 + i| / 2 = 0.7071. Rayleigh's statistic for n
    ACKs is n R²: 10 for 20 ACKs, and 6 for 12 ACKs. A significance of one in a thousand requires at least ln 1000 = 6.91. Delays of 21 to
    192 ms do not come from a fixed timer.
    """
    delays_ms = [21 + 9 * number for number in range(20)]
    requests = [(1000 * (number + 1) + (70, 120)[number % 2] - 1 - delays_ms[number], delays_ms[number]) for number in range(acks)]
    found = judged_text(tmp_path, exchange(*requests))
    assert found["server_delayed_acks"] == acks
    assert found["server_heartbeat_concentration"] == pytest.approx(math.sqrt(0.5), abs=1e-3)
    assert (found["server_ack_timer_kind"], found["server_ack_timer_ms"]) == (kind, kind and 200)


def test_delays_without_a_phase_are_no_heartbeat(tmp_path: Path) -> None:
    random.seed(2)
    requests = [(1000 + 331.7 * number, random.uniform(3, 197)) for number in range(20)]  # noqa: S311
    found = judged_text(tmp_path, exchange(*requests))
    assert (found["server_ack_timer_kind"], found["server_ack_timer_ms"], found["server_delayed_acks"]) == (None, None, 20)


@pytest.mark.parametrize(("timer_ms", "jitter_ms"), [(40, 4), (50, 8), (100, 10), (200, 10)])
def test_fixed_timers_are_identified_by_their_time(tmp_path: Path, timer_ms: int, jitter_ms: int) -> None:
    """Delayed-ACK timers are 40 ms in Linux, 50 and 100 ms in Solaris, and 200 ms in Windows. Each can fire a clock tick late."""
    random.seed(timer_ms)
    requests = [(1000 + 503.3 * number, timer_ms + random.uniform(0, jitter_ms)) for number in range(12)]  # noqa: S311
    found = judged_text(tmp_path, exchange(*requests))
    assert (found["server_ack_timer_ms"], found["server_ack_timer_kind"], found["server_delayed_acks"]) == (timer_ms, "fixed", 12)


def test_a_heartbeat_of_250_ms_in_step_with_a_dialogue_is_no_timer_of_200(tmp_path: Path) -> None:
    """The delayed-ACK timer of lwIP fires every 250 ms.

    Each request arrives 39 to 41 ms after the previous ACK, so its ACK is 209 to 211 ms late.
    """
    requests = [(1000 + 250 * number + 41 - number % 3, 209.0 + number % 3) for number in range(12)]
    found = judged_text(tmp_path, exchange(*requests))
    assert (found["server_ack_timer_ms"], found["server_ack_timer_kind"], found["server_delayed_acks"]) == (None, None, 12)


def test_two_delayed_acks_name_no_timer(tmp_path: Path) -> None:
    found = judged_text(tmp_path, exchange((1000, 40), (2000, 40)))
    assert (found["server_delayed_acks"], found["server_ack_timer_ms"], found["server_ack_delay_from_ms"]) == (2, None, 40)


def bulk(sizes: list[int], acks: dict[int, float], *, spacing_ms: float = 3) -> str:
    """Return a handshake and segments of these sizes, sent every `spacing_ms`.

    `acks` maps a segment's number to a delay in ms. The ACK of the segment follows it after 1 ms plus this delay.
    """
    events: list[tuple[float, str]] = []
    end, at_ms = 1, 10.0
    for number, size in enumerate(sizes):
        events.append((at_ms, f"C > S . {end}:{end + size} ack 1"))
        end += size
        if number in acks:
            events.append((at_ms + 1 + acks[number], f"S > C . ack {end}"))
        at_ms += spacing_ms + (acks.get(number, 0) if acks.get(number, 0) > spacing_ms else 0)
    return HANDSHAKE + "\n".join(f"{at:.3f}ms {line}" for at, line in sorted(events))


def test_every_segment_acknowledged_at_once(tmp_path: Path) -> None:
    found = judged_text(tmp_path, bulk([1460] * 10, dict.fromkeys(range(10), 0.0)))
    assert (found["server_ack_policy"], found["server_acks_by_segments"]) == ("per-segment", [10, 0, 0, 0, 0, 0])


def test_every_second_segment_whatever_its_size(tmp_path: Path) -> None:
    """FreeBSD sends an ACK at once if a segment arrives while the ACK of the previous one is delayed."""
    found = judged_text(tmp_path, bulk([200] * 20, dict.fromkeys(range(1, 20, 2), 0.0)))
    assert (found["server_ack_policy"], found["server_prompt_small_pairs"]) == ("per-2-segments", 10)


def test_two_full_segments_worth_is_distinguished_from_every_second_segment(tmp_path: Path) -> None:
    """4.4BSD sends an ACK at once for 2,920 bytes: four segments of 730 bytes.

    Three segments of 900 bytes (2,700 bytes) wait for the timer.
    """
    groups = ([900] * 3, [730] * 4) * 4
    sizes = [size for group in groups for size in group]
    acks, number = {}, -1
    for group in groups:
        number += len(group)
        acks[number] = 100.0 if len(group) == 3 else 0.0
    found = judged_text(tmp_path, bulk(sizes, acks))
    assert (found["server_delayed_ack_max_bytes"], found["server_prompt_ack_min_bytes"]) == (2700, 2920)
    assert (found["server_ack_policy"], found["server_ack_timer_ms"]) == ("per-2-mss", 100)


def test_a_share_of_the_buffer_is_reported_where_it_is_less_than_two_segments(tmp_path: Path) -> None:
    """SunOS 4.1 over ATM sends an ACK for 35% of its buffer of 16,384 bytes: 5,735 bytes.

    Segments of 5,700 bytes wait for the timer, and segments of 5,800 bytes do not. The MSS is 9,148.
    """
    sizes = [5700, 5800] * 5
    text = bulk(sizes, {number: 45.0 if size == 5700 else 0.0 for number, size in enumerate(sizes)}).replace("mss 1460", "mss 9148")
    found = judged_text(tmp_path, text)
    assert found["server_max_window_bytes"] == 16_384
    assert found["server_ack_policy"] == "buffer-35"


def test_stretch_acks(tmp_path: Path) -> None:
    """Solaris acknowledges every eighth segment of a host on its own network."""
    found = judged_text(tmp_path, bulk([1460] * 80, dict.fromkeys(range(7, 80, 8), 0.0)))
    assert (found["server_ack_policy"], found["server_stretch_acks"]) == ("stretch", 10)
    assert found["server_acks_by_segments"] == [0, 0, 0, 0, 10, 0]


def test_acks_that_a_queue_delays_are_not_a_timers(tmp_path: Path) -> None:
    """A flight of 20 segments passes a bottleneck, so its ACKs arrive 30 ms apart.

    The last ACK acknowledges all outstanding data, but is no delayed ACK.
    """
    lines = [f"{10 + 0.1 * number:.1f}ms C > S . {1 + 1460 * number}:{1461 + 1460 * number} ack 1" for number in range(20)]
    lines += [f"{40 + 30 * number}ms S > C . ack {1461 + 1460 * number}" for number in range(20)]
    found = judged_text(tmp_path, HANDSHAKE + "\n".join(lines))
    assert (found["server_delayed_acks"], found["server_ack_timer_ms"]) == (0, None)


def held(size: int, count: int, *, late_ms: float = 0.2) -> str:
    """Return small writes, each sent `late_ms` after the ACK of the previous one. Each ACK is 100 ms late."""
    lines = [HANDSHAKE, f"10ms C > S P. 1:{1 + size} ack 1"]
    for number in range(count):
        end = 1 + size * (number + 1)
        lines += ["+100ms S > C . ack " + str(end), f"+{late_ms}ms C > S P. {end}:{end + size} ack 1"]
    return "\n".join(lines)


@pytest.mark.parametrize(("holds", "state", "confidence"), [(1, "unknown", None), (2, "on", "consistent"), (3, "on", "proved")])
def test_once_may_be_chance_three_times_is_proof(tmp_path: Path, holds: int, state: str, confidence: str | None) -> None:
    found = judged_text(tmp_path, held(100, holds))
    assert (found["client_nagle_holds"], found["client_nagle"], found["client_nagle_confidence"]) == (holds, state, confidence)


def switched(first: str, then: str) -> list[str]:
    """Return the lines of an exchange in two parts, `first` and `then`.

    In each part, `H` stands for three writes of 100 bytes that each wait for an ACK. `N` stands for three pairs of writes. In each pair,
    the second write does not wait.
    """
    lines, end = [HANDSHAKE], 1
    for mode in (first, then):
        for _ in range(3):
            second = "+100ms S > C . ack {1}\n+0.2ms C > S P. {1}:{2} ack 1\n+1ms S > C . ack {2}"
            if mode == "N":
                second = "+5ms C > S P. {1}:{2} ack 1\n+95ms S > C . ack {2}"
            lines.append(("+10ms C > S P. {0}:{1} ack 1\n" + second).format(end, end + 100, end + 200))
            end += 200
    return lines


@pytest.mark.parametrize(
    ("first", "then", "cause", "ended"),
    [("H", "N", "nagle-delayed-ack", [6, 10, 14]), ("N", "H", "delayed-ack", [15, 19, 23])],
    ids=["set-after-the-first-stalls", "taken-back"],
)
def test_nagle_that_is_switched_under_way_is_not_reported_for_the_whole_connection(
    tmp_path: Path, first: str, then: str, cause: str, ended: list[int]
) -> None:
    """Three writes do not wait, which proves that TCP_NODELAY is set at that time.

    Three other writes wait 100 ms for an ACK. These waits end with the frames in `ended`, and all of them are in the ledger. If small
    segments were sent earlier without a wait, three waits do not prove Nagle's algorithm, and there is no finding.
    """
    path = packets.capture(tmp_path / "switched.pcap", "\n".join(switched(first, then)))
    found = judged(path)
    assert (found["client_nagle_holds"], found["client_small_in_flight"]) == (3, 3)
    assert (found["client_nagle"], found["client_nagle_confidence"]) == ("off", "proved")
    said = behaviour.nagle(found, "client")
    assert "3 others were sent as soon as the ACK arrived: the setting may have changed during the connection" in said
    waits = analyze(path).longest_waits.filter(pl.col("from_client") & (pl.col("cause") == cause))
    assert waits["frame_after"].to_list() == ended


def test_writes_that_come_at_any_time_after_the_ack_were_not_held(tmp_path: Path) -> None:
    found = judged_text(tmp_path, held(100, 10, late_ms=30))
    assert (found["client_nagle"], found["client_nagle_releases"], found["client_nagle_holds"]) == ("unknown", 10, 0)


def test_what_waited_for_the_window_was_not_held_by_nagle(tmp_path: Path) -> None:
    """The receive window has room for only one write, so the window delays the writes."""
    found = judged_text(tmp_path, held(100, 5).replace("win 16384", "win 100"))
    assert (found["client_nagle"], found["client_nagle_holds"]) == ("unknown", 0)


def test_full_segments_that_the_path_made_smaller_prove_no_nodelay(tmp_path: Path) -> None:
    """The SYNs announce an MSS of 1,460, but the path allows only 1,400 bytes, so each segment of the transfer counts as full."""
    found = judged_text(tmp_path, bulk([1400] * 10, {9: 0.0}))
    assert found["client_nagle"] == "unknown"


def test_the_small_end_of_a_burst_is_allowed_by_any_nagle(tmp_path: Path) -> None:
    found = judged_text(tmp_path, bulk([1460, 1460, 300], {2: 0.0}, spacing_ms=0.01))
    assert (found["client_small_in_flight"], found["client_small_over_full"], found["client_nagle"]) == (0, 0, "unknown")


def test_a_fin_is_never_held(tmp_path: Path) -> None:
    found = judged_text(tmp_path, f"{HANDSHAKE}\n10ms C > S P. 1:101 ack 1\n11ms C > S FP. 101:201 ack 1\n12ms S > C . ack 202")
    assert (found["client_small_in_flight"], found["client_nagle"]) == (0, "unknown")


def test_a_window_scale_is_bounded_by_what_was_in_flight(tmp_path: Path) -> None:
    """The capture has no handshake, so the window scale is unknown; the window field is 10.

    A shift of 9 (5,120 bytes) allows the 4,380 bytes in flight; a shift of 8 (2,560 bytes) does not.
    """
    found = judged_text(
        tmp_path,
        """
        0    S > C . 1:1(0)    ack 1 win 10
        +1ms C > S . 1:1461    ack 1
        +1ms C > S . 1461:2921 ack 1
        +1ms C > S . 2921:4381 ack 1
        +1ms S > C .           ack 4381
        """,
    )
    assert (found["server_window_scale"], found["server_min_window_scale"], found["client_min_window_scale"]) == (None, 9, None)


GUESSES = {
    "mss 1460, sackOK, TS val 1 ecr 0, nop, wscale 7": ("mss,sackOK,TS,nop,wscale", 64, "Linux"),
    "mss 1460, nop, wscale 8, nop, nop, sackOK": ("mss,nop,wscale,nop,nop,sackOK", 128, "Windows"),
    "mss 1460, nop, wscale 6, nop, nop, TS val 1 ecr 0, sackOK, eol": ("mss,nop,wscale,nop,nop,TS,sackOK,eol", 64, "Apple"),
    "mss 1460, nop, wscale 6, sackOK, TS val 1 ecr 0": ("mss,nop,wscale,sackOK,TS", 64, "FreeBSD"),
    "mss 1460": ("mss", 64, None),
}


@pytest.mark.parametrize("options", GUESSES)
def test_options_of_a_syn_in_order_hint_at_the_stack(tmp_path: Path, options: str) -> None:
    names, ttl, family = GUESSES[options]
    found = judged_text(tmp_path, f"0 C > S S 0:0(0) win 64240 <{options}> {{ttl {ttl - 3}}}")
    assert (found["client_syn_options"].removesuffix(",eol"), found["client_stack_guess"]) == (names.removesuffix(",eol"), family)
    assert (found["client_syn_window_bytes"], found["client_syn_ttl"]) == (64_240, ttl - 3)


def test_every_capture_of_this_kernel_is_taken_for_linux() -> None:
    for name in ("ethernet-bulk", "atm9188-bulk", "ethernet-ipv6-bulk", "loopback-nagle-on"):
        found = judged(CAPTURES / TRUTH[name]["file"])
        assert {found["client_stack_guess"], found["server_stack_guess"]} == {"Linux"}
