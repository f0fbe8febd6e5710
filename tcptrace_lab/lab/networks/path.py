"""One direction of an emulated network: a model that decides what the path does to each packet, and a log of these decisions.

Loss, duplication and reordering of a packet depend only on the path's seed, and on the packet's index in its direction. The first packet,
usually the SYN, has index 0. Time has no effect, so a run is repeatable. The log contains every packet. It is the ground truth for verdicts
from captures.
"""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from tcptrace_lab.text.numbers import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Mapping

BITS_PER_BYTE = 8
# Number of bytes of a frame that the log stores: Ethernet, IPv6 and the longest TCP header (14 + 40 + 60 bytes), and a reserve.
HEAD_BYTES = 128


class Fate(StrEnum):
    """What the path did to a packet."""

    FORWARDED = "forwarded"
    LOST = "lost"
    QUEUE_FULL = "queue-full"
    DUPLICATED = "duplicated"
    DELAYED = "delayed"


@dataclass(frozen=True, slots=True)
class PathModel:
    """The model of one direction.

    Each kind of fate has its own random draw for each packet. So a packet's fate depends neither on time nor on the other kinds of fate. If
    several fates apply to a packet, the log records the first in this order: lost, duplicated, delayed.

    Attributes:
        delay_s: propagation delay of each packet, in seconds.
        rate_bps: rate of the bottleneck in bits per second, for whole frames; None: unlimited.
        queue_bytes: size of the bottleneck's queue. Packets that do not fit are dropped. None: the queue is unlimited.
        lost: indexes of packets that are lost.
        loss_share: share of the other packets that are lost, drawn from `seed`.
        seed: seed of the random draws.
        duplicated: indexes of packets that are delivered twice.
        extra_delay_s: index of a packet → its extra delay in seconds, so that later packets overtake it.
        duplicate_share: share of the other packets that are delivered twice.
        reorder_share: share of the other packets that are delayed, so that later packets overtake them.
        reorder_delay_s: minimum and maximum extra delay of reordered packets in seconds, drawn uniformly.
        undisturbed_packets: number of packets at the start, such as the handshake, that have no random fates.
        jitter_s: maximum extra delay of each packet, drawn uniformly. Jitter changes no order.
        batch_s: packets are delivered in batches, at multiples of this time, as on a shared radio channel; 0: no batches.
        policed: True if the queue is the token bucket of a policer. Packets that do not fit are dropped, and no packet is delayed.
        outages_s: time spans (from, to) in seconds after the first packet. Every packet in such a span is lost.
    """

    delay_s: float = 0.0
    rate_bps: int | None = None
    queue_bytes: int | None = None
    lost: frozenset[int] = frozenset()
    loss_share: float = 0.0
    seed: int = 0
    duplicated: frozenset[int] = frozenset()
    extra_delay_s: Mapping[int, float] = field(default_factory=dict)
    duplicate_share: float = 0.0
    reorder_share: float = 0.0
    reorder_delay_s: tuple[float, float] = (0.0, 0.0)
    undisturbed_packets: int = 0
    jitter_s: float = 0.0
    batch_s: float = 0.0
    policed: bool = False
    outages_s: tuple[tuple[float, float], ...] = ()

    def __post_init__(self) -> None:
        """Reject impossible settings."""
        if any(extra_s < 0 for extra_s in (self.delay_s, self.jitter_s, self.batch_s, *self.extra_delay_s.values(), *self.reorder_delay_s)):
            raise ValueError("a delay cannot be negative")
        if self.reorder_delay_s[0] > self.reorder_delay_s[1]:
            raise ValueError(f"the minimum reordering delay must not exceed the maximum, got {self.reorder_delay_s}")
        if self.rate_bps is not None and self.rate_bps <= 0:
            raise ValueError(f"the rate must be above 0 bit/s, got {self.rate_bps}")
        for name, share in (("loss", self.loss_share), ("duplicate", self.duplicate_share), ("reorder", self.reorder_share)):
            if not 0.0 <= share <= 1.0:
                raise ValueError(f"the {name} rate must lie between 0 and 1, got {share}")

    def describe(self) -> dict[str, object]:
        """Return the settings that differ from those of an ideal path, as JSON values."""
        settings: dict[str, object] = {"delay_s": self.delay_s}
        if self.loss_share or self.duplicate_share or self.reorder_share or self.jitter_s:
            settings |= {"loss_share": self.loss_share, "seed": self.seed}
        ordinary = ("rate_bps", "queue_bytes", "duplicate_share", "reorder_share", "undisturbed_packets", "jitter_s", "batch_s", "policed")
        settings |= {name: getattr(self, name) for name in ordinary if getattr(self, name) != getattr(STRAIGHT, name)}
        if self.reorder_share:
            settings["reorder_delay_s"] = list(self.reorder_delay_s)
        if self.outages_s:
            settings["outages_s"] = [list(outage_s) for outage_s in self.outages_s]
        if self.lost:
            settings["lost_indexes"] = sorted(self.lost)
        if self.duplicated:
            settings["duplicated_indexes"] = sorted(self.duplicated)
        if self.extra_delay_s:
            settings["extra_delay_s"] = {str(index): extra_s for index, extra_s in sorted(self.extra_delay_s.items())}
        return settings


