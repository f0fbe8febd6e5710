"""The application of a simulated host. It writes, reads and pauses, and it sleeps while a socket call blocks (`sosend`, `soreceive`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcptrace_lab.stacks.setting import Close, Flush, Mark, Read, Repeat, Set, Think, WaitUntil, Write

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tcptrace_lab.stacks.endpoint import Endpoint
    from tcptrace_lab.stacks.setting import Step

FOR_ROOM, FOR_DATA, FOR_ACKS = -1, -2, -3
"""Values that a step yields in order to sleep until there is send buffer space, data or an ACK.

Other yielded values are nanoseconds of processor time.
"""

IDLE_BEFORE = 1 << 60
"""Offset that marks a time. In order to sleep until time t without using the processor, a step yields t plus this offset."""


class Process:
    """The application of one host.

    Attributes:
        state: `new`, `working`, `writing` (asleep for send buffer space), `reading` (asleep for data), `flushing` (asleep for ACKs),
            `thinking` or `done`.
        marks: name and time (ns) of each `Mark`.
        left_bytes: bytes of the current message that are not yet in the send buffer.
        call_left_bytes: bytes of the current `write` call that are not yet in the send buffer.
    """

    __slots__ = (
        "_clock",
        "_costs",
        "_cpu",
        "_steps",
        "_tcp",
        "call_left_bytes",
        "calls_read",
        "calls_write",
        "left_bytes",
        "marks",
        "state",
    )

    def __init__(self, tcp: Endpoint, program: tuple[Step, ...]) -> None:
        self._tcp = tcp
        self._clock, self._cpu, self._costs = tcp.clock, tcp.cpu, tcp.host.costs
        self._steps = self._work(program)
        self.state = "new"
        self.marks: list[tuple[str, int]] = []
        self.left_bytes = self.call_left_bytes = self.calls_write = self.calls_read = 0
        tcp.on_room, tcp.on_data = self._room, self._data

    def _room(self) -> None:
        if self.state == "new":
            self._go_on()
        elif self.state in {"writing", "flushing"}:
            self._wake()

    def _data(self) -> None:
        if self.state == "reading":
            self._wake()

    def _wake(self) -> None:
        self.state = "working"
        if self._cpu.process(self._costs.wakeup_ns, self._go_on):
            self._go_on()

    def _go_on(self) -> None:
        """Run the steps until the application sleeps, or until a step uses processor time."""
        self.state = "working"
        for wants in self._steps:
            if wants == FOR_ROOM:
                self.state = "writing"
            elif wants == FOR_DATA:
                self.state = "reading"
            elif wants == FOR_ACKS:
                self.state = "flushing"
            elif wants >= IDLE_BEFORE:
                self.state = "thinking"
                self._clock.at(wants - IDLE_BEFORE, self._go_on)
            elif self._cpu.process(wants, self._go_on):
                continue
            self._changed()
            return
        self.state = "done"
        self._changed()

    def _changed(self) -> None:
        if self._tcp.on_change is not None:
            self._tcp.on_change()

    def _work(self, steps: tuple[Step, ...]) -> Iterator[int]:
        yield from self._do(steps)
        if not self._tcp.closing:
            self._tcp.close()

    def _do(self, steps: tuple[Step, ...]) -> Iterator[int]:
        for step in steps:
            match step:
                case Write():
                    yield from self._write(step)
                case Read():
                    yield from self._read(step)
                case Repeat():
                    for _ in range(step.times):
                        yield from self._do(step.steps)
                case Think() | WaitUntil():
                    now_ns = self._clock.now_ns
                    until_ns = step.at_ns if isinstance(step, WaitUntil) else now_ns + step.for_ns
                    if until_ns > now_ns:
                        yield IDLE_BEFORE + until_ns
                case Flush():
                    tcp = self._tcp
                    while tcp.snd_end > (tcp.snd_una if step.acknowledged else tcp.snd_max):
                        yield FOR_ACKS
                case _:
                    self._note(step)

    def _note(self, step: Set | Mark | Close) -> None:
        if isinstance(step, Mark):
            self.marks.append((step.name, self._clock.now_ns))
        elif isinstance(step, Set):
            setattr(self._tcp, step.option, step.on)
            self._tcp.output()
        else:
            self._tcp.close()

    def _write(self, step: Write) -> Iterator[int]:
        tcp, costs = self._tcp, self._costs
        self.left_bytes = step.size_bytes
        while self.left_bytes:
            remaining = self.call_left_bytes = min(step.call_bytes or self.left_bytes, self.left_bytes)
            self.calls_write += 1
            if costs.write_call_ns:
                yield costs.write_call_ns
            while remaining:
                space = tcp.socket.room()
                if tcp.socket.blocks(space, remaining, tcp.send_buffer - space):
                    tcp.socket.full()
                    yield FOR_ROOM
                    continue
                size, buffers = tcp.socket.takes(space, remaining)
                yield (costs.copy_in_ns_per_kib * size >> 10) + costs.buffer_ns * buffers
                remaining -= size
                self.call_left_bytes = remaining
                self.left_bytes -= size
                tcp.append(size, buffers, more_to_come=remaining > 0)

    def _read(self, step: Read) -> Iterator[int]:
        tcp, costs = self._tcp, self._costs
        left = step.size_bytes or -1
        while left:
            while not tcp.unread:
                if tcp.ended:
                    return
                yield FOR_DATA
            self.calls_read += 1
            call = min(step.call_bytes or tcp.receive_buffer, left if left > 0 else tcp.receive_buffer)
            if costs.read_call_ns:
                yield costs.read_call_ns
            while call and tcp.unread:
                size = min(call, tcp.unread)
                yield costs.copy_out_ns_per_kib * size >> 10
                tcp.take(size)
                call -= size
                left -= size if left > 0 else 0
            tcp.receiver.read(tcp)
