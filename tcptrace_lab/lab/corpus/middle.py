"""Reads the relay's log, and makes the capture of a router in the middle of the path.

Half of the path's delay is between client and router; the bottleneck is between router and server.

The relay applies delay, bottleneck and random effects in one step. This module assumes that they occur in this order along the path:

    client ── half of the delay ── the point ── bottleneck, chance, other half ── server

A packet from the client passes the router after half of its delay, even if the path loses it later. A packet from the server passes the
router when half of its delay remains. If the path loses a packet from the server, this packet never passes the router.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from tcptrace_lab.lab.networks.path import Fate
from tcptrace_lab.lab.networks.tcp_headers import tcp_head
from tcptrace_lab.text.numbers import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tcptrace_lab.lab.networks.network import Medium
    from tcptrace_lab.lab.networks.path import LogEntry
    from tcptrace_lab.lab.networks.relay import Relay

MIDDLE = "middle.pcap"
NANOSECOND_MAGIC, ETHERNET = 0xA1B23C4D, 1  # draft-ietf-opsawg-pcap; LINKTYPE_ETHERNET
SNAPLEN_BYTES = 262_144


def client_side_ns(delay_s: float) -> int:
    """Return the delay between client and router, given the one-way delay of the whole path."""
    return round(delay_s / 2 * NS_PER_S)


def write_middle(folder: Path, relay: Relay, medium: Medium, clock_ns: int) -> int:
    """Write the router's capture into a transfer's folder. Return the number of its frames.

    Args:
        folder: folder of the transfer.
        relay: the relay with its logs.
        medium: the path that the relay emulated.
        clock_ns: the realtime clock minus the monotonic clock.
    """
    passed = [
        *_passing(relay.forward_log.entries, client_side_ns(medium.forward.delay_s), from_client=True),
        *_passing(relay.backward_log.entries, client_side_ns(medium.backward.delay_s), from_client=False),
    ]
    passed.sort(key=lambda one: one[0])
    with (folder / MIDDLE).open("wb") as file:
        file.write(struct.pack("<IHHiIII", NANOSECOND_MAGIC, 2, 4, 0, 0, SNAPLEN_BYTES, ETHERNET))
        for at_ns, entry in passed:
            seconds, rest_ns = divmod(at_ns + clock_ns, NS_PER_S)
            file.write(struct.pack("<IIII", seconds, rest_ns, len(entry.head), entry.frame_bytes) + entry.head)
    return len(passed)


def _passing(entries: list[LogEntry], client_side: int, *, from_client: bool) -> Iterator[tuple[int, LogEntry]]:
    for entry in entries:
        if tcp_head(entry.head, ethernet=True) is None:
            continue
        if from_client:
            yield entry.arrived_ns + client_side, entry
        elif entry.due_ns is not None:
            for _ in range(1 + (entry.fate is Fate.DUPLICATED)):
                yield entry.due_ns - client_side, entry
