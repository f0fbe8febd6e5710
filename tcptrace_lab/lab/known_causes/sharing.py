"""Concurrent transfers with known causes.

The connections share a bottleneck, behave like a browser, or write from both hosts at once. For each connection, a witness reads the
sending kernel's state. The bottleneck counts as busy while it sends bytes of any connection.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from tcptrace_lab.lab.experiment import Experiment
from tcptrace_lab.lab.hosts.applications import Beside, Bulk, Exchanges, Mixture, Several, TwoWay
from tcptrace_lab.lab.hosts.sender_limits import APPLICATION, NAGLE, NETWORK, PEER, WINDOW
from tcptrace_lab.lab.hosts.sockets import SocketOptions
from tcptrace_lab.lab.known_causes.scoring import Known
from tcptrace_lab.lab.known_causes.transfers import ETHERNET, JUMBO, Named, known, milliseconds, path, spread

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tcptrace_lab.lab.networks.network import Medium

ANSWER_BYTES = 400
QUESTIONS = Exchanges((300,), ANSWER_BYTES, 5, 0.06)
"""Requests and responses before and after the phase in which both hosts write."""


def _known(medium: Medium, beside: Sequence[Beside], dues: Sequence[frozenset[str]], **options: object) -> Known:
    several = Several(tuple(beside))
    return Known(Experiment(medium, several, SocketOptions(**options)), dues[0], tuple(dues[1:]))  # type: ignore[arg-type]


def one_queue(begins_s: Sequence[float], rate_bps: int, round_trip_s: float, each: int, control: str, mtu: int = ETHERNET) -> Named:
    """Return bulk transfers that share a slow path with an unlimited queue. A transfer begins at each of the start times."""
    when = "at once" if not any(begins_s) else "after " + ", ".join(milliseconds(one) for one in begins_s)
    rate = f"{rate_bps / 1e6:g} Mb/s, endless queue"
    name = f"{len(begins_s)} of {each:,} B begin {when}, {rate}, {milliseconds(round_trip_s)}, MTU {mtu}, {control}"
    beside = [Beside(Bulk(each), begins) for begins in begins_s]
    medium = path(round_trip_s, mtu, room=True, rate_bps=rate_bps)
    return name, _known(medium, beside, [frozenset({NETWORK})] * len(beside), congestion_control=control)


def window_beside_bulk(buffer: int, rate_bps: int, round_trip_s: float, total: int, mtu: int = ETHERNET) -> Named:
    """Return a connection that the receiver's window limits, beside an unlimited bulk transfer that fills the queue."""
    rate = f"{rate_bps / 1e6:g} Mb/s, endless queue"
    name = f"window {buffer:,} B beside a bulk of {total:,} B, {rate}, {milliseconds(round_trip_s)}, MTU {mtu}"
    beside = [Beside(Bulk(20 * buffer), 0.0, buffer), Beside(Bulk(total))]
    medium = path(round_trip_s, mtu, room=True, rate_bps=rate_bps)
    return name, _known(medium, beside, [frozenset({WINDOW}), frozenset({NETWORK})])


def questions_beside_bulk(thought_s: float, rate_bps: int, round_trip_s: float, total: int) -> Named:
    """Return requests and responses beside a bulk transfer, which fills the queue. The server needs processing time."""
    rate = f"{rate_bps / 1e6:g} Mb/s, endless queue"
    name = f"questions, {milliseconds(thought_s)} of thought, beside a bulk of {total:,} B, {rate}, {milliseconds(round_trip_s)}"
    beside = [Beside(Exchanges((200,), ANSWER_BYTES, 8, thought_s)), Beside(Bulk(total))]
    medium = path(round_trip_s, room=True, rate_bps=rate_bps)
    return name, _known(medium, beside, [frozenset({PEER}), frozenset({NETWORK})], nodelay=True)


def browser(count: int, server_s: float, client_s: float, round_trip_s: float, *, nodelay: bool = True) -> Named:
    """Return connections to one server that are opened one RTT apart.

    Each connection has requests, responses of different sizes, and processing time at both hosts.
    """
    name = (
        f"{count} connections of a browser, server thinks {milliseconds(server_s)}, client {milliseconds(client_s)}, "
        f"{milliseconds(round_trip_s)}{'' if nodelay else ', questions in two pieces without NODELAY'}"
    )
    question = (300,) if nodelay else (150, 150)
    beside = [Beside(Exchanges(question, 3_000 * (1 + n), 8, server_s, client_s), n * round_trip_s) for n in range(count)]
    due = frozenset(state for state, lasts in ((PEER, server_s), (APPLICATION, client_s), (NAGLE, not nodelay)) if lasts)
    return name, _known(path(round_trip_s, room=True), beside, [due] * count, nodelay=nodelay)


