"""Synthetic traffic that follows the rules of TCP. Segments come in order of time and need bounded memory.

`busy_link` has many bulk transfers and request-response connections side by side, captured at the host that sends the data. `one_transfer`
is a single bulk transfer. `short_connections` is a busy server with ten packets per connection, captured at the server. All of them are
iterators of structured arrays (dtype `frames.SEGMENT`). A seed always gives the same segments.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from conversation import MS_NS, US_NS, Ends, bulk_transfer, request_exchange
from frames import ACK, FIN, MSS_BYTES, NEAR_TTL, PSH, SEGMENT, SYN, WINDOW_SCALE, Rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

EPOCH_NS: Final = 1_704_067_200_000_000_000
"""Start of all captures: 2024-01-01 00:00:00 UTC."""
_CLIENT_NET: Final = 0x0A000001  # 10.0.0.1 and up
_SERVER_NET: Final = 0xC6336401  # 198.51.100.1 and up (RFC 5737)
_CLIENTS: Final = 65_521
"""Number of client addresses. It is a prime, so that multiplication modulo this number reaches each address once."""
_SERVERS: Final = 16
_SERVER_PORT: Final = 8650  # tshark has no dissector for this port, so its time does not include dissecting payload
_UPLOAD_SHARE: Final = 0.4  # share of connections in which the client sends the data and is at the capture point
_EXCHANGE_SHARE: Final = 0.5
"""Share of request-response connections. All others are bulk transfers. The value is a guess at a busy link."""
_SLAB_NS: Final = 250 * MS_NS
"""Duration of the traffic that is merged and yielded at once."""


def client_ends(index: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the address and the port of the client of each connection in `index`.

    No pair of address and port comes twice if `index` is below 65521 × 40000.
    """
    which = index % _CLIENTS * 40_503 % _CLIENTS
    port = 20_000 + (index // _CLIENTS * 7919 + which * 31) % 40_000
    return _CLIENT_NET + which, port


@dataclass
class _Lane:
    """A sequence of connections, one after the other. Several lanes run side by side."""

    rng: np.random.Generator
    next_start_ns: int
    segments_median: float
    bulk_only: bool
    pending: Rows

    def fill(self, until_ns: int, numbers: Iterator[int]) -> None:
        """Start connections until the packets of the lane are known up to `until_ns`."""
        parts = [self.pending]
        while self.next_start_ns < until_ns:
            rows = self._connection(next(numbers))
            self.next_start_ns = int(rows["ts_ns"][-1]) + int(self.rng.exponential(50 * MS_NS))
            parts.append(rows)
        self.pending = np.concatenate(parts) if len(parts) > 1 else self.pending

    def take(self, until_ns: int) -> Rows:
        """Remove and return the packets before `until_ns`."""
        cut = int(np.searchsorted(self.pending["ts_ns"], until_ns))
        taken, self.pending = self.pending[:cut], self.pending[cut:]
        return taken

    def _connection(self, number: int) -> Rows:
        rng = self.rng
        addr, port = client_ends(np.array([number], np.int64))
        client = (int(addr[0]), int(port[0]))
        server = (_SERVER_NET + number % _SERVERS, _SERVER_PORT)
        rtt_ns = int(rng.uniform(20, 120) * MS_NS)
        segments = int(np.clip(self.segments_median * rng.lognormal(0.0, 1.0), 20, 20_000))
        upload = self.bulk_only or rng.random() < _UPLOAD_SHARE
        near, far = (client, server) if upload else (server, client)
        ends = Ends.drawn(rng, near, far, rtt_ns)
        if not self.bulk_only and rng.random() < _EXCHANGE_SHARE:
            return request_exchange(rng, ends, self.next_start_ns, segments)
        return bulk_transfer(rng, ends, self.next_start_ns, segments, near_opens=upload)


def busy_link(seed: int, lanes: int, segments_median: float, *, bulk_only: bool = False) -> Iterator[Rows]:
    """Yield endless traffic of `lanes` conversations side by side, in slabs of a quarter second.

    Args:
        seed: seed of all random numbers.
        lanes: number of connections that are open at a time.
        segments_median: median number of data segments in a connection.
        bulk_only: whether all connections are uploads, without requests and responses.
    """
    root = np.random.default_rng(seed)
    numbers = iter(range(1 << 62))
    empty = np.zeros(0, SEGMENT)
    running = [_Lane(rng, EPOCH_NS + int(rng.uniform(0, 1000) * MS_NS), segments_median, bulk_only, empty) for rng in root.spawn(lanes)]
    until_ns = EPOCH_NS
    while True:
        until_ns += _SLAB_NS
        for lane in running:
            lane.fill(until_ns, numbers)
        slab = np.concatenate([lane.take(until_ns) for lane in running])
        yield slab[np.argsort(slab["ts_ns"], kind="stable")]


def one_transfer(seed: int, packets: int) -> Iterator[Rows]:
    """Yield one complete connection of at least `packets` packets.

    Unlike the other generators, this one needs memory in proportion to the number of packets.
    """
    rng = np.random.default_rng(seed)
    ends = Ends.drawn(rng, (_CLIENT_NET, 40_000), (_SERVER_NET, _SERVER_PORT), 30 * MS_NS)
    yield bulk_transfer(rng, ends, EPOCH_NS, packets * 3 // 4, near_opens=True)


PACKETS_PER_SHORT_CONNECTION: Final = 10
_CONNECTIONS_PER_CHUNK: Final = 20_000
_MEAN_ARRIVAL_NS: Final = 110 * US_NS
"""Mean time between two new connections. A connection lasts about 0.11 s, so about 1,000 are open at a time."""


def short_connections(seed: int, connections: int) -> Iterator[Rows]:
    """Yield `connections` connections of ten packets each, interleaved as a busy server sees them."""
    rng = np.random.default_rng(seed)
    start_ns = EPOCH_NS
    carried = np.zeros(0, SEGMENT)
    for first in range(0, connections, _CONNECTIONS_PER_CHUNK):
        count = min(_CONNECTIONS_PER_CHUNK, connections - first)
        starts_ns = start_ns + np.cumsum(rng.exponential(_MEAN_ARRIVAL_NS, count)).astype(np.int64)
        start_ns = int(starts_ns[-1])
        rows = np.concatenate((carried, _ten_packets(rng, starts_ns, first)))
        rows = rows[np.argsort(rows["ts_ns"], kind="stable")]
        cut = int(np.searchsorted(rows["ts_ns"], start_ns))  # packets of the next chunk can still come before the later ones
        yield rows[:cut]
        carried = rows[cut:]
    yield carried


def _ten_packets(rng: np.random.Generator, starts_ns: NDArray[np.int64], first: int) -> Rows:
    """Return ten packets of each connection, shape (len(starts_ns) * 10,).

    The packets are SYN, SYN-ACK, ACK, request, ACK, response, ACK, FIN, FIN and ACK.
    """
    count = len(starts_ns)
    shape = (count, PACKETS_PER_SHORT_CONNECTION)
    rows = np.zeros(shape, SEGMENT)
    number = first + np.arange(count, dtype=np.int64)
    client_addr, client_port = client_ends(number)
    server_addr = _SERVER_NET + number % _SERVERS
    from_client = np.array([True, False, True, True, False, False, True, True, False, True])
    rows["src_addr"] = np.where(from_client, client_addr[:, None], server_addr[:, None])
    rows["dst_addr"] = np.where(from_client, server_addr[:, None], client_addr[:, None])
    rows["src_port"] = np.where(from_client, client_port[:, None], _SERVER_PORT)
    rows["dst_port"] = np.where(from_client, _SERVER_PORT, client_port[:, None])
    rows["flags"] = [SYN, SYN | ACK, ACK, PSH | ACK, ACK, PSH | ACK, ACK, FIN | ACK, FIN | ACK, ACK]
    rtt_ns = (rng.uniform(5, 60, count) * MS_NS).astype(np.int64)
    rows["ts_ns"] = starts_ns[:, None] + np.cumsum(_gaps_ns(rng, rtt_ns), axis=1)
    request = rng.integers(150, 700, count)
    response = rng.integers(100, MSS_BYTES + 1, count)
    rows["payload_bytes"][:, 3] = request
    rows["payload_bytes"][:, 5] = response
    zero, one = np.zeros(count, np.int64), np.ones(count, np.int64)
    asked, answered = one + request, one + response
    client_offset = np.stack((zero, zero, one, one, asked, asked, asked, asked, asked + 1, asked + 1), axis=1)
    server_offset = np.stack((zero, zero, one, one, one, one, answered, answered, answered, answered + 1), axis=1)
    isn = rng.integers(0, 1 << 32, (2, count, 1))
    absolute_client, absolute_server = isn[0] + client_offset, isn[1] + server_offset
    absolute_client[:, 1] += 1  # the ACK number of a SYN-ACK
    rows["seq"] = np.where(from_client, absolute_client, absolute_server) & 0xFFFFFFFF
    rows["ack"] = np.where(from_client, absolute_server, absolute_client) & 0xFFFFFFFF
    rows["ack"][:, 0] = 0
    _fill_rest(rng, rows, from_client, rtt_ns)
    return rows.reshape(-1)


def _gaps_ns(rng: np.random.Generator, rtt_ns: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the time before each of the ten packets of a connection, as captured at the server. The shape is (connections, 10)."""
    gaps = np.zeros((len(rtt_ns), PACKETS_PER_SHORT_CONNECTION), np.int64)
    host_ns = rng.integers(10 * US_NS, 60 * US_NS, gaps.shape)
    gaps[:] = host_ns
    gaps[:, 0] = 0
    for after_round_trip in (2, 6, 9):
        gaps[:, after_round_trip] += rtt_ns
    gaps[:, 5] += (rng.exponential(8 * MS_NS, len(rtt_ns))).astype(np.int64)  # think time of the server
    return gaps


def _fill_rest(rng: np.random.Generator, rows: Rows, from_client: NDArray[np.bool_], rtt_ns: NDArray[np.int64]) -> None:
    """Fill in windows, timestamps and IP fields of `rows`, whose shape is (connections, 10)."""
    count = len(rows)
    rows["window"] = np.where((rows["flags"] & SYN) != 0, 64_240, 64_240 >> WINDOW_SCALE)
    clock = rng.integers(0, 1 << 32, (2, count, 1))
    sent_ns = rows["ts_ns"] - np.where(from_client, rtt_ns[:, None] // 2, 0) - EPOCH_NS
    rows["tsval"] = (np.where(from_client, clock[0], clock[1]) + sent_ns // MS_NS) & 0xFFFFFFFF
    for column in range(1, PACKETS_PER_SHORT_CONNECTION):
        heard = np.flatnonzero(from_client[:column] != from_client[column])[-1]
        rows["tsecr"][:, column] = rows["tsval"][:, heard]
    rows["ttl"] = np.where(from_client, NEAR_TTL - rng.integers(5, 20, count)[:, None], NEAR_TTL)
    rows["ip_id"] = (rng.integers(0, 1 << 16, (count, 1)) + np.arange(PACKETS_PER_SHORT_CONNECTION) + from_client * 7777) & 0xFFFF