STRAIGHT = PathModel()
"""An ideal path: no delay, loss or limit."""


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One packet that entered the path.

    Attributes:
        index: number of the packet in its direction, from 0.
        arrived_ns: time at which it entered the path, on the monotonic clock.
        frame_bytes: length with the link-layer header.
        fate: what the path did to the packet.
        due_ns: scheduled time of delivery; None if the packet is never delivered.
        head: first bytes of the packet (up to `HEAD_BYTES`), for `tcp_headers.tcp_head`.
    """

    index: int
    arrived_ns: int
    frame_bytes: int
    fate: Fate
    due_ns: int | None
    head: bytes = b""


@dataclass(slots=True)
class PathLog:
    """The log of one direction: all packets in order of entry, and all delivered copies in order of delivery.

    Attributes:
        entries: the packets that entered.
        delivered: index of the packet and time of delivery (ns, monotonic clock), for each copy. A duplicated packet occurs twice.
    """

    entries: list[LogEntry] = field(default_factory=list)
    delivered: list[tuple[int, int]] = field(default_factory=list)

    def indexes(self, fate: Fate) -> list[int]:
        """Return the indexes of the packets with this fate."""
        return [entry.index for entry in self.entries if entry.fate is fate]

    def describe(self) -> dict[str, object]:
        """Return the number of packets, and the indexes of lost, duplicated and delayed packets, as JSON values."""
        summary: dict[str, object] = {"frames": len(self.entries)}
        for fate, key in (
            (Fate.LOST, "lost_indexes"),
            (Fate.QUEUE_FULL, "queue_full_indexes"),
            (Fate.DUPLICATED, "duplicated_indexes"),
            (Fate.DELAYED, "delayed_indexes"),
        ):
            summary[key] = self.indexes(fate)
        return summary


class Direction:
    """The state of one direction: the queue of the bottleneck, and the log."""

    def __init__(self, path: PathModel) -> None:
        self.path = path
        self.log = PathLog()
        # Losses use the seed itself. Every other kind of fate has a derived seed, so a new kind does not change the losses.
        self._losses = random.Random(path.seed)  # noqa: S311
        self._copies = random.Random(f"duplicate {path.seed}")  # noqa: S311
        self._holds = random.Random(f"hold {path.seed}")  # noqa: S311
        self._jitters = random.Random(f"jitter {path.seed}")  # noqa: S311
        self._bottleneck_free_ns = 0
        self._last_due_ns = 0
        self._first_ns: int | None = None
        self._waiting: deque[tuple[int, int]] = deque()  # queued packets: (time when the last bit leaves the queue, bytes)
        self._waiting_bytes = 0

    def accept(self, frame_bytes: int, now_ns: int, head: bytes = b"") -> list[int]:
        """Decide what happens to the next packet. Return the delivery times in ns of its copies."""
        path = self.path
        index = len(self.log.entries)
        loses, copies, overtaken_s = self._draw(index)
        if self._first_ns is None:
            self._first_ns = now_ns
        since_s = (now_ns - self._first_ns) / NS_PER_S
        if loses or any(from_s <= since_s < to_s for from_s, to_s in path.outages_s):
            return self._record(index, now_ns, frame_bytes, Fate.LOST, [], head)
        departure_ns = self._through_bottleneck(frame_bytes, now_ns)
        if departure_ns is None:
            return self._record(index, now_ns, frame_bytes, Fate.QUEUE_FULL, [], head)
        due_ns = self._in_order(departure_ns + round(path.delay_s * NS_PER_S))
        if copies:
            return self._record(index, now_ns, frame_bytes, Fate.DUPLICATED, [due_ns, due_ns], head)
        if overtaken_s is not None:
            return self._record(index, now_ns, frame_bytes, Fate.DELAYED, [due_ns + round(overtaken_s * NS_PER_S)], head)
        return self._record(index, now_ns, frame_bytes, Fate.FORWARDED, [due_ns], head)

    def _draw(self, index: int) -> tuple[bool, bool, float | None]:
        """Draw the fates of the next packet: (lost, duplicated, extra delay in seconds or None)."""
        path = self.path
        loss, copy, hold, length = self._losses.random(), self._copies.random(), self._holds.random(), self._holds.random()
        at_random = index >= path.undisturbed_packets
        overtaken_s = path.extra_delay_s.get(index)
        if overtaken_s is None and at_random and hold < path.reorder_share:
            shortest_s, longest_s = path.reorder_delay_s
            overtaken_s = shortest_s + length * (longest_s - shortest_s)
        loses = index in path.lost or (at_random and loss < path.loss_share)
        return loses, index in path.duplicated or (at_random and copy < path.duplicate_share), overtaken_s

    def _record(self, index: int, now_ns: int, frame_bytes: int, fate: Fate, due: list[int], head: bytes) -> list[int]:
        self.log.entries.append(LogEntry(index, now_ns, frame_bytes, fate, due[0] if due else None, head))
        return due

    def _through_bottleneck(self, frame_bytes: int, now_ns: int) -> int | None:
        """Return the time at which the packet's last bit leaves the bottleneck, or None if the queue is full."""
        path = self.path
        if path.rate_bps is None:
            return now_ns
        while self._waiting and self._waiting[0][0] <= now_ns:
            self._waiting_bytes -= self._waiting.popleft()[1]
        if path.queue_bytes is not None and self._waiting_bytes + frame_bytes > path.queue_bytes:
            return None
        transmission_ns = frame_bytes * BITS_PER_BYTE * NS_PER_S // path.rate_bps
        self._bottleneck_free_ns = max(now_ns, self._bottleneck_free_ns) + transmission_ns
        self._waiting.append((self._bottleneck_free_ns, frame_bytes))
        self._waiting_bytes += frame_bytes
        return now_ns if path.policed else self._bottleneck_free_ns

    def _in_order(self, due_ns: int) -> int:
        """Return when a packet is delivered. Jitter and batches delay it, but it never overtakes the packet before it."""
        path = self.path
        if not path.jitter_s and not path.batch_s:
            return due_ns
        due_ns = max(due_ns + round(self._jitters.random() * path.jitter_s * NS_PER_S), self._last_due_ns)
        if path.batch_s:
            batch_ns = round(path.batch_s * NS_PER_S)
            due_ns = -(-due_ns // batch_ns) * batch_ns
        self._last_due_ns = due_ns
        return due_ns
