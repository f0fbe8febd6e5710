"""A model of tcptrace's figures from sequence numbers: streams, flights, SACK blocks and window scales (tcptrace 6.6.7).

This part needs no list of segments. tcptrace compares and subtracts the header's sequence numbers as if they never wrapped.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tcptrace_lab.verify.wireshark_model import ACK, FIN, RST, SEQ_SPACE, SYN

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

MODULUS = 1 << 64
"""tcptrace's numbers are unsigned 64-bit values. This modulus is added to a negative difference."""

US_PER_S = 1_000_000


@dataclass(slots=True)
class Numbers:
    """The numbers that tcptrace stores about the sequence space of one direction.

    Attributes:
        scale: window shift that tcptrace assumes.
        scale_offered: window shift that the SYN offers; None if it offers none.
        syn: sequence number of the SYN; 0 before the SYN.
        syns: number of SYNs.
        fin: sequence number of the FIN; None before the FIN.
        latest: sequence number after the last segment.
        resets: number of RSTs.
        unique_bytes: bytes of the stream, without repeated bytes.
        acked: last ACK number that this side sent; 0 before its first ACK.
        answered: True if the other side acknowledged anything other than the SYN.
        first_bytes: bytes sent before `answered` became True, without retransmits.
        first_segments: number of segments that contain `first_bytes`.
        outstanding_count: number of samples of outstanding bytes.
        outstanding_total: sum of the samples of outstanding bytes.
        max_outstanding: largest sample.
        min_outstanding: smallest sample other than 0; 0 if there is none.
        outstanding_seconds: sum of all samples, each multiplied by the time until the next sample.
        sack_segments: number of segments with SACK blocks.
        sack_acks: number of segments with SACK blocks that have the ACK flag and are not RSTs.
        max_blocks: maximum number of SACK blocks in one segment.
        dsack_acks: number of `sack_acks` whose first block is a D-SACK for tcptrace.
    """

    scale: int = 0
    scale_offered: int | None = None
    syn: int = 0
    syns: int = 0
    fin: int | None = None
    latest: int = 0
    resets: int = 0
    unique_bytes: int = 0
    acked: int = 0
    answered: bool = False
    first_bytes: int = 0
    first_segments: int = 0
    outstanding_count: int = 0
    outstanding_total: int = 0
    max_outstanding: int = 0
    min_outstanding: int = 0
    outstanding_seconds: int = 0
    sack_segments: int = 0
    sack_acks: int = 0
    max_blocks: int = 0
    dsack_acks: int = 0
    _sample: int = 0
    _sample_us: int | None = None

    def stream_bytes(self) -> int | None:
        """Bytes from the SYN to the FIN; None if one of them was not captured.

        If there is a RST, the last sequence number replaces the FIN's number.
        """
        if self.fin is None or not self.syns:
            return None
        last = self.latest if self.resets else self.fin
        return (last - self.syn - 1 if last > self.syn else SEQ_SPACE + last - self.syn - 1) % MODULUS

    def missed_bytes(self) -> int | None:
        """Return how many bytes of the stream tcptrace did not count."""
        stream = self.stream_bytes()
        return None if stream is None else (stream - self.unique_bytes) % MODULUS

    def sample(self, outstanding: int, ts_us: int) -> None:
        """Sample the outstanding bytes at a segment. SYNs and retransmitted or out-of-order segments are not sampled."""
        self.outstanding_count += 1
        self.outstanding_total = (self.outstanding_total + outstanding) % MODULUS
        self.max_outstanding = max(self.max_outstanding, outstanding)
        if outstanding and (self.min_outstanding == 0 or outstanding < self.min_outstanding):
            self.min_outstanding = outstanding
        if self._sample_us is not None:
            self.outstanding_seconds += int(self._sample * (max(ts_us - self._sample_us, 0) / US_PER_S))
        self._sample, self._sample_us = outstanding, ts_us


def take(this: Numbers, other: Numbers, row: Mapping[str, Any], zeros: tuple[int, int], *, ts_us: int, again: bool, late: bool) -> None:
    """Count the next segment.

    Args:
        this: the numbers of the side that sent the segment.
        other: the numbers of the other side.
        row: the segment, with offsets as in our tables.
        zeros: sequence numbers of offset 0, first of this side, then of the other side.
        ts_us: time of the segment.
        again: whether tcptrace considers the segment a retransmit.
        late: whether tcptrace considers the segment out of order.
    """
    flags, data = row["flags"], row["payload_bytes"]
    start = (row["seq"] + zeros[0]) % SEQ_SPACE
    if flags & SYN:
        this.syn = other.acked = start
        this.syns += 1
        if this.scale_offered is not None:
            this.scale = this.scale_offered
    elif this.scale_offered is None or other.scale_offered is None or not (this.syns and other.syns):
        this.scale = other.scale = 0
    if flags & FIN:
        this.fin = start + data
    this.latest = start + data
    blocks = row["sack_blocks"] or ()
    this.sack_segments += bool(blocks)
    if flags & RST:
        this.resets += 1
        return
    if flags & ACK:
        ack = (row["ack"] + zeros[1]) % SEQ_SPACE
        _take_blocks(this, [(edge + zeros[1]) % SEQ_SPACE for edge in blocks], ack)
        this.acked = ack
        other.answered |= other.syn + 1 != ack
    if data and not this.answered and not again:
        this.first_bytes += data
        this.first_segments += 1
    if not flags & SYN and not again and not late:
        this.sample((data if other.acked == 0 else start + data - (other.acked - 1)) % MODULUS, ts_us)


def _take_blocks(this: Numbers, edges: Sequence[int], ack: int) -> None:
    """Count SACK blocks.

    tcptrace counts the first block as a D-SACK if it is below the ACK, inside the second block, or across an end of the second block.
    """
    blocks = list(zip(edges[::2], edges[1::2], strict=False))
    if not blocks:
        return
    this.sack_acks += 1
    this.max_blocks = max(this.max_blocks, len(blocks))
    left, right = blocks[0]
    if right <= ack:
        this.dsack_acks += 1
    elif len(blocks) > 1:
        second_left, second_right = blocks[1]
        inside = second_left <= left and right <= second_right
        across = (left <= second_left < right) or (left < second_right <= right)
        this.dsack_acks += inside or across
