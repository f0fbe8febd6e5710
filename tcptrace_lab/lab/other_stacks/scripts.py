"""Scripts of transfers: both ends repeat a sequence of steps.

The steps of each kind of transfer are drawn at random.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tcptrace_lab.lab.networks.path import BITS_PER_BYTE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from random import Random

LARGEST_BYTES, LASTS_S = 3_000_000, 2.5
"""Limits of a bulk transfer. It has as many bytes as the path carries in `LASTS_S` seconds, but at most `LARGEST_BYTES`."""


BUFFERS_BYTES = (8_192, 16_384, 32_768, 65_535)
ACK_DELAYS_MS = (0, 10, 40, 100, 200)
"""Buffers and ACK delays of smoltcp. Its default delay is 10 ms; 0 delays no ACK."""
NAGLE_SHARE, TIMESTAMPS_SHARE = 0.5, 0.5


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a program. It writes `write` bytes, then reads `read` bytes, then sleeps for `sleep_ms`."""

    write: int = 0
    read: int = 0
    sleep_ms: float = 0


@dataclass(frozen=True, slots=True)
class Script:
    """A transfer.

    Attributes:
        times: how often each end performs its steps.
        here, there: steps of the stack under test (the client), and of its Linux peer (the server).
        nagle: True if the stack under test uses Nagle's algorithm.
        send_buffer_bytes, receive_buffer_bytes: buffer sizes of the stack under test; 0: its defaults.
        peer_buffer_bytes: receive buffer of the peer; 0: its default.
        peer_delays_acks: True if the peer turns TCP_QUICKACK off after each read, so that it never acknowledges a single segment at once.
        peer_nagle: True if the peer uses Nagle's algorithm. Otherwise, it has TCP_NODELAY.
        peer_send_buffer_bytes: send buffer of the peer; 0: its default.
        ack_delay_ms: longest time for which the stack under test delays an ACK; 0: it delays none. Only smoltcp has this setting.
        timestamps: True if the stack under test sends the timestamp option. Only smoltcp has this setting.
    """

    times: int
    here: tuple[Step, ...]
    there: tuple[Step, ...] = field(default=())
    nagle: bool = False
    send_buffer_bytes: int = 0
    receive_buffer_bytes: int = 0
    peer_buffer_bytes: int = 0
    peer_delays_acks: bool = False
    peer_nagle: bool = False
    peer_send_buffer_bytes: int = 0
    ack_delay_ms: int = 0
    timestamps: bool = False


def _bulk_bytes(rate_bps: int | None) -> int:
    return min(int((rate_bps or 100_000_000) / BITS_PER_BYTE * LASTS_S), LARGEST_BYTES)


def _upload(rate_bps: int | None, _chance: Random) -> Script:
    return Script(1, (Step(write=_bulk_bytes(rate_bps)),))


