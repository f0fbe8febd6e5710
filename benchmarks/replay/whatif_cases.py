"""The transfers for `whatif.py`: transfers of known cause, more transfers of these kinds, and random ones from wide ranges.

The wide ranges vary what the kinds of `tcptrace_lab/lab/known_causes/transfers.py` keep fixed:

- The MTU is from 576 to 65,535 bytes, and the delay is up to 100 ms. The size of a call does not depend on the MTU.
- A question has two to four writes, its answer has any size, and programs think.
- Nagle's algorithm is on or off in transfers that buffers limit. One connection can have two causes, one after the other.
- The change multiplies a buffer by 1.5 to 4.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, cast

from tcptrace_lab.lab.hosts.applications import BoundedBulk, Bulk, Exchanges, Mixture
from tcptrace_lab.lab.known_causes.transfers import TRANSFERS, drawn, nagle, send_buffer, window
from tcptrace_lab.replay.changes import Changes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tcptrace_lab.lab.experiment import Experiment

FACTOR: Final = 2
MAX_BYTES: Final = 4_000_000
"""Limit on the size of a transfer. The models would need minutes for larger ones."""


@dataclass(frozen=True, slots=True)
class Case:
    """One transfer, unchanged and with a change."""

    name: str
    experiment: Experiment
    changed: Experiment
    changes: Changes


def alike(count: int, seed: int) -> Iterator[Case]:
    """Yield the fixed transfers, and random transfers of the same kinds."""
    for name, known in [*TRANSFERS.items(), *drawn(seed, count)]:
        experiment = replace(known.experiment, vantages=("client",))
        program, options = experiment.program, experiment.options
        if getattr(program, "total_bytes", 0) > MAX_BYTES:
            continue
        if isinstance(program, Exchanges) and len(program.writes_bytes) > 1 and not options.nodelay:
            yield _without_nagle(name, experiment)
        elif isinstance(program, BoundedBulk):
            yield _with_bound(name, experiment, FACTOR * program.max_unacked_bytes)
        elif isinstance(program, Bulk) and options.receive_buffer_bytes:
            yield _with_window(name, experiment, FACTOR * options.receive_buffer_bytes)


def wide(count: int, seed: int) -> Iterator[Case]:
    """Yield `count` cases with parameters drawn from wide ranges. The kinds take turns."""
    draw = random.Random(seed)  # noqa: S311  (to be repeatable is the point)
    for number in range(count):
        yield _KINDS[number % len(_KINDS)](draw)


def _without_nagle(name: str, experiment: Experiment) -> Case:
    return Case(name, experiment, replace(experiment, options=replace(experiment.options, nodelay=True)), Changes(nodelay=True))


def _with_bound(name: str, experiment: Experiment, bound: int) -> Case:
    program = experiment.program
    assert isinstance(program, BoundedBulk)
    return Case(name, experiment, replace(experiment, program=replace(program, max_unacked_bytes=bound)), Changes(send_buffer_bytes=bound))


def _with_window(name: str, experiment: Experiment, size: int) -> Case:
    options = replace(experiment.options, receive_buffer_bytes=size)
    return Case(name, experiment, replace(experiment, options=options), Changes(receive_buffer_bytes=size))


# Transfers with parameters from wide ranges

MTUS: Final = (576, 1_280, 1_500, 1_500, 1_500, 4_352, 9_000, 9_180, 16_384, 65_535)
"""The MTUs of the IPv4 minimum, the IPv6 minimum, Ethernet (three times), FDDI, jumbo frames, IP over ATM, 16 KB, and the maximum."""

FACTORS: Final = (1.5, 2, 3, 4)


def _spread(draw: random.Random, least: float, most: float) -> float:
    """Return a random number, uniform on a logarithmic scale and rounded to two digits."""
    return float(f"{least * (most / least) ** draw.random():.2g}")


RELAY_BYTES_PER_S: Final = 10e6
"""Maximum rate of the path, because a program relays the packets.

