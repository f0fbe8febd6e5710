"""A user-space network path between two interfaces: delay, rate, queue, loss, duplication and reordering, all decided by frame number.

The relay reads frames from two file descriptors (TUN or TAP queues, or anything else that hands out one frame per read),
passes each through the `PathModel` of its direction and writes it to the other descriptor when it is due. It is one loop around
`select`: it sleeps until a frame arrives or the next one is due, and never spins. What happens to a frame depends only on its
index in its direction (0 is the first frame, usually the SYN) and on the path's seed, so that a run can be repeated; each fate is
kept in a log.

    relay = Relay(client_fd, server_fd, forward=PathModel(delay_s=0.010, lost=frozenset({40})), backward=PathModel(delay_s=0.010))
    with relay.running():
        ...                                     # traffic
    relay.forward_log.indexes(Fate.LOST)        # [40]
"""

from __future__ import annotations

import heapq
import os
import random
import select
import threading
import time
from collections import deque
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

NS_PER_S = 1_000_000_000
BITS_PER_BYTE = 8
# The largest frame a TUN or TAP queue hands out without offloads: an IPv4 packet (65,535 bytes) behind an Ethernet header.
MAX_FRAME_BYTES = 65_535 + 14
# Frames read from one side before the other side and the clock are looked at again; a choice, no source.
READ_BATCH_FRAMES = 64
# How long `running` waits for the loop to end once it was told to; it ends at once unless it is stuck in a write.
STOP_TIMEOUT_S = 5.0


class Fate(StrEnum):
    """What the path did to a frame."""

    FORWARDED = "forwarded"
    LOST = "lost"
    QUEUE_FULL = "queue-full"
    DUPLICATED = "duplicated"
    HELD_BACK = "held-back"