def both_write(buffer: int, round_trip_s: float, each: int) -> Named:
    """Return a connection in which both hosts write at the same time, each into a small window. Requests precede and follow this phase."""
    name = f"questions, both ends write {each:,} B into windows of {buffer:,} B, questions, {milliseconds(round_trip_s)}"
    program = Mixture((QUESTIONS, TwoWay(each), QUESTIONS))
    return name, known(path(round_trip_s), program, PEER, WINDOW, receive_buffer_bytes=buffer, both_ends=True, nodelay=True)


def both_queue(rate_bps: int, round_trip_s: float, each: int) -> Named:
    """Return a connection in which both hosts write at the same time, over a path that is slow in one direction.

    Requests precede and follow this phase.
    """
    name = f"questions, both ends write {each:,} B, {rate_bps / 1e6:g} Mb/s, endless queue, questions, {milliseconds(round_trip_s)}"
    program = Mixture((QUESTIONS, TwoWay(each), QUESTIONS))
    medium = path(round_trip_s, room=True, rate_bps=rate_bps)
    return name, known(medium, program, PEER, NETWORK, nodelay=True)


def _all() -> Iterator[Named]:
    yield one_queue((0.0, 0.0), 8_000_000, 0.020, 2_000_000, "cubic")
    yield one_queue((0.0, 0.0, 0.0, 0.0), 10_000_000, 0.030, 1_200_000, "reno")
    yield one_queue((0.0, 0.3, 0.6), 6_000_000, 0.020, 1_000_000, "cubic")
    yield one_queue((0.0, 0.5), 10_000_000, 0.040, 1_500_000, "reno", JUMBO)
    yield window_beside_bulk(16_384, 10_000_000, 0.020, 2_000_000)
    yield window_beside_bulk(32_768, 4_000_000, 0.040, 1_000_000)
    yield questions_beside_bulk(0.1, 5_000_000, 0.020, 1_000_000)
    yield browser(4, 0.05, 0.08, 0.020)
    yield browser(6, 0.03, 0.0, 0.010)
    yield browser(3, 0.05, 0.05, 0.015, nodelay=False)
    yield both_write(16_384, 0.020, 200_000)
    yield both_write(8_192, 0.010, 150_000)
    yield both_queue(8_000_000, 0.020, 500_000)


SHARED: Mapping[str, Known] = dict(_all())
"""All transfers by name."""


def drawn(seed: int, count: int) -> Iterator[Named]:
    """Yield `count` transfers of these kinds, with settings drawn from `seed`."""
    draw = random.Random(seed)  # noqa: S311  (must be repeatable)
    for _ in range(count):
        yield draw.choice(_DRAWN)(draw)


def _any_queue(draw: random.Random) -> Named:
    rate_bps, count = int(spread(draw, 2e6, 2e7)), draw.choice((2, 2, 3, 4))
    apart_s = draw.choice((0.0, spread(draw, 0.02, 0.5)))
    begins_s = [round(n * apart_s, 3) for n in range(count)]
    each = int(rate_bps * (0.2 + apart_s / 8))
    control, mtu = draw.choice(("reno", "cubic")), draw.choice((ETHERNET, ETHERNET, JUMBO))
    return one_queue(begins_s, rate_bps, spread(draw, 0.004, 0.05), each, control, mtu)


def _any_window_beside_bulk(draw: random.Random) -> Named:
    rate_bps = int(spread(draw, 2e6, 2e7))
    buffer = int(spread(draw, 8 * ETHERNET, 40 * ETHERNET))
    return window_beside_bulk(buffer, rate_bps, spread(draw, 0.004, 0.05), rate_bps // 5)


def _any_questions_beside_bulk(draw: random.Random) -> Named:
    rate_bps = int(spread(draw, 2e6, 2e7))
    return questions_beside_bulk(spread(draw, 0.05, 0.3), rate_bps, spread(draw, 0.004, 0.05), rate_bps // 5)


def _any_browser(draw: random.Random) -> Named:
    client_s, count = draw.choice((0.0, spread(draw, 0.02, 0.2))), draw.randint(2, 6)
    return browser(count, spread(draw, 0.02, 0.2), client_s, spread(draw, 0.004, 0.05), nodelay=draw.choice((True, True, False)))


def _any_both(draw: random.Random) -> Named:
    round_trip_s = spread(draw, 0.004, 0.05)
    if draw.random() < 0.5:  # noqa: PLR2004  (a coin)
        rate_bps = int(spread(draw, 2e6, 2e7))
        return both_queue(rate_bps, round_trip_s, rate_bps // 16)
    buffer = int(spread(draw, 5 * ETHERNET, 20 * ETHERNET))
    return both_write(buffer, round_trip_s, 15 * buffer)


_DRAWN: tuple[Callable[[random.Random], Named], ...] = (
    _any_queue,
    _any_queue,
    _any_window_beside_bulk,
    _any_questions_beside_bulk,
    _any_browser,
    _any_both,
)
