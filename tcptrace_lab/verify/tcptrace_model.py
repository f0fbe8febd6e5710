"""A model of tcptrace 6.6.7. It computes the long listing from our segments, by tcptrace's rules as we understand them.

tcptrace stores the stream of each direction as a list of segments, in order of sending. It splits a segment where a retransmit begins or
ends, and merges acknowledged segments. A difference from our figures is explained only if this model computes the value that tcptrace
printed.

Sources: tcptrace's manual (www.tcptrace.org/manual.html) and its output. The model uses the stream offsets of our tables. So it does not
repeat tcptrace's wrong handling of sequence numbers that wrap.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tcptrace_lab.schema import SIDES
from tcptrace_lab.verify import tcptrace_sequence_model
from tcptrace_lab.verify.tcptrace_sequence_model import Numbers
from tcptrace_lab.verify.wireshark_model import ACK, FIN, PSH, RST, SEQ_SPACE, SYN

if TYPE_CHECKING:
    from collections.abc import Mapping

COLUMNS = (
    "frame",
    "ts_ns",
    "conn",
    "from_client",
    "seq",
    "ack",
    "payload_bytes",
    "captured_payload_bytes",
    "flags",
    "window_bytes",
    "ip_id",
    "sack_blocks",
)
"""Columns of `schema.SEGMENTS` that the model needs."""

NS_PER_US = 1_000

REMEMBERED_PACKETS = 8
"""Number of a direction's last distinct packets in which tcptrace searches for an equal sequence number and IP identification."""

MAX_SHIFT = 14
"""Maximum window shift (RFC 7323, 2.3)."""

QUARTER = SEQ_SPACE // 4
"""Size of the parts of the sequence space that tcptrace stores separately. A segment across two parts is stored as two segments."""

MEAN_SHARE = 0.0001
"""tcptrace adds this value to the number of samples when it computes a mean."""

SIZE_SHARE = 0.001
"""tcptrace adds this value to the number of samples when it computes a mean segment size."""

LARGEST_FRAME = 1_460
"""Bytes of TCP data in a full frame of standard Ethernet (RFC 894)."""

FEWEST_FOR_DEVIATION = 3
"""Minimum number of samples for which tcptrace prints a standard deviation."""

ONE_BYTE_SIZE = 1 << 32
"""Size that tcptrace uses for a segment with a single sequence number."""

TRIPLE = 3
"""Number of consecutive repetitions of an ACK that tcptrace counts as one event, if neither data nor a window change comes between them."""


@dataclass(slots=True)
class _Sent:
    first: int
    last: int
    ts_us: int
    resends: int = 0
    acked: bool = False


@dataclass(slots=True)
class _Spans:
    """Summary of times, as tcptrace stores it. A minimum of 0 means that it is not set."""

    count: int = 0
    least: int = 0
    most: int = 0
    total: int = 0
    squares: int = 0

    def add(self, span_us: int) -> None:
        self.count += 1
        self.least = span_us if self.least == 0 else min(self.least, span_us)
        self.most = max(self.most, span_us)
        self.total += span_us
        self.squares += span_us * span_us

    def shown(self) -> tuple[float, float, float, float]:
        """Return minimum, maximum, mean and standard deviation in ms."""
        deviation = 0.0
        if self.count >= FEWEST_FOR_DEVIATION:
            deviation = math.sqrt(max(self.squares - self.total * self.total / self.count, 0) / (self.count - 1))
        mean = self.total / (self.count + MEAN_SHARE)
        return self.least / 1e3, self.most / 1e3, mean / 1e3, deviation / 1e3


