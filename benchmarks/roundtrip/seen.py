"""The part of the model's own ledger that a capture can show.

The model knows when its programs write. A capture shows only when segments leave and what arrives. In seven cases, other programs or hosts
would leave exactly the same capture, so `seen` changes the cause of the wait:

- **A wait that an arrival ends.** Bytes leave at the moment at which an ACK or a window arrives. The program possibly wrote them at any
  time since the previous departure, or since the answer that it waited for. So the wait has its last cause from then on. This also holds if
  Nagle's algorithm delayed the first of these bytes until the program wrote more. A program that writes all of them at once leaves the same
  capture.
- **Gathering.** Nagle's algorithm delays a small write until the program has written a full segment, which leaves at once. No segment
  arrives at that moment. A program that writes everything then leaves the same capture, so the wait counts as the application's. There is
  one exception, here and in the next case: an old sender sets no PSH in the segment before. Then it had more data (RFC 9293, 3.9.1.2).
- **Delays before the program continues.** The buffer or the window is full, and the program continues when an ACK makes room. Data leave
  only later: by a timer (MD-DOS's flush of a small segment) or with the next write. A program that has nothing to send until then leaves
  the same capture.
- **One segment at a time.** Less than a full segment leaves each time everything is acknowledged. Either the buffer is no larger, or it is
  larger and Nagle's algorithm delays the rest. A sender with Nagle's algorithm and twice the buffer leaves the same capture.
- **The rest of a write.** An ACK of a whole flight of the largest size never releases a full segment. Either the buffer is as large as
  these flights, and the rest of a write leaves first. Or the buffer is larger by this rest, and Nagle's algorithm delays it. This case is
  excluded if a small segment leaves while another one is in flight, because Nagle's algorithm is then off.
- **Buffer and window are used up together.** The window has no room for the segment that finally leaves. A sender with a larger buffer or
  congestion window leaves the same capture. This also holds if the window has room, but less than a third of its size. Linux would wait for
  more room then, so this part applies only to senders that can be Linux.
- **Slow lines that no two segments show.** The transmission time of a segment is visible if another segment follows at once. If single
  messages go to and fro, no segment follows another at once. A host that takes longer for more bytes then leaves the same capture, so the
  time beyond that of a SYN counts as the host's. A segment that follows less than a full segment with PSH shows nothing either, because the
  program possibly wrote it later. A FIN that follows at once counts only if a round trip, or a message and its answer, shows the same time.
  Otherwise the program possibly closed later.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise
from typing import TYPE_CHECKING

from tcptrace_lab.ledger.stalls import CAUSAL_NS
from tcptrace_lab.stacks.endpoint import SYN_OPTION_BYTES
from tcptrace_lab.stacks.packet import FIN, PSH, SYN
from tcptrace_lab.stacks.path import IP_TCP_HEADER_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tcptrace_lab.stacks import Link, Run, Setting
    from tcptrace_lab.stacks.packet import Packet

Span = tuple[int, int, str]
"""Start and end in nanoseconds since the start of the run, and the cause."""

HOLDS = frozenset({"nagle", "nagle-delayed-ack", "delayed-ack", "send-buffer", "receiver-window", "slow-start", "congestion-window"})
GATHERED = frozenset({"nagle", "nagle-delayed-ack"})
GIVEN_LATER = "held for what was given later"
NAGLES = {"delayed-ack": "nagle-delayed-ack", "send-buffer": "nagle"}
"""Maps the model's cause to the cause that a capture shows, if the buffer holds only one small segment."""
AGREE_SHARE = 0.05
"""Two estimates of the serialization delay agree if they differ by less than this share."""
WINDOWS = frozenset({"send-buffer", "delayed-ack", "slow-start", "congestion-window"})
"""Causes that a capture shows as a full receive window, if the window has no room either."""
CAUSAL_SHARE_NEAR = 0.1
"""At the sender, an event within this share of the RTT before a departure possibly caused the departure."""
NO_DISTANCE_NS = 50_000
"""A shorter RTT does not show which host is near the capture point."""

DEFER_PART = 3
"""Linux waits for more room if the window has less than 1/`DEFER_PART` of its size left (`tcp_tso_should_defer`)."""
GIVEN = frozenset({"application", "network"})
"""The causes of a wait in which the program has not written anything yet."""


