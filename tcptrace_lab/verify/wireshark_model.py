"""A model of Wireshark 4.0's `tcp.analysis.*`. It repeats Wireshark's tests as we understand them, and gives a reason for each verdict.

Wireshark stores little state per direction: the highest sequence number and its time, the last ACK number and its raw window, the number of
repetitions of this ACK, and the unacknowledged segments. It does not use timestamps, IP identification or D-SACK. It uses SACK blocks only
for bytes in flight. The order of the tests matters, because the first test that applies classifies a retransmit.

Sources: Wireshark's documentation (User's Guide, 7.5 "TCP Analysis"; display filter reference) and the behaviour of its releases. If
Wireshark and this model differ on a capture, the difference counts as unexplained.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntFlag
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Hashable

FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16

SEQ_SPACE = 1 << 32
_HALF_SPACE = 1 << 31

FAST_DUPLICATE_ACKS = 2
"""A retransmit after this many repeated ACKs is fast. RFC 5681 requires three, but one of them is possibly not in the capture."""

FAST_NS = 20_000_000
"""Maximum time from the last repeated ACK to a fast retransmit."""

OUT_OF_ORDER_NS = 3_000_000
"""Longest time since the highest sequence number for which a lower segment counts as out of order.

If the RTT of the handshake is known, it replaces this time.
"""

MAX_UNACKED = 10_000
"""Maximum number of unacknowledged segments that are stored per direction."""

MAX_FORGOTTEN = 64
"""Maximum number of dropped segments whose ends are stored.

Wireshark drops a segment even if the ACK field that covers it is in a segment without the ACK flag.
"""

MAX_SACK_BLOCKS = 3
"""Number of SACK blocks that Wireshark subtracts from the bytes in flight. Wireshark has no room for a fourth block."""


MAX_IN_FLIGHT = 2_000_000_000
"""Wireshark considers a larger number of bytes in flight an error."""

_TIMES = 1 << 64
"""Modulus of Wireshark's times between packets, which are unsigned. If timestamps run backwards, these times become very long."""

_NEUTRALIZED = SEQ_SPACE - 1
"""Wireshark's count of repeated ACKs after an ACK of unseen data.

It is -1 as an unsigned number, which is more than a fast retransmit needs.
"""


class Complete(IntFlag):
    """Parts of a connection that were captured: `tcp.completeness` (Wireshark User's Guide, 7.5, TCP Conversation Completeness)."""

    NOTHING = 0
    SYN = 1
    SYN_ACK = 2
    ACK = 4
    DATA = 8
    FIN = 16
    RST = 32


class Header(NamedTuple):
    """The fields that Wireshark's analysis uses. Sequence numbers are the ones in the header.

    `zero` is the sequence number of this direction that Wireshark displays as 0. `begins_again` is True if Wireshark reports that this
    segment opens a new connection on reused ports.
    """

    frame: int
    ts_ns: int
    seq: int
    ack: int
    payload_bytes: int
    flags: int
    window: int
    scale: int
    sack_blocks: tuple[int, ...]
    initial_rtt_ns: int | None
    zero: int
    begins_again: bool = False


