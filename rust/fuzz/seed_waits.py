"""Seeds of the targets `sender` and `ledger`: waits of senders, in records as `src/followed.rs` reads them, and crafted ones."""

from __future__ import annotations

import random

from seed_segments import ACK, BACK, CLOSE, MS, PSH, SCENARIOS, TIMES, acked, data, handshake, record

YEARS_58, YEARS_4, MINUTES_7, DAYS_10 = 53, 49, 31, 42
"""Powers of two of nanoseconds, of which 204 pass in a step of the seeds: so that is about how long it is."""
STEP = (MS, 203)
GO_BACK, NO_TIME = 0x80, 0x40
CRAFTED = 0x80
FACTS_BYTES, WAIT_BYTES = 128, 72
"""As in `src/ledger.rs`."""


def stepped(records: list[bytes], steps: dict[int, int] | None = None) -> bytes:
    """Segments, each with the byte that moves the clock: 0 but for those in `steps`."""
    return b"".join(one + bytes([(steps or {}).get(at, 0)]) for at, one in enumerate(records))


def rounds(count: int, size: int, wait: tuple[int, int] = (MS, 40)) -> list[bytes]:
    """Segments of the client that each wait for the ACK of the one before."""
    return [part for at in range(count) for part in (record(ACK | PSH, size, tsval=40 * at), acked(step=wait))]


def flights(count: int, segments: int) -> list[bytes]:
    """Flights of full segments, a round trip of 30 ms each."""
    return [part for _ in range(count) for part in (*data(segments), acked(step=(MS, 30)))]


LONG = [*handshake(), *data(2), record(ACK, 1460, step=STEP), acked(step=STEP), *data(2), acked(), *CLOSE]

ANSWER = record(ACK | PSH, 700, server=True, step=(MS, 90))
TICKS_BACK = [record(ACK, 1460, options=TIMES, tsval=-9_000_000 * at & 0xFFFFFFFF, step=(MS, 20)) for at in range(9)]

WAITS = {
    "bulk": stepped([*handshake(), *flights(6, 8), *CLOSE]),
    "nagle": stepped([*handshake(), *rounds(8, 100), *CLOSE]),
    "questions": stepped([*handshake(), *[one for _ in range(5) for one in (*data(1, 200), ANSWER)]]),
    "fast-retransmit": stepped(SCENARIOS["fast-retransmit"]),
    "timeout": stepped(SCENARIOS["timeout"]),
    "zero-window": stepped(SCENARIOS["zero-window"]),
    "middle": stepped([*flights(3, 4), *SCENARIOS["middle"]]),
    "minutes": stepped(LONG, {5: MINUTES_7, 8: MINUTES_7}),
    "days": stepped(LONG, {5: DAYS_10, 6: DAYS_10}),
    "years": stepped(LONG, {5: YEARS_4}),
    "centuries": stepped([*LONG, *LONG[3:]], {5: YEARS_58, 6: YEARS_58, 8: YEARS_58, 12: YEARS_58 + 1}),
    "back": stepped([*LONG, acked(step=(BACK, 255))], {5: MINUTES_7, 6: MINUTES_7 | GO_BACK, 7: YEARS_58 | GO_BACK}),
    "no-times": stepped(LONG, {4: NO_TIME, 5: NO_TIME, 6: NO_TIME, 9: NO_TIME}),
    "ticks-back": stepped([*handshake(), *TICKS_BACK, acked()]),
}
"""Name → segments, without the byte of options."""


def crafted(seed: int, waits: int) -> bytes:
    """Facts and waits made of random bytes, always the same of one seed."""
    return random.Random(seed).randbytes(FACTS_BYTES + waits * WAIT_BYTES)  # noqa: S311  (no secret)


SENDER = {name: bytes([at % 4]) + waits for at, (name, waits) in enumerate(WAITS.items())}
LEFT_TO_SENDER = ("fast-retransmit", "days", "middle", "no-times")
"""Scenarios that show the target `ledger` nothing that others do not."""
LEDGER = {name: bytes([7 * at % 32]) + waits for at, (name, waits) in enumerate(WAITS.items()) if name not in LEFT_TO_SENDER} | {
    f"crafted-{seed}": bytes([CRAFTED]) + crafted(seed, 5) for seed in range(4)
}
