"""Expresses our results for a segment in tshark's terms, from the engine's columns and a small state per direction."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tcptrace_lab.schema import KINDS, RESENT
from tcptrace_lab.verify.bounded_state import BoundedStates
from tcptrace_lab.verify.wireshark_model import ACK, FIN, RST, SEQ_SPACE, SYN, Complete

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_HEADERS = (
    "frame ts_ns conn from_client seq ack payload_bytes captured_payload_bytes flags window_bytes sack_blocks tsval tsecr ip_id ttl ect ce "
    "layers"
)
_VERDICTS = (
    "kind evidence evidence_frame confidence retransmit_trigger in_flight_bytes usable_window_bytes acked_bytes acked_unseen_bytes rtt_ns"
)

COLUMNS = (*_HEADERS.split(), *_VERDICTS.split())
"""Columns of `schema.SEGMENTS` that are compared, or that rules need."""

KIND_OF = {
    "out_of_order": "out_of_order",
    "fast_retransmission": "fast_retransmit",
    "spurious_retransmission": "spurious",
    "duplicate_ack": "duplicate_ack",
    "keep_alive": "keepalive",
    "keep_alive_ack": "keepalive_ack",
    "window_update": "window_update",
    "zero_window_probe": "zero_window_probe",
    "zero_window_probe_ack": "zero_window_probe_ack",
}
"""tshark's verdict → the engine's kind with this meaning."""

IRREGULAR_KINDS = frozenset({*RESENT, "out_of_order", "capture_duplicate", "network_duplicate"})
"""Kinds of segments with repeated or late bytes, which give no RTT sample."""

MAX_IRREGULAR = 1_000
"""Maximum number of segments of `IRREGULAR_KINDS` that are stored per direction."""

MAX_SENT = 1_000
"""Maximum number of unacknowledged transmissions that are stored per direction."""

VERDICT_OF = {kind: verdict for verdict, kind in KIND_OF.items() if kind in KINDS}


@dataclass(slots=True)
class _Direction:
    """The state of one direction.

    Attributes:
        highest: end offset (exclusive) of the direction's data so far; None before its first segment.
        acked: highest offset of this data that the peer ACKed.
        last_ack: ACK number, as an offset, of the direction's last segment with an ACK.
        duplicates: number of the direction's duplicate ACKs since `last_ack` changed.
        zero: sequence number of offset 0.
        irregular: (frame, start, end, kind) of segments whose kind is in `IRREGULAR_KINDS`.
        sent: (frame, start, end, time) of unacknowledged transmissions, in order of sending.
        has_syn: True if the direction's SYN was captured.
        announced_ack: ACK number of the direction's last segment, including RSTs; None without the ACK flag.
        newest_ack: highest ACK number of the direction, without RSTs.
    """

    highest: int | None = None
    acked: int | None = None
    last_ack: int | None = None
    duplicates: int = 0
    zero: int | None = None
    irregular: deque[tuple[int, int, int, str]] = field(default_factory=lambda: deque(maxlen=MAX_IRREGULAR))
    sent: deque[tuple[int, int, int, int | None]] = field(default_factory=lambda: deque(maxlen=MAX_SENT))
    has_syn: bool = False
    announced_ack: int | None = None
    newest_ack: int | None = None

    def count_from(self, zero: int) -> None:
        """Set the sequence number of offset 0, and shift all offsets. The engine changes this number if a SYN arrives late."""
        if self.zero is not None and self.zero != zero:
            shift = (zero - self.zero + SEQ_SPACE // 2) % SEQ_SPACE - SEQ_SPACE // 2
            self.highest = None if self.highest is None else self.highest - shift
            self.acked = None if self.acked is None else self.acked - shift
            self.sent = deque(((frame, start - shift, end - shift, ts_ns) for frame, start, end, ts_ns in self.sent), MAX_SENT)
        self.zero = zero

    def update_peer(self, row: Mapping[str, Any]) -> None:
        """Record the ACK number of the direction's next segment."""
        self.announced_ack = row["ack"]
        if row["ack"] is not None and not row["flags"] & RST:
            self.newest_ack = row["ack"] if self.newest_ack is None else max(self.newest_ack, row["ack"])

    def last_sent(self, offset: int) -> tuple[int, int | None] | None:
        """Return frame and time of the last transmission of the byte at `offset`; None if no transmission is known."""
        return next(((frame, ts_ns) for frame, start, end, ts_ns in reversed(self.sent) if start <= offset < end), None)


