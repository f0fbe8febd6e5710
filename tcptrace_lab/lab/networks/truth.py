"""Derives the true kind of each packet from the path's log, for a capture at the sender and for a capture at the receiver.

The log contains the packets that entered the path, and the copies that left it, each in order. A capture at the sender contains the packets
that entered, and a capture at the receiver contains the copies that left. `match` pairs these packets with the rows of a capture, and
raises an error if a packet differs from its row.

PAWS also decides whether a retransmit was needed (RFC 7323, 5.3). An original can arrive after a retransmit of earlier data. PAWS then
discards the original, because its timestamp is older. This module applies PAWS to the log, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from tcptrace_lab.lab.networks.tcp_headers import SYN, TcpHead, tcp_head

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tcptrace_lab.lab.networks.path import PathLog

SEQ_SPACE = 1 << 32
PAWS_TICKS = 1  # Linux's TCP_PAWS_WINDOW (include/net/tcp.h): an accepted timestamp can be older by this many ticks


class Truth(StrEnum):
    """The true kind of a packet with SEG.LEN > 0."""

    NEW = "new"
    RESENT = "resent"  # a needed retransmit: no other packet delivered its bytes
    NEEDLESS = "needless"  # a spurious retransmit: an earlier packet delivered its bytes, possibly after the retransmit was sent
    REORDERED = "reordered"  # a first transmission that later packets overtook on the path
    COPIED = "copied"  # a duplicate that the path made


@dataclass(frozen=True, slots=True)
class Event:
    """One packet that entered or left the path.

    Attributes:
        index: number of the packet among all packets that entered the path.
        head: header fields of the packet.
        truth: true kind of the packet; None for segments without sequence space (pure ACKs).
        otherwise: a second kind that is also correct at this capture point. A retransmit that arrives before its original counts as
            spurious. At the receiver, a retransmit of a lost tail shows no loss, so it counts as new.
    """

    index: int
    head: TcpHead
    truth: Truth | None
    otherwise: Truth | None = None


class Bytes:
    """A set of sequence numbers, stored as sorted disjoint ranges."""

    def __init__(self) -> None:
        self._ranges: list[tuple[int, int]] = []

    @property
    def end(self) -> int:
        """Return the highest sequence number in the set plus one, or 0 for an empty set."""
        return self._ranges[-1][1] if self._ranges else 0

    @property
    def first_missing(self) -> int:
        """Return the lowest non-negative sequence number that is not in the set."""
        return self._ranges[0][1] if self._ranges and self._ranges[0][0] <= 0 else 0

    def covers(self, left: int, right: int) -> bool:
        """Return whether the set contains all numbers from `left` to `right` (exclusive)."""
        return any(low <= left and right <= high for low, high in self._ranges)

    def add(self, left: int, right: int) -> None:
        """Add the numbers from `left` to `right` (exclusive)."""
        apart = [(low, high) for low, high in self._ranges if high < left or low > right]
        joined = [(low, high) for low, high in self._ranges if high >= left and low <= right]
        self._ranges = sorted([*apart, (min([left, *(low for low, _ in joined)]), max([right, *(high for _, high in joined)]))])


@dataclass(frozen=True, slots=True)
class _Sent:
    """A packet that entered the path: its stream (ports and SYN), its offset there, and whether its first byte was sent before."""

    index: int
    head: TcpHead
    stream: tuple[int, int, int]
    left: int
    right: int
    again: bool


def at_sender(log: PathLog, *, ethernet: bool = True) -> list[Event]:
    """Return the packets that entered the path, in order."""
    sent = _sent(log, ethernet=ethernet)
    arrived = _accepted(log, sent)
    events = []
    reached: dict[tuple[int, int, int], Bytes] = {}
    for packet in sent:
        delivered = reached.setdefault(packet.stream, Bytes())
        is_spurious = packet.again and delivered.covers(packet.left, packet.right)
        truth = Truth.NEEDLESS if is_spurious else Truth.RESENT if packet.again else Truth.NEW
        events.append(Event(packet.index, packet.head, truth if packet.right > packet.left else None))
        if packet.index in arrived and packet.right > packet.left:
            delivered.add(packet.left, packet.right)
    return events


def at_receiver(log: PathLog, *, ethernet: bool = True) -> list[Event]:
    """Return the copies that left the path, in order."""
    sent = _sent(log, ethernet=ethernet)
    by_index = {packet.index: packet for packet in sent}
    accepted = _accepted(log, sent)
    in_the_end = {event.index: event.truth for event in at_sender(log, ethernet=ethernet)}
    events: list[Event] = []
    here: dict[tuple[int, int, int], Bytes] = {}
    reached: dict[tuple[int, int, int], int] = {}
    seen: set[int] = set()
    for index, _ in log.delivered:
        packet = by_index.get(index)
        if packet is None:
            continue  # not TCP
        delivered = here.setdefault(packet.stream, Bytes())
        if packet.right == packet.left:
            events.append(Event(index, packet.head, None))
        elif index in seen:
            events.append(Event(index, packet.head, Truth.COPIED))
        elif not packet.again:
            events.append(Event(index, packet.head, Truth.REORDERED if reached.get(packet.stream, 0) > packet.left else Truth.NEW))
        elif delivered.covers(packet.left, packet.right):
            events.append(Event(index, packet.head, Truth.NEEDLESS))
        else:
            tail = in_the_end[index] is Truth.RESENT and reached.get(packet.stream, 0) <= packet.left
            events.append(Event(index, packet.head, Truth.RESENT, Truth.NEW if tail else in_the_end[index]))
        seen.add(index)
        reached[packet.stream] = max(reached.get(packet.stream, 0), packet.right)
        if packet.right > packet.left and index in accepted:
            delivered.add(packet.left, packet.right)
    return events


def match(events: Sequence[Event], rows: Iterable[dict[str, Any]]) -> list[tuple[Event, dict[str, Any]]]:
    """Pair the events with the rows of one direction of a capture. The capture can end before the log of the path.

    Each row has `seq` as on the wire, `payload_bytes`, `flags` and `ip_id`.

    Raises:
        ValueError: a packet of the capture differs from the packet in the log.
    """
    pairs = []
    for place, (event, row) in enumerate(zip(events, rows, strict=False)):
        head = event.head
        if (head.seq, head.payload_bytes, head.flags, head.ip_id) != (
            row["wire_seq"],
            row["payload_bytes"],
            row["flags"] & 0xFF,
            row["ip_id"],
        ):
            raise ValueError(f"packet {place} of the capture (frame {row['frame']}) is not packet {event.index} of the log: {row} {head}")
        pairs.append((event, row))
    return pairs


def _accepted(log: PathLog, sent: Sequence[_Sent]) -> set[int]:
    """Return the indices of the arrived packets that the receiver accepted.

    PAWS discards packets with a timestamp older than TS.Recent, even if the receiver lacks their bytes. The receiver updates TS.Recent from
    a packet that contains RCV.NXT or ends at RCV.NXT (Linux: `tcp_sequence`).
    """
    by_index = {packet.index: packet for packet in sent}
    recent: dict[tuple[int, int, int], int] = {}
    have: dict[tuple[int, int, int], Bytes] = {}
    accepted = set()
    for index, _ in log.delivered:
        packet = by_index.get(index)
        if packet is None:
            continue
        tsval, last = packet.head.tsval, recent.get(packet.stream)
        delivered = have.setdefault(packet.stream, Bytes())
        old = tsval is not None and last is not None and PAWS_TICKS < (last - tsval) % SEQ_SPACE < SEQ_SPACE // 2
        if old and not delivered.covers(packet.left, packet.right):
            continue
        accepted.add(index)
        if tsval is not None and packet.left <= delivered.first_missing <= packet.right:
            recent[packet.stream] = tsval
        if packet.right > packet.left:
            delivered.add(packet.left, packet.right)
    return accepted


def _sent(log: PathLog, *, ethernet: bool) -> list[_Sent]:
    """Return the TCP packets that entered the path, with their offsets in their streams (the SYN is at 0)."""
    first: dict[tuple[int, int], int] = {}
    reached: dict[tuple[int, int], Bytes] = {}
    sent = []
    for entry in log.entries:
        head = tcp_head(entry.head, ethernet=ethernet)
        if head is None:
            continue
        ports = (head.source_port, head.target_port)
        if head.flags & SYN and first.get(ports) != head.seq:  # the first connection with these ports, or a new one
            first[ports], reached[ports] = head.seq, Bytes()
        before = reached.setdefault(ports, Bytes())
        left = _unwrapped(head.seq - first.setdefault(ports, head.seq), before.end)
        right = left + head.occupied
        sent.append(_Sent(entry.index, head, (*ports, first[ports]), left, right, left < before.end and right > left))
        if right > left:
            before.add(left, right)
    return sent


def _unwrapped(offset: int, near: int) -> int:
    """Return the value congruent to `offset` modulo 2^32 that is nearest to `near`."""
    return near + (offset - near + SEQ_SPACE // 2) % SEQ_SPACE - SEQ_SPACE // 2