@dataclass(slots=True)
class Tally:
    """Counts of one direction by tcptrace's rules."""

    packets: int = 0
    resets: int = 0
    acks: int = 0
    pure_acks: int = 0
    syns: int = 0
    fins: int = 0
    data_packets: int = 0
    data_bytes: int = 0
    pushed: int = 0
    cut_packets: int = 0
    cut_bytes: int = 0
    largest: int = 0
    smallest: int = 0
    unique_bytes: int = 0
    resent_packets: int = 0
    resent_bytes: int = 0
    late_packets: int = 0
    probes: int = 0
    probe_bytes: int = 0
    doubles: int = 0
    quarters: set[int] = field(default_factory=set)
    windows_known: bool = True
    window_packets: int = 0
    window_total: int = 0
    max_window: int = 0
    min_window: int = 0
    window_shut: int = 0
    window_last: int | None = 0
    scaled: bool = False
    idle_us: int = 0
    first_us: int | None = None
    last_us: int | None = None
    first_data_us: int | None = None
    last_data_us: int | None = None
    stream: list[_Sent] = field(default_factory=list)
    remembered: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=REMEMBERED_PACKETS))
    rtt: _Spans = field(default_factory=_Spans)
    rtt_full: _Spans = field(default_factory=_Spans)
    full_size: int = 0
    rtt_retransmitted: _Spans = field(default_factory=_Spans)
    handshake_us: int = 0
    last_rtt_us: int = 0
    unsampled: int = 0
    cumulative: int = 0
    duplicates: int = 0
    triples: int = 0
    run: int = 0
    waits: _Spans = field(default_factory=_Spans)
    max_resends: int = 0
    numbers: Numbers = field(default_factory=Numbers)

    def send(self, first: int, length: int, ts_us: int) -> tuple[int, bool]:
        """Add `length` sequence numbers from `first` on. Return how many were sent before, and whether they are out of order."""
        last, again, late, split = first + length - 1, 0, False, False
        at = (
            bisect_right(self.stream, first, key=lambda sent: sent.last)
            if self.stream and first <= self.stream[-1].last
            else len(self.stream)
        )
        if at and self.stream[at - 1].last >= first:
            at -= 1
        while at < len(self.stream):
            sent = self.stream[at]
            if first > sent.last:
                at += 1
                continue
            if first < sent.first:
                late |= last < sent.last
                self.stream.insert(at, _Sent(first, min(last, sent.first - 1), ts_us))
                at += 1
                if last < sent.first:
                    return again, late
                first = sent.first
            sent.resends += 1
            if not split:
                self._wait(sent, ts_us)
            if last <= sent.last:
                return again + last - first + 1, late
            split = True
            again += sent.last - first + 1
            first = sent.last + 1
            at += 1
        self.stream.append(_Sent(first, last, ts_us))
        return again, late

    def _wait(self, sent: _Sent, ts_us: int) -> None:
        if not sent.acked:
            self.max_resends = max(self.max_resends, sent.resends)
            self.waits.add(max(ts_us - sent.ts_us, 0))
        sent.ts_us = ts_us

    def acknowledge(self, ack: int, ts_us: int, *, repeats: bool) -> None:
        """Count an ACK of all sequence numbers below `ack`.

        `repeats` is True if the ACK has no data and equals the previous ACK. Such an ACK is possibly a duplicate. However, tcptrace counts
        no duplicate ACK until this side has sent something other than SYNs.
        """
        newest, changed, repeated = -1, False, False
        for sent in self.stream:
            if ack <= sent.first:
                break
            newest = max(newest, sent.ts_us)
            if sent.acked:
                repeated |= ack == sent.last + 1 and repeats and self.packets > self.syns
                continue
            sent.acked = changed = True
            if ack == sent.last + 1:
                self._sample(sent, ts_us, hidden=newest > sent.ts_us)
            else:
                self.cumulative += 1
        self.run = self.run + 1 if repeated else 0
        self.duplicates += repeated
        self.triples += self.run == TRIPLE
        if changed:
            self._join()

    def _sample(self, sent: _Sent, ts_us: int, *, hidden: bool) -> None:
        span_us = max(ts_us - sent.ts_us, 0)
        self.last_rtt_us = 0
        if hidden:
            self.unsampled += 1
        elif sent.resends:
            self.rtt_retransmitted.add(span_us)
        else:
            self.last_rtt_us = span_us
            self.rtt.add(span_us)
            size = sent.last - sent.first + 1 if sent.last > sent.first else ONE_BYTE_SIZE
            if size > self.full_size:
                self.full_size, self.rtt_full = size, _Spans()
            if size == self.full_size:
                self.rtt_full.add(span_us)

    def _join(self) -> None:
        joined: list[_Sent] = []
        for at, sent in enumerate(self.stream):
            if joined and joined[-1].acked and sent.acked and joined[-1].last + 1 == sent.first:
                before = joined[-1]
                before.last, before.acked, before.ts_us = sent.last, sent.acked, max(before.ts_us, sent.ts_us)
            elif not sent.acked:
                joined.extend(self.stream[at:])
                break
            else:
                joined.append(sent)
        self.stream = joined