def _small_buffer(rate_bps: int | None, chance: Random) -> Script:
    return Script(1, (Step(write=_bulk_bytes(rate_bps) // 3),), send_buffer_bytes=chance.choice((8_192, 16_384, 32_768)))


def _requests(_rate_bps: int | None, chance: Random) -> Script:
    question, answer, think_ms = chance.randint(100, 1_000), chance.randint(500, 20_000), chance.choice((0, 5, 30))
    here = Step(write=question, read=answer, sleep_ms=chance.choice((0, 10)))
    return Script(25, (here,), (Step(read=question, sleep_ms=think_ms), Step(write=answer)))


def _two_writes(_rate_bps: int | None, chance: Random, *, nagle: bool) -> Script:
    """Return requests in two writes each.

    With Nagle's algorithm, the second write waits for the first ACK, which the peer delays.
    """
    first, second = chance.randint(50, 400), chance.randint(50, 400)
    here = (Step(write=first), Step(write=second, read=100))
    return Script(25, here, (Step(read=first + second), Step(write=100)), nagle=nagle)


def _small_writes(_rate_bps: int | None, chance: Random, *, nagle: bool) -> Script:
    return Script(500, (Step(write=chance.randint(50, 700), sleep_ms=chance.choice((1, 3, 5))),), nagle=nagle)


def _slow_peer(_rate_bps: int | None, chance: Random) -> Script:
    pieces = 15
    read, sleep_ms = chance.choice((16_384, 32_768)), chance.choice((50, 120))
    return Script(pieces, (Step(write=read),), (Step(read=read, sleep_ms=sleep_ms),), peer_buffer_bytes=32_768)


def _slow_reader(_rate_bps: int | None, chance: Random) -> Script:
    """Return a transfer whose receiver, the stack under test, reads slowly. The receiver closes the window, so its Linux peer waits."""
    read, sleep_ms = chance.choice((16_384, 32_768)), chance.choice((50, 120))
    return Script(15, (Step(read=read, sleep_ms=sleep_ms),), (Step(write=read),), receive_buffer_bytes=32_768)


def _download(rate_bps: int | None, _chance: Random) -> Script:
    size = _bulk_bytes(rate_bps)
    return Script(1, (Step(read=size),), (Step(write=size),))


def _periodic(_rate_bps: int | None, chance: Random) -> Script:
    return Script(25, (Step(write=chance.randint(4_000, 30_000), sleep_ms=chance.choice((20, 50, 90))),))


def _below_a_segment(_rate_bps: int | None, chance: Random) -> Script:
    """Return a transfer with a send buffer that is smaller than a segment. Each small segment waits for an ACK that the peer delays."""
    size = chance.choice((4_096, 6_000))
    return Script(1, (Step(write=200_000),), send_buffer_bytes=size, peer_delays_acks=True)


def _peers_two_writes(_rate_bps: int | None, chance: Random) -> Script:
    """Return answers in two writes each, by a peer with Nagle's algorithm."""
    first, second = chance.randint(50, 400), chance.randint(50, 400)
    there = (Step(read=100), Step(write=first), Step(write=second))
    return Script(25, (Step(write=100, read=first + second),), there, peer_nagle=True)


def _peer_below_a_segment(_rate_bps: int | None, _chance: Random) -> Script:
    """Return a download from a peer whose send buffer has room for one segment."""
    return Script(1, (Step(read=200_000),), (Step(write=200_000),), peer_send_buffer_bytes=4_096)


def with_every_setting(kind: str, script: Script, chance: Random) -> Script:
    """Return the script with random values for all settings that the kind leaves open. smoltcp has no default buffers."""
    return replace(
        script,
        nagle=script.nagle if kind.endswith(("-nagle", "-nodelay")) else chance.random() < NAGLE_SHARE,
        send_buffer_bytes=script.send_buffer_bytes or chance.choice(BUFFERS_BYTES),
        receive_buffer_bytes=script.receive_buffer_bytes or chance.choice(BUFFERS_BYTES),
        ack_delay_ms=chance.choice(ACK_DELAYS_MS),
        timestamps=chance.random() < TIMESTAMPS_SHARE,
    )


KINDS: Mapping[str, Callable[[int | None, Random], Script]] = {
    "upload": _upload,
    "small-buffer": _small_buffer,
    "requests": _requests,
    "two-writes-nagle": lambda rate_bps, chance: _two_writes(rate_bps, chance, nagle=True),
    "two-writes-nodelay": lambda rate_bps, chance: _two_writes(rate_bps, chance, nagle=False),
    "small-writes-nagle": lambda rate_bps, chance: _small_writes(rate_bps, chance, nagle=True),
    "small-writes-nodelay": lambda rate_bps, chance: _small_writes(rate_bps, chance, nagle=False),
    "slow-peer": _slow_peer,
    "slow-reader": _slow_reader,
    "download": _download,
    "periodic": _periodic,
    "delayed-acks": _below_a_segment,
}
"""Function that draws the script of each kind of transfer. The name of a kind says what the stack under test does."""
SMOLTCP_KINDS: Mapping[str, Callable[[int | None, Random], Script]] = {
    **KINDS,
    "peer-two-writes": _peers_two_writes,
    "peer-delayed-acks": _peer_below_a_segment,
}
"""Kinds of transfer by smoltcp. In two additional kinds, Linux waits for smoltcp's ACKs, whose delay can be set."""
JUMBO_KINDS = frozenset({"delayed-acks", "peer-delayed-acks"})
"""Kinds of transfer that need large segments."""
