"""Sweeps of message sizes, written by hand."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


FULL, PIECE = 1460, 4096


K = 1024


OPENED = """
    +5ms   {c} > S  S   0:0(0)        win 64240 <mss 1460, nop, wscale 7, nop, nop, sackOK>
    +200us S > {c}  S.  0:0(0) ack 1  win 65160 <mss 1460, nop, nop, sackOK, nop, wscale 7>
    +10us  {c} > S  .          ack 1  win 502
"""


@dataclass(frozen=True)
class Message:
    """One request.

    Before its last segment, the client waits `held_ms` for a delayed ACK, or its application pauses for `pause_ms`.
    """

    size: int
    held_ms: float = 0.0
    pause_ms: float = 0.0
    segment_us: float = 10.0
    think_ms: float = 2.0


def ends(size: int) -> list[int]:
    """Return the offsets at which the segments of a message end. The application writes pieces of 4 KB."""
    pieces = [(start, min(start + PIECE, size)) for start in range(0, size, PIECE)]
    return [min(at + FULL, stop) for start, stop in pieces for at in range(start, stop, FULL)]


def exchange(messages: Iterable[Message], client: str = "C") -> str:
    """Return an exchange with these requests.

    The server answers each request with 50 bytes after 1 ms. A small segment waits for the ACK of the previous one.
    """
    lines, sent, got = [OPENED.format(c=client)], 1, 1
    for message in messages:
        wait, small_out = f"+{message.think_ms}ms", False
        start, stops = sent, ends(message.size)
        for stop in stops:
            last = stop == stops[-1] and len(stops) > 1
            small = (start + stop - sent) % FULL != 0
            if small and small_out:
                late_ms = message.held_ms if last and message.held_ms else 0.3
                lines.append(f"+{late_ms}ms S > {client} . ack {sent}")
                wait = f"+{message.pause_ms}ms" if last and message.pause_ms else "+20us"
            small_out = small or small_out
            flags = "P." if small or stop == stops[-1] else "."
            lines.append(f"{wait} {client} > S {flags} {sent}:{start + stop} ack {got}")
            sent, wait = start + stop, f"+{message.segment_us}us"
        lines += [f"+1ms S > {client} P. {got}:{got + 50} ack {sent}", f"+200us {client} > S . ack {got + 50}"]
        got += 50
    return "\n".join(lines)


def shuffled(messages: list[Message], seed: int = 1) -> list[Message]:
    random.Random(seed).shuffle(messages)  # noqa: S311  (an order, not a secret)
    return messages


SLOW = (4 * K + 1, 4 * K + FULL - 1)
"""The range of slow sizes.

The first piece is sent as 1460, 1460 and 1176 bytes. The rest waits for the delayed ACK of the 1,176 bytes.
"""


SIZES = range(300, 9000, 150)


def swept(sizes: Iterable[int] = SIZES, **more: float) -> list[Message]:
    return [Message(size, held_ms=40.0 if SLOW[0] <= size <= SLOW[1] else 0.0, **more) for size in sizes]
