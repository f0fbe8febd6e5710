"""Compresses TCP/IP headers as a PPP sender does (RFC 1144), from IP packets to PPP frames."""

from __future__ import annotations

from dataclasses import dataclass, field

IP, COMPRESSED, UNCOMPRESSED = 0x21, 0x2D, 0x2F
"""PPP protocol numbers (RFC 1332, 4)."""

TCP_NUMBER, PUSH, ACK, URGENT = 6, 0x08, 0x10, 0x20
BEGINS_OR_ENDS = 0x07
"""Flags of segments that are not compressed: SYN, FIN and RST."""

NEW_CONNECTION, NEW_ID, PUSHED, NEW_SEQ, NEW_ACK, NEW_WINDOW, HAS_URGENT = 0x40, 0x20, 0x10, 0x08, 0x04, 0x02, 0x01
"""Bits of the change byte (RFC 1144, 3.2.2)."""

ECHO, DATA = NEW_SEQ | NEW_WINDOW | HAS_URGENT, NEW_SEQ | NEW_ACK | NEW_WINDOW | HAS_URGENT
"""Combinations of bits that encode frequent changes."""

MAX_STEP = 65_535


@dataclass
class Headers:
    """The header fields of an IP packet that matter for the compression."""

    fixed: tuple[bytes, ...]
    """Fields that must not change. If one changes, the segment is not compressed."""
    id: int
    seq: int
    ack: int
    window: int
    urgent: int
    checksum: bytes
    flags: int
    payload: bytes


def _headers(packet: bytes) -> Headers:
    ip_bytes = (packet[0] & 15) * 4
    tcp = packet[ip_bytes:]
    tcp_bytes = (tcp[12] >> 4) * 4
    return Headers(
        fixed=(packet[:2], packet[6:9], packet[20:ip_bytes], tcp[12:13], tcp[20:tcp_bytes]),
        id=int.from_bytes(packet[4:6]),
        seq=int.from_bytes(tcp[4:8]),
        ack=int.from_bytes(tcp[8:12]),
        window=int.from_bytes(tcp[14:16]),
        urgent=int.from_bytes(tcp[18:20]),
        checksum=tcp[16:18],
        flags=tcp[13],
        payload=packet[ip_bytes + tcp_bytes : int.from_bytes(packet[2:4])],
    )


def _step(value: int) -> bytes:
    """Return the encoding of a difference. It has one byte, or a zero byte and two bytes."""
    return bytes((value,)) if 0 < value < 256 else b"\0" + (value & 0xFFFF).to_bytes(2)


@dataclass
class Compressor:
    """Compresses the packets of one direction of a link."""

    numbers: dict[bytes, int] = field(default_factory=dict)
    states: dict[int, Headers] = field(default_factory=dict)
    current: int | None = None

    def compress(self, packet: bytes) -> tuple[int, bytes]:
        """Return the PPP protocol number and the content of the frame for `packet`."""
        ip_bytes = (packet[0] & 15) * 4
        flags = packet[ip_bytes + 13]
        if packet[9] != TCP_NUMBER or flags & BEGINS_OR_ENDS or not flags & ACK:
            return IP, packet
        number = self.numbers.setdefault(packet[12:20] + packet[ip_bytes : ip_bytes + 4], len(self.numbers))
        after = _headers(packet)
        before, self.states[number] = self.states.get(number), after
        body = None if before is None else self._difference(number, before, after)
        if body is None:
            self.current = number
            return UNCOMPRESSED, packet[:9] + bytes((number,)) + packet[10:]
        return COMPRESSED, body

    def _difference(self, number: int, before: Headers, after: Headers) -> bytes | None:
        seq, ack = ((now - then) % (1 << 32) for now, then in ((after.seq, before.seq), (after.ack, before.ack)))
        has_urgent = bool(after.flags & URGENT)
        if before.fixed != after.fixed or max(seq, ack) > MAX_STEP or (not has_urgent and after.urgent != before.urgent):
            return None
        window = after.window - before.window
        changes = NEW_SEQ * bool(seq) | NEW_ACK * bool(ack) | NEW_WINDOW * bool(window) | HAS_URGENT * has_urgent
        steps = [after.urgent] * has_urgent + [value for value in (window, ack, seq) if value]
        sent = len(before.payload)
        if changes in {ECHO, DATA} or (not changes and (sent or not after.payload)):
            return None  # the segment is a retransmission, or its encoding would look like a special case
        if sent and seq == sent and changes == NEW_SEQ:
            changes, steps = DATA, []
        elif sent and seq == ack == sent and changes == NEW_SEQ | NEW_ACK:
            changes, steps = ECHO, []
        id_step = (after.id - before.id) % (1 << 16)
        if id_step != 1:
            changes |= NEW_ID
            steps.append(id_step)
        changes |= PUSHED * bool(after.flags & PUSH)
        named = b""
        if number != self.current:
            changes |= NEW_CONNECTION
            named = bytes((number,))
            self.current = number
        return bytes((changes,)) + named + after.checksum + b"".join(_step(step) for step in steps) + after.payload
