"""What we say of a segment in the terms that tshark uses, from the engine's columns and little that is kept of each direction."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tcptrace_lab.schema import KINDS, RESENT
from tcptrace_lab.verify.following import Following
from tcptrace_lab.verify.wireshark import ACK, FIN, RST, SEQ_SPACE, SYN, Complete

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_HEADERS = (
    "frame ts_ns conn from_client seq ack payload_bytes captured_payload_bytes flags window_bytes sack_blocks tsval tsecr ip_id ttl ect ce "
    "layers"
)
_VERDICTS = "kind evidence evidence_frame confidence resent_by in_flight_bytes usable_window_bytes acked_bytes acked_unseen_bytes rtt_ns"

COLUMNS = (*_HEADERS.split(), *_VERDICTS.split())
"""Columns of `schema.SEGMENTS` that are compared or needed as evidence."""

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
"""tshark's verdict → the kind that means the same."""

TROUBLED = frozenset({*RESENT, "out_of_order", "capture_duplicate", "network_duplicate"})
"""Kinds that bring bytes again or late: no round trip is measured on them."""

MAX_TROUBLED = 1_000
"""Such segments remembered per direction."""

MAX_SENT = 1_000
"""Unacknowledged transmissions remembered per direction."""

VERDICT_OF = {kind: verdict for verdict, kind in KIND_OF.items() if kind in KINDS}