@dataclass(slots=True)
class Judgement:
    """Wireshark's verdicts on one segment, and the values on which they depend.

    "This direction" is the direction of the segment.

    Attributes:
        flags: names of `tcp.analysis.*`.
        duplicate_ack_num: how often the ACK was repeated.
        acks_frame: the oldest frame that ends at the segment's ACK number.
        ack_rtt_ns: time since `acks_frame`.
        bytes_in_flight: bytes in flight after the segment.
        rto_ns: for a retransmit, time since `rto_frame`.
        rto_frame: frame of the oldest unacknowledged segment that Wireshark stores.
        completeness: completeness of the stream before the segment.
        left_out: parts that Wireshark has seen, but that are not in `completeness`.
        since_highest_ns: for a segment below the highest sequence number, time since the highest number was first seen.
        since_ack_ns: time since the last segment of the other direction.
        patience_ns: maximum of `since_highest_ns` for a segment that is out of order.
        repeated_acks: number of repeated ACKs of the other direction at the time of the verdict.
        highest: highest sequence number of this direction before the segment.
        acked: last ACK number of the other direction.
        ends_at_highest: True if the segment ends at the highest sequence number.
        after_probe: True if the segment starts one below the highest sequence number, and has more than one byte.
        lowest_kept: lowest sequence number of this direction that counts as in flight.
        highest_kept: end of the highest sequence number that counts as in flight (exclusive).
        sacked_bytes: bytes in the SACK blocks of the other direction's last segment.
        not_counting: True if bytes in flight are not counted, because of a hole. Counting continues at the next ACK of the other direction.
        contiguous: end of the other direction's bytes before the first hole, according to Wireshark.
        reported_before: True if an ACK of unseen data was reported. Wireshark reports one again only after the ACK number has changed.
        acked_from: first sequence number of `acks_frame`.
        forgotten_by: a frame without the ACK flag. Its ACK field made Wireshark drop the segments that this segment acknowledges.
        count_began_anew: True if repeated ACKs are counted from 1 again, because an ACK of unseen data reset the count.
        answers: the verdicts on the other direction's last segment.
        below_zero: True if some bytes in flight are below the sequence number that Wireshark displays as 0.
        zero_moved_by: frame of the last SYN-ACK that changed which sequence number of this direction Wireshark displays as 0.
        other_zero_moved_by: as `zero_moved_by`, for the other direction.
        after_reset: True if the previous segment of this direction was a RST.
        highest_by_reset: frame of the RST that set the highest sequence number.
        edge_unknown: True if the scale of the receiver's window is unknown, so that Wireshark does not compute its right edge.
        syn_again: frame of a SYN that follows a SYN-ACK.
        is_full: True if a direction has as many unacknowledged segments as Wireshark stores. Wireshark then stores no further segments.
    """

    flags: set[str] = field(default_factory=set)
    duplicate_ack_num: int | None = None
    acks_frame: int | None = None
    ack_rtt_ns: int | None = None
    bytes_in_flight: int | None = None
    rto_ns: int | None = None
    rto_frame: int | None = None
    completeness: Complete = Complete.NOTHING
    left_out: Complete = Complete.NOTHING
    since_highest_ns: int | None = None
    since_ack_ns: int | None = None
    patience_ns: int = OUT_OF_ORDER_NS
    repeated_acks: int = 0
    highest: int | None = None
    acked: int | None = None
    ends_at_highest: bool = False
    after_probe: bool = False
    lowest_kept: int | None = None
    highest_kept: int | None = None
    sacked_bytes: int = 0
    not_counting: bool = False
    contiguous: int | None = None
    reported_before: bool = False
    acked_from: int | None = None
    forgotten_by: int | None = None
    count_began_anew: bool = False
    is_full: bool = False
    answers: frozenset[str] = frozenset()
    below_zero: bool = False
    zero_moved_by: int | None = None
    other_zero_moved_by: int | None = None
    after_reset: bool = False
    highest_by_reset: int | None = None
    syn_again: int | None = None
    edge_unknown: bool = False


@dataclass(slots=True)
class _Unacked:
    seq: int
    end: int
    frame: int
    ts_ns: int
    first: int


class _InFlight(NamedTuple):
    """Range of the unacknowledged segments, relative to `zero`.

    Wireshark compares unsigned numbers, so numbers below 0 become very large.
    """

    zero: int
    first: int
    last: int
    below_zero: bool


@dataclass(slots=True)
class _Side:
    """Wireshark's state of one direction. Where Wireshark tests whether a number is known, 0 means unknown."""

    highest: int = 0
    highest_frame: int = 0
    highest_ts_ns: int = 0
    highest_by_reset: int | None = None
    zero: int | None = None
    zero_moved_by: int | None = None
    after_reset: bool = False
    contiguous: int = 0
    last_ack: int = 0
    last_ts_ns: int = 0
    window: int = -1
    scale: int = -1
    is_first_ack: bool = False
    repeated_acks: int = 0
    began_anew: bool = False
    last_flags: frozenset[str] = frozenset()
    in_flight_known: bool = True
    sack_blocks: tuple[int, ...] = ()
    unacked: list[_Unacked] = field(default_factory=list)
    in_flight: _InFlight | None = None  # range of `unacked`, computed on first use
    forgotten: dict[int, int] = field(default_factory=dict)


def _beyond(first: int, second: int) -> bool:
    """Return whether `first` is after `second`, modulo 2^32."""
    return 0 < (first - second) % SEQ_SPACE < _HALF_SPACE


