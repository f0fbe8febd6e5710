"""Families of network paths. A path is drawn from a family as two relay models, one per direction."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from tcptrace_lab.lab.networks.network import Medium
from tcptrace_lab.lab.networks.path import BITS_PER_BYTE, PathModel

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from random import Random

ETHERNET, JUMBO = 1_500, 9_000
UNDISTURBED_PACKETS = 6
"""Number of packets at the start of each direction without random effects, so that most handshakes succeed."""
BURSTS_OVER = 30_000
"""Number of packets for which bursts of loss are drawn. No transfer has more packets."""

_Both = tuple[PathModel, PathModel]


def drawn(family: str, chance: Random) -> Medium:
    """Draw both directions of a path of a family."""
    forward, backward = PATHS[family](chance)
    return Medium("tap", JUMBO if family == "jumbo-frames" else ETHERNET, forward=forward, backward=backward)


def _delay_s(chance: Random, min_ms: float, max_ms: float) -> float:
    """Draw a one-way delay: half of an RTT that is uniform on a logarithmic scale."""
    return min_ms / 2_000 * math.exp(math.log(max_ms / min_ms) * chance.random())


def _line(chance: Random, round_trip_ms: tuple[float, float], mbps: tuple[float, float], queue_ms: tuple[float, float]) -> _Both:
    """Draw a path with equal delays and rates in both directions. The time in which a full queue drains is drawn from `queue_ms`."""
    rate_bps = int(1e6 * chance.uniform(*mbps))
    queue_bytes = max(int(rate_bps / BITS_PER_BYTE * chance.uniform(*queue_ms) / 1_000), 4 * ETHERNET)
    path = PathModel(
        _delay_s(chance, *round_trip_ms), rate_bps, queue_bytes, seed=chance.randrange(1 << 30), undisturbed_packets=UNDISTURBED_PACKETS
    )
    return path, replace(path, seed=path.seed + 1)


def _both(paths: _Both, **changes: object) -> _Both:
    one, other = (replace(path, **changes) for path in paths)  # type: ignore[arg-type]
    return one, other


def _short(chance: Random) -> _Both:
    path = PathModel(_delay_s(chance, 0.6, 8))
    return path, path


def _far(chance: Random) -> _Both:
    return _line(chance, (60, 220), (20, 50), (50, 200))


def _no_bottleneck(chance: Random) -> _Both:
    path = PathModel(_delay_s(chance, 8, 60))
    return path, path


def _long_queue(chance: Random) -> _Both:
    return _line(chance, (8, 60), (4, 25), (150, 600))


def _short_queue(chance: Random) -> _Both:
    return _line(chance, (10, 60), (6, 40), (3, 15))


def _random_loss(chance: Random) -> _Both:
    return _both(_line(chance, (5, 60), (10, 50), (50, 200)), loss_share=chance.choice((0.002, 0.005, 0.01, 0.02, 0.04)))


def _loss_in_bursts(chance: Random) -> _Both:
    """Draw losses by the Gilbert-Elliott model.

    Periods without loss alternate with periods in which half of the packets are lost.
    """
    paths = _line(chance, (8, 60), (10, 40), (50, 200))
    to_bad, to_good = chance.uniform(0.001, 0.006), chance.uniform(0.1, 0.4)
    one, other = (replace(path, lost=_bursts(chance, to_bad, to_good)) for path in paths)
    return one, other


def _bursts(chance: Random, to_bad: float, to_good: float, lost_in_bad: float = 0.5) -> frozenset[int]:
    lost, bad = set(), False
    for index in range(UNDISTURBED_PACKETS, BURSTS_OVER):
        bad = chance.random() >= to_good if bad else chance.random() < to_bad
        if bad and chance.random() < lost_in_bad:
            lost.add(index)
    return frozenset(lost)


def _reordering(chance: Random) -> _Both:
    reorder_delay_s = (0.001, chance.choice((0.004, 0.01, 0.02)))
    return _both(
        _line(chance, (10, 60), (10, 40), (60, 200)), reorder_share=chance.choice((0.005, 0.02, 0.05)), reorder_delay_s=reorder_delay_s
    )


def _duplicates(chance: Random) -> _Both:
    return _both(_line(chance, (8, 60), (10, 40), (60, 200)), duplicate_share=chance.choice((0.005, 0.02)))


def _lost_acks(chance: Random) -> _Both:
    """Lose packets in one direction, which is drawn at random. The losses affect data and ACKs of the host that sends in this direction."""
    forward, backward = _line(chance, (8, 60), (10, 40), (60, 200))
    paths = forward, replace(backward, loss_share=chance.choice((0.02, 0.08, 0.2)))
    return paths if chance.random() < 0.5 else (paths[1], paths[0])  # noqa: PLR2004  (either direction)


def _asymmetric(chance: Random) -> _Both:
    """Make one direction 10 to 40 times slower than the other, so that ACKs wait in its queue."""
    forward, backward = _line(chance, (10, 50), (10, 30), (60, 200))
    slow_bps = int((forward.rate_bps or 0) / chance.uniform(10, 40))
    paths = forward, replace(backward, rate_bps=slow_bps, queue_bytes=max(slow_bps // BITS_PER_BYTE // 5, 4 * ETHERNET))
    return paths if chance.random() < 0.5 else (paths[1], paths[0])  # noqa: PLR2004


def _jumbo(chance: Random) -> _Both:
    return _line(chance, (5, 60), (20, 80), (40, 150))


def _slow(chance: Random) -> _Both:
    """Draw a line of less than 2 Mbit/s, like a modem or a crowded radio cell."""
    return _line(chance, (30, 120), (0.4, 2), (100, 500))


def _jitter(chance: Random) -> _Both:
    """Vary the delay from packet to packet. The order of packets does not change."""
    return _both(_line(chance, (10, 60), (10, 40), (60, 200)), jitter_s=chance.choice((0.002, 0.006, 0.015)))


def _batches(chance: Random) -> _Both:
    """Draw a shared channel as in Wi-Fi, LTE and DOCSIS. It delivers ACKs in batches."""
    forward, backward = _line(chance, (8, 50), (10, 50), (60, 200))
    batch_s = chance.choice((0.002, 0.005, 0.01))
    return replace(forward, batch_s=batch_s), replace(backward, batch_s=batch_s)


def _policer(chance: Random) -> _Both:
    """Draw a policer. It drops packets above a rate, and delays none."""
    return _both(_line(chance, (8, 60), (4, 20), (20, 120)), policed=True)


def _outage(chance: Random) -> _Both:
    """Draw an outage. For some time, both directions lose all packets, as when a phone changes cells."""
    from_s = chance.uniform(0.4, 1.5)
    outages_s = ((from_s, from_s + chance.choice((0.1, 0.3, 0.8))),)
    return _both(_line(chance, (10, 60), (8, 40), (60, 250)), outages_s=outages_s)


PATHS: Mapping[str, Callable[[Random], _Both]] = {
    "short": _short,
    "far": _far,
    "no-bottleneck": _no_bottleneck,
    "long-queue": _long_queue,
    "short-queue": _short_queue,
    "random-loss": _random_loss,
    "loss-in-bursts": _loss_in_bursts,
    "reordering": _reordering,
    "duplicates": _duplicates,
    "lost-acks": _lost_acks,
    "asymmetric": _asymmetric,
    "jumbo-frames": _jumbo,
    "slow": _slow,
    "jitter": _jitter,
    "batches": _batches,
    "policer": _policer,
    "outage": _outage,
}
