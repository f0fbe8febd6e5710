"""Settings drawn at random: two hosts of one stack, a path, and programs."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from tcptrace_lab.simulation.programs import program
from tcptrace_lab.stacks import STACKS, Host, Link, Setting

NS_PER_MS, NS_PER_S = 1_000_000, 1_000_000_000

STACK_NAMES = ("bsd4.2", "linux", "sunos4", "freebsd", "bsd4.4", "solaris2.5", "irix6.2", "md-dos")
"""All stacks that are modelled. Both hosts of a setting have the same stack."""

MSS_BYTES = (536, 1448, 1460, 4312, 9148)
BUFFER_BYTES = (4096, 8192, 16_384, 32_768, 52_428, 65_535)
RATES_BPS = (10_000_000, 45_000_000, 100_000_000, 155_000_000)
DELAYS_NS = (10_000, 100_000, 1_000_000, 10_000_000, 40_000_000)
LOSSES = (0.005, 0.02)
NO_DELAY_SHARE, OPEN_WINDOW_SHARE = 0.3, 0.5

ATM_MSS_BYTES = 9148
"""The MSS of ATM adapters. Settings with any other MSS use Ethernet."""

UNTIL_NS = 120 * NS_PER_S
"""A run that takes longer ends at this time."""

HEARTBEAT_PHASES = 200
"""The first beat of a host's timers comes at most this many milliseconds after its start."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """A setting and its description.

    Attributes:
        kind: kind of the programs.
        stack: stack of both hosts.
        words: buffers, path and programs in one line.
        setting: the setting, ready to be simulated.
    """

    kind: str
    stack: str
    words: str
    setting: Setting


def _bulk(_chance: Random) -> tuple[str, str]:
    return "write 512K/8K", "read"


def _small_writes(chance: Random) -> tuple[str, str]:
    return f"write 256K/{chance.choice((100, 512, 1000, 1024, 4096))}", "read"


def _echo(chance: Random) -> tuple[str, str]:
    size = chance.choice((100, 1000, 1500, 4096, 5000, 8192, 10_000, 20_000))
    return f"30 * (write {size}/4K; read {size})", f"30 * (read {size}; write {size}/4K)"


def _paced(chance: Random) -> tuple[str, str]:
    return f"100 * (write {chance.choice((500, 2000, 5000))}; think {chance.choice((5, 20, 50))}ms)", "read"


def _think(chance: Random) -> tuple[str, str]:
    asks = f"20 * (write 300; read 4000; think {chance.choice((10, 100))}ms)"
    return asks, f"20 * (read 300; think {chance.choice((5, 50))}ms; write 4000)"


def _slow_reader(chance: Random) -> tuple[str, str]:
    return "write 256K/8K", f"64 * (read 4K; think {chance.choice((5, 20))}ms)"


PROGRAMS = {
    "bulk": _bulk,
    "small writes": _small_writes,
    "echo": _echo,
    "paced": _paced,
    "think": _think,
    "slow reader": _slow_reader,
    "loss": _bulk,
}


def drawn(seed: int) -> Drawn:
    """Return the setting for a seed. A seed always gives the same setting."""
    chance = Random(seed)  # noqa: S311 - must be the same every time
    kind = chance.choice(tuple(PROGRAMS))
    stack = chance.choice(STACK_NAMES)
    mss, rate, delay = chance.choice(MSS_BYTES), chance.choice(RATES_BPS), chance.choice(DELAYS_NS)
    send, receive = chance.choice(BUFFER_BYTES), chance.choice(BUFFER_BYTES)
    asks, answers = PROGRAMS[kind](chance)
    no_delay, no_slow_start = chance.random() < NO_DELAY_SHARE, chance.random() < OPEN_WINDOW_SHARE
    loss = chance.choice(LOSSES) if kind == "loss" else 0.0
    phases = [chance.randrange(HEARTBEAT_PHASES) * NS_PER_MS for _ in range(2)]
    client, server = (
        Host(STACKS[stack], send, receive, no_delay=no_delay, program=program(does), phase_ns=phase)
        for does, phase in zip((asks, answers), phases, strict=True)
    )
    framing = "atm" if mss == ATM_MSS_BYTES else "ethernet"
    setting = Setting(
        client,
        server,
        Link(rate, delay, framing, loss=loss, seed=seed),
        Link(rate, delay, framing),
        mss_bytes=mss,
        no_slow_start=no_slow_start,
        until_ns=UNTIL_NS,
    )
    words = (
        f"{stack}, MSS {mss}, buffers {send}/{receive}, {rate // 10**6} Mb/s, {delay / NS_PER_MS:g} ms"
        f"{', NODELAY' if no_delay else ''}{', no slow start' if no_slow_start else ''}"
        f"{f', loss {loss:g}' if loss else ''}: {asks} | {answers}"
    )
    return Drawn(kind, stack, words, setting)