@dataclass(slots=True)
class OurVerdict:
    """Our results for one segment, in tshark's terms. The "sender" sent this segment, and the "peer" is the other host.

    Attributes:
        verdicts: names of flags in `tcp.analysis.*`.
        duplicate_ack_num: number of this duplicate ACK in its series; None for other segments.
        bytes_in_flight: bytes in flight after the segment, without its own SYN and FIN; None for segments without data.
        highest: end offset of the sender's data before the segment.
        other_highest: end offset of the peer's data before the segment.
        end: end offset of the segment, with SYN and FIN.
        syns: number of hosts whose SYN was captured so far.
        una: highest offset of the sender's data that is ACKed; None before the first ACK.
        rto_ns: for a retransmit by timeout, time since the previous transmission of the segment's first byte.
        rto_frame: frame of that previous transmission.
        complete: parts of the connection that were captured before the segment.
        other_irregular: (frame, start, end, kind) of the peer's repeated or late segments so far.
        last_ack: ACK number of the sender's previous segment, including RSTs.
        newest_ack: highest ACK number of the sender before the segment, without RSTs.
        other_last_ack: ACK number of the peer's last segment.
        other_newest_ack: highest ACK number of the peer.
        other_latest: (frame, time) of the transmission with the latest timestamp, among those that this segment newly ACKs.
    """

    verdicts: set[str]
    duplicate_ack_num: int | None
    bytes_in_flight: int | None
    highest: int | None
    other_highest: int | None
    end: int
    syns: int = 0
    una: int | None = None
    rto_ns: int | None = None
    rto_frame: int | None = None
    complete: Complete = Complete.NOTHING
    other_irregular: Sequence[tuple[int, int, int, str]] = ()
    last_ack: int | None = None
    newest_ack: int | None = None
    other_last_ack: int | None = None
    other_newest_ack: int | None = None
    other_latest: tuple[int, int] | None = None


class VerdictMaker:
    """Tracks the state of all directions, row by row in capture order."""

    def __init__(self) -> None:
        """Start without any segment."""
        self._directions: BoundedStates[tuple[int, bool], _Direction] = BoundedStates(_Direction)
        self._complete: BoundedStates[int, list[Complete]] = BoundedStates(lambda: [Complete.NOTHING])

    def verdict_on(self, row: Mapping[str, Any], *, reuses_ports: bool) -> OurVerdict:
        """Return our results for the next segment. `row` has the columns of `COLUMNS`, and `their_raw_seq`."""
        conn, from_client, flags, kind = row["conn"], row["from_client"], row["flags"], row["kind"]
        sender, receiver = self._directions[conn, from_client], self._directions[conn, not from_client]
        sender.has_syn |= bool(flags & SYN)
        if row["their_raw_seq"] is not None:
            sender.count_from((row["their_raw_seq"] - row["seq"]) % SEQ_SPACE)
        end = row["seq"] + row["payload_bytes"] + bool(flags & SYN) + bool(flags & FIN)
        verdicts = {VERDICT_OF[kind]} if kind in VERDICT_OF else set()
        if kind in RESENT:
            verdicts.add("retransmission")
        if reuses_ports:
            verdicts.add("reused_ports")
        ours = OurVerdict(verdicts, _duplicates(row, sender), _in_flight(row, sender, end), sender.highest, receiver.highest, end)
        if row["in_flight_bytes"] is not None:
            ours.una = (row["seq"] if sender.highest is None else sender.highest) - row["in_flight_bytes"]
        ours.other_irregular, ours.syns = receiver.irregular, sender.has_syn + receiver.has_syn
        complete = self._complete[conn]
        ours.complete = complete[0]
        complete[0] |= completeness_seen(row)
        ours.last_ack, ours.newest_ack = sender.announced_ack, sender.newest_ack
        ours.other_last_ack, ours.other_newest_ack = receiver.announced_ack, receiver.newest_ack
        sender.update_peer(row)
        _set_timeout(row, sender, ours)
        if kind in IRREGULAR_KINDS and end > row["seq"]:
            sender.irregular.append((row["frame"], row["seq"], end, kind))
        _set_holes(row, sender, receiver, ours)
        _set_windows(row, sender, ours)
        if not flags & RST and (sender.highest is None or end > sender.highest):
            sender.highest = end
        return ours