@dataclass(slots=True)
class _Direction:
    """What is kept of one direction.

    Attributes:
        highest: the offset behind its last byte so far; None before its first segment.
        acked: the highest offset of it that was acknowledged.
        last_ack: what its own last segment acknowledged.
        duplicates: its duplicate ACKs since that changed.
        zero: the sequence number of offset 0.
        troubled: frame, offsets of start and end, and kind of what came again or late.
        sent: frame, offsets of start and end, and time of what is not acknowledged, as it was sent last.
        has_syn: its SYN was seen.
        said_ack: what its last segment acknowledged, a RST too.
        newest_ack: the most that it acknowledged, a RST apart.
    """

    highest: int | None = None
    acked: int | None = None
    last_ack: int | None = None
    duplicates: int = 0
    zero: int | None = None
    troubled: deque[tuple[int, int, int, str]] = field(default_factory=lambda: deque(maxlen=MAX_TROUBLED))
    sent: deque[tuple[int, int, int, int | None]] = field(default_factory=lambda: deque(maxlen=MAX_SENT))
    has_syn: bool = False
    said_ack: int | None = None
    newest_ack: int | None = None

    def count_from(self, zero: int) -> None:
        """Offsets count from the sequence number `zero`: the engine moves it to a SYN that comes late."""
        if self.zero is not None and self.zero != zero:
            shift = (zero - self.zero + SEQ_SPACE // 2) % SEQ_SPACE - SEQ_SPACE // 2
            self.highest = None if self.highest is None else self.highest - shift
            self.acked = None if self.acked is None else self.acked - shift
            self.sent = deque(((frame, start - shift, end - shift, ts_ns) for frame, start, end, ts_ns in self.sent), MAX_SENT)
        self.zero = zero

    def hear(self, row: Mapping[str, Any]) -> None:
        """Its next segment's ACK."""
        self.said_ack = row["ack"]
        if row["ack"] is not None and not row["flags"] & RST:
            self.newest_ack = row["ack"] if self.newest_ack is None else max(self.newest_ack, row["ack"])

    def last_sent(self, offset: int) -> tuple[int, int | None] | None:
        """Frame and time in which the byte at `offset` was sent last; None if that is not known."""
        return next(((frame, ts_ns) for frame, start, end, ts_ns in reversed(self.sent) if start <= offset < end), None)


@dataclass(slots=True)
class Said:
    """What we say of one segment.

    Attributes:
        verdicts: names as of `tcp.analysis.*`.
        duplicate_ack_num: how many duplicate ACKs in a row this one makes.
        bytes_in_flight: sent and not acknowledged just after it, data only in its own segment.
        highest: how far its side had sent before it.
        other_highest: how far the other side had.
        end: the offset behind its last byte, SYN and FIN counted.
        syns: of how many sides a SYN was seen by then.
        una: the highest offset of its side that was acknowledged; None before the first ACK.
        rto_ns: for a resend by timeout, time since its first byte was sent before.
        rto_frame: in which frame that was.
        complete: what was seen of the connection before it.
        other_troubled: what of the other side came again or late until now: frame, offsets of start and end, kind.
        last_ack: what the last segment of its side acknowledged, a RST too.
        newest_ack: the most that its side had acknowledged, a RST apart.
        other_last_ack: what the last segment of the other side acknowledged.
        other_newest_ack: the most that the other side had acknowledged.
        other_latest: of what it acknowledges for the first time, the frame that was seen last by the file's times, and its time.
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
    other_troubled: Sequence[tuple[int, int, int, str]] = ()
    last_ack: int | None = None
    newest_ack: int | None = None
    other_last_ack: int | None = None
    other_newest_ack: int | None = None
    other_latest: tuple[int, int] | None = None


class Speaker:
    """Follows the directions, row by row in capture order."""

    def __init__(self) -> None:
        """Nothing was seen."""
        self._directions: Following[tuple[int, bool], _Direction] = Following(_Direction)
        self._complete: Following[int, list[Complete]] = Following(lambda: [Complete.NOTHING])

    def say(self, row: Mapping[str, Any], *, reuses_ports: bool) -> Said:
        """Of the next segment; `row` has the columns of `COLUMNS`, and `their_raw_seq`."""
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
        said = Said(verdicts, _duplicates(row, sender), _in_flight(row, sender, end), sender.highest, receiver.highest, end)
        if row["in_flight_bytes"] is not None:
            said.una = (row["seq"] if sender.highest is None else sender.highest) - row["in_flight_bytes"]
        said.other_troubled, said.syns = receiver.troubled, sender.has_syn + receiver.has_syn
        complete = self._complete[conn]
        said.complete = complete[0]
        complete[0] |= seen(row)
        said.last_ack, said.newest_ack = sender.said_ack, sender.newest_ack
        said.other_last_ack, said.other_newest_ack = receiver.said_ack, receiver.newest_ack
        sender.hear(row)
        _say_timeout(row, sender, said)
        if kind in TROUBLED and end > row["seq"]:
            sender.troubled.append((row["frame"], row["seq"], end, kind))
        _say_holes(row, sender, receiver, said)
        _say_windows(row, sender, said)
        if not flags & RST and (sender.highest is None or end > sender.highest):
            sender.highest = end
        return said


def seen(row: Mapping[str, Any]) -> Complete:
    """What a segment adds to the account of its connection."""
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


def _say_timeout(row: Mapping[str, Any], sender: _Direction, said: Said) -> None:
    """How long the sender waited before it sent these bytes again."""
    if said.end == row["seq"] or row["flags"] & RST:
        return
    before = sender.last_sent(row["seq"]) if row["resent_by"] == "timeout" else None
    if before is not None and row["ts_ns"] is not None and before[1] is not None:
        said.rto_frame, said.rto_ns = before[0], row["ts_ns"] - before[1]
    sender.sent.append((row["frame"], row["seq"], said.end, row["ts_ns"]))


def _say_holes(row: Mapping[str, Any], sender: _Direction, receiver: _Direction, said: Said) -> None:
    """What was jumped over, and what was acknowledged that no segment brought: each once."""
    if row["flags"] & RST:
        return
    if said.end > row["seq"] and sender.highest is not None and row["seq"] > sender.highest:
        said.verdicts.add("lost_segment")
    ack = row["ack"]
    if ack is None:
        return
    beyond = receiver.highest is not None and ack > max(receiver.highest, receiver.acked or receiver.highest)
    if beyond and row["acked_unseen_bytes"]:
        said.verdicts.add("ack_lost_segment")
    if receiver.acked is None or ack > receiver.acked:
        receiver.acked = ack
    while receiver.sent and receiver.sent[0][2] <= ack:
        frame, _, _, ts_ns = receiver.sent.popleft()
        if ts_ns is not None and (said.other_latest is None or ts_ns > said.other_latest[1]):
            said.other_latest = frame, ts_ns


def _say_windows(row: Mapping[str, Any], sender: _Direction, said: Said) -> None:
    """A window that is shut, and one that is filled to its edge."""
    if row["flags"] & (SYN | FIN | RST):
        return
    if row["window_bytes"] == 0:
        said.verdicts.add("zero_window")
    usable = row["usable_window_bytes"]
    if row["payload_bytes"] and usable is not None and sender.highest is not None and said.end == sender.highest + usable:
        said.verdicts.add("window_full")


def _duplicates(row: Mapping[str, Any], sender: _Direction) -> int | None:
    """Counted from the last change of what the side acknowledges."""
    if row["ack"] is not None and row["ack"] != sender.last_ack:
        sender.last_ack, sender.duplicates = row["ack"], 0
    if row["kind"] != "duplicate_ack":
        return None
    sender.duplicates += 1
    return sender.duplicates


def _in_flight(row: Mapping[str, Any], sender: _Direction, end: int) -> int | None:
    """After a segment with data. Its own FIN is no byte in flight."""
    before = row["in_flight_bytes"]
    if before is None or not row["payload_bytes"]:
        return None
    grown = end - row["seq"] if sender.highest is None else max(end - sender.highest, 0)
    in_flight: int = before + grown - (1 if row["flags"] & (SYN | FIN) and grown else 0)
    return in_flight
