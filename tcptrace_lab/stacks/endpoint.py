"""One end of a connection: what all stacks do alike.

Sequence numbers are plain integers: SYN is 0, the first byte 1. The functions carry the names of BSD's: `output` is `tcp_output`, `input`
is `tcp_input`; what differs between stacks they ask `Socket`, `Sender` and `Receiver` (stack.py). Timers and losses: timers.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcptrace_lab.stacks.congestion import Congestion
from tcptrace_lab.stacks.events import NS_PER_MS
from tcptrace_lab.stacks.packet import ACK, FIN, PSH, SYN, Packet
from tcptrace_lab.stacks.path import IP_TCP_HEADER_BYTES
from tcptrace_lab.stacks.timers import Timers

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcptrace_lab.stacks.events import Clock, Cpu
    from tcptrace_lab.stacks.path import Line
    from tcptrace_lab.stacks.setting import Host

UNSCALED_WINDOW_BYTES = 65_535
"""Largest window without the option (RFC 7323)."""

LATE_ACK_NS = 20 * NS_PER_MS
"""An ACK that left so long after what it acknowledges had come was delayed, by a timer or because the program did not read: the
ledger's measure, half of the shortest timer in use. Less is the hosts' own time."""

SYN_OPTION_BYTES = 4
"""MSS (RFC 9293, 3.7.1)."""


class Endpoint:
    """One end.

    Attributes:
        more_to_come: the write that brought the last bytes has not ended.
        pushing: nothing small is held now.
        held: why the bytes that are queued do not leave: `nagle`, `receiver-window`, `zero-window`, `congestion-window`, `pacing`.
        on_room, on_data: what to call when the send buffer has room again, or data to read has come (or the end).
        on_change: what to call whenever what holds the next byte may have changed.
        released_late: the last ACK of new data had waited at the receiver.
    """

    __slots__ = (
        "_costs", "_out_of_order", "ack_now", "ack_owed", "advertised", "buffers", "calls_append", "calls_input",
        "calls_output", "cc", "clock", "closing", "connected", "cork", "cpu", "duplicate_acks", "fin_seq", "force", "from_client", "held",
        "host", "last_received_ns", "last_sent_ns", "line", "max_window", "more_to_come", "mss", "mss_told", "no_delay", "on_change",
        "on_data", "on_room", "option_bytes", "packets", "peer", "peer_closed", "pushing", "quick_ack", "rcv_nxt", "receive_buffer",
        "receiver", "released_late", "resending", "scale", "segments_out", "send_buffer", "sender", "snd_edge", "snd_end", "snd_max",
        "snd_nxt", "snd_una", "socket", "stack", "timers", "unread", "window_told",
    )  # fmt: skip

    def __init__(
        self, host: Host, *, from_client: bool, clock: Clock, cpu: Cpu, line: Line, packets: list[Packet], mss: int, option_bytes: int
    ) -> None:
        stack = self.stack = host.stack
        self.host, self.from_client = host, from_client
        self.clock, self.cpu, self.line, self.packets = clock, cpu, line, packets
        self._costs = host.costs
        self.mss_told = mss
        self.option_bytes = option_bytes
        self.mss = stack.round_mss(mss - option_bytes, mss)
        self.send_buffer = stack.round_buffer(host.send_buffer_bytes or stack.default_buffer_bytes, self.mss)
        self.receive_buffer = stack.round_buffer(host.receive_buffer_bytes or stack.default_buffer_bytes, self.mss)
        self.no_delay, self.cork, self.quick_ack = host.no_delay, host.cork, host.quick_ack
        self.scale = 0
        self.peer: Endpoint = self
        self.on_room: Callable[[], object] | None = None
        self.on_data: Callable[[], object] | None = None
        self.on_change: Callable[[], object] | None = None
        self.connected = self.closing = self.peer_closed = self.force = self.pushing = self.more_to_come = self.resending = (
            self.released_late
        ) = False
        self.fin_seq: int | None = None
        self.snd_una = self.snd_nxt = self.snd_max = 0
        self.snd_end = 1
        self.snd_edge = self.max_window = 0
        self.held = ""
        self.rcv_nxt = self.advertised = self.unread = self.window_told = 0
        self.ack_now = self.ack_owed = False
        self.last_received_ns = self.last_sent_ns = 0
        self._out_of_order: list[tuple[int, int]] = []
        self.duplicate_acks = 0
        self.calls_append = self.calls_output = self.calls_input = self.segments_out = self.buffers = 0
        self.timers = Timers(self)
        self.cc = Congestion(self)
        self.socket = stack.socket(self)
        self.sender = stack.sender(self)
        self.receiver = stack.receiver(self)

    # The socket's side

    @property
    def queued(self) -> int:
        """Bytes that were given and are not sent, or are to be sent again."""
        return self.snd_end - self.snd_nxt

    @property
    def in_flight(self) -> int:
        """Sequence numbers that were sent and not acknowledged."""
        return self.snd_max - self.snd_una

    def unacked_room(self) -> int:
        """Room in a send buffer that keeps what is not acknowledged; negative where a stack overfills it."""
        return self.send_buffer - (self.snd_end - max(self.snd_una, 1))

    def append(self, size_bytes: int, buffers: int, *, more_to_come: bool) -> None:
        """The program's bytes are in the buffer (`PRU_SEND`); the same write may bring more."""
        self.more_to_come = more_to_come
        self.snd_end += size_bytes
        self.buffers += buffers
        self.calls_append += 1
        self.output()

    def take(self, size_bytes: int) -> None:
        """The program has read (without telling the protocol yet)."""
        self.unread -= size_bytes

    def close(self) -> None:
        """No more is written."""
        self.closing = True
        self.output()

    # Output

    def window_cause(self) -> str:
        """Which window holds what is queued."""
        if self.cc.room() < self.snd_edge - self.snd_nxt:
            return self.cc.cause()
        return "zero-window" if self.snd_edge <= self.snd_una else "receiver-window"

    def output(self) -> None:
        """Send what may go, and an ACK if one is due."""
        if not self.connected:
            return
        self.calls_output += 1
        idle = self.snd_max == self.snd_una
        if idle and self.stack.idle_restart and self.clock.now_ns - max(self.last_sent_ns, self.last_received_ns) >= self.timers.rto_ns():
            self.cc.restart()
        self.held = ""
        sent_any = False
        while (sent := self._output_one(idle=idle)) is not None:
            sent_any = True
            if not sent:
                break
        if not sent_any and self.receiver.update_due(self):
            self.ack_now = True
            self._output_one(idle=idle)
        if self.held:
            self.timers.persist()
        if self.on_change is not None:
            self.on_change()

    def _output_one(self, *, idle: bool) -> bool | None:
        """One segment of data, FIN or ACK: whether there may be more; None: there was none."""
        queued = self.snd_end - self.snd_nxt
        length = 0
        self.resending = self.snd_nxt < self.snd_max
        if queued > 0:
            usable = min(self.snd_edge - self.snd_nxt, self.cc.room())
            if self.force and usable <= 0:
                self._probe()
                return False
            if self.force:
                length = min(usable, queued, self.mss)
            elif self.closing and 0 < queued <= min(self.mss, usable):
                length = queued  # FIN goes along, and nothing holds a FIN
            else:
                length = self.sender.length(self, queued, usable, idle)
        fin = self.closing and length == queued  # a FIN that was sent leaves -1
        if not length and not fin and not self.ack_now:
            return None
        self._emit(length, FIN if fin else 0)
        return (length > 0 or fin) and self.snd_nxt < self.snd_end and not self.force

    def _probe(self) -> None:
        """Ask a host that has closed its window what it has room for.

        By the next byte, which does not count as sent (`t_force`), or by an empty segment from before what it has acknowledged, which it
        must answer (`tcp_xmit_probe_skb`).
        """
        length = self.stack.probe_bytes
        self._transmit(self._segment(self.snd_nxt - 1 + length, length, 0))
        self.held = self.window_cause()

    def _segment(self, seq: int, length: int, flags: int) -> Packet:
        """A segment that carries the ACK and the window that are due."""
        push = PSH if length and seq + length == self.snd_end else 0
        packet = Packet(seq, self.rcv_nxt, flags | push | ACK, self._tell_window(), length, from_client=self.from_client)
        packet.late_ack = self.ack_owed and self.clock.now_ns - self.last_received_ns >= LATE_ACK_NS
        self.ack_now = self.ack_owed = False
        self.receiver.sent(self, length)
        return packet

    def _emit(self, length: int, flags: int) -> None:
        seq = self.snd_nxt if length or flags & FIN else self.snd_max
        packet = self._segment(seq, length, flags)
        if not length and not flags & FIN:
            self._transmit(packet)
            return
        if length and seq < self.snd_max:
            packet.resent_for = "timeout" if self.cc.timeout else "loss-recovery"
        self.snd_nxt = seq + length
        if flags & FIN:
            self.fin_seq = self.snd_nxt
            self.snd_nxt += 1
        new = self.snd_nxt > self.snd_max
        if new:
            self.cc.sent(self.snd_nxt)
        self.timers.sent(seq, again=not new)
        self.snd_max = max(self.snd_max, self.snd_nxt)
        if length:
            self.sender.sent(self, length)
        self._transmit(packet)

    def _tell_window(self) -> int:
        window = min(self.receiver.window(self), UNSCALED_WINDOW_BYTES << self.scale)
        window = window >> self.scale << self.scale
        self.advertised = max(self.advertised, self.rcv_nxt + window)
        self.window_told = window
        return window

    def _transmit(self, packet: Packet) -> None:
        costs, length = self._costs, packet.payload_bytes
        cost_ns = costs.data_out_ns + (costs.data_out_ns_per_kib * length >> 10) if length else costs.ack_out_ns
        options = self.option_bytes + (SYN_OPTION_BYTES if packet.flags & SYN else 0)
        ready_ns = self.cpu.interrupt(cost_ns)
        packet.decided_ns = self.clock.now_ns
        packet.sent_ns, packet.arrived_ns = self.line.send(ready_ns, IP_TCP_HEADER_BYTES + options + length)
        self.segments_out += 1
        if length:
            self.last_sent_ns = packet.sent_ns
        self.packets.append(packet)
        if packet.arrived_ns is not None:
            self.clock.at(packet.arrived_ns, self.peer.arrive, packet)

    def resend_first(self) -> None:
        """The first segment that is not acknowledged, as far as the peer's window takes it, or a byte."""
        self.resending = True
        back = self.snd_nxt
        self.snd_nxt = self.snd_una
        length = min(self.mss, self.snd_end - self.snd_una, max(self.snd_edge - self.snd_una, 1))
        fin = self.fin_seq is not None and self.snd_una + length == self.fin_seq
        self._emit(length, FIN if fin else 0)
        self.snd_nxt = max(back, self.snd_nxt)

    # Input

    def arrive(self, packet: Packet) -> None:
        """A packet interrupts the host."""
        costs, length = self._costs, packet.payload_bytes
        cost_ns = costs.data_in_ns + (costs.data_in_ns_per_kib * length >> 10) if length else costs.ack_in_ns
        done_ns = self.cpu.interrupt(cost_ns)
        if done_ns <= self.clock.now_ns:
            self.input(packet)
        else:
            self.clock.at(done_ns, self.input, packet)

    def input(self, packet: Packet) -> None:
        """Take a packet's ACK, window and data, then send what they allow."""
        self.calls_input += 1
        if packet.flags & SYN or not self.connected:
            self._handshake(packet)
            if packet.flags & SYN or not self.connected:
                return
        look = self._acknowledged(packet)
        if packet.payload_bytes or packet.flags & FIN:
            self._data(packet)
        elif packet.seq < self.rcv_nxt:  # not acceptable, so it must be answered (RFC 9293, 3.10.7.4)
            self.ack_now = True
        if look or self.ack_now:
            self.output()

    def _acknowledged(self, packet: Packet) -> bool:
        """Whether its ACK or window makes it worth looking for something to send."""
        ack, edge = packet.ack, packet.ack + packet.window_bytes
        if ack > self.snd_una:
            acked = ack - self.snd_una
            self.duplicate_acks = 0
            self.released_late = packet.late_ack
            self.snd_una = ack
            self.snd_nxt = max(self.snd_nxt, ack)
            self.snd_max = max(self.snd_max, ack)  # a probe's byte was taken
            self.snd_edge = edge
            self.timers.acked(ack)
            self.cc.acked(acked)
            self._wake(self.on_room)
        elif ack == self.snd_una:
            plain = not packet.payload_bytes and edge == self.snd_edge and not packet.flags & FIN
            self.snd_edge = edge
            if plain and self.snd_max > self.snd_una:
                self.duplicate_acks += 1
                self.cc.duplicate(self.duplicate_acks)
        else:
            return False
        self.max_window = max(self.max_window, packet.window_bytes)
        return self.stack.output_on_ack or self.queued > 0

    def _data(self, packet: Packet) -> None:
        end = packet.seq + packet.payload_bytes
        if packet.flags & FIN:
            end += 1
        if packet.seq > self.rcv_nxt:
            self._out_of_order.append((packet.seq, end))
            if packet.flags & FIN:
                self.peer_closed = True
            self.ack_now = True
            return
        if end <= self.rcv_nxt:
            self.ack_now = True
            return
        room_end, flags = self._room_end(), packet.flags
        if packet.seq + packet.payload_bytes > room_end:  # a probe of a closed window
            end, flags = room_end, flags & ~FIN
            self.ack_now = True
            if end <= self.rcv_nxt:
                return
        filled = bool(self._out_of_order)
        before = self.rcv_nxt
        self.rcv_nxt = end
        for seq, last in sorted(self._out_of_order):
            if seq <= self.rcv_nxt:
                self.rcv_nxt = max(self.rcv_nxt, last)
        self._out_of_order = [(seq, last) for seq, last in self._out_of_order if last > self.rcv_nxt]
        fin = flags & FIN or (self.peer_closed and not self._out_of_order)
        self.unread += self.rcv_nxt - before - (1 if fin else 0)
        self.peer_closed = self.peer_closed or bool(fin)
        if fin or filled:
            self.ack_now = True
        else:
            self.receiver.arrived(self, self.rcv_nxt - before, bool(packet.flags & PSH))
        self.last_received_ns = self.clock.now_ns
        self._wake(self.on_data)

    def _room_end(self) -> int:
        """How far data is taken."""
        room = self.receive_buffer - self.unread if self.stack.takes_beyond_window else 0
        return max(self.advertised, self.rcv_nxt + room)

    @property
    def ended(self) -> bool:
        """The peer has closed, and all that it sent is here."""
        return self.peer_closed and not self._out_of_order

    @property
    def has_holes(self) -> bool:
        """Data came out of order, and some of it is missing."""
        return bool(self._out_of_order)

    def delay_ack(self, due_ns: int | None = None) -> None:
        """Owe an ACK, at the latest at a time; without one, at the host's next heartbeat."""
        self.ack_owed = True
        self.timers.delayed_ack(due_ns)

    def _wake(self, sleeper: Callable[[], object] | None) -> None:
        if sleeper is not None:
            self.clock.at(self.clock.now_ns, sleeper)

    # Connecting

    def connect(self) -> None:
        """Send a SYN."""
        self._send_syn(SYN)

    def _send_syn(self, flags: int) -> None:
        self.snd_nxt = 0
        packet = Packet(0, self.rcv_nxt, flags, min(self._tell_window(), UNSCALED_WINDOW_BYTES), 0, from_client=self.from_client)
        packet.mss_bytes = self.mss_told
        if not flags & ACK or self.peer.stack.window_scale is not None:
            packet.window_scale = self.stack.window_scale
        self.timers.sent(0, again=self.snd_max > 0)
        self.snd_nxt = self.snd_max = 1
        self.ack_now = self.ack_owed = False
        self._transmit(packet)

    def _handshake(self, packet: Packet) -> None:
        if packet.flags & SYN:
            if self.rcv_nxt:  # the SYN came again: what was sent for it is lost
                self._resend_handshake()
                return
            self.rcv_nxt = 1
            self.advertised += 1
            if packet.window_scale is not None and self.stack.window_scale is not None:
                self.scale = self.stack.window_scale
            self.snd_edge = 1 + packet.window_bytes
            self.max_window = packet.window_bytes
        if packet.flags & ACK and packet.ack >= 1:
            self.snd_una = max(self.snd_una, 1)
            self.snd_edge = max(self.snd_edge, packet.ack + packet.window_bytes)
            self.timers.acked(1)
            self.connected = True
            if self.from_client:
                self.ack_now = True
                self.output()
            self._wake(self.on_room)
        elif packet.flags & SYN:
            self._send_syn(SYN | ACK)

    def _resend_handshake(self) -> None:
        if self.connected:
            self.ack_now = True
            self.output()
        else:
            self._send_syn(SYN | ACK)

    def syn_again(self) -> None:
        """The SYN, or its answer, was lost."""
        self._send_syn(SYN if self.from_client else SYN | ACK)
