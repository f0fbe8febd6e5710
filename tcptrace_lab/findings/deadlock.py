"""Finds throughput deadlocks: in each round trip, sender and receiver wait for each other until the delayed-ACK timer expires.

The receiver delays its ACK until enough bytes have arrived: two full segments, or a share of the receive buffer if that is less (SunOS:
35%; 4.4BSD: 50%). The sender delays its queued data until a full segment or half of the largest window is queued, or until all earlier data
is ACKed. If the send buffer is smaller than both thresholds together, both hosts can wait, and the application is blocked. A capture does
not show the receive buffer, so the largest window is used instead.

Three or more consecutive waits prove a deadlock; the engine finds them (`rust/src/ledger/`). Each wait ends with a late ACK that covers all
data. The number of bytes in flight is equal in all waits, or alternates between two values if the rest of one write makes the next round
longer. Between two waits, the sender sends as many bytes as were in flight, and the peer sends no data. If an earlier ACK covers part of a
round's bytes, no deadlock is reported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tcptrace_lab.causes import Confidence
from tcptrace_lab.causes.texts import immediate_ack
from tcptrace_lab.findings.finding import Finding, severity_of
from tcptrace_lab.stacks.rounding import BSD44_CLUSTER_BYTES
from tcptrace_lab.stacks.thresholds import BSD44_PERCENT, SUNOS_PERCENT, ack_bytes, hold_bytes
from tcptrace_lab.text import numbers

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

FINDING = "throughput-deadlock"

CAUSES = frozenset({"nagle-delayed-ack", "delayed-ack"})
"""The causes to which the ledger assigns the waits of a deadlock."""

LOST_TO = "a throughput deadlock (the sender waits for an ACK, the receiver for more data)"
CURE = "a larger send buffer on {sender}, or " + immediate_ack.CURE
"""Cause and cure in the words of the verdict (`causes.Rule.lost_to`, `causes.Advice.cure`)."""

MIN_SHARE = 0.5
"""A deadlock must take at least this share of the time that its direction waits for late ACKs (a heuristic).

The finding on the deadlock then replaces the other findings on late ACKs in this direction.
"""

SOURCE = (
    "Comer & Lin, TCP buffering and performance over an ATM network; Moldeklev & Gunningberg 1995; SunOS 4.1.3 netinet/tcp_output.c; "
    "RFC 896; RFC 1122, 4.2.3.2 and 4.2.3.4"
)


class Lock(NamedTuple):
    """The deadlocked rounds of one direction.

    Attributes:
        flight_bytes: bytes in flight in each round; the larger number if two numbers alternate.
        min_flight_bytes: the smaller number if two numbers alternate, else equal to `flight_bytes`.
        queued_bytes: payload of the largest small segment that was sent after the ACK at the end of a round. 0 if only full segments were
            sent, because Nagle's algorithm delays no full segment.
        min_buffer_bytes: lower bound of the send buffer: the largest number of bytes in flight and queued in one round.
        smss_bytes: size of a full segment.
        window_bytes: largest window, used as the receive buffer.
        rounds: number of rounds.
        ns: total time of the waits in these rounds.
        median_ns: median of these waits.
        nagle: whether every segment sent after one of the late ACKs was small, and followed a small segment.
        may_fill_buffer: whether no flight was ever much larger, so that a full send buffer explains the rounds equally well.
        frames: for the first rounds, the frames at the ends of the wait, and the late ACK.
    """

    flight_bytes: int
    min_flight_bytes: int
    queued_bytes: int
    min_buffer_bytes: int
    smss_bytes: int
    window_bytes: int
    rounds: int
    ns: int
    median_ns: int
    nagle: bool
    may_fill_buffer: bool
    frames: tuple[int, ...]

    @property
    def ack_bytes(self) -> int:
        """Number of bytes after which the receiver sends an ACK. 4.4BSD's rule is used if SunOS would have sent an ACK earlier."""
        ours = ack_bytes(self.smss_bytes, self.window_bytes, SUNOS_PERCENT)
        return ours if self.flight_bytes < ours else ack_bytes(self.smss_bytes, self.window_bytes, BSD44_PERCENT)

    @property
    def hold_bytes(self) -> int:
        """Number of queued bytes at which the sender no longer waits for an ACK; 0 if nothing was queued."""
        return hold_bytes(self.smss_bytes, self.window_bytes) if self.queued_bytes else 0

    @property
    def unacked_words(self) -> str:
        """The bytes in flight as text: `8,192`, or `12,288 and 16,384` if two numbers alternate."""
        both = (self.min_flight_bytes, self.flight_bytes)
        return " and ".join(f"{size_bytes:,}" for size_bytes in dict.fromkeys(both))

    @property
    def rate_bps(self) -> float:
        """The rate in bits per second: the bytes in flight per median wait."""
        return (self.min_flight_bytes + self.flight_bytes) / 2 * 8 * numbers.NS_PER_S / self.median_ns


def findings(
    late: Mapping[tuple[int, bool], tuple[int, int]], locked: pl.DataFrame, receivers: Mapping[tuple[int, bool], str | None]
) -> dict[tuple[int, bool], Finding]:
    """Return the findings on deadlocks in some directions.

    Args:
        late: `conn, from_client` → time in nanoseconds that the ledger assigns to `CAUSES`, and the direction's active time.
        locked: rows of `schema.LOCKS`, at least those of these directions.
        receivers: `conn, from_client` → family of the receiver's stack (`fingerprint`).

    Returns:
        `conn, from_client` → the finding that replaces those on `CAUSES`.
    """
    known = locks(locked) if late else {}
    return {
        direction: _finding(direction, known[direction], ns, active_ns, receivers[direction])
        for direction, (ns, active_ns) in late.items()
        if direction in known and known[direction].ns >= MIN_SHARE * ns
    }


