"""When frames are due: as they were, faster or slower, at a rate, or at once."""

from __future__ import annotations

import ctypes
import time
from dataclasses import dataclass
from typing import Final

from tcptrace_lab.errors import UsageError
from tcptrace_lab.text.numbers import NS_PER_S
from tcptrace_lab.text.quantities import rate_bps

LEAST_SPIN_NS: Final = 60_000
"""So long before a frame is due the processor is kept: waking from a sleep takes some 50 µs (measured)."""

MOST_SPIN_NS: Final = 1_000_000
"""Where there is time for it, so long: one sleep of a hundred wakes 0.2 ms late, one of a thousand 1.1 ms (measured: Linux 6.18 without
preemption, as a guest; what the kernel does for others is not interrupted by whoever wakes)."""

SPIN_SHARE: Final = 0.5
"""Of the time to the next frame at the most: others must have their turn. From 95 % on Linux takes the processor away by force, for up to
50 ms (sched_rt_runtime_us, and the fair server that replaced it)."""

BITS_PER_BYTE: Final = 8


@dataclass(frozen=True, slots=True)
class Pace:
    """How frames are spaced.

    Attributes:
        speed: times as fast as they were; 0: at once.
        bits_per_s, packets_per_s: instead, evenly; 0: not so.
    """

    speed: float = 1.0
    bits_per_s: int = 0
    packets_per_s: float = 0.0

    def due_ns(self, since_first_ns: int, bytes_before: int, frames_before: int) -> int:
        """When a frame is due, from the first on."""
        if self.bits_per_s:
            return bytes_before * BITS_PER_BYTE * NS_PER_S // self.bits_per_s
        if self.packets_per_s:
            return round(frames_before * NS_PER_S / self.packets_per_s)
        return round(since_first_ns / self.speed) if self.speed else 0


def pace(speed: str, rate: str, *, topspeed: bool) -> Pace:
    """What the options say. Raises UsageError."""
    if sum(map(bool, (speed, rate, topspeed))) > 1:
        raise UsageError("--speed, --rate and --topspeed are three paces", remedy="choose one")
    if topspeed:
        return Pace(speed=0)
    if rate:
        if rate.endswith("pps"):
            return Pace(packets_per_s=_positive(rate.removesuffix("pps"), "--rate", "10Mbit/s or 1000pps"))
        try:
            bits = rate_bps(rate)
        except UsageError as error:
            raise UsageError(f"--rate: {rate!r} is no rate", remedy="write it as 10Mbit/s or 1000pps") from error
        if not bits:
            raise UsageError("--rate: nothing is sent at 0 bit/s")
        return Pace(bits_per_s=bits)
    return Pace(_positive(speed.removesuffix("x"), "--speed", "2x or 0.5x") if speed else 1.0)


def _positive(text: str, option: str, example: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if not 0 < found < 1e9:  # noqa: PLR2004  (also refuses what is no number)
        raise UsageError(f"{option}: {text!r} is not a number above 0", remedy=f"write it as {example}")
    return found


class _Timespec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("ns", ctypes.c_long))


_libc = ctypes.CDLL(None, use_errno=True)
_CLOCK_MONOTONIC, _TIMER_ABSTIME = 1, 1  # time.h of Linux


def sleep_until(at_ns: int) -> None:
    """Sleep to shortly before a time of the monotonic clock, and keep the processor for the rest."""
    left_ns = at_ns - time.monotonic_ns()
    spin_ns = min(max(int(SPIN_SHARE * left_ns), LEAST_SPIN_NS), MOST_SPIN_NS)
    if left_ns > spin_ns:
        seconds, ns = divmod(at_ns - spin_ns, NS_PER_S)
        _libc.clock_nanosleep(_CLOCK_MONOTONIC, _TIMER_ABSTIME, ctypes.byref(_Timespec(seconds, ns)), None)
    while time.monotonic_ns() < at_ns:
        pass