class Stream:
    """The model of one Wireshark stream, segment by segment."""

    __slots__ = ("_accepted", "_complete", "_first_sender", "_left_out", "_sides", "_syn_again", "first_rtt_ns")

    def __init__(self) -> None:
        """Start without any segment."""
        self._sides = {True: _Side(), False: _Side()}
        self.first_rtt_ns: int | None = None
        self._first_sender: Hashable = None
        self._accepted = False
        self._syn_again: int | None = None
        self._complete = self._left_out = Complete.NOTHING

    def take(self, header: Header, source: Hashable) -> Judgement:
        """Judge the next segment. `source` identifies the segment's direction."""
        is_first = self._first_sender is None
        if is_first:
            self._first_sender = source
            self._complete = Complete.SYN if header.begins_again and header.flags & SYN else Complete.NOTHING
        forward = source == self._first_sender
        sender, receiver = self._sides[forward], self._sides[not forward]
        judged = Judgement(
            answers=receiver.last_flags,
            highest=sender.highest or None,
            acked=receiver.last_ack or None,
            repeated_acks=receiver.repeated_acks,
            after_reset=sender.after_reset,
            highest_by_reset=sender.highest_by_reset,
        )
        self._follow_handshake(header, sender, receiver, judged)
        if self.first_rtt_ns is None and header.initial_rtt_ns:
            self.first_rtt_ns = header.initial_rtt_ns
        if header.flags & ACK:
            receiver.in_flight_known = True
        sender.scale = header.scale
        _judge_windows_and_acks(header, sender, receiver, judged)
        if header.ack != sender.last_ack:
            sender.repeated_acks, sender.began_anew = 0, False
        _judge_unseen(header, receiver, judged)
        if header.payload_bytes or header.flags & (SYN | FIN):
            self._judge_resend(header, sender, receiver, judged)
        _remember(header, sender, judged)
        _acknowledge(header, receiver, judged)
        _count_in_flight(header, sender, receiver, judged)
        judged.completeness, judged.left_out = self._complete, self._left_out
        counted, left_out = _completed(header, is_first=is_first)
        self._complete, self._left_out = self._complete | counted, self._left_out | left_out
        sender.sack_blocks = header.sack_blocks[: 2 * MAX_SACK_BLOCKS]
        return judged

    def _follow_handshake(self, header: Header, sender: _Side, receiver: _Side, judged: Judgement) -> None:
        """Record a SYN or SYN-ACK that changes values of an earlier one."""
        syn_ack = header.flags & (SYN | ACK) == SYN | ACK
        if syn_ack and sender.zero is not None and sender.zero != header.zero:
            sender.zero_moved_by = header.frame
        sender.zero = header.zero
        if self._accepted and header.flags & (SYN | ACK) == SYN:
            self._syn_again = header.frame
        self._accepted |= syn_ack
        judged.zero_moved_by, judged.other_zero_moved_by = sender.zero_moved_by, receiver.zero_moved_by
        judged.syn_again = self._syn_again

    def _judge_resend(self, header: Header, sender: _Side, receiver: _Side, judged: Judgement) -> None:
        """Classify a retransmit. The tests are in this order: spurious, fast, out of order, plain retransmission."""
        if "keep_alive" in judged.flags:
            return
        judged.repeated_acks = receiver.repeated_acks  # read here, because an ACK of unseen data changes this number just before
        end = header.seq + header.payload_bytes
        below = bool(sender.highest) and _beyond(sender.highest, header.seq)
        if header.payload_bytes > 1 and (sender.highest - 1 - header.seq) % SEQ_SPACE == 0:
            below, judged.after_probe = False, True
        judged.since_ack_ns = header.ts_ns - receiver.last_ts_ns
        judged.since_highest_ns = header.ts_ns - sender.highest_ts_ns if sender.highest else None
        judged.patience_ns = self.first_rtt_ns or OUT_OF_ORDER_NS
        whole_end = end + bool(header.flags & (SYN | FIN))
        judged.ends_at_highest = (sender.highest - whole_end) % SEQ_SPACE == 0
        if header.payload_bytes and receiver.last_ack and not _beyond(end, receiver.last_ack):
            judged.flags |= {"spurious_retransmission", "retransmission"}
        elif below and self._is_fast(header, receiver, judged):
            judged.flags |= {"fast_retransmission", "retransmission"}
        elif (
            below
            and judged.since_highest_ns is not None
            and judged.since_highest_ns % _TIMES < judged.patience_ns % _TIMES
            and not judged.ends_at_highest
        ):
            judged.flags.add("out_of_order")
        elif below:
            judged.flags.add("retransmission")
            oldest = sender.unacked[0] if sender.unacked else None
            judged.rto_ns = header.ts_ns - (sender.highest_ts_ns if oldest is None else oldest.ts_ns) or None
            if judged.rto_ns is not None:
                judged.rto_frame = sender.highest_frame if oldest is None else oldest.frame

    @staticmethod
    def _is_fast(header: Header, receiver: _Side, judged: Judgement) -> bool:
        return (
            receiver.repeated_acks >= FAST_DUPLICATE_ACKS
            and (receiver.last_ack - header.seq) % SEQ_SPACE == 0
            and judged.since_ack_ns is not None
            and 0 <= judged.since_ack_ns < FAST_NS
        )


