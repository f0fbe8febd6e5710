"""One endpoint of a connection. It implements the part of TCP that all modelled stacks share.

Sequence numbers are plain integers: the SYN has 0, and the first byte has 1. Functions and variables have BSD's names: `output` is
`tcp_output`, `input` is `tcp_input`. The rules in which stacks differ are in `Socket`, `Sender` and `Receiver` (stack.py). Timers are in
timers.py, and the congestion window is in congestion.py.
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
"""Largest window without the window scale option (RFC 7323)."""

LATE_ACK_NS = 20 * NS_PER_MS
"""The ledger counts an ACK as delayed if it is sent at least this long after the last data arrived.

Either a timer delayed such an ACK, or the application did not read. The limit is half of the shortest delayed-ACK timer in use. A shorter
delay is processing time of the host.
"""

SYN_OPTION_BYTES = 4
"""Length of the MSS option (RFC 9293, 3.7.1)."""


class Endpoint:
    """One endpoint of a connection, with its send state, receive state and connection state.

    Attributes:
        more_to_come: True if the write call that queued the last bytes will queue more bytes.
        pushing: True while small segments are sent despite Nagle's algorithm.
        blocked_by: why queued bytes are not sent: `nagle`, `receiver-window`, `zero-window`, or a cause of `Congestion.cause`; empty if no
            rule or window delays them.
        on_room: called when an ACK has freed send buffer space.
        on_data: called when data, or the peer's FIN, has arrived.
        on_change: called when the reason for not sending the next byte has possibly changed.
        released_late: True if the last ACK of new data was delayed.
    """

    __slots__ = (
        "_costs", "_out_of_order", "ack_now", "ack_owed", "advertised", "blocked_by", "buffers", "calls_append", "calls_input",
        "calls_output", "cc", "clock", "closing", "connected", "cork", "cpu", "duplicate_acks", "fin_seq", "force", "from_client",
        "host", "last_received_ns", "last_sent_ns", "line", "max_window", "more_to_come", "mss", "mss_advertised", "no_delay", "on_change",
        "on_data", "on_room", "option_bytes", "packets", "peer", "peer_closed", "pushing", "quick_ack", "rcv_nxt", "receive_buffer",
        "receiver", "released_late", "resending", "scale", "segments_out", "send_buffer", "sender", "snd_edge", "snd_end", "snd_max",
        "snd_nxt", "snd_una", "socket", "stack", "timers", "unread", "window_advertised",
    )  # fmt: skip

    def __init__(
        self, host: Host, *, from_client: bool, clock: Clock, cpu: Cpu, line: Line, packets: list[Packet], mss: int, option_bytes: int
    ) -> None:
        stack = self.stack = host.stack
        self.host, self.from_client = host, from_client
        self.clock, self.cpu, self.line, self.packets = clock, cpu, line, packets
        self._costs = host.costs
        self.mss_advertised = mss
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
        self.blocked_by = ""
        self.rcv_nxt = self.advertised = self.unread = self.window_advertised = 0
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

    # Calls from the socket layer

    @property
    def queued(self) -> int:
        """Bytes from SND.NXT to the end of the queued data. These bytes are unsent, or have to be retransmitted."""
        return self.snd_end - self.snd_nxt

    @property
    def in_flight(self) -> int:
        """Number of sequence numbers that were sent but not acknowledged (FlightSize, RFC 5681)."""
        return self.snd_max - self.snd_una

    def unacked_room(self) -> int:
        """Return the free bytes of a send buffer that stores data until the data is acknowledged.

        The number is negative if the stack overfills the buffer.
        """
        return self.send_buffer - (self.snd_end - max(self.snd_una, 1))

    def append(self, size_bytes: int, buffers: int, *, more_to_come: bool) -> None:
        """Queue bytes that the socket layer has copied (`PRU_SEND`), and send the segments that the rules allow.

        Args:
            size_bytes: bytes to queue.
            buffers: number of buffers (mbufs) that these bytes fill.
            more_to_come: whether this write call has more bytes to queue.
        """
        self.more_to_come = more_to_come
        self.snd_end += size_bytes
        self.buffers += buffers
        self.calls_append += 1
        self.output()

    def take(self, size_bytes: int) -> None:
        """Remove bytes that the application has read. The caller also calls `Receiver.read`."""
        self.unread -= size_bytes

    def close(self) -> None:
        """Send a FIN after the queued bytes."""
        self.closing = True
        self.output()

    # Output

    def window_cause(self) -> str:
        """Return the ledger's cause for queued bytes that a window delays."""
        if self.cc.room() < self.snd_edge - self.snd_nxt:
            return self.cc.cause()
        return "zero-window" if self.snd_edge <= self.snd_una else "receiver-window"

    def output(self) -> None:
        """Send all segments that the rules allow now, and an ACK if one is due."""
        if not self.connected:
            return
        self.calls_output += 1
        idle = self.snd_max == self.snd_una
        if idle and self.stack.idle_restart and self.clock.now_ns - max(self.last_sent_ns, self.last_received_ns) >= self.timers.rto_ns():
            self.cc.restart()
        self.blocked_by = ""
        sent_any = False
        while (sent := self._output_one(idle=idle)) is not None:
            sent_any = True
            if not sent:
                break
        if not sent_any and self.receiver.update_due(self):
            self.ack_now = True
            self._output_one(idle=idle)
        if self.blocked_by:
            self.timers.persist()
        if self.on_change is not None:
            self.on_change()

    def _output_one(self, *, idle: bool) -> bool | None:
        """Send one segment with data, a FIN or an ACK.

        Return whether more segments can follow, or None if no segment was due.
        """
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
                length = queued  # a FIN is sent with the last segment, and no rule delays it
            else:
                length = self.sender.length(self, queued, usable, idle)
        fin = self.closing and length == queued  # after the FIN was sent, queued is -1
        if not length and not fin and not self.ack_now:
            return None
        self._emit(length, FIN if fin else 0)
        return (length > 0 or fin) and self.snd_nxt < self.snd_end and not self.force

    def _probe(self) -> None:
        """Send a window probe to a peer whose window is closed.

        BSD probes with the next byte, and SND.NXT does not advance (`t_force`). Linux probes with an empty segment, whose sequence number
        is already acknowledged. The peer must reply to such a segment (`tcp_xmit_probe_skb`).
        """
        length = self.stack.probe_bytes
        self._transmit(self._segment(self.snd_nxt - 1 + length, length, 0))
        self.blocked_by = self.window_cause()

    def _segment(self, seq: int, length: int, flags: int) -> Packet:
        """Build a segment with the current ACK and window. After this, no ACK is due."""
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
        self.window_advertised = window
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
        """Retransmit the first unacknowledged segment. It has at least 1 byte, and otherwise fits the peer's window."""
        self.resending = True
        back = self.snd_nxt
        self.snd_nxt = self.snd_una
        length = min(self.mss, self.snd_end - self.snd_una, max(self.snd_edge - self.snd_una, 1))
        fin = self.fin_seq is not None and self.snd_una + length == self.fin_seq
        self._emit(length, FIN if fin else 0)
        self.snd_nxt = max(back, self.snd_nxt)

    # Input

    def arrive(self, packet: Packet) -> None:
        """Receive a packet. Its arrival causes an interrupt, and `input` runs after the processing time of this interrupt."""
        costs, length = self._costs, packet.payload_bytes
        cost_ns = costs.data_in_ns + (costs.data_in_ns_per_kib * length >> 10) if length else costs.ack_in_ns
        done_ns = self.cpu.interrupt(cost_ns)
        if done_ns <= self.clock.now_ns:
            self.input(packet)
        else:
            self.clock.at(done_ns, self.input, packet)

    def input(self, packet: Packet) -> None:
        """Process a packet's ACK, window and data, then send the segments that are allowed."""
        self.calls_input += 1
        if packet.flags & SYN or not self.connected:
            self._handshake(packet)
            if packet.flags & SYN or not self.connected:
                return
        look = self._acknowledged(packet)
        if packet.payload_bytes or packet.flags & FIN:
            self._data(packet)
        elif packet.seq < self.rcv_nxt:  # an ACK must be sent in reply to an unacceptable segment (RFC 9293, 3.10.7.4)
            self.ack_now = True
        if look or self.ack_now:
            self.output()

    def _acknowledged(self, packet: Packet) -> bool:
        """Process a packet's ACK and window. Return whether `output` must be called."""
        ack, edge = packet.ack, packet.ack + packet.window_bytes
        if ack > self.snd_una:
            acked = ack - self.snd_una
            self.duplicate_acks = 0
            self.released_late = packet.late_ack
            self.snd_una = ack
            self.snd_nxt = max(self.snd_nxt, ack)
            self.snd_max = max(self.snd_max, ack)  # includes the byte of a window probe, if the peer accepted it
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
        if packet.seq + packet.payload_bytes > room_end:  # the segment is a window probe, or has data beyond the window
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
        """Return the sequence number at which accepted data ends."""
        room = self.receive_buffer - self.unread if self.stack.takes_beyond_window else 0
        return max(self.advertised, self.rcv_nxt + room)

    @property
    def ended(self) -> bool:
        """True if the peer's FIN and all data before the FIN have arrived."""
        return self.peer_closed and not self._out_of_order

    @property
    def has_holes(self) -> bool:
        """True if bytes are missing before data that arrived out of order."""
        return bool(self._out_of_order)

    def delay_ack(self, due_ns: int | None = None) -> None:
        """Delay an ACK until `due_ns` at the latest; None: until the host's next 200 ms tick."""
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
        packet.mss_bytes = self.mss_advertised
        if not flags & ACK or self.peer.stack.window_scale is not None:
            packet.window_scale = self.stack.window_scale
        self.timers.sent(0, again=self.snd_max > 0)
        self.snd_nxt = self.snd_max = 1
        self.ack_now = self.ack_owed = False
        self._transmit(packet)

    def _handshake(self, packet: Packet) -> None:
        if packet.flags & SYN:
            if self.rcv_nxt:  # a retransmitted SYN, because our SYN/ACK was lost
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
        """Retransmit the SYN (client) or the SYN/ACK (server)."""
        self._send_syn(SYN if self.from_client else SYN | ACK)
