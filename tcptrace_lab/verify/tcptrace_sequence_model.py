"""A model of tcptrace 6.6.7's figures from sequence numbers, apart from its segment list: streams, flights, SACK blocks, window scales.

tcptrace compares and subtracts the header's sequence numbers without regard to wrapping.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tcptrace_lab.verify.wireshark_model import ACK, FIN, RST, SEQ_SPACE, SYN

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

MODULUS = 1 << 64
"""tcptrace's numbers are unsigned 64-bit values: a negative difference becomes larger by this modulus."""

US_PER_S = 1_000_000


@dataclass(slots=True)
class Numbers:
    """What it keeps of the numbers of one direction.

    Attributes:
        scale: shift that it says the windows have.
        scale_offered: of the SYN; None without.
        syn: the SYN's number; 0 before one.
        syns: SYNs.
        fin: the FIN's number; None before one.
        latest: the number behind the last segment.
        resets: RSTs.
        unique_bytes: bytes that it counts once.
        acked: what its side acknowledged last; 0 before an ACK.
        answered: something else than the SYN was acknowledged by the other side.
        first_bytes: bytes that were sent before that, and not resent.
        first_segments: segments with them.
        outstanding_count: samples of what is outstanding.
        outstanding_total: their sum.
        max_outstanding: the largest.
        min_outstanding: the smallest that is not 0; 0 without.
        outstanding_seconds: samples times how long they held, to the next.
        sack_segments: segments with SACK blocks.
        sack_acks: those of them with the ACK flag, RSTs left out.
        max_blocks: most blocks in one of those.
        dsack_acks: those whose first block it takes for a D-SACK.
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
        """From the SYN's number to the FIN's, or with a RST to the last one seen; None unless both were captured."""
        if self.fin is None or not self.syns:
            return None
        last = self.latest if self.resets else self.fin
        return (last - self.syn - 1 if last > self.syn else SEQ_SPACE + last - self.syn - 1) % MODULUS

    def missed_bytes(self) -> int | None:
        """The stream less what it counts once."""
        stream = self.stream_bytes()
        return None if stream is None else (stream - self.unique_bytes) % MODULUS

    def sample(self, outstanding: int, ts_us: int) -> None:
        """What is outstanding at a segment that is neither SYN nor resent nor late."""
        self.outstanding_count += 1
        self.outstanding_total = (self.outstanding_total + outstanding) % MODULUS
        self.max_outstanding = max(self.max_outstanding, outstanding)
        if outstanding and (self.min_outstanding == 0 or outstanding < self.min_outstanding):
            self.min_outstanding = outstanding
        if self._sample_us is not None:
            self.outstanding_seconds += int(self._sample * (max(ts_us - self._sample_us, 0) / US_PER_S))
        self._sample, self._sample_us = outstanding, ts_us


def take(this: Numbers, other: Numbers, row: Mapping[str, Any], zeros: tuple[int, int], *, ts_us: int, again: bool, late: bool) -> None:
    """The next segment.

    Args:
        this: of the side that sent it.
        other: of the other side.
        row: the segment; offsets are those of our tables.
        zeros: sequence numbers of offset 0 of this side and of the other.
        ts_us: its time.
        again: it is resent, as tcptrace has it.
        late: it is out of order, as tcptrace has it.
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
    """A D-SACK is a first block below the ACK, inside the second, or across one of its ends."""
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