def _completed(header: Header, *, is_first: bool) -> tuple[Complete, Complete]:
    """Return what the segment adds to the stream's completeness. As in Wireshark, the first segment counts only if it is a SYN."""
    flags, data = header.flags, Complete.DATA if header.payload_bytes else Complete.NOTHING
    seen = data
    if flags & SYN:
        seen |= Complete.SYN_ACK if flags & ACK else Complete.SYN
    elif flags & ACK:
        seen |= data or Complete.ACK
    seen |= Complete.FIN if flags & FIN else Complete.NOTHING
    seen |= Complete.RST if flags & RST else Complete.NOTHING
    if is_first:
        counted = seen & (Complete.SYN | Complete.DATA) if Complete.SYN in seen else Complete.NOTHING
    else:
        counted = seen & ~Complete.SYN
        if flags & (SYN | ACK) != ACK:
            counted &= ~Complete.DATA
        if not flags & ACK:
            counted &= ~Complete.FIN
    return counted, seen & ~counted


def _judge_windows_and_acks(header: Header, sender: _Side, receiver: _Side, judged: Judgement) -> None:
    flags = judged.flags
    at_highest = (header.seq - sender.highest) % SEQ_SPACE == 0
    if header.payload_bytes == 1 and at_highest and receiver.window == 0:
        flags.add("zero_window_probe")
        return
    plain = not header.flags & (SYN | FIN | RST)
    if header.window == 0 and plain:
        flags.add("zero_window")
    if sender.highest and _beyond(header.seq, sender.highest) and not header.flags & RST:
        flags.add("lost_segment")
        sender.in_flight_known = False
    if not plain:
        return
    if header.payload_bytes <= 1 and (header.seq + 1 - sender.highest) % SEQ_SPACE == 0:
        flags.add("keep_alive")
    if header.payload_bytes:
        judged.edge_unknown = receiver.scale == -1
        if not judged.edge_unknown:
            factor = 1 if receiver.is_first_ack else max(receiver.scale, 1)
            edge = receiver.last_ack + receiver.window * factor
            if (header.seq + header.payload_bytes - edge) % SEQ_SPACE == 0:
                flags.add("window_full")
        return
    if at_highest and header.ack == sender.last_ack:
        _judge_repeated(header, sender, receiver, judged)


def _judge_repeated(header: Header, sender: _Side, receiver: _Side, judged: Judgement) -> None:
    """Classify a segment without data that repeats the previous ACK number, and count duplicate ACKs, as Wireshark does."""
    flags = judged.flags
    same = header.window == sender.window
    if header.window and not same:
        flags.add("window_update")
    elif header.window and "keep_alive" in receiver.last_flags:
        flags.add("keep_alive_ack")
    elif header.window == 0 and same and "zero_window_probe" in receiver.last_flags:
        flags.add("zero_window_probe_ack")
    elif header.window and same:
        sender.began_anew |= sender.repeated_acks == _NEUTRALIZED
        judged.count_began_anew = sender.began_anew
        sender.repeated_acks = 1 if sender.repeated_acks == _NEUTRALIZED else sender.repeated_acks + 1
        flags.add("duplicate_ack")
        judged.duplicate_ack_num = sender.repeated_acks


def _judge_unseen(header: Header, receiver: _Side, judged: Judgement) -> None:
    """Report an ACK of data after the first hole in the capture. Each such ACK is reported only once."""
    judged.contiguous = receiver.contiguous or None
    if not header.flags & ACK or not receiver.contiguous or not _beyond(header.ack, receiver.contiguous):
        return
    if _beyond(receiver.highest, receiver.contiguous):
        receiver.contiguous = receiver.highest
        judged.flags.add("ack_lost_segment")
    else:
        if receiver.repeated_acks == 0:
            judged.flags.add("ack_lost_segment")
        else:
            judged.reported_before = True
        receiver.repeated_acks = _NEUTRALIZED


