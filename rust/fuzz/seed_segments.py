"""Seeds of the target `segments`: what happens to TCP, in records as `src/tcp.rs` reads them."""

from __future__ import annotations

import struct

SYN, FIN, RST, PSH, ACK = 2, 1, 4, 8, 16
MSS, SCALE, SACK_PERMITTED, TIMES = 1, 2, 4, 8
SEQ_RELATIVE, ACK_RELATIVE = 64, 128
MS, US, BACK = 0x20, 0x10, 0x30


def record(
    flags: int,
    payload: int = 0,
    *,
    server: bool = False,
    connection: int = 0,
    seq: int = 0,
    ack: int = 0,
    step: tuple[int, int] = (US, 100),
    options: int = 0,
    sack_blocks: int = 0,
    window: int = 8192,
    absolute: bool = False,
    mode: int = 0,
    ip_id: int = 1460,
    scale: int = 7,
    tsval: int = 0,
) -> bytes:
    """One segment. Numbers count from what was sent before unless `absolute`; `mode` holds bits 3 (IPv6), 6 (cut) and 7 (jumbo)."""
    relative = 0 if absolute else SEQ_RELATIVE | ACK_RELATIVE
    head = bytes([connection | server << 2 | step[0] | mode, flags, step[1], options | sack_blocks << 4 | relative])
    numbers = struct.pack("<II", seq & 0xFFFFFFFF, ack & 0xFFFFFFFF)
    return head + numbers + struct.pack("<HHHBBI", window, payload, ip_id, scale, 8, tsval)


def handshake(isn: int = 1000, options: int = MSS | SCALE | SACK_PERMITTED | TIMES, mode: int = 0) -> list[bytes]:
    """SYN, SYN-ACK, ACK."""
    return [
        record(SYN, seq=isn, absolute=True, options=options, mode=mode),
        record(SYN | ACK, server=True, seq=50_000, options=options, mode=mode),
        record(ACK, options=options & TIMES, mode=mode),
    ]


def data(count: int, size: int = 1460, **more: int) -> list[bytes]:
    """A flight from the client."""
    return [record(ACK | PSH, size, tsval=at, **more) for at in range(count)]


def acked(ack: int = 0, **more: int) -> bytes:
    """The server's ACK of everything that was sent, plus `ack` bytes."""
    return record(ACK, server=True, ack=ack, **more)


CLOSE = [record(FIN | ACK), record(FIN | ACK, server=True), record(ACK)]

SCENARIOS = {
    "bulk": [*handshake(), *data(4), acked(), *data(4), acked(), *CLOSE],
    "ipv6": [*handshake(mode=8), *data(3, mode=8), acked(mode=8)],
    "fast-retransmit": [
        *handshake(),
        *data(1),
        record(ACK, 1460, seq=1460),  # jumps over one segment
        *[acked(-2920, sack_blocks=1, options=TIMES) for _ in range(3)],
        record(ACK, 1460, seq=-2920, tsval=9),
        acked(),
    ],
    "reordering": [*handshake(), record(ACK, 1000, seq=1000, ip_id=8), record(ACK, 1000, seq=-2000, ip_id=7), acked()],
    "timeout": [*handshake(), *data(1), record(ACK, 1460, seq=-1460, step=(MS, 250)), acked()],
    "zero-window": [
        *handshake(),
        *data(2),
        acked(window=0),
        record(ACK, 1, step=(MS, 200)),
        acked(window=0),
        acked(window=9000),
        *data(1),
    ],
    "keepalive": [*handshake(), *data(1), acked(), record(ACK, 1, seq=-1, step=(MS, 255)), acked(), record(ACK, seq=-1)],
    "wrap": [*handshake(isn=0xFFFFFF00), *data(4), acked(), *data(2)],
    "middle": [*data(2), acked(), record(ACK, 700, seq=-90_000), acked(-50_000)],
    "reuse": [*handshake(), record(RST), *handshake(isn=77), *CLOSE, *handshake(isn=77)],
    "syn-fin": [record(SYN | FIN, seq=5, absolute=True), record(SYN | FIN, seq=5, absolute=True), record(RST | ACK, server=True)],
    "late-syn": [acked(), record(ACK), *handshake(), *data(1)],
    "jumbo": [*handshake(), *data(2, 3, mode=0x80), acked(), record(ACK, 0xFFFF, mode=0xC0), record(ACK, 9, seq=-0x10000)],
    "cut": [*handshake(), *data(3, mode=0x40), acked()],
    "clock-back": [*handshake(), *data(2), acked(step=(BACK, 255)), *data(2, window=0), acked(step=(BACK, 200))],
    "four": [record(SYN, seq=at, absolute=True, connection=at) for at in range(4)] + [record(ACK, 10, connection=at) for at in range(4)],
    "no-options": [*handshake(options=0), *data(3, scale=0), acked(), record(PSH, 5), record(0, 5, server=True)],
    "bad-offset": [*handshake(), record(ACK, 100)[:18] + b"\x02\xff" + bytes(4), acked()],
    "duplicates": [*handshake(), *data(1), record(ACK | PSH, 1460, seq=-1460, step=(US, 1)), acked(), acked()],
    "numbers": [record(ACK, 1, seq=at << 29, ack=at << 30, absolute=True, server=bool(at & 1)) for at in range(8)],
}
