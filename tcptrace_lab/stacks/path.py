"""What lies between two hosts: a line of some rate and length per direction, what frames cost on it, and what it loses.

A frame occupies the line for its bytes; those that come meanwhile wait before it, in order and without limit. Lost frames occupy it too.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Final

from tcptrace_lab.stacks.events import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable

IP_TCP_HEADER_BYTES = 40
"""IPv4 and TCP without options."""

ETHERNET_FRAME_BYTES = 38
"""Preamble and start 8, header 14, checksum 4, gap 12 (IEEE 802.3)."""

ETHERNET_LEAST_BYTES = 46
"""A shorter payload is padded (IEEE 802.3)."""

CELL_BYTES, CELL_PAYLOAD_BYTES = 53, 48
"""ITU-T I.361."""

AAL5_TRAILER_BYTES, LLC_SNAP_BYTES = 8, 8
"""ITU-T I.363.5; RFC 1483 (now 2684), routed."""


def ethernet(datagram_bytes: int) -> int:
    """Bytes that a datagram takes on an Ethernet."""
    return max(datagram_bytes, ETHERNET_LEAST_BYTES) + ETHERNET_FRAME_BYTES


def atm(datagram_bytes: int) -> int:
    """Bytes of the cells that carry a datagram over AAL5 with LLC/SNAP."""
    return -(-(datagram_bytes + LLC_SNAP_BYTES + AAL5_TRAILER_BYTES) // CELL_PAYLOAD_BYTES) * CELL_BYTES


def bare(datagram_bytes: int) -> int:
    """Bytes of the datagram itself (loopback)."""
    return datagram_bytes


FRAMINGS: Final[dict[str, Callable[[int], int]]] = {"ethernet": ethernet, "atm": atm, "bare": bare}
"""Name of a framing → the bytes that a datagram takes on the line."""


@dataclass(frozen=True, slots=True)
class Link:
    """One direction of a path.

    Attributes:
        rate_bps: bits per second on the line; 0: without limit.
        propagation_ns: from its end at the sender to its end at the receiver.
        framing: a name in `FRAMINGS`.
        lost: of the packets sent in this direction, counted from 0, those that never arrive.
        loss: chance that any other one is lost.
        seed: of that chance.
    """

    rate_bps: int = 0
    propagation_ns: int = 0
    framing: str = "ethernet"
    lost: frozenset[int] = frozenset()
    loss: float = 0.0
    seed: int = 0

    def wire_ns(self, datagram_bytes: int) -> int:
        """Time that a datagram occupies the line."""
        if not self.rate_bps:
            return 0
        return FRAMINGS[self.framing](datagram_bytes) * 8 * NS_PER_S // self.rate_bps


class Line:
    """A link in use."""

    __slots__ = ("_cached_ns", "_free_ns", "_link", "_random", "sent")

    def __init__(self, link: Link) -> None:
        self._link = link
        self._free_ns = 0
        self._random = Random(link.seed)  # noqa: S311 - the model's chance, which must be the same every time
        self._cached_ns: dict[int, int] = {}
        self.sent = 0

    def send(self, ready_ns: int, datagram_bytes: int) -> tuple[int, int | None]:
        """Send a datagram that is at the line's end at a time.

        Returns:
            When its first bit leaves and when its last arrives; None if it never does.
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
