"""The path between two hosts: one link per direction, with a rate, a propagation delay, a framing overhead and packet loss.

A frame occupies the link for its serialization time, even if the frame is lost. Other frames wait meanwhile in an unlimited FIFO queue.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Final

from tcptrace_lab.stacks.events import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable

IP_TCP_HEADER_BYTES = 40
"""IPv4 and TCP headers without options."""

ETHERNET_FRAME_BYTES = 38
"""Bytes on the wire around a payload: preamble and start delimiter 8, header 14, FCS 4, interpacket gap 12 (IEEE 802.3)."""

ETHERNET_MIN_BYTES = 46
"""Minimum payload of an Ethernet frame. Padding is added to a shorter payload (IEEE 802.3)."""

CELL_BYTES, CELL_PAYLOAD_BYTES = 53, 48
"""Bytes of an ATM cell, and of its payload (ITU-T I.361)."""

AAL5_TRAILER_BYTES, LLC_SNAP_BYTES = 8, 8
"""Bytes that AAL5 adds to one PDU: its trailer (ITU-T I.363.5), and the LLC/SNAP header of routed IP (RFC 1483, now RFC 2684)."""


def ethernet(datagram_bytes: int) -> int:
    """Return the bytes that a datagram takes on Ethernet, with preamble and interpacket gap."""
    return max(datagram_bytes, ETHERNET_MIN_BYTES) + ETHERNET_FRAME_BYTES


def atm(datagram_bytes: int) -> int:
    """Return the bytes of the ATM cells that carry a datagram over AAL5 with LLC/SNAP."""
    return -(-(datagram_bytes + LLC_SNAP_BYTES + AAL5_TRAILER_BYTES) // CELL_PAYLOAD_BYTES) * CELL_BYTES


def bare(datagram_bytes: int) -> int:
    """Return the size of the datagram itself, because loopback adds no framing."""
    return datagram_bytes


FRAMINGS: Final[dict[str, Callable[[int], int]]] = {"ethernet": ethernet, "atm": atm, "bare": bare}
"""Functions that convert the bytes of a datagram to the bytes on the link, by name of the framing."""


@dataclass(frozen=True, slots=True)
class Link:
    """One direction of a path.

    Attributes:
        rate_bps: bits per second; 0: unlimited.
        propagation_ns: propagation delay.
        framing: a name in `FRAMINGS`.
        lost: indices of the lost packets. The first packet of this direction has index 0.
        loss: probability that any other packet is lost.
        seed: seed of the random number generator for `loss`.
    """

    rate_bps: int = 0
    propagation_ns: int = 0
    framing: str = "ethernet"
    lost: frozenset[int] = frozenset()
    loss: float = 0.0
    seed: int = 0

    def wire_ns(self, datagram_bytes: int) -> int:
        """Return the serialization time of a datagram, including its framing."""
        if not self.rate_bps:
            return 0
        return FRAMINGS[self.framing](datagram_bytes) * 8 * NS_PER_S // self.rate_bps


class Line:
    """A link while the simulation runs: its queue and its loss state."""

    __slots__ = ("_cached_ns", "_free_ns", "_link", "_random", "sent")

    def __init__(self, link: Link) -> None:
        self._link = link
        self._free_ns = 0
        self._random = Random(link.seed)  # noqa: S311 - simulated loss, which must be reproducible
        self._cached_ns: dict[int, int] = {}
        self.sent = 0

    def send(self, ready_ns: int, datagram_bytes: int) -> tuple[int, int | None]:
        """Queue a datagram that the host can send at `ready_ns`.

        Returns:
            Time at which the first bit is sent, and time at which the last bit arrives. The second time is None if the datagram is lost.
        """
        link = self._link
        number, self.sent = self.sent, self.sent + 1
        leaves_ns = max(ready_ns, self._free_ns)
        wire_ns = self._cached_ns.get(datagram_bytes)
        if wire_ns is None:
            wire_ns = self._cached_ns[datagram_bytes] = link.wire_ns(datagram_bytes)
        self._free_ns = leaves_ns + wire_ns
        if (link.lost and number in link.lost) or (link.loss and self._random.random() < link.loss):
            return leaves_ns, None
        return leaves_ns, self._free_ns + link.propagation_ns