def own(run: Run, *, from_client: bool) -> list[Span]:
    """Return the model's ledger of one direction."""
    return [(hold.start_ns, hold.end_ns, hold.cause) for hold in run.truth if hold.from_client == from_client]


def seen(run: Run, setting: Setting, *, from_client: bool) -> list[Span]:
    """Return the part of the model's ledger of one direction that a capture at the sender can show."""
    departures = sorted(
        (p for p in run.packets if p.from_client == from_client and (p.payload_bytes or p.flags & (SYN | FIN))), key=lambda p: p.sent_ns
    )
    arrivals = sorted(p.arrived_ns for p in run.packets if p.from_client != from_client and p.arrived_ns is not None)
    spans, found = own(run, from_client=from_client), []
    forth, back = (setting.forward, setting.backward) if from_client else (setting.backward, setting.forward)
    options = (setting.client if from_client else setting.server).stack.option_bytes
    hidden = (
        _hidden_ns(run, forth, setting.mss_bytes, options, from_client=from_client, own=True),
        _hidden_ns(run, back, setting.mss_bytes, options, from_client=not from_client, own=False),
    )
    lines_shown = _exchange_shows(run, forth, back, options, from_client=from_client)
    answers = sorted(
        (p for p in run.packets if p.from_client != from_client and p.payload_bytes and p.arrived_ns), key=lambda p: p.arrived_ns or 0
    )
    acks = arrivals_of_acks(run, from_client=from_client)
    full, views = setting.mss_bytes - options, _views(departures, acks)
    alone, top = _alone_bytes(departures, acks), _top_bytes(departures, views, full)
    at = 0
    for number, (before, packet) in enumerate(zip([None, *departures], departures, strict=False)):
        wait: list[Span] = []
        while at < len(spans) and spans[at][0] < packet.sent_ns:
            start, end, cause = spans[at]
            wait.append((start, min(end, packet.sent_ns), cause))
            if end > packet.sent_ns:
                spans[at] = (packet.sent_ns, end, cause)
                break
            at += 1
        if before is None or packet.resent_for:
            found += wait
            continue
        line_ns = before.sent_ns + forth.wire_ns(IP_TCP_HEADER_BYTES + options + before.payload_bytes)
        place = bisect_right(arrivals, packet.decided_ns)
        released = place > 0 and arrivals[place - 1] == packet.decided_ns
        if released:
            wait = list(_as_held(wait, line_ns, arrivals))
            flight, room = views[number - 1][1:]
            rest = 0 < top <= flight and views[number][0] == 0
            if packet.payload_bytes < full and (rest or 0 < alone >= packet.payload_bytes):
                wait = [(start, end, NAGLES.get(cause, cause)) for start, end, cause in wait]
            kept = options > 0 and packet.payload_bytes >= full and room < 2 * full and DEFER_PART * room < flight + room
            if flight > 0 and (room < packet.payload_bytes or kept):
                wait = [(start, end, "receiver-window" if cause in WINDOWS else cause) for start, end, cause in wait]
        elif options or before.flags & PSH or not before.payload_bytes:
            answered_ns = (before.arrived_ns or before.sent_ns) + back.wire_ns(IP_TCP_HEADER_BYTES) + back.propagation_ns
            causal_ns = max(CAUSAL_NS, int(CAUSAL_SHARE_NEAR * (forth.propagation_ns + back.propagation_ns)))
            wait = list(_as_given(_let_nothing_go(wait, causal_ns), answered_ns))
        answer = next((p for p in reversed(answers) if before.sent_ns < (p.arrived_ns or 0) <= packet.sent_ns), None)
        unseen_ns = 0 if lines_shown else hidden[0](before.payload_bytes) + (hidden[1](answer.payload_bytes) if answer else 0)
        found += _without(wait, unseen_ns, "peer" if answer else wait[-1][2] if wait else "")
    return found + spans[at:]


def arrivals_of_acks(run: Run, *, from_client: bool) -> list[tuple[int, int, int]]:
    """Return the arrival time of each ACK, its ACK number, and the right edge of the window after it."""
    back = (p for p in run.packets if p.from_client != from_client)
    return sorted((p.arrived_ns, p.ack, p.ack + p.window_bytes) for p in back if p.arrived_ns is not None)


