"""A user-space network path between two interfaces: delay, rate, queue, loss, duplication and reordering.

The relay reads frames from two file descriptors. These are TUN or TAP queues, or any other descriptors that return one frame per read. Each
frame passes through the `PathModel` of its direction, and is written to the other descriptor when it is due. The relay is a single loop
around `select`. It sleeps until a frame arrives or the next frame is due, and never busy-waits.

    relay = Relay(client_fd, server_fd, forward=PathModel(delay_s=0.010, lost=frozenset({40})), backward=PathModel(delay_s=0.010))
    with relay.running():
        ...                                     # traffic
    relay.forward_log.indexes(Fate.LOST)        # [40]
"""

from __future__ import annotations

import heapq
import os
import select
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tcptrace_lab.lab.networks.path import HEAD_BYTES, Direction, PathLog, PathModel
from tcptrace_lab.text.numbers import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterator

# The largest frame of a TUN or TAP queue without offloads: an Ethernet header and an IPv4 packet (65,535 bytes).
MAX_FRAME_BYTES = 65_535 + 14
# Number of frames from one descriptor after which the relay checks the other descriptor and the clock (a choice).
READ_BATCH_FRAMES = 64
# Maximum time that `running` waits for the loop to stop. The loop stops at once if it is not blocked in a write.
STOP_TIMEOUT_S = 5.0


class Relay:
    """Forwards frames between two descriptors, each direction through its own `PathModel`.

    Args:
        near_fd, far_fd: descriptors that read and write one whole frame at a time. The relay makes them non-blocking, and the caller closes
            them.
        forward: the path from `near_fd` to `far_fd`.
        backward: the path from `far_fd` to `near_fd`.
    """

    def __init__(self, near_fd: int, far_fd: int, *, forward: PathModel, backward: PathModel) -> None:
        self._near_fd = near_fd
        self._far_fd = far_fd
        self._forward = Direction(forward)
        self._backward = Direction(backward)
        # (due, serial number, descriptor, frame, log of its direction, index). The serial number keeps the order of frames with equal due
        # times.
        self._due: list[tuple[int, int, int, bytes, PathLog, int]] = []
        self._serial = 0

    @property
    def forward_log(self) -> PathLog:
        """Return the log of the frames from `near_fd` to `far_fd`."""
        return self._forward.log

    @property
    def backward_log(self) -> PathLog:
        """Return the log of the frames from `far_fd` to `near_fd`."""
        return self._backward.log

    def describe(self) -> dict[str, object]:
        """Return the settings and the log of both directions, as JSON values."""
        return {
            "forward": self._forward.path.describe() | {"log": self.forward_log.describe()},
            "backward": self._backward.path.describe() | {"log": self.backward_log.describe()},
        }

    @contextmanager
    def running(self) -> Iterator[Relay]:
        """Run the relay in a thread during the block. An error in the loop is raised at the end of the block."""
        stop_read_fd, stop_write_fd = os.pipe()
        errors: list[Exception] = []

        def loop() -> None:
            try:
                self.run(stop_read_fd)
            except Exception as error:  # noqa: BLE001  (raised again in the waiting thread)
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
        """Relay frames until `stop_fd` is readable. Then drop the frames that are still in the path.

        Raises:
            OSError: an interface was removed.
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
            index = len(direction.log.entries)
            for due_ns in direction.accept(len(frame), time.monotonic_ns(), frame[:HEAD_BYTES]):
                heapq.heappush(self._due, (due_ns, self._serial, out_fd, frame, direction.log, index))
                self._serial += 1

    def _deliver(self) -> None:
        now_ns = time.monotonic_ns()
        while self._due and self._due[0][0] <= now_ns:
            _, _, fd, frame, log, index = heapq.heappop(self._due)
            os.write(fd, frame)
            log.delivered.append((index, time.monotonic_ns()))
