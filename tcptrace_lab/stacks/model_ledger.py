"""The model's ledger: for each direction and every instant of the connection, the reason why the next byte is not sent.

A capture at the sender of a direction shows the same times as the direction's ledger, so compare the ledger only with such a capture. The
ledger lasts from the connection's first frame to the last. The time between two sent segments has these causes:

- Bytes are queued: the cause is the rule or window that delays them. If the receiver delayed its ACK, the cause changes: `nagle` becomes
  `nagle-delayed-ack`, and the congestion window or a full send buffer becomes `delayed-ack`. Only the ACK that ends the wait decides. A
  delayed ACK costs no time if a later, prompt ACK releases the data.
- Nagle's algorithm delays the last bytes of a full send buffer: the cause depends on the size of the segment that ends the wait. For a
  small segment, the cause is Nagle's algorithm. For a full segment, the cause is the send buffer, because the application filled the
  segment when there was space.
- The send buffer is full and the window is used up: the cause is the window.
- The link transmits the previous frame: the cause is `network`, even if a rule or window would also delay the next byte. So a window is the
  cause only while the link is idle, which is the time that a larger window would save.
- A retransmission after a timeout ends the wait: the cause of the whole wait is `timeout`.
- A retransmission in loss recovery ends the wait: the third duplicate ACK signals the loss (RFC 5681, 3.2). From this ACK on, the cause is
  `loss-recovery`. Before this ACK, the sender waits for an ACK as usual. If the data after the lost segment fills the send buffer, nothing
  new can be sent until the retransmission is acknowledged. This time is also `loss-recovery`.
- Nothing is queued, and the application waits for data: the cause is `network` while the application's last byte, or the last byte of the
  answer, is in transit. Otherwise, the cause is `peer`. The ledger of the other direction shows what the peer did in this time.
- Nothing is queued, and the application does something else: first the cause is `network`, until the ACK of the last byte could have
  returned. After that, the cause is `application`.
- The application has ended: `close`. The connection is not yet established: `handshake`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tcptrace_lab.stacks.congestion import DUPLICATE_ACKS
from tcptrace_lab.stacks.packet import FIN, SYN
from tcptrace_lab.stacks.path import IP_TCP_HEADER_BYTES

if TYPE_CHECKING:
    from tcptrace_lab.stacks.application import Process
    from tcptrace_lab.stacks.endpoint import Endpoint
    from tcptrace_lab.stacks.packet import Packet
    from tcptrace_lab.stacks.setting import Setting

KEPT_BACK = ", kept back"
"""Suffix of a cause about the congestion window.

The window has room, but not for a full segment, so sender-side silly window avoidance delays the segment.
"""

BLOCKED = "nagle, blocked"
"""Cause of a wait: Nagle's algorithm delays a small segment while the application waits for send buffer space."""

LATE = {
    "nagle": "nagle-delayed-ack",
    "slow-start" + KEPT_BACK: "delayed-ack",
    "congestion-window" + KEPT_BACK: "delayed-ack",
    "send-buffer": "delayed-ack",
    "slow-start": "delayed-ack",
    "congestion-window": "delayed-ack",
}
"""Cause of a wait → cause that replaces it if a delayed ACK ended the wait."""

IN_TIME = {"slow-start" + KEPT_BACK: "slow-start", "congestion-window" + KEPT_BACK: "congestion-window"}
"""Cause of a wait → cause that replaces it if a prompt ACK ended the wait. All other causes stay."""

ROUNDS = frozenset({"send-buffer", "receiver-window", "zero-window", "slow-start", "congestion-window"})
"""Causes that also apply between the decision to send and the time at which the released segments leave the host."""


@dataclass(frozen=True, slots=True)
class Hold:
    """An interval of one direction with one cause in the ledger. Times are in nanoseconds of the run."""

    from_client: bool
    start_ns: int
    end_ns: int
    cause: str