def _views(departures: list[Packet], acks: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Return three numbers for each departure, as its sender knew them.

    They are the bytes in flight before the departure, the bytes in flight with it, and the room left in the window.
    """
    una, place, end, edge, found = 0, 0, 0, 0, []
    for packet in departures:
        while place < len(acks) and acks[place][0] <= packet.sent_ns:
            una, edge, place = max(una, acks[place][1]), max(edge, acks[place][2]), place + 1
        flying, end = max(end - una, 0), max(end, packet.seq + packet.payload_bytes)
        found.append((flying, max(end - una, 0), edge - end))
    return found


def _top_bytes(departures: list[Packet], views: list[tuple[int, int, int]], full: int) -> int:
    """Return the size of the largest flight in bytes, or 0 if it shows no limit.

    It shows no limit in two cases: the ACK of such a flight once released a full segment, or a small segment left while another was in
    flight.
    """
    top = max((view[1] for view in views), default=0)
    behind = (packet for packet, view, last in zip(departures[1:], views[1:], views, strict=False) if view[0] == 0 and last[1] >= top)
    if any(packet.payload_bytes >= full for packet in behind):
        return 0
    end = small_end = 0
    for packet, view in zip(departures, views, strict=True):
        small = 0 < packet.payload_bytes < full and not packet.resent_for
        if small and small_end > end - view[0]:
            return 0
        end = max(end, packet.seq + packet.payload_bytes)
        small_end = end if small else small_end
    return top


def _alone_bytes(departures: list[Packet], acks: list[tuple[int, int, int]]) -> int:
    """Return the largest payload of a direction that sends one segment at a time.

    Return 0 if data ever leave before all earlier data are acknowledged.
    """
    una, place, end, longest = 0, 0, 0, 0
    for packet in departures:
        while place < len(acks) and acks[place][0] <= packet.sent_ns:
            una, place = max(una, acks[place][1]), place + 1
        if packet.payload_bytes and end > una and not packet.resent_for:
            return 0
        end, longest = max(end, packet.seq + packet.payload_bytes), max(longest, packet.payload_bytes)
    return longest


def _hidden_ns(run: Run, link: Link, mss: int, options: int, *, from_client: bool, own: bool) -> Callable[[int], int]:
    """Return a function that gives the transmission time of a payload beyond that of a SYN, as far as a capture hides it.

    If one segment ever followed another at once, the capture shows this time, and the function returns 0.
    """

    def takes(payload_bytes: int) -> int:
        return link.wire_ns(IP_TCP_HEADER_BYTES + options + payload_bytes)

    with_fin = own and _a_round_trip_shows(run, lambda payload: takes(payload) - takes(SYN_OPTION_BYTES), from_client=from_client)
    sent = sorted(
        (p for p in run.packets if p.from_client == from_client and (p.payload_bytes or (with_fin and p.flags & FIN))),
        key=lambda p: p.sent_ns,
    )
    told = ((a, b) for a, b in pairwise(sent) if a.payload_bytes >= mss - options or not a.flags & PSH or not b.payload_bytes)
    if any(after.sent_ns == before.sent_ns + takes(before.payload_bytes) for before, after in told):
        return lambda _: 0
    return lambda payload_bytes: max(takes(payload_bytes) - takes(SYN_OPTION_BYTES), 0)


def _exchange_shows(run: Run, forth: Link, back: Link, options: int, *, from_client: bool) -> bool:
    """Return whether two observations show the transmission times of the lines: a FIN, and a message with its answer.

    The FIN must follow data at once. The message and its answer must take longer than the SYNs by exactly the time that the lines need for
    the data. If the hosts are next to each other, a FIN of the peer shows nothing. It is then unknown whether the peer's segments are
    captured when they leave or when they arrive.
    """

    def longer_ns(link: Link, payload_bytes: int) -> int:
        return link.wire_ns(IP_TCP_HEADER_BYTES + options + payload_bytes) - link.wire_ns(IP_TCP_HEADER_BYTES + options + SYN_OPTION_BYTES)

    ours, theirs = ([p for p in run.packets if p.from_client == way] for way in (from_client, not from_client))
    answers = {answer.ack: answer for answer in reversed(theirs) if answer.arrived_ns is not None}
    took = [(p, answer, (answer.arrived_ns or 0) - p.sent_ns) for p in ours if (answer := answers.get(p.seq + max(p.payload_bytes, 1)))]
    min_ns = next((took_ns for p, _, took_ns in took if p.flags & SYN), None)
    if min_ns is None:
        return False
    ends = [
        after.sent_ns - before.sent_ns == link.wire_ns(IP_TCP_HEADER_BYTES + options + before.payload_bytes)
        for link, way in ((forth, ours), (back, theirs if min_ns >= NO_DISTANCE_NS else []))
        for before, after in pairwise(p for p in way if p.payload_bytes or p.flags & FIN)
        if after.flags & FIN and not after.payload_bytes
    ]
    exchanges = (
        (longer_ns(forth, p.payload_bytes) + longer_ns(back, answer.payload_bytes), took_ns)
        for p, answer, took_ns in took
        if p.payload_bytes and answer.payload_bytes
    )
    return any(ends) and any(abs(took_ns - min_ns - ns) <= AGREE_SHARE * ns for ns, took_ns in exchanges)


def _a_round_trip_shows(run: Run, longer_ns: Callable[[int], int], *, from_client: bool) -> bool:
    """Return whether the ACK of a single segment shows the transmission time of this segment.

    The ACK of the segment takes longer than the ACK of the SYN. The difference must equal the difference of the two transmission times.
    """
    acks = arrivals_of_acks(run, from_client=from_client)

    def answered_after_ns(packet: Packet, end: int) -> int | None:
        at_ns, ack = next(((at_ns, ack) for at_ns, ack, _ in acks if at_ns > packet.sent_ns and ack >= end), (0, None))
        return at_ns - packet.sent_ns if ack == end else None

    ours = [p for p in run.packets if p.from_client == from_client]
    min_ns = next((took for p in ours if p.flags & SYN and (took := answered_after_ns(p, 1)) is not None), None)
    if min_ns is None:
        return False
    for packet in ours:
        took_ns = answered_after_ns(packet, packet.seq + packet.payload_bytes) if packet.payload_bytes else None
        own_ns = longer_ns(packet.payload_bytes)
        if took_ns is not None and own_ns > 0 and abs(took_ns - min_ns - own_ns) <= AGREE_SHARE * own_ns:
            return True
    return False


def _without(wait: list[Span], unseen_ns: int, cause: str) -> Iterator[Span]:
    """Yield the wait with `cause` in place of network for the last `unseen_ns` of its time in transit."""
    for start, end, name in reversed(wait):
        if name != "network" or unseen_ns <= 0 or cause == "network":
            yield start, end, name
            continue
        part_ns = min(unseen_ns, end - start)
        unseen_ns -= part_ns
        yield start, end - part_ns, name
        yield end - part_ns, end, cause


def _as_held(wait: list[Span], line_ns: int, arrivals: list[int]) -> Iterator[Span]:
    """Yield the wait after its last cause has taken over the parts directly before it.

    These are parts in which the program had written nothing, parts in transit, and parts in which Nagle's algorithm waited for the program.
    """
    first = len(wait)
    if wait and wait[-1][2] in HOLDS:
        while first > 0 and wait[first - 1][1] > line_ns:
            _, end, cause = wait[first - 1]
            heard = arrivals[bisect_right(arrivals, end) - 1 :][:1] == [end]
            if cause not in GIVEN and cause != wait[-1][2] and (cause not in GATHERED or heard):
                break
            first -= 1
    for number, (start, end, cause) in enumerate(wait):
        if number < first or end <= line_ns:
            yield start, end, cause
        else:
            if start < line_ns:
                yield start, line_ns, cause
            yield max(start, line_ns), end, wait[-1][2]


def _let_nothing_go(wait: list[Span], causal_ns: int) -> list[Span]:
    """Return the wait. If the program or a timer delayed the data, parts in which something else held the sender are marked.

    Only a last part longer than `causal_ns` shows such a delay, because a shorter one can be a reaction to an ACK. `_as_given` later turns
    the marked parts into the application's.
    """
    if not wait or wait[-1][2] not in {"application", *GATHERED} or wait[-1][1] - wait[-1][0] <= causal_ns:
        return wait
    return [(start, end, GIVEN_LATER if cause in HOLDS else cause) for start, end, cause in wait]


def _as_given(wait: list[Span], answered_ns: int) -> Iterator[Span]:
    """Yield the wait after the parts of Nagle's algorithm and the marked parts have become others.

    Until an answer could be back, they become time in transit. From then on, they become the application's.
    """
    for start, end, cause in wait:
        if cause not in GATHERED and cause != GIVEN_LATER:
            yield start, end, cause
            continue
        out_ns = min(max(answered_ns, start), end)
        if out_ns > start:
            yield start, out_ns, "network"
        if end > out_ns:
            yield out_ns, end, "application"
