"""Transfers whose limiting cause is known.

Some transfers have one cause. In others, the cause changes during the transfer.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from tcptrace_lab.lab.experiment import Experiment
from tcptrace_lab.lab.hosts.applications import BoundedBulk, Bulk, Exchanges, Mixture, PeriodicWriter, Setting, SlowReader
from tcptrace_lab.lab.hosts.sender_limits import APPLICATION, LOSS, NAGLE, NETWORK, PEER, SEND_BUFFER, SLOW_START, WINDOW
from tcptrace_lab.lab.hosts.sockets import SocketOptions
from tcptrace_lab.lab.known_causes.scoring import Known
from tcptrace_lab.lab.networks.network import Medium
from tcptrace_lab.lab.networks.path import PathModel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tcptrace_lab.lab.hosts.applications import OneConnection

ETHERNET, JUMBO, LARGEST = 1_500, 9_180, 65_535
LARGEST_TAP = 65_521  # Linux drivers/net/tun.c: largest MTU of a TAP interface, whose frames also contain an Ethernet header
WRITING = (("net.ipv4.tcp_wmem", "4096 4194304 8388608"),)
"""A sysctl for send buffers. They are so large that they never limit an application that writes as fast as it can."""
ROOM = (("net.ipv4.tcp_rmem", "4096 8388608 16777216"),)
"""A sysctl for receive buffers. They are so large that their window never limits the sender."""

WRITE_SEGMENTS = 20  # full segments per write, so that no write ends with a small segment

Named = tuple[str, Known]


def path(round_trip_s: float, mtu: int = ETHERNET, *, room: bool = False, **forward: object) -> Medium:
    """Return a network with equal delays in both directions and large send buffers.

    `forward` contains further settings of the path from the client.
    """
    backward_path = PathModel(delay_s=round_trip_s / 2)
    sysctls = (*WRITING, *ROOM) if room else WRITING
    kind: Literal["tap", "tun"] = "tap" if mtu <= LARGEST_TAP else "tun"
    return Medium(kind, mtu, forward=replace(backward_path, **forward), backward=backward_path, sysctls=sysctls)  # type: ignore[arg-type]


def known(medium: Medium, program: OneConnection, *due: str, **options: object) -> Known:
    """Return a transfer that is designed to be limited by the states `due`. `options` are its `SocketOptions`."""
    return Known(Experiment(medium, program, SocketOptions(**options)), frozenset(due))  # type: ignore[arg-type]


def window(buffer: int, round_trip_s: float, mtu: int, total: int) -> Named:
    """Return a transfer whose receive window is smaller than the bandwidth-delay product."""
    name = f"window {buffer:,} B, {milliseconds(round_trip_s)}, MTU {mtu}"
    return name, known(path(round_trip_s, mtu), Bulk(total, WRITE_SEGMENTS * mtu), WINDOW, receive_buffer_bytes=buffer)


def send_buffer(bound: int, piece: int, round_trip_s: float, mtu: int, total: int) -> Named:
    """Return a transfer whose writer limits its unacknowledged bytes to `bound`, as a small send buffer does."""
    name = f"send buffer {bound:,} B, {milliseconds(round_trip_s)}, MTU {mtu}"
    return name, known(path(round_trip_s, mtu, room=True), BoundedBulk(total, bound, piece), SEND_BUFFER, nodelay=True)


def nagle(writes: tuple[int, ...], round_trip_s: float, mtu: int, count: int = 25) -> Named:
    """Return a transfer whose client sends each request in several writes, then reads the response: write, write, read."""
    name = f"writes {'+'.join(map(str, writes))}, {milliseconds(round_trip_s)}, MTU {mtu}"
    medium = path(round_trip_s, mtu) if round_trip_s else Medium("veth", mtu)
    return name, known(medium, Exchanges(writes, 100, count), NAGLE)


def nodelay(writes: tuple[int, ...], round_trip_s: float, mtu: int, think_s: float, count: int = 25) -> Named:
    """Return requests in several writes with TCP_NODELAY, so that TCP does not limit the transfer. The server needs processing time."""
    name = f"writes {'+'.join(map(str, writes))}, {milliseconds(round_trip_s)}, MTU {mtu}, NODELAY, server thinks {milliseconds(think_s)}"
    medium = path(round_trip_s, mtu) if round_trip_s else Medium("veth", mtu)
    return name, known(medium, Exchanges(writes, 100, count, think_s), PEER, nodelay=True)


def slow_reader(buffer: int, pause_s: float, round_trip_s: float, mtu: int, times: int = 6) -> Named:
    """Return a transfer whose reading application sleeps between reads."""
    name = f"reader pauses {milliseconds(pause_s)}, buffer {buffer:,} B, {milliseconds(round_trip_s)}, MTU {mtu}"
    program = SlowReader(times * buffer, buffer, pause_s)
    return name, known(path(round_trip_s, mtu), program, WINDOW, receive_buffer_bytes=buffer)


def paced_program(piece: int, count: int, pause_s: float, round_trip_s: float, mtu: int) -> Named:
    """Return a transfer whose writing application sleeps between writes."""
    name = f"writer gives {piece:,} B every {milliseconds(pause_s)}, {milliseconds(round_trip_s)}, MTU {mtu}"
    return name, known(path(round_trip_s, mtu, room=True), PeriodicWriter(piece, count, pause_s), APPLICATION, nodelay=True)


def thinking(server_s: float, client_s: float, round_trip_s: float, question: int, answer: int, count: int = 12) -> Named:
    """Return requests and responses, with processing time at both hosts."""
    thought = f"server thinks {milliseconds(server_s)}, client {milliseconds(client_s)}"
    name = f"asks {question:,} B, gets {answer:,} B, {thought}, {milliseconds(round_trip_s)}"
    due = [state for state, pause_s in ((PEER, server_s), (APPLICATION, client_s)) if pause_s]
    return name, known(path(round_trip_s, room=True), Exchanges((question,), answer, count, server_s, client_s), *due, nodelay=True)


def loss(words: str, round_trip_s: float, total: int, control: str, mtu: int = ETHERNET, **forward: object) -> Named:
    """Return a transfer over a path that loses packets."""
    name = f"{words}, {milliseconds(round_trip_s)}, MTU {mtu}, {control}"
    return name, known(path(round_trip_s, mtu, room=True, **forward), Bulk(total), LOSS, congestion_control=control)


def bottleneck(rate_bps: int, round_trip_s: float, total: int, control: str, mtu: int = ETHERNET) -> Named:
    """Return a transfer over a slow path with an unlimited queue."""
    name = f"{rate_bps / 1e6:g} Mb/s, endless queue, {milliseconds(round_trip_s)}, MTU {mtu}, {control}"
    return name, known(path(round_trip_s, mtu, room=True, rate_bps=rate_bps), Bulk(total), NETWORK, congestion_control=control)


def slow_start(total: int, round_trip_s: float, control: str, mtu: int = ETHERNET) -> Named:
    """Return a transfer that ends in slow start, before it fills its path."""
    name = f"new connection, {total:,} B, {milliseconds(round_trip_s)}, MTU {mtu}, {control}"
    return name, known(path(round_trip_s, mtu, room=True), Bulk(total), SLOW_START, congestion_control=control)


def _held_by_buffers() -> Iterator[Named]:
    yield window(8_192, 0.020, ETHERNET, 150_000)
    yield window(16_384, 0.010, ETHERNET, 400_000)
    yield window(16_384, 0.050, ETHERNET, 200_000)
    yield window(32_768, 0.020, ETHERNET, 500_000)
    yield window(65_536, 0.040, ETHERNET, 800_000)
    yield window(32_768, 0.020, JUMBO, 500_000)
    yield window(65_536, 0.020, JUMBO, 1_000_000)
    yield window(12_000, 0.005, ETHERNET, 400_000)
    yield window(24_000, 0.080, ETHERNET, 250_000)
    yield window(48_000, 0.030, JUMBO, 700_000)
    yield window(262_144, 0.040, LARGEST, 12_000_000)
    yield send_buffer(16_384, 2_048, 0.020, ETHERNET, 250_000)
    yield send_buffer(8_192, 1_448, 0.020, ETHERNET, 150_000)
    yield send_buffer(32_768, 4_096, 0.020, ETHERNET, 1_500_000)
    yield send_buffer(32_768, 4_096, 0.020, JUMBO, 1_000_000)
    yield send_buffer(61_320, 8_192, 0.030, JUMBO, 3_000_000)
    yield send_buffer(16_384, 4_096, 0.010, ETHERNET, 800_000)
    yield send_buffer(24_576, 2_048, 0.040, ETHERNET, 1_000_000)
    yield send_buffer(49_152, 4_096, 0.050, ETHERNET, 2_000_000)
    yield send_buffer(262_144, 65_536, 0.030, LARGEST, 12_000_000)


def _held_by_programs() -> Iterator[Named]:
    for writes, round_trip_s, mtu in (
        ((100, 100), 0.0, ETHERNET),
        ((100, 100), 0.005, ETHERNET),
        ((200, 300), 0.020, ETHERNET),
        ((100, 100), 0.0, JUMBO),
        ((50, 50, 50), 0.002, ETHERNET),
        ((400, 20), 0.010, JUMBO),
        ((500, 500), 0.008, LARGEST),
    ):
        yield nagle(writes, round_trip_s, mtu)
        yield nodelay(writes, round_trip_s, mtu, 0.020)
    yield slow_reader(16_384, 0.3, 0.010, ETHERNET)
    yield slow_reader(32_768, 0.5, 0.010, ETHERNET)
    yield slow_reader(65_536, 0.4, 0.002, ETHERNET)
    yield slow_reader(24_000, 0.2, 0.030, ETHERNET)
    yield slow_reader(65_536, 0.3, 0.020, JUMBO)
    yield paced_program(20_000, 20, 0.05, 0.010, ETHERNET)
    yield paced_program(100, 40, 0.03, 0.010, ETHERNET)
    yield paced_program(60_000, 10, 0.15, 0.020, ETHERNET)
    yield paced_program(5_000, 30, 0.04, 0.005, JUMBO)
    yield paced_program(300, 25, 0.10, 0.040, ETHERNET)
    yield thinking(0.06, 0.03, 0.010, 400, 6_000)
    yield thinking(0.2, 0.0, 0.005, 400, 2_000)
    yield thinking(0.03, 0.1, 0.020, 400, 500)


def _held_by_paths() -> Iterator[Named]:
    yield loss("2 % lost", 0.020, 600_000, "reno", loss_share=0.02, seed=11)
    yield loss("1 % lost", 0.020, 800_000, "cubic", loss_share=0.01, seed=5)
    yield loss("4 in a row lost", 0.040, 500_000, "cubic", lost=frozenset({60, 61, 62, 63}))
    yield loss("5 % lost", 0.010, 400_000, "cubic", loss_share=0.05, seed=3)
    yield loss("40 in a row lost", 0.020, 1_500_000, "reno", lost=frozenset(range(40, 80)))
    yield loss("3 % lost", 0.060, 500_000, "reno", loss_share=0.03, seed=8)
    yield loss("2 % lost", 0.020, 2_000_000, "cubic", JUMBO, loss_share=0.02, seed=4)
    yield bottleneck(4_000_000, 0.020, 1_200_000, "cubic")
    yield bottleneck(10_000_000, 0.020, 2_000_000, "cubic")
    yield bottleneck(8_000_000, 0.040, 4_000_000, "reno")
    yield bottleneck(2_000_000, 0.010, 600_000, "reno")
    yield bottleneck(20_000_000, 0.030, 4_000_000, "cubic", JUMBO)
    yield slow_start(400_000, 0.080, "reno")
    yield slow_start(300_000, 0.040, "cubic")
    yield slow_start(600_000, 0.150, "cubic")
    yield slow_start(200_000, 0.030, "reno")
    yield slow_start(3_000_000, 0.060, "reno", JUMBO)


def _mixtures() -> Iterator[Named]:
    yield (
        "receive window of 16,384 B, then a receiver that stops reading for 300 ms, RTT 20 ms",
        known(path(0.020), Mixture((Bulk(300_000), SlowReader(80_000, 16_384, 0.3))), WINDOW, receive_buffer_bytes=16_384),
    )
    yield (
        "bulk transfer of 1,000,000 B, then 8 requests with 100 ms of server think time, RTT 20 ms",
        known(path(0.020, room=True), Mixture((Bulk(1_000_000), Exchanges((300,), 400, 8, 0.1))), PEER, SLOW_START, nodelay=True),
    )
    yield (
        "20 requests in writes of 100+100 B, then TCP_NODELAY and 20 such requests with 30 ms of server think time, RTT 10 ms",
        known(
            path(0.010), Mixture((Exchanges((100, 100), 50, 20), Setting(nodelay=True), Exchanges((100, 100), 50, 20, 0.03))), NAGLE, PEER
        ),
    )
    yield (
        "slow start, then a send buffer of 131,072 B, RTT 50 ms",
        known(path(0.050, room=True), BoundedBulk(3_000_000, 131_072, 8_192), SLOW_START, SEND_BUFFER, nodelay=True),
    )
    yield (
        "5% of 150 packets lost, then no loss, RTT 20 ms, cubic",
        known(path(0.020, room=True, lost=_some(20, 170, 0.05, 1)), Bulk(1_500_000), LOSS),
    )
    yield (
        "8,000 B written every 60 ms, then a bulk transfer into a receive window of 24,000 B, RTT 20 ms",
        known(path(0.020), Mixture((PeriodicWriter(8_000, 15, 0.06), Bulk(400_000))), APPLICATION, WINDOW, receive_buffer_bytes=24_000),
    )
    yield (
        "bulk transfer over a 10 Mb/s link with a long queue, then into a receive window of 12,000 B, RTT 20 ms",
        known(
            path(0.020, rate_bps=10_000_000),
            Mixture((Bulk(400_000), Setting(window_bytes=12_000), Bulk(1_300_000))),
            NETWORK,
            WINDOW,
        ),
    )
    yield (
        "receive window of 20,000 B, then a send buffer of 8,192 B, RTT 30 ms",
        known(
            path(0.030),
            Mixture((Bulk(300_000), BoundedBulk(300_000, 8_192, 2_048))),
            WINDOW,
            SEND_BUFFER,
            receive_buffer_bytes=20_000,
            nodelay=True,
        ),
    )
    yield (
        "20 requests in writes of 200+200 B, then TCP_NODELAY and a send buffer of 16,384 B, RTT 15 ms",
        known(
            path(0.015, room=True),
            Mixture((Exchanges((200, 200), 50, 20), Setting(nodelay=True), BoundedBulk(600_000, 16_384, 4_096))),
            NAGLE,
            SEND_BUFFER,
        ),
    )
    yield (
        "receiver that stops reading for 200 ms, then 8 requests with 80 ms of server think time, RTT 10 ms, MTU 9180",
        known(
            path(0.010, JUMBO),
            Mixture((SlowReader(200_000, 40_000, 0.2), Exchanges((500,), 800, 8, 0.08))),
            WINDOW,
            PEER,
            receive_buffer_bytes=40_000,
            nodelay=True,
        ),
    )


def _some(first: int, last: int, rate: float, seed: int) -> frozenset[int]:
    draws = random.Random(seed)  # noqa: S311  (the draws must be repeatable)
    return frozenset(index for index in range(first, last) if draws.random() < rate)


def milliseconds(seconds: float) -> str:
    """Return a time in ms as text for the name of a transfer."""
    return f"{seconds * 1000:g} ms"


TRANSFERS: Mapping[str, Known] = dict([*_held_by_buffers(), *_held_by_programs(), *_held_by_paths(), *_mixtures()])
"""All transfers by name."""


def drawn(seed: int, count: int) -> Iterator[Named]:
    """Yield `count` transfers of these kinds, with settings drawn from `seed`."""
    draw = random.Random(seed)  # noqa: S311  (the draws must be repeatable)
    for _ in range(count):
        yield draw.choice(_DRAWN)(draw)


def spread(draw: random.Random, least: float, most: float) -> float:
    """Return a random value between `least` and `most`, uniform on a logarithmic scale, rounded to two digits."""
    return float(f"{least * (most / least) ** draw.random():.2g}")


def _mtu(draw: random.Random) -> int:
    return draw.choice((ETHERNET, ETHERNET, JUMBO, LARGEST))


def _any_window(draw: random.Random) -> Named:
    mtu, round_trip_s = _mtu(draw), spread(draw, 0.004, 0.1)
    buffer = int(spread(draw, 5 * mtu, 50 * mtu if mtu == ETHERNET else 10 * mtu))
    return window(buffer, round_trip_s, mtu, min(20 * buffer, int(buffer * 2 / round_trip_s)))


def _any_send_buffer(draw: random.Random) -> Named:
    mtu, round_trip_s = _mtu(draw), spread(draw, 0.004, 0.08)
    bound = int(spread(draw, 4 * mtu, 8 * mtu))
    rounds = 45
    return send_buffer(bound, bound // draw.choice((4, 8)), round_trip_s, mtu, bound * rounds)


def _any_nagle(draw: random.Random) -> Named:
    writes = tuple(draw.randint(1, 700) for _ in range(draw.choice((2, 2, 3))))
    return nagle(writes, draw.choice((0.0, spread(draw, 0.001, 0.03))), _mtu(draw))


def _any_nodelay(draw: random.Random) -> Named:
    writes = tuple(draw.randint(1, 700) for _ in range(draw.choice((2, 2, 3))))
    return nodelay(writes, draw.choice((0.0, spread(draw, 0.001, 0.03))), _mtu(draw), spread(draw, 0.005, 0.1))


def _any_slow_reader(draw: random.Random) -> Named:
    mtu = draw.choice((ETHERNET, JUMBO))
    return slow_reader(int(spread(draw, 6 * mtu, 40 * ETHERNET)), spread(draw, 0.1, 0.5), spread(draw, 0.002, 0.04), mtu)


def _any_paced(draw: random.Random) -> Named:
    round_trip_s = spread(draw, 0.002, 0.05)
    pause_s = spread(draw, 2 * round_trip_s, 8 * round_trip_s)
    return paced_program(int(spread(draw, 50, 30_000)), min(40, int(2 / pause_s) + 3), pause_s, round_trip_s, _mtu(draw))


def _any_thinking(draw: random.Random) -> Named:
    server_s, client_s = spread(draw, 0.02, 0.2), draw.choice((0.0, spread(draw, 0.02, 0.2)))
    return thinking(server_s, client_s, spread(draw, 0.002, 0.05), draw.randint(20, 1_400), draw.randint(20, 8_000))


def _any_loss(draw: random.Random) -> Named:
    rate, seed = spread(draw, 0.008, 0.06), draw.randint(0, 9_999)
    control = draw.choice(("reno", "cubic"))
    return loss(f"{rate:.1%} lost (seed {seed})", spread(draw, 0.008, 0.06), 400_000, control, loss_share=rate, seed=seed)


def _any_bottleneck(draw: random.Random) -> Named:
    rate_bps = int(spread(draw, 1e6, 2e7))
    return bottleneck(rate_bps, spread(draw, 0.004, 0.05), rate_bps // 4, draw.choice(("reno", "cubic")), draw.choice((ETHERNET, JUMBO)))


def _any_slow_start(draw: random.Random) -> Named:
    mtu = draw.choice((ETHERNET, JUMBO))
    return slow_start(int(spread(draw, 80 * mtu, 300 * mtu)), spread(draw, 0.03, 0.15), draw.choice(("reno", "cubic")), mtu)


_DRAWN: tuple[Callable[[random.Random], Named], ...] = (
    _any_window,
    _any_send_buffer,
    _any_nagle,
    _any_nodelay,
    _any_slow_reader,
    _any_paced,
    _any_thinking,
    _any_loss,
    _any_bottleneck,
    _any_slow_start,
)