class TcptraceModel:
    """Counts of one connection by tcptrace's rules, from segments in capture order."""

    def __init__(self, connection: Mapping[str, Any]) -> None:
        """`connection` is our row of the connection (`schema.CONNECTIONS`)."""
        self.sides = {True: Tally(), False: Tally()}
        self._scales = all(connection[f"{side}_window_scale_offered"] is not None for side in ("client", "server"))
        self._zero = {True: connection["client_isn"] or 0, False: connection["server_isn"] or 0}
        self.first_us: int | None = None
        self.last_us: int = 0
        self.longest = 0
        self.strange: Counter[str] = Counter()
        self.larger: Counter[str] = Counter()
        self._mss = {True: connection["server_mss_bytes"], False: connection["client_mss_bytes"]}
        for side, from_client in SIDES.items():
            self.sides[from_client].numbers.scale_offered = connection[f"{side}_window_scale_offered"]

    @property
    def duration_us(self) -> int:
        """Time from the first packet to the last in µs. It is negative if the last packet has an earlier timestamp than the first."""
        return 0 if self.first_us is None else self.last_us - self.first_us

    def take(self, row: Mapping[str, Any]) -> None:
        """Count the next segment. `row` has the columns of `COLUMNS`."""
        ts_us = (row["ts_ns"] or 0) // NS_PER_US
        if not follows(row["layers"]):
            self.strange[row["layers"]] += 1
            return
        self.longest = max(self.longest, row["seq"] + row["payload_bytes"])
        mss = self._mss[row["from_client"]]
        self.larger[row["layers"]] += row["payload_bytes"] > (LARGEST_FRAME if mss is None else mss)
        self.first_us = ts_us if self.first_us is None else self.first_us
        self.last_us = ts_us
        this, other = self.sides[row["from_client"]], self.sides[not row["from_client"]]
        flags, data = row["flags"], row["payload_bytes"]
        _count(this, row, ts_us, self._zero[row["from_client"]])
        again, late = _count_resends(this, other, row, ts_us) if data or flags & (SYN | FIN) else (0, False)
        window = row["window_bytes"]
        if flags & ACK:
            same = window == this.window_last and (row["ack"] + self._zero[not row["from_client"]]) % SEQ_SPACE == this.numbers.acked
            other.acknowledge(row["ack"], ts_us, repeats=same and not data)
            if row["ack"] == 1 and other.syns == 1:
                other.handshake_us = other.last_rtt_us
            this.acks += 1
            this.pure_acks += not (data or flags & (SYN | FIN | RST))
        if not flags & RST:
            self._count_window(this, flags, window)
        elif this.scaled:
            this.window_packets += 1
        this.numbers.unique_bytes = this.unique_bytes
        zeros = self._zero[row["from_client"]], self._zero[not row["from_client"]]
        tcptrace_sequence_model.take(this.numbers, other.numbers, row, zeros, ts_us=ts_us, again=again > 0, late=late)

    def _count_window(self, this: Tally, flags: int, window: int | None) -> None:
        this.window_last = window
        if window is None:
            this.windows_known = False
            return
        if not flags & (ACK | SYN):
            return
        if self._scales and not flags & SYN and not this.numbers.scale:
            window >>= min(this.numbers.scale_offered or 0, MAX_SHIFT)  # tcptrace lost the scale, so it uses the unscaled field
        if self._scales and window and not flags & SYN and not this.scaled:
            this.scaled = this.windows_known = True
            this.max_window = this.min_window = this.window_total = this.window_packets = 0
        this.max_window = max(this.max_window, window)
        if window and (this.min_window == 0 or window < this.min_window):
            this.min_window = window
        this.window_total += window
        this.window_packets += 1
        this.window_shut += window == 0 and bool(flags & ACK)


def follows(layers: str) -> bool:
    """Return whether tcptrace reads TCP below these headers.

    tcptrace reads IP on a link, behind one VLAN tag, or in PDUs of AAL5 with LLC (RFC 1483).
    """
    *links, network, transport = ["", "", *layers.split("/")]
    while links and links[0] == "":
        links.pop(0)
    return (
        transport == "tcp" and network in {"ip", "ipv6"} and (len(links) < len("ab") or links[1:] == ["vlan"] or links == ["aal5", "llc"])
    )


def _count(this: Tally, row: Mapping[str, Any], ts_us: int, zero: int) -> None:
    flags, data = row["flags"], row["payload_bytes"]
    if this.last_us is not None:
        this.idle_us = max(this.idle_us, ts_us - this.last_us)
    this.first_us = ts_us if this.first_us is None else this.first_us
    this.last_us = ts_us
    this.packets += 1
    this.resets += bool(flags & RST)
    this.syns += bool(flags & SYN)
    this.fins += bool(flags & FIN)
    number = (row["seq"] + zero) % SEQ_SPACE
    this.quarters |= {number // QUARTER, (number + max(data - 1, 0)) % SEQ_SPACE // QUARTER}
    packet = (number, row["ip_id"] or 0)
    if packet not in this.remembered:
        this.remembered.append(packet)
    elif row["ip_id"] and number:
        this.doubles += 1
    if not data:
        return
    this.data_packets += 1
    this.data_bytes += data
    this.pushed += bool(flags & PSH)
    this.largest = max(this.largest, data)
    this.smallest = data if this.smallest == 0 else min(this.smallest, data)
    this.first_data_us = ts_us if this.first_data_us is None else this.first_data_us
    this.last_data_us = ts_us
    cut = data - row["captured_payload_bytes"]
    this.cut_packets += cut > 0
    this.cut_bytes += max(cut, 0)


def _count_resends(this: Tally, other: Tally, row: Mapping[str, Any], ts_us: int) -> tuple[int, bool]:
    """Count retransmitted sequence numbers, except those of zero-window probes. Return their number, and whether they are out of order."""
    flags, data = row["flags"], row["payload_bytes"]
    if other.window_last == 0 and other.packets > 0:
        this.probes += 1
        this.probe_bytes += data
        return 0, False
    length = data + bool(flags & SYN) + bool(flags & FIN)
    again, late = this.send(row["seq"], length, ts_us)
    this.late_packets += late
    this.resent_packets += again > 0
    this.resent_bytes += again
    counted = again - bool(flags & SYN and this.syns > 1) - bool(flags & FIN and this.fins > 1)
    this.unique_bytes += max(data - counted, 0)
    return again, late