def completeness_seen(row: Mapping[str, Any]) -> Complete:
    """Return what a segment adds to the completeness of its connection."""
    flags, complete = row["flags"], Complete.NOTHING
    if flags & SYN:
        complete |= Complete.SYN_ACK if flags & ACK else Complete.SYN
    elif flags & ACK and not row["payload_bytes"] and not flags & RST:
        complete |= Complete.ACK
    if row["payload_bytes"] and not flags & RST:
        complete |= Complete.DATA
    if flags & FIN:
        complete |= Complete.FIN
    if flags & RST:
        complete |= Complete.RST
    return complete


def _set_timeout(row: Mapping[str, Any], sender: _Direction, ours: OurVerdict) -> None:
    """If the segment is a retransmit by timeout, set the time since the previous transmission."""
    if ours.end == row["seq"] or row["flags"] & RST:
        return
    before = sender.last_sent(row["seq"]) if row["retransmit_trigger"] == "timeout" else None
    if before is not None and row["ts_ns"] is not None and before[1] is not None:
        ours.rto_frame, ours.rto_ns = before[0], row["ts_ns"] - before[1]
    sender.sent.append((row["frame"], row["seq"], ours.end, row["ts_ns"]))


def _set_holes(row: Mapping[str, Any], sender: _Direction, receiver: _Direction, ours: OurVerdict) -> None:
    """Add verdicts for skipped sequence numbers, and for ACKs of data that was not captured. Each skipped range is reported only once."""
    if row["flags"] & RST:
        return
    if ours.end > row["seq"] and sender.highest is not None and row["seq"] > sender.highest:
        ours.verdicts.add("lost_segment")
    ack = row["ack"]
    if ack is None:
        return
    beyond = receiver.highest is not None and ack > max(receiver.highest, receiver.acked or receiver.highest)
    if beyond and row["acked_unseen_bytes"]:
        ours.verdicts.add("ack_lost_segment")
    if receiver.acked is None or ack > receiver.acked:
        receiver.acked = ack
    while receiver.sent and receiver.sent[0][2] <= ack:
        frame, _, _, ts_ns = receiver.sent.popleft()
        if ts_ns is not None and (ours.other_latest is None or ts_ns > ours.other_latest[1]):
            ours.other_latest = frame, ts_ns


def _set_windows(row: Mapping[str, Any], sender: _Direction, ours: OurVerdict) -> None:
    if row["flags"] & (SYN | FIN | RST):
        return
    if row["window_bytes"] == 0:
        ours.verdicts.add("zero_window")
    usable = row["usable_window_bytes"]
    if row["payload_bytes"] and usable is not None and sender.highest is not None and ours.end == sender.highest + usable:
        ours.verdicts.add("window_full")


def _duplicates(row: Mapping[str, Any], sender: _Direction) -> int | None:
    """Return the number of a duplicate ACK, which counts from the last change of the ACK number; None for other segments."""
    if row["ack"] is not None and row["ack"] != sender.last_ack:
        sender.last_ack, sender.duplicates = row["ack"], 0
    if row["kind"] != "duplicate_ack":
        return None
    sender.duplicates += 1
    return sender.duplicates


def _in_flight(row: Mapping[str, Any], sender: _Direction, end: int) -> int | None:
    """Return the bytes in flight after a data segment, without its own SYN and FIN; None for other segments."""
    before = row["in_flight_bytes"]
    if before is None or not row["payload_bytes"]:
        return None
    grown = end - row["seq"] if sender.highest is None else max(end - sender.highest, 0)
    in_flight: int = before + grown - (1 if row["flags"] & (SYN | FIN) and grown else 0)
    return in_flight