@dataclass(frozen=True, slots=True)
class PathModel:
    """One direction of the network.

    Attributes:
        delay_s: propagation delay of each frame, in seconds.
        rate_bps: rate of the bottleneck in bits per second, headers of the frame included; None is infinitely fast.
        queue_bytes: frames that find this much waiting for the bottleneck are dropped; None is an endless queue.
        lost: indexes of the frames that are lost.
        loss_rate: share of the other frames that is lost, drawn from `seed`.
        seed: seed of the random draws; one draw per frame, so a frame's fate does not depend on time.
        duplicated: indexes of the frames that are delivered twice.
        held_back_s: extra delay by index of frame, in seconds; later frames overtake it.
    """

    delay_s: float = 0.0
    rate_bps: int | None = None
    queue_bytes: int | None = None
    lost: frozenset[int] = frozenset()
    loss_rate: float = 0.0
    seed: int = 0
    duplicated: frozenset[int] = frozenset()
    held_back_s: Mapping[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.delay_s < 0 or any(extra_s < 0 for extra_s in self.held_back_s.values()):
            raise ValueError("a delay cannot be negative")
        if self.rate_bps is not None and self.rate_bps <= 0:
            raise ValueError(f"the rate must be above 0 bit/s, got {self.rate_bps}")
        if not 0.0 <= self.loss_rate <= 1.0:
            raise ValueError(f"the loss rate must lie between 0 and 1, got {self.loss_rate}")

    def describe(self) -> dict[str, object]:
        """The settings that differ from an ideal path, ready for JSON."""
        settings: dict[str, object] = {"delay_s": self.delay_s}
        if self.rate_bps is not None:
            settings["rate_bps"] = self.rate_bps
        if self.queue_bytes is not None:
            settings["queue_bytes"] = self.queue_bytes
        if self.loss_rate:
            settings |= {"loss_rate": self.loss_rate, "seed": self.seed}
        if self.lost:
            settings["lost_indexes"] = sorted(self.lost)
        if self.duplicated:
            settings["duplicated_indexes"] = sorted(self.duplicated)
        if self.held_back_s:
            settings["held_back_s"] = {str(index): extra_s for index, extra_s in sorted(self.held_back_s.items())}
        return settings


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One frame that entered the path: when (monotonic clock, ns), how long it was, what became of it and when it left (None: never)."""

    index: int
    arrived_ns: int
    frame_bytes: int
    fate: Fate
    due_ns: int | None


@dataclass(slots=True)
class PathLog:
    """Every frame of one direction, in order of arrival."""

    entries: list[LogEntry] = field(default_factory=list)

    def indexes(self, fate: Fate) -> list[int]:
        """Indexes of the frames that met this fate."""
        return [entry.index for entry in self.entries if entry.fate is fate]

    def describe(self) -> dict[str, object]:
        """Number of frames, and the indexes of those that were not simply forwarded, ready for JSON."""
        summary: dict[str, object] = {"frames": len(self.entries)}
        for fate, key in (
            (Fate.LOST, "lost_indexes"),
            (Fate.QUEUE_FULL, "queue_full_indexes"),
            (Fate.DUPLICATED, "duplicated_indexes"),
            (Fate.HELD_BACK, "held_back_indexes"),
        ):
            summary[key] = self.indexes(fate)
        return summary


class Direction:
    """The state of one direction: which frames wait for the bottleneck, and what happened so far."""

    def __init__(self, path: PathModel) -> None:
        self.path = path
        self.log = PathLog()
        self._random = random.Random(path.seed)  # noqa: S311  (repeatable draws are the point)
        self._bottleneck_free_ns = 0
        self._waiting: deque[tuple[int, int]] = deque()  # (when its last bit has left the queue, bytes)
        self._waiting_bytes = 0

    def accept(self, frame_bytes: int, now_ns: int) -> list[int]:
        """Decide the fate of the next frame; return the times (ns) at which copies of it are to be delivered."""
        path = self.path
        index = len(self.log.entries)
        drawn = self._random.random()
        if index in path.lost or drawn < path.loss_rate:
            return self._record(index, now_ns, frame_bytes, Fate.LOST, [])
        departure_ns = self._through_bottleneck(frame_bytes, now_ns)
        if departure_ns is None:
            return self._record(index, now_ns, frame_bytes, Fate.QUEUE_FULL, [])
        due_ns = departure_ns + round(path.delay_s * NS_PER_S)
        if index in path.duplicated:
            return self._record(index, now_ns, frame_bytes, Fate.DUPLICATED, [due_ns, due_ns])
        if index in path.held_back_s:
            return self._record(index, now_ns, frame_bytes, Fate.HELD_BACK, [due_ns + round(path.held_back_s[index] * NS_PER_S)])
        return self._record(index, now_ns, frame_bytes, Fate.FORWARDED, [due_ns])

    def _record(self, index: int, now_ns: int, frame_bytes: int, fate: Fate, due: list[int]) -> list[int]:
        self.log.entries.append(LogEntry(index, now_ns, frame_bytes, fate, due[0] if due else None))
        return due

    def _through_bottleneck(self, frame_bytes: int, now_ns: int) -> int | None:
        """When the frame's last bit leaves the bottleneck, or None when its queue is full."""
        path = self.path
        if path.rate_bps is None:
            return now_ns
        while self._waiting and self._waiting[0][0] <= now_ns:
            self._waiting_bytes -= self._waiting.popleft()[1]
        if path.queue_bytes is not None and self._waiting_bytes + frame_bytes > path.queue_bytes:
            return None
        transmission_ns = frame_bytes * BITS_PER_BYTE * NS_PER_S // path.rate_bps
        self._bottleneck_free_ns = max(now_ns, self._bottleneck_free_ns) + transmission_ns
        self._waiting.append((self._bottleneck_free_ns, frame_bytes))
        self._waiting_bytes += frame_bytes
        return self._bottleneck_free_ns


class Relay:
    """Carries frames between two descriptors, each direction through its own `PathModel`.

    Args:
        near_fd, far_fd: descriptors that read and write one whole frame at a time. They are set to non-blocking and stay the caller's.
        forward: the path from `near_fd` to `far_fd`.
        backward: the path from `far_fd` to `near_fd`.
    """

    def __init__(self, near_fd: int, far_fd: int, *, forward: PathModel, backward: PathModel) -> None:
        self._near_fd = near_fd
        self._far_fd = far_fd
        self._forward = Direction(forward)
        self._backward = Direction(backward)
        self._due: list[tuple[int, int, int, bytes]] = []  # (due, serial: keeps the order of equals, descriptor, frame)
        self._serial = 0

    @property
    def forward_log(self) -> PathLog:
        """What happened to the frames from near to far."""
        return self._forward.log

    @property
    def backward_log(self) -> PathLog:
        """What happened to the frames from far to near."""
        return self._backward.log

    def describe(self) -> dict[str, object]:
        """Settings and log of both directions, ready for JSON."""
        return {
            "forward": self._forward.path.describe() | {"log": self.forward_log.describe()},
            "backward": self._backward.path.describe() | {"log": self.backward_log.describe()},
        }

    @contextmanager
    def running(self) -> Iterator[Relay]:
        """Run the relay in a thread for as long as the block lasts; an error of the loop is raised when the block ends."""
        stop_read_fd, stop_write_fd = os.pipe()
        errors: list[Exception] = []

        def loop() -> None:
            try:
                self.run(stop_read_fd)
            except Exception as error:  # noqa: BLE001  (handed to the thread that waits)
                errors.append(error)

        thread = threading.Thread(target=loop, name="relay", daemon=True)
        thread.start()
        try:
            yield self
        finally:
            os.write(stop_write_fd, b"x")
            thread.join(STOP_TIMEOUT_S)
            if not thread.is_alive():
                os.close(stop_read_fd)
                os.close(stop_write_fd)
        if errors:
            raise errors[0]

    def run(self, stop_fd: int) -> None:
        """Relay frames until `stop_fd` is readable. Frames that are still on their way then are dropped.

        Raises:
            OSError: an interface vanished.
        """
        outgoing = {self._near_fd: (self._forward, self._far_fd), self._far_fd: (self._backward, self._near_fd)}
        for fd in outgoing:
            os.set_blocking(fd, False)
        watched = [*outgoing, stop_fd]
        while True:
            timeout_s = None
            if self._due:
                timeout_s = max(0, self._due[0][0] - time.monotonic_ns()) / NS_PER_S
            readable, _, _ = select.select(watched, [], [], timeout_s)
            if stop_fd in readable:
                return
            for fd in readable:
                self._take_in(fd, *outgoing[fd])
            self._deliver()

    def _take_in(self, fd: int, direction: Direction, out_fd: int) -> None:
        for _ in range(READ_BATCH_FRAMES):
            try:
                frame = os.read(fd, MAX_FRAME_BYTES)
            except BlockingIOError:
                return
            for due_ns in direction.accept(len(frame), time.monotonic_ns()):
                heapq.heappush(self._due, (due_ns, self._serial, out_fd, frame))
                self._serial += 1

    def _deliver(self) -> None:
        now_ns = time.monotonic_ns()
        while self._due and self._due[0][0] <= now_ns:
            _, _, fd, frame = heapq.heappop(self._due)
            os.write(fd, frame)
