"""One connection, from the SYN to the last ACK, as captured at the host that sends the data.

There are two kinds of connections. One is a bulk transfer in congestion avoidance, whose losses are repaired by fast retransmits. In the
other one, a few segments answer each request. Offsets are relative (SYN = 0, first byte = 1) until `_segments` adds the initial sequence
number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
from frames import ACK, FIN, MSS_BYTES, NEAR_TTL, PSH, SEGMENT, SYN, WINDOW_SCALE, Rows
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Sequence

Int64s: TypeAlias = NDArray[np.int64]

US_NS: Final = 1000
MS_NS: Final = 1_000_000
_INITIAL_WINDOW_SEGMENTS: Final = 10  # RFC 6928
_DUPLICATE_ACKS: Final = 3  # RFC 5681, section 3.2
_DELAYED_ACK_NS: Final = 40 * MS_NS  # Linux: TCP_DELACK_MIN
_HOST_NS: Final = 30 * US_NS
"""Time in which a host answers. It is a guess, and not measured."""
_WIRE_NS: Final = 12 * US_NS  # 1514 bytes at 1 Gbit/s
_ARRIVAL_JITTER_NS: Final = 200 * US_NS
"""Maximum random delay added to an RTT."""
_LOSSES_PER_ROUND: Final = 0.1
"""Share of round trips that lose a segment. With windows of 30 to 60 segments, this is about one segment in 500."""
_ROUNDS_BETWEEN_LOSSES: Final = 4
_MAX_WINDOW_SEGMENTS: Final = 64
_OFFERED_WINDOW_BYTES: Final = 4 * _MAX_WINDOW_SEGMENTS * 1500
"""The receive window. It is never full, so that no result depends on the treatment of a full window."""


@dataclass(frozen=True)
class Ends:
    """The two hosts of one connection. `near` is at the capture point and sends the data, and `far` acknowledges them.

    The pairs `isn`, `clock` and `ip_id` have the number of the near host first.
    """

    near: tuple[int, int]
    far: tuple[int, int]
    rtt_ns: int
    isn: Sequence[int]
    clock: Sequence[int]
    ip_id: Sequence[int]
    far_ttl: int

    @classmethod
    def drawn(cls, rng: np.random.Generator, near: tuple[int, int], far: tuple[int, int], rtt_ns: int) -> Ends:
        """Return hosts with these (address, port) pairs. Their initial numbers are drawn from `rng`."""
        isn, clock = rng.integers(0, 1 << 32, (2, 2)).tolist()
        ip_id = rng.integers(0, 1 << 16, 2).tolist()
        return cls(near, far, rtt_ns, isn, clock, ip_id, NEAR_TTL - int(rng.integers(5, 20)))

    def clock_at(self, ts_ns: Int64s, *, near: bool) -> Int64s:
        """Return the timestamp values of segments that are captured at `ts_ns`.

        The clock has ticks of 1 ms. Segments of the far host left it half a round trip earlier.
        """
        left_ns = ts_ns if near else ts_ns - self.rtt_ns // 2
        return (left_ns // MS_NS + self.clock[0 if near else 1]) & 0xFFFFFFFF


def bulk_transfer(rng: np.random.Generator, ends: Ends, start_ns: int, segments: int, *, near_opens: bool) -> Rows:
    """Return a bulk transfer of `segments` full segments from the near host to the far host.

    The segments are spread over each round trip, and every second one is acknowledged. If `near_opens` is true, the near host is the
    client. Otherwise the far host is the client, and it sends one request first.
    """
    data_start_ns = start_ns + ends.rtt_ns + 200 * US_NS
    request_bytes = 0 if near_opens else int(rng.integers(120, 600))
    sizes, lost = _rounds(rng, segments)
    data_ns = data_start_ns + _send_times_ns(rng, sizes, ends.rtt_ns)
    offset = 1 + MSS_BYTES * np.arange(segments, dtype=np.int64)
    asked = 1 + request_bytes
    acks, resent = _acknowledge(rng, ends, data_ns, offset, lost, asked)
    data = _segments(ends, data_ns, offset, asked, payload=MSS_BYTES, near=True)
    data["flags"][np.cumsum(sizes) - 1] |= PSH
    resent_at = np.array([rtx for rtx, _ in resent], np.int64)
    again = _segments(ends, resent_at, offset[[index for _, index in resent]], asked, payload=MSS_BYTES, near=True)
    again["resent"] = True
    parts = [_handshake(ends, start_ns, near_opens=near_opens), data, again, acks]
    if not near_opens:
        asking_ns = start_ns + ends.rtt_ns + 100 * US_NS
        parts.append(_segments(ends, asking_ns, 1, 1, PSH | ACK, request_bytes, near=False))
    parts.append(_close(ends, int(acks["ts_ns"][-1]), int(offset[-1]) + MSS_BYTES, asked))
    return _in_order(ends, parts)


def request_exchange(rng: np.random.Generator, ends: Ends, start_ns: int, segments: int) -> Rows:
    """Return requests of the far host, each answered by 1 to 10 segments of the near host. There are about `segments` segments in all."""
    exchanges = max(1, segments // 5)
    request = rng.integers(120, 900, exchanges)
    response = np.minimum(rng.lognormal(8.3, 1.0, exchanges).astype(np.int64) + 60, _INITIAL_WINDOW_SEGMENTS * MSS_BYTES)
    counts = -(-response // MSS_BYTES)
    service_ns = (rng.exponential(5 * MS_NS, exchanges) + 100 * US_NS).astype(np.int64)
    think_ns = (rng.exponential(60 * MS_NS, exchanges) + MS_NS).astype(np.int64)
    whole_ns = service_ns + counts * _WIRE_NS + ends.rtt_ns + _DELAYED_ACK_NS + think_ns
    asked_ns = start_ns + ends.rtt_ns + 100 * US_NS + np.cumsum(whole_ns) - whole_ns
    asked = 1 + np.cumsum(request)  # bytes that the far host has sent when the exchange begins
    answered = 1 + np.cumsum(response) - response  # offset of the answer

    exchange = np.repeat(np.arange(exchanges), counts)
    position = np.arange(len(exchange)) - np.repeat(np.cumsum(counts) - counts, counts)
    last = position == counts[exchange] - 1
    payload = np.where(last, response[exchange] - position * MSS_BYTES, MSS_BYTES)
    data_ns = (asked_ns + service_ns)[exchange] + position * _WIRE_NS
    offset = answered[exchange] + position * MSS_BYTES
    data = _segments(ends, data_ns, offset, asked[exchange], np.where(last, PSH | ACK, ACK), payload, near=True)

    paired = position % 2 == 1
    acked = np.flatnonzero(paired | last)
    late_ns = np.where(paired[acked], 0, _DELAYED_ACK_NS)
    acks = _segments(ends, data_ns[acked] + ends.rtt_ns + late_ns, asked[exchange[acked]], (offset + payload)[acked], near=False)
    requests = _segments(ends, asked_ns, asked - request, answered, PSH | ACK, request, near=False)
    end = int(answered[-1] + response[-1])
    close = _close(ends, int(acks["ts_ns"][-1]), end, int(asked[-1]))
    return _in_order(ends, [_handshake(ends, start_ns, near_opens=False), requests, data, acks, close])


def _rounds(rng: np.random.Generator, segments: int) -> tuple[Int64s, list[int]]:
    """Return the flight of each round trip in segments, and the indexes of the lost segments.

    The flights grow by slow start and then by additive increase.
    """
    sizes: list[int] = []
    lost: list[int] = []
    window, threshold = _INITIAL_WINDOW_SEGMENTS, int(rng.integers(20, _MAX_WINDOW_SEGMENTS))
    sent, since_loss = 0, 0
    while sent < segments:
        size = min(window, segments - sent)
        since_loss += 1
        room = segments - sent > 4 * window  # later segments must follow, so that the loss is detected
        if room and since_loss >= _ROUNDS_BETWEEN_LOSSES and rng.random() < _LOSSES_PER_ROUND:
            lost.append(sent + int(rng.integers(0, size)))
            threshold = window = max(window // 2, _INITIAL_WINDOW_SEGMENTS // 2)
            since_loss = 0
        elif window < threshold:
            window = min(2 * window, threshold)
        else:
            window = min(window + 1, _MAX_WINDOW_SEGMENTS)
        sizes.append(size)
        sent += size
    return np.array(sizes, np.int64), lost


def _send_times_ns(rng: np.random.Generator, sizes: Int64s, rtt_ns: int) -> Int64s:
    """Return the time in nanoseconds at which each segment leaves.

    The flight of a round trip is spread unevenly over the round trip. The times are strictly rising.
    """
    last_of_round = np.cumsum(sizes)
    count = int(last_of_round[-1])
    position = np.arange(count) - np.repeat(last_of_round - sizes, sizes)
    share = (position + rng.uniform(0.0, 0.95, count)) / np.repeat(np.maximum(sizes, _INITIAL_WINDOW_SEGMENTS), sizes)
    turn = np.repeat(np.arange(len(sizes)), sizes)
    round_ns = rtt_ns + _ARRIVAL_JITTER_NS + _HOST_NS  # segments that an ACK releases leave after the ACK
    times_ns: Int64s = ((turn + share) * round_ns).astype(np.int64)
    return times_ns


@dataclass
class _Receiver:
    """The reaction of the far host to each data segment. Each array has one element per segment."""

    arrival_ns: Int64s  # when the ACK that the segment causes passes the capture point
    up_to: Int64s  # ACK number of this ACK
    sends: NDArray[np.bool_]  # whether the segment causes an ACK
    echo: Int64s  # index of the segment whose timestamp is echoed
    sack_from: Int64s  # left edge of the SACK block, or 0 if there is none


def _acknowledge(
    rng: np.random.Generator, ends: Ends, data_ns: Int64s, offset: Int64s, lost: list[int], asked: int
) -> tuple[Rows, list[tuple[int, int]]]:
    """Return all ACKs of the far host, and the time and index of each retransmit.

    Every second segment is acknowledged. While a segment is missing, every segment is acknowledged with SACK. The segment that fills the
    gap is acknowledged at once.
    """
    count = len(data_ns)
    receiver = _Receiver(
        arrival_ns=np.maximum.accumulate(data_ns + ends.rtt_ns + rng.integers(0, _ARRIVAL_JITTER_NS, count)),
        up_to=offset + MSS_BYTES,
        sends=np.zeros(count, bool),
        echo=np.maximum(np.arange(count) - 1, 0),  # a delayed ACK echoes the first segment it covers (RFC 7323, section 4.3)
        sack_from=np.zeros(count, np.int64),
    )
    pair_from = 0
    resent: list[tuple[int, int]] = []
    parts: list[Rows] = []
    for index in lost:
        receiver.sends[pair_from + 1 : index : 2] = True
        waiting = index > pair_from and not receiver.sends[index - 1]  # the first ACK after the loss is then no duplicate yet
        resent_ns = int(receiver.arrival_ns[index + _DUPLICATE_ACKS + waiting]) + _HOST_NS
        pair_from = int(np.searchsorted(data_ns, resent_ns))  # the first segment that arrives after the retransmit
        filled_ns = _recover(receiver, index, pair_from, resent_ns + ends.rtt_ns, offset)
        fill = _segments(ends, filled_ns, asked, int(offset[pair_from - 1]) + MSS_BYTES, near=False)
        fill["tsecr"] = ends.clock_at(np.array([resent_ns]), near=True)
        parts.append(fill)
        resent.append((resent_ns, index))
    receiver.sends[pair_from + 1 :: 2] = True
    if not receiver.sends[-1]:  # a last odd segment waits for the delayed-ACK timer
        receiver.sends[-1] = True
        receiver.echo[-1] = count - 1
        receiver.arrival_ns[-1] += _DELAYED_ACK_NS
    parts.append(_acks(ends, receiver, data_ns, offset, asked))
    rows = np.concatenate(parts)
    return rows[np.argsort(rows["ts_ns"], kind="stable")], resent


def _recover(receiver: _Receiver, lost: int, after: int, filled_ns: int, offset: Int64s) -> int:
    """Mark the duplicate ACKs for the segments between `lost` and `after`.

    Return when the ACK of the filled gap passes the capture point.
    """
    missing = slice(lost + 1, after)
    receiver.sends[missing] = True
    receiver.up_to[missing] = offset[lost]
    receiver.echo[missing] = max(lost - 1, 0)  # RFC 7323: timestamp of the last segment that advanced the left edge
    receiver.sack_from[missing] = offset[lost + 1]
    filled_ns = max(filled_ns, int(receiver.arrival_ns[after - 1]) + US_NS)
    receiver.arrival_ns[after:] = np.maximum(receiver.arrival_ns[after:], filled_ns + US_NS)
    return filled_ns


def _acks(ends: Ends, receiver: _Receiver, data_ns: Int64s, offset: Int64s, asked: int) -> Rows:
    """Return the ACKs that data segments cause."""
    which = np.flatnonzero(receiver.sends)
    rows = _segments(ends, receiver.arrival_ns[which], asked, receiver.up_to[which], near=False)
    rows["tsecr"] = ends.clock_at(data_ns[receiver.echo[which]], near=True)
    sacking = np.flatnonzero(receiver.sack_from[which])
    rows["sack_left"][sacking] = (receiver.sack_from[which[sacking]] + ends.isn[0]) & 0xFFFFFFFF
    rows["sack_right"][sacking] = (offset[which[sacking]] + MSS_BYTES + ends.isn[0]) & 0xFFFFFFFF
    return rows


def _segments(
    ends: Ends,
    ts_ns: int | Int64s,
    offset: int | Int64s,
    ack: int | Int64s,
    flags: int | Int64s = ACK,
    payload: int | Int64s = 0,
    *,
    near: bool,
) -> Rows:
    """Return segments of one direction. `_in_order` fills in their `tsecr` and `ip_id`.

    All arguments are broadcast to the shape of `ts_ns`.
    """
    me, other = (0, 1) if near else (1, 0)
    ts = np.atleast_1d(np.asarray(ts_ns, np.int64))
    rows = np.zeros(len(ts), SEGMENT)
    src, dst = (ends.near, ends.far) if near else (ends.far, ends.near)
    rows["src_addr"], rows["src_port"] = src
    rows["dst_addr"], rows["dst_port"] = dst
    rows["ts_ns"] = ts
    rows["seq"] = (np.asarray(offset, np.int64) + ends.isn[me]) & 0xFFFFFFFF
    rows["ack"] = (np.asarray(ack, np.int64) + ends.isn[other]) & 0xFFFFFFFF
    rows["flags"] = flags
    rows["payload_bytes"] = payload
    rows["window"] = _OFFERED_WINDOW_BYTES >> WINDOW_SCALE
    rows["tsval"] = ends.clock_at(ts, near=near)
    rows["ttl"] = NEAR_TTL if near else ends.far_ttl
    return rows


def _handshake(ends: Ends, start_ns: int, *, near_opens: bool) -> Rows:
    """Return SYN, SYN-ACK and ACK, as the near host captures them."""
    answer_ns, done_ns = (ends.rtt_ns, ends.rtt_ns + _HOST_NS) if near_opens else (_HOST_NS, ends.rtt_ns + 2 * _HOST_NS)
    syn = _segments(ends, start_ns, 0, 0, SYN, near=near_opens)
    syn["ack"] = 0
    syn_ack = _segments(ends, start_ns + answer_ns, 0, 1, SYN | ACK, near=not near_opens)
    for opening in (syn, syn_ack):
        opening["window"] = 64_240  # first window of Linux, unscaled
    return np.concatenate((syn, syn_ack, _segments(ends, start_ns + done_ns, 1, 1, near=near_opens)))


def _close(ends: Ends, after_ns: int, near_end: int, far_end: int) -> Rows:
    """Return the FIN of the near host, the FIN of the far host with its ACK, and the last ACK."""
    fin_ns = after_ns + MS_NS
    return np.concatenate(
        (
            _segments(ends, fin_ns, near_end, far_end, FIN | ACK, near=True),
            _segments(ends, fin_ns + ends.rtt_ns, far_end, near_end + 1, FIN | ACK, near=False),
            _segments(ends, fin_ns + ends.rtt_ns + _HOST_NS, near_end + 1, far_end + 1, near=True),
        )
    )


def _in_order(ends: Ends, parts: list[Rows]) -> Rows:
    """Return the whole connection in order of time, with echoes of timestamps and IP IDs."""
    rows = np.concatenate(parts)
    rows = rows[np.argsort(rows["ts_ns"], kind="stable")]
    from_near = rows["ttl"] == NEAR_TTL
    for near in (True, False):
        mine, theirs = np.flatnonzero(from_near == near), np.flatnonzero(from_near != near)
        heard_ns = rows["ts_ns"][mine] - (0 if near else ends.rtt_ns)  # the far host answers segments that passed a round trip ago
        heard = np.searchsorted(rows["ts_ns"][theirs], heard_ns, side="right") - 1
        echo = np.where(heard >= 0, rows["tsval"][theirs[heard]], 0)
        rows["tsecr"][mine] = np.where(rows["tsecr"][mine] == 0, echo, rows["tsecr"][mine])
        rows["ip_id"][mine] = (ends.ip_id[0 if near else 1] + np.arange(len(mine))) & 0xFFFF
    return rows