def locks(rows: pl.DataFrame) -> dict[tuple[int, bool], Lock]:
    """Return the deadlock of each direction that has one, from rows of `schema.LOCKS`."""
    return {(row["conn"], row["from_client"]): _lock(row) for row in rows.iter_rows(named=True)}


def _lock(row: Mapping[str, Any]) -> Lock:
    own = {name: value for name, value in row.items() if name not in {"conn", "from_client"}}
    return Lock(**own | {"frames": tuple(row["frames"])})


def _finding(direction: tuple[int, bool], lock: Lock, late_ns: int, active_ns: int, receiver: str | None) -> Finding:
    share = lock.ns / active_ns
    rest = late_ns - lock.ns
    return Finding(
        id=FINDING,
        severity=severity_of(share),
        confidence=Confidence.PROVED if lock.nagle else Confidence.CONSISTENT,
        conn=direction[0],
        from_client=direction[1],
        cost_ns=lock.ns,
        cost_share=share,
        title=(
            f"Throughput deadlock: {lock.rounds:,} rounds of {lock.unacked_words} bytes cost {numbers.duration(lock.ns)} "
            f"(median wait {numbers.duration(lock.median_ns)})"
        ),
        mechanism=_mechanism(lock),
        evidence_frames=lock.frames,
        limits=_limits(lock, rest),
        remedy=_remedy(lock, receiver),
        predicted_gain=f"at most {numbers.duration(lock.ns)} of {numbers.duration(active_ns)}: upper bound if this is fixed",
        source=SOURCE,
        causes=CAUSES,
        is_of_waits=not lock.may_fill_buffer,
    )


def _mechanism(lock: Lock) -> str:
    receiver = (
        f"The receiver delays its ACK until it has {lock.ack_bytes:,} bytes, but only {lock.unacked_words} bytes are in flight. Its "
        f"delayed-ACK timer ends each round, which limits the rate to {numbers.rate(lock.rate_bps)}."
    )
    if not lock.queued_bytes:
        return f"{receiver} The sender cannot send more: its send buffer is full, and too small for {lock.ack_bytes:,} bytes."
    held = (
        f"delays {lock.queued_bytes:,} queued bytes until it has {lock.hold_bytes:,} bytes or all data is ACKed. A send buffer of "
        f"{lock.hold_bytes + lock.ack_bytes:,} bytes would prevent this; the buffer of this sender is smaller, but has at least "
        f"{lock.min_buffer_bytes:,} bytes"
    )
    if not lock.may_fill_buffer:
        return f"{receiver} The sender {held}."
    return f"{receiver} Either the bytes in flight fill the send buffer, or the sender {held}."


def _limits(lock: Lock, rest_ns: int) -> str:
    either = lock.queued_bytes > 0 and lock.may_fill_buffer
    known = "in flight" if either else "in flight and queued"
    sentences = [
        (
            "The receive buffer is assumed to equal the largest window. The exact size of the send buffer is unknown; it has room at least "
            f"for the bytes that were {known}."
        ),
        (
            "Would be disproved by: data from the receiver between the rounds; rounds with different numbers of bytes; an application "
            f"that writes exactly {lock.unacked_words} bytes and then waits."
        ),
    ]
    if not lock.nagle:
        sentences.insert(1, "The capture does not show whether a send buffer or a clamped congestion window limited the sender.")
    if either:
        sentences.insert(1, "The capture does not show which of these explanations is right: there was never much more data in flight.")
    if rest_ns > 0:
        sentences.append(f"Other waits for late ACKs in this direction ({numbers.duration(rest_ns)}) are not included.")
    return " ".join(sentences)


def _remedy(lock: Lock, receiver: str | None) -> tuple[str, ...]:
    needed = lock.hold_bytes + lock.ack_bytes
    more = f"which is at most {needed - lock.min_buffer_bytes:,} more than now"
    if lock.queued_bytes and lock.may_fill_buffer:
        more += f", or {needed - lock.flight_bytes:,} more if the bytes in flight fill the buffer"
    unused = BSD44_CLUSTER_BYTES - 1  # if a write does not fit, `sosend` waits for room for one cluster; 4.4BSD has the largest clusters
    buffer = (
        f"raise the send buffer (SO_SNDBUF) to at least {needed:,} bytes, {more}; {3 * lock.smss_bytes + unused:,} bytes are always "
        f"enough: three full segments, and the {unused:,} bytes that a BSD socket can leave unused"
    )
    quick, smaller = immediate_ack.words(receiver), "reduce the receive buffer, so that the receiver ACKs earlier"
    if not lock.queued_bytes:
        return buffer, quick, smaller
    nodelay = "set TCP_NODELAY at the sender"
    if lock.may_fill_buffer:
        nodelay += ", which helps only if the send buffer has room for more than the bytes in flight"
    if lock.min_buffer_bytes < lock.ack_bytes:
        nodelay += (
            f"; alone it may not be enough, because an ACK needs {lock.ack_bytes:,} bytes in flight, "
            f"but the send buffer may be as small as {lock.min_buffer_bytes:,} bytes"
        )
    return buffer, nodelay, quick, smaller