No buffer may need a higher rate, because the path would then limit the transfer.
"""


def _round_trip_s(draw: random.Random, buffer: float = 0) -> float:
    return max(_spread(draw, 0.004 if buffer else 0.001, 0.1), float(f"{buffer / RELAY_BYTES_PER_S:.2g}"))


def _rounds(draw: random.Random, each: int, least: int, most: int) -> int:
    """Return the size in bytes of a transfer that takes about `least` to `most` rounds of `each` bytes."""
    return min(each * draw.randint(least, most) + draw.randrange(each), MAX_BYTES)


def _any_window(draw: random.Random) -> Case:
    mtu = draw.choice(MTUS)
    buffer = int(_spread(draw, 4 * mtu, 400_000 if mtu > 10_000 else 40 * mtu))  # noqa: PLR2004  (from there on, 40 are more than that)
    factor = draw.choice(FACTORS)
    name, known = window(buffer, _round_trip_s(draw, factor * buffer), mtu, _rounds(draw, buffer, 6, 30))
    bulk = cast("Bulk", known.experiment.program)
    program = replace(bulk, write_bytes=int(_spread(draw, 512, 100_000)))
    options = replace(known.experiment.options, nodelay=draw.random() < 0.5)  # noqa: PLR2004  (a coin)
    experiment = replace(known.experiment, program=program, options=options, vantages=("client",))
    return _with_window(f"{name}, calls of {program.write_bytes:,} B", experiment, int(factor * buffer))


def _any_send_buffer(draw: random.Random) -> Case:
    mtu = draw.choice(MTUS)
    bound = int(_spread(draw, 2 * mtu, 300_000 if mtu > 10_000 else 30 * mtu))  # noqa: PLR2004  (as above)
    piece = max(bound // draw.randint(2, 16), 100)
    factor = draw.choice(FACTORS)
    name, known = send_buffer(bound, piece, _round_trip_s(draw, factor * bound), mtu, _rounds(draw, bound, 15, 50))
    options = replace(known.experiment.options, nodelay=draw.random() < 2 / 3)
    experiment = replace(known.experiment, options=options, vantages=("client",))
    name = f"{name}, calls of {piece:,} B{'' if options.nodelay else ', Nagle on'}"
    return _with_bound(name, experiment, int(factor * bound))


def _any_nagle(draw: random.Random) -> Case:
    mtu = draw.choice(MTUS)
    writes = tuple(draw.randint(1, min(1_400, mtu - 60)) for _ in range(draw.choice((2, 2, 3, 4))))
    name, known = nagle(writes, draw.choice((0.0, _round_trip_s(draw), _round_trip_s(draw))), mtu)
    thinking = [draw.choice((0.0, 0.0, _spread(draw, 0.001, 0.06))) for _ in range(2)]
    answer = int(_spread(draw, 1, 3_000))
    program = Exchanges(writes, answer, draw.randint(8, 30), *thinking)
    thoughts = "".join(
        f", {end} thinks {think_s * 1000:g} ms" for end, think_s in zip(("server", "client"), thinking, strict=True) if think_s
    )
    experiment = replace(known.experiment, program=program, vantages=("client",))
    return _without_nagle(f"{name}, answers of {answer:,} B{thoughts}", experiment)


def _any_mixture(draw: random.Random) -> Case:
    """Return a bulk transfer into a small window, followed by requests in several writes. The change fixes one of them."""
    mtu = draw.choice(MTUS[:-2])
    buffer = int(_spread(draw, 6 * mtu, 30 * mtu))
    factor = draw.choice(FACTORS)
    name, known = window(buffer, _round_trip_s(draw, factor * buffer), mtu, 0)
    writes = tuple(draw.randint(1, min(700, mtu - 60)) for _ in range(2))
    bulk, questions = Bulk(_rounds(draw, buffer, 5, 15), int(_spread(draw, 2_000, 60_000))), Exchanges(writes, 100, draw.randint(5, 15))
    experiment = replace(known.experiment, program=Mixture((bulk, questions)), vantages=("client",))
    name = f"{name}, then {questions.count} questions {'+'.join(map(str, writes))}"
    if draw.random() < 0.5:  # noqa: PLR2004  (a coin)
        return _without_nagle(name, experiment)
    return _with_window(name, experiment, int(factor * buffer))


_KINDS: Final[tuple[Callable[[random.Random], Case], ...]] = (_any_window, _any_send_buffer, _any_nagle, _any_mixture)