def _remember(header: Header, sender: _Side, judged: Judgement) -> None:
    occupies = bool(header.payload_bytes or header.flags & (SYN | FIN))
    end = header.seq + header.payload_bytes
    judged.is_full = len(sender.unacked) >= MAX_UNACKED
    if occupies and not judged.is_full:
        end += bool(header.flags & (SYN | FIN))
        sender.unacked.append(_Unacked(header.seq, end, header.frame, header.ts_ns, header.seq))
        sender.in_flight = None
    if "zero_window_probe" not in judged.flags:
        if not sender.highest or _beyond(end, sender.highest):
            sender.highest, sender.highest_frame, sender.highest_ts_ns = end % SEQ_SPACE, header.frame, header.ts_ns
            sender.highest_by_reset = header.frame if header.flags & RST else None
        if not sender.contiguous or (header.seq - sender.contiguous) % SEQ_SPACE == 0:
            sender.contiguous = sender.highest
    sender.window, sender.last_ack, sender.last_ts_ns, sender.last_flags = header.window, header.ack, header.ts_ns, frozenset(judged.flags)
    sender.is_first_ack, sender.after_reset = bool(header.flags & SYN), bool(header.flags & RST)


def _acknowledge(header: Header, receiver: _Side, judged: Judgement) -> None:
    """Drop the segments that this segment acknowledges.

    The RTT starts at the oldest dropped segment that ends at the ACK number.
    """
    judged.is_full |= len(receiver.unacked) >= MAX_UNACKED
    judged.forgotten_by = receiver.forgotten.get(header.ack) if receiver.forgotten else None
    left: list[_Unacked] = []
    for sent in reversed(receiver.unacked):
        if (header.ack - sent.end) % SEQ_SPACE == 0:
            judged.acks_frame, judged.ack_rtt_ns, judged.acked_from = sent.frame, header.ts_ns - sent.ts_ns or None, sent.first
        elif _beyond(sent.end, header.ack):
            if _beyond(header.ack, sent.seq):
                sent.seq = header.ack
            left.append(sent)
        elif not header.flags & ACK and len(receiver.forgotten) < MAX_FORGOTTEN:
            receiver.forgotten[sent.end] = header.frame
    left.reverse()
    receiver.unacked, receiver.in_flight = left, None


def _count_in_flight(header: Header, sender: _Side, receiver: _Side, judged: Judgement) -> None:
    judged.not_counting = not sender.in_flight_known
    if not header.payload_bytes or not sender.unacked or judged.not_counting:
        return
    if sender.in_flight is None or sender.in_flight.zero != header.zero:
        sender.in_flight = _in_flight(sender.unacked, header.zero)
    zero, first, last, judged.below_zero = sender.in_flight
    blocks = receiver.sack_blocks  # a truncated block contains only its left edge
    judged.sacked_bytes = sum((right - left) % SEQ_SPACE for left, right in zip(blocks[::2], blocks[1::2], strict=False))
    judged.lowest_kept, judged.highest_kept = ((zero + edge) % SEQ_SPACE for edge in (first, last))
    in_flight = (last - first) % SEQ_SPACE - judged.sacked_bytes
    if 0 < in_flight < MAX_IN_FLIGHT:
        judged.bytes_in_flight = in_flight - bool(header.flags & (SYN | FIN))


def _in_flight(unacked: list[_Unacked], zero: int) -> _InFlight:
    first = min((sent.seq - zero) % SEQ_SPACE for sent in unacked)
    last = max((sent.end - zero) % SEQ_SPACE for sent in unacked)
    return _InFlight(zero, first, last, any(_beyond(zero, sent.seq) for sent in unacked) and last - first != _stretch(unacked))


def _stretch(unacked: list[_Unacked]) -> int:
    """Return the distance from the lowest to the highest sequence number of the segments, modulo 2^32."""
    base = unacked[0].seq - _HALF_SPACE
    return max((sent.end - base) % SEQ_SPACE for sent in unacked) - min((sent.seq - base) % SEQ_SPACE for sent in unacked)