@dataclass(frozen=True, slots=True)
class _Note:
    """The reason why the next byte is not sent. It is valid from `at_ns` until the next note.

    Attributes:
        at_ns: time of the note.
        why: the cause.
        late: True if a delayed ACK of new data led to this note.
        una: SND.UNA at `at_ns`.
        sent: highest sequence number sent until `at_ns`, plus 1 (`snd_max`).
    """

    at_ns: int
    why: str
    late: bool
    una: int
    sent: int

    def ends_nagle(self, seq: int) -> bool:
        """Return whether every variant of Nagle's algorithm allows the segment at `seq`.

        All earlier bytes are acknowledged, or the segment repeats sent bytes.
        """
        return max(self.una, self.sent - 1) >= seq


class _Watch:
    """What is recorded about one endpoint.

    Attributes:
        notes: why the next byte was not sent, by time.
        missing: SND.UNA → time at which a third duplicate ACK with this number arrived first. This ACK signals that the segment at SND.UNA
            is lost.
    """

    __slots__ = ("_program", "_tcp", "missing", "notes")

    def __init__(self, tcp: Endpoint, program: Process) -> None:
        self._tcp, self._program = tcp, program
        self.notes: list[_Note] = []
        self.missing: dict[int, int] = {}
        tcp.on_change = self.look

    @property
    def full_bytes(self) -> int:
        """Payload bytes of a full segment."""
        return self._tcp.mss

    def look(self) -> None:
        why, tcp, notes = self._why(), self._tcp, self.notes
        if tcp.duplicate_acks >= DUPLICATE_ACKS:
            self.missing.setdefault(tcp.snd_una, tcp.clock.now_ns)
        by_ack = not notes or notes[-1].una != tcp.snd_una
        if not notes or notes[-1].why != why or ((by_ack or notes[-1].sent != tcp.snd_max) and (why in LATE or why == BLOCKED)):
            notes.append(_Note(tcp.clock.now_ns, why, by_ack and tcp.released_late, tcp.snd_una, tcp.snd_max))

    def _why(self) -> str:
        why = self._held()
        return "loss-recovery" if why in {"send-buffer", BLOCKED} and self._tcp.cc.repairs else why

    def _held(self) -> str:
        tcp, state = self._tcp, self._program.state
        if not tcp.connected:
            return "handshake"
        if tcp.queued > 0 and tcp.blocked_by:
            blocked = tcp.blocked_by == "nagle" and state == "writing"
            if tcp.blocked_by in {"slow-start", "congestion-window"} and tcp.cc.room() > 0:
                return tcp.blocked_by + KEPT_BACK
            return BLOCKED if blocked else tcp.blocked_by
        if state == "writing":
            room = min(tcp.snd_edge - tcp.snd_nxt, tcp.cc.room())
            return tcp.window_cause() if room < self._least_bytes() else "send-buffer"
        if state == "done":
            return "close"
        return "peer" if state == "reading" else "application"

    def _least_bytes(self) -> int:
        """Return the bytes of the smallest segment that TCP would send now if the application did not wait for buffer space."""
        tcp, least = self._tcp, min(self._tcp.mss, self._tcp.max_window // 2)
        return least if tcp.stack.holds_small and not tcp.no_delay else min(least, self._program.call_left_bytes)


class Ledger:
    """Records every change of the reason why the next byte is not sent, for both directions."""

    def __init__(self, setting: Setting, ends: tuple[Endpoint, Endpoint], programs: tuple[Process, Process]) -> None:
        self._setting = setting
        self._watches = tuple(_Watch(*of) for of in zip(ends, programs, strict=True))

    def holds(self, packets: list[Packet]) -> tuple[Hold, ...]:
        """Return the ledger: intervals of the client's direction, then of the server's direction, each ordered by time."""
        found: list[Hold] = []
        for watch, from_client in zip(self._watches, (True, False), strict=True):
            seen = [p.sent_ns if p.from_client == from_client else p.arrived_ns for p in packets]
            times = [at_ns for at_ns in seen if at_ns is not None]
            if times:
                direction = _Direction(self._setting, watch, packets, from_client=from_client)
                found += direction.holds(min(times), max(times))
        return tuple(found)


def _named(spans: list[tuple[int, int, str, bool]]) -> list[tuple[int, int, str]]:
    """Return the final causes of the consecutive waits between two sent segments.

    Only the last ACK before a transmission released data. So in a series of waits with one cause, the last wait shows whether a delayed ACK
    ended the whole series. Nagle's algorithm waits for the ACK of all data, so for `nagle` the last of all its waits decides.

    Args:
        spans: start (ns), end (ns) and cause of each wait, and whether a delayed ACK ended it.

    Returns:
        Start (ns), end (ns) and final cause of each wait.
    """
    named: list[tuple[int, int, str]] = []
    held, is_late, nagle_is_late = "", False, None
    for start_ns, end_ns, why, late in reversed(spans):
        if why == "nagle":
            nagle_is_late = is_late = late if nagle_is_late is None else nagle_is_late
        elif why != held:
            is_late = late
        held = why
        name = LATE.get(why, why) if is_late else why
        named.append((start_ns, end_ns, IN_TIME.get(name, name)))
    return named[::-1]


class _Direction:
    """Builds the ledger of one direction, one sent segment after another."""

    def __init__(self, setting: Setting, watch: _Watch, packets: list[Packet], *, from_client: bool) -> None:
        self._notes, self._missing, self._from_client = watch.notes, watch.missing, from_client
        ours = [p for p in packets if p.from_client == from_client and (p.payload_bytes or p.flags & (SYN | FIN))]
        self._departures = sorted(ours, key=lambda p: p.sent_ns)
        theirs = (p for p in packets if p.from_client != from_client and p.payload_bytes and p.arrived_ns is not None)
        self._arrivals = sorted(theirs, key=lambda p: p.arrived_ns or 0)
        forth, back = (setting.forward, setting.backward) if from_client else (setting.backward, setting.forward)
        host, own = (setting.server, setting.client) if from_client else (setting.client, setting.server)
        self._link, self._option_bytes = forth, own.stack.option_bytes
        self._full_bytes = watch.full_bytes
        self._ack_ns = host.costs.data_in_ns + host.costs.ack_out_ns + back.wire_ns(IP_TCP_HEADER_BYTES) + back.propagation_ns
        self._note = self._arrival = 0
        self._found: list[Hold] = []

    def holds(self, start_ns: int, end_ns: int) -> list[Hold]:
        """Return contiguous intervals from the connection's first frame to its last."""
        at_ns, last, free_ns, burst_ns, owner = start_ns, None, start_ns, -1, "network"
        for packet in self._departures:
            line_ns = min(max(free_ns, at_ns), packet.sent_ns)
            self._add(at_ns, line_ns, "network")
            decided_ns = min(max(packet.decided_ns, line_ns), packet.sent_ns)
            if packet.resent_for:
                told_ns = self._told_ns(line_ns, decided_ns) if packet.resent_for == "loss-recovery" else line_ns
                self._gap(line_ns, told_ns, last, packet)
                self._add(told_ns, decided_ns, packet.resent_for)
            else:
                why = self._gap(line_ns, decided_ns, last, packet)
                if packet.decided_ns != burst_ns:
                    burst_ns, owner = packet.decided_ns, why if why in ROUNDS else "network"
            self._add(decided_ns, packet.sent_ns, owner if packet.seq else "handshake")
            at_ns, last = max(at_ns, packet.sent_ns), packet
            free_ns = packet.sent_ns + self._link.wire_ns(IP_TCP_HEADER_BYTES + self._option_bytes + packet.payload_bytes)
        self._gap(at_ns, end_ns, last, None)
        return self._found

    def _told_ns(self, start_ns: int, end_ns: int) -> int:
        """Return the time at which the third duplicate ACK signalled the loss, limited to the time from `start_ns` to `end_ns`."""
        return max([start_ns, *(at_ns for at_ns in self._missing.values() if at_ns <= end_ns)])

    def _add(self, start_ns: int, end_ns: int, cause: str) -> None:
        if end_ns <= start_ns:
            return
        found = self._found
        if found and found[-1].cause == cause and found[-1].end_ns == start_ns:
            found[-1] = Hold(self._from_client, found[-1].start_ns, end_ns, cause)
        else:
            found.append(Hold(self._from_client, start_ns, end_ns, cause))

    def _spans(self, start_ns: int, end_ns: int, leaves: Packet | None) -> list[tuple[int, int, str]]:
        """Return the waits between two times, each with its final cause. `leaves` is the packet that ended the last wait."""
        notes = self._notes
        full = leaves is not None and not leaves.resent_for and leaves.payload_bytes >= self._full_bytes
        spans: list[tuple[int, int, str, bool]] = []
        while self._note + 1 < len(notes) and notes[self._note + 1].at_ns <= start_ns:
            self._note += 1
        index = self._note
        while index < len(notes) and notes[index].at_ns < end_ns:
            following = notes[index + 1] if index + 1 < len(notes) else None
            begin_ns = max(start_ns, notes[index].at_ns)
            until_ns = end_ns if following is None else min(end_ns, following.at_ns)
            why = notes[index].why
            if why == BLOCKED:
                why = "send-buffer" if full else "nagle"
            if until_ns > begin_ns:
                # An ACK that arrives after a segment was sent did not release this segment, so the delay of such an ACK does not matter.
                late = following is not None and following.late and following.at_ns <= end_ns
                if late and why == "nagle" and following is not None and leaves is not None:
                    late = following.ends_nagle(leaves.seq)
                spans.append((begin_ns, until_ns, why, late))
            index += 1
        if not spans:
            return [(start_ns, end_ns, "handshake")]
        before = [(start_ns, spans[0][0], "handshake")] if spans[0][0] > start_ns else []
        return before + _named(spans)

    def _gap(self, start_ns: int, end_ns: int, last: Packet | None, leaves: Packet | None) -> str:
        """Add the causes of the time between the end of one transmission and the decision to send the packet `leaves`.

        Returns:
            The cause of the last part of this time; empty if the time is 0.
        """
        if end_ns <= start_ns:
            return ""
        spans = self._spans(start_ns, end_ns, leaves)
        reading = [number for number, span in enumerate(spans) if span[2] == "peer"]
        there_ns = start_ns if last is None or last.arrived_ns is None else last.arrived_ns
        for number, (begin_ns, until_ns, why) in enumerate(spans):
            if reading and number == reading[0]:
                self._wait_for_answer(begin_ns, spans[reading[-1]][1], there_ns)
            elif reading and reading[0] < number <= reading[-1]:
                continue
            elif why == "application" and last is not None:
                out_ns = min(max(there_ns + self._ack_ns, begin_ns), until_ns)
                self._add(begin_ns, out_ns, "network")
                self._add(out_ns, until_ns, why)
            else:
                self._add(begin_ns, until_ns, why)
        return spans[-1][2]

    def _wait_for_answer(self, start_ns: int, end_ns: int, there_ns: int) -> None:
        """Add `network` while the last byte of the request, or of the answer, is in transit. Add `peer` for the rest of the time."""
        arrivals = self._arrivals
        while self._arrival + 1 < len(arrivals) and (arrivals[self._arrival + 1].arrived_ns or 0) <= end_ns:
            self._arrival += 1
        out_ns = min(max(there_ns, start_ns), end_ns)
        self._add(start_ns, out_ns, "network")
        answer = arrivals[self._arrival] if arrivals else None
        if answer is None or answer.arrived_ns is None or not start_ns < answer.arrived_ns <= end_ns:
            self._add(out_ns, end_ns, "peer")
            return
        left_ns = min(max(answer.sent_ns, out_ns), end_ns)
        self._add(out_ns, left_ns, "peer")
        self._add(left_ns, max(answer.arrived_ns, left_ns), "network")
        self._add(max(answer.arrived_ns, left_ns), end_ns, "peer")
