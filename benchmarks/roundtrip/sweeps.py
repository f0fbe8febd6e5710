"""Models sweep over message sizes, and the analysis of the captures must find every predicted range and no other.

A sweep echoes messages of all sizes in random order, one at a time. Both hosts have one stack, drawn at random. Without pauses, the timers
of both hosts fall in step, and every stall is as long as the distance between their phases. With random pauses, one stall in twenty is
shorter than 10 ms.

The ranges that the rules predict (`stacks.ranges`) are compared with those that the analysis of one capture finds. A range that always
stalls must be found if it has at least three messages per KB. A range that never stalls must not be found. A range that stalls only with a
certain timing can be found or not.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from tcptrace_lab import analyze
from tcptrace_lab.simulation import At, write_capture
from tcptrace_lab.stacks import STACKS, Host, Link, Read, Setting, Think, Write, simulate
from tcptrace_lab.stacks import ranges as rules
from tcptrace_lab.stacks.timers import HEARTBEAT_NS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcptrace_lab.stacks.ranges import Range

STACK_NAMES = ("sunos4", "bsd4.4", "irix6.2")
MSS_BYTES = (536, 1448, 1460, 2048, 4312, 9148)
BUFFER_BYTES = (4096, 8192, 16_384, 24_576, 32_768, 52_428)
RATES_BPS = (10_000_000, 100_000_000, 155_000_000)
DELAYS_NS = (5_000, 200_000, 2_000_000)

STEP_BYTES = 330
"""Difference between two consecutive sizes, which gives three messages per KB."""

LAST_BYTES = 30_000
MIN_IN_RANGE = 3
NS_PER_MS = 1_000_000


@dataclass(frozen=True, slots=True)
class Sweep:
    """One sweep.

    Attributes:
        words: stack, MSS, buffers and path in one line.
        missed: ranges that always stall, of which no size was found. Their ends are sizes of the sweep.
        beyond: sizes that were found, although they never stall according to the rules.
        wrong: the sizes in `beyond` that did not stall in this capture. The other sizes in `beyond` met a beat of the receiver's timer in
            transit, which the rules do not consider.
        ranges: number of ranges that always stall.
        normal: number of sizes that never stall.
    """

    words: str
    missed: tuple[tuple[int, int], ...]
    beyond: tuple[int, ...]
    wrong: tuple[int, ...]
    ranges: int
    normal: int

    @property
    def right(self) -> bool:
        """Whether no range was missed and no size is wrong."""
        return not self.missed and not self.wrong


def sweep(seed: int, *, pauses: bool = False) -> Sweep:
    """Return the sweep for a seed, with or without random pauses. A seed always gives the same sweep."""
    chance = Random(seed)  # noqa: S311 - must be the same every time
    name, mss = chance.choice(STACK_NAMES), chance.choice(MSS_BYTES)
    send, receive = chance.choice(BUFFER_BYTES), chance.choice(BUFFER_BYTES)
    rate, delay = chance.choice(RATES_BPS), chance.choice(DELAYS_NS)
    sizes = list(range(150, LAST_BYTES, STEP_BYTES))
    chance.shuffle(sizes)
    asks = tuple(
        step for size in sizes for step in (*((Think(chance.randrange(HEARTBEAT_NS)),) if pauses else ()), Write(size), Read(size))
    )
    echoes = tuple(step for size in sizes for step in (Read(size), Write(size)))
    client, server = (
        Host(STACKS[name], send, receive, program=program, phase_ns=chance.randrange(200) * NS_PER_MS) for program in (asks, echoes)
    )
    link = Link(rate, delay)
    setting = Setting(client, server, link, link, mss_bytes=mss, no_slow_start=True)
    run = simulate(setting)
    rule = rules.STACKS["sunos4" if name == "sunos4" else "bsd4.4"]
    known = rules.Settings(run.client.mss_bytes, run.client.send_buffer_bytes, run.server.receive_buffer_bytes, rule.copy_bytes)
    predicted = rules.predicted_ranges(rule, known, 1, LAST_BYTES)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "sweep.pcap")
        with path.open("wb") as stream:
            write_capture(run, setting, stream, at=At.CLIENT)
        groups = [group for group in analyze(path).message_sizes if group.from_client]
    found = [one for group in groups for one in group.measured]
    stalled = {size for group in groups for size in group.drawn.filter("stalled")["payload_bytes"]}
    slow = [size for size in sorted(sizes) if any(one.from_bytes <= size <= one.to_bytes for one in found)]
    beyond = tuple(size for size in slow if not any(one.from_bytes <= size <= one.to_bytes for one in predicted))
    always = _shown(predicted, sorted(sizes))
    words = f"{name}, MSS {mss}, buffers {send}/{receive}, {rate // 10**6} Mb/s, {delay / NS_PER_MS:g} ms"
    return Sweep(
        words,
        missed=tuple(span for span in always if not any(span[0] <= size <= span[1] for size in slow)),
        beyond=beyond,
        wrong=tuple(size for size in beyond if size not in stalled),
        ranges=len(always),
        normal=sum(not any(one.from_bytes <= size <= one.to_bytes for one in predicted) for size in sizes),
    )


def _shown(predicted: Sequence[Range], sizes: Sequence[int]) -> list[tuple[int, int]]:
    """Return the ranges that always stall, from their first to their last size in the sweep. Ranges with too few sizes are left out."""

    def stalls(size: int) -> bool:
        return any(one.stalls is rules.Stalls.ALWAYS and one.from_bytes <= size <= one.to_bytes for one in predicted)

    spans = [list(sizes_in) for is_slow, sizes_in in groupby(sizes, stalls) if is_slow]
    return [(span[0], span[-1]) for span in spans if len(span) >= MIN_IN_RANGE]
