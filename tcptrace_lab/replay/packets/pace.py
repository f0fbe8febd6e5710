"""Computes when each frame is due: at the original pace, faster or slower, at a fixed rate, or immediately."""

from __future__ import annotations

import ctypes
import time
from dataclasses import dataclass
from typing import Final

from tcptrace_lab.errors import UsageError
from tcptrace_lab.text.numbers import NS_PER_S
from tcptrace_lab.text.quantities import rate_bps

MIN_SPIN_NS: Final = 60_000
"""Minimum busy-wait before a frame is due, because waking from a sleep takes about 50 µs (measured)."""

MAX_SPIN_NS: Final = 1_000_000
"""Maximum busy-wait before a frame is due.

One sleep in 100 ends 0.2 ms late, and one in 1,000 ends 1.1 ms late. This is measured on Linux 6.18 in a virtual machine without kernel
preemption, where a waking task waits for other kernel work.
"""

SPIN_SHARE: Final = 0.5
"""The busy-wait takes at most this share of the time to the next frame, so that other processes can run.

Linux stops a real-time process for up to 50 ms if it uses 95 % or more of the processor (sched_rt_runtime_us; in newer kernels, a mechanism
called the fair server).
"""

BITS_PER_BYTE: Final = 8


@dataclass(frozen=True, slots=True)
class Pace:
    """The time between frames.

    Attributes:
        speed: factor of the original speed; 0: all frames at once.
        bits_per_s, packets_per_s: constant rate, used instead of `speed` if not 0.
    """

    speed: float = 1.0
    bits_per_s: int = 0
    packets_per_s: float = 0.0

    def due_ns(self, since_first_ns: int, bytes_before: int, frames_before: int) -> int:
        """Return when a frame is due, in ns after the first frame."""
        if self.bits_per_s:
            return bytes_before * BITS_PER_BYTE * NS_PER_S // self.bits_per_s
        if self.packets_per_s:
            return round(frames_before * NS_PER_S / self.packets_per_s)
        return round(since_first_ns / self.speed) if self.speed else 0


def pace(speed: str, rate: str, *, topspeed: bool) -> Pace:
    """Convert the command options to a pace. Raises UsageError."""
    if sum(map(bool, (speed, rate, topspeed))) > 1:
        raise UsageError("--speed, --rate and --topspeed exclude each other", remedy="choose one")
    if topspeed:
        return Pace(speed=0)
    if rate:
        if rate.endswith("pps"):
            return Pace(packets_per_s=_positive(rate.removesuffix("pps"), "--rate", "10Mbit/s or 1000pps"))
        try:
            bits = rate_bps(rate)
        except UsageError as error:
            raise UsageError(f"--rate: {rate!r} is not a rate", remedy="write it as 10Mbit/s or 1000pps") from error
        if not bits:
            raise UsageError("--rate: nothing is sent at 0 bit/s")
        return Pace(bits_per_s=bits)
    return Pace(_positive(speed.removesuffix("x"), "--speed", "2x or 0.5x") if speed else 1.0)


def _positive(text: str, option: str, example: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if not 0 < found < 1e9:  # noqa: PLR2004  (also rejects NaN)
        raise UsageError(f"{option}: {text!r} is not a number above 0", remedy=f"write it as {example}")
    return found


class _Timespec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("ns", ctypes.c_long))


_libc = ctypes.CDLL(None, use_errno=True)
_CLOCK_MONOTONIC, _TIMER_ABSTIME = 1, 1  # Linux time.h


def sleep_until(at_ns: int) -> None:
    """Sleep until shortly before `at_ns` on the monotonic clock, then busy-wait for the remaining time."""
    left_ns = at_ns - time.monotonic_ns()
    spin_ns = min(max(int(SPIN_SHARE * left_ns), MIN_SPIN_NS), MAX_SPIN_NS)
    if left_ns > spin_ns:
        seconds, ns = divmod(at_ns - spin_ns, NS_PER_S)
        _libc.clock_nanosleep(_CLOCK_MONOTONIC, _TIMER_ABSTIME, ctypes.byref(_Timespec(seconds, ns)), None)
    while time.monotonic_ns() < at_ns:
        pass
