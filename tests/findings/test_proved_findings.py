"""Findings on the shared captures are checked with tshark: all that are called proved, and others that a person has reviewed.

Only the findings come from tcptrace-lab. The sequence numbers, windows, flags and times are tshark's.
`benchmarks/verdicts/proved-findings.md` documents the person's review.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import pytest

from tcptrace_lab.causes import Confidence
from tests.support import needs
from tests.support.ledgers import advised, judged
from tests.support.peers import tshark
from tests.support.places import ROOT

if TYPE_CHECKING:
    from tcptrace_lab.findings.finding import Finding

sys.path.insert(0, str(ROOT / "benchmarks" / "verdicts"))

import proved_findings

pytestmark = needs.shared_captures

LIST = ROOT / "benchmarks" / "verdicts" / "proved-findings.md"

FIELDS = (
    *("frame.number", "frame.time_epoch", "tcp.stream", "tcp.srcport", "tcp.seq", "tcp.len", "tcp.ack", "tcp.window_size", "tcp.flags"),
    *("tcp.options.timestamp.tsval", "tcp.options.timestamp.tsecr"),
)
NS_PER_S = 1_000_000_000
FIN, SYN, RST, ACK, ECE, CWR = 0x01, 0x02, 0x04, 0x10, 0x40, 0x80
MIN_TIMER_S, MAX_TIMER_S = 0.190, 128.0
"""No TCP stack has a shorter retransmission timer (Linux and Windows: 200 ms) or a longer one (Linux 120 s, BSD 64 s)."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One TCP segment with the fields that tshark prints."""

    number: int
    ts_ns: int
    stream: int
    port: int
    seq: int
    length: int
    ack: int
    window: int
    flags: int
    tsval: int | None
    tsecr: int | None

    @property
    def end(self) -> int:
        """The first sequence number after the segment."""
        return self.seq + self.length + bool(self.flags & SYN) + bool(self.flags & FIN)

    @property
    def departs(self) -> bool:
        """True if the segment occupies sequence space."""
        return self.end > self.seq


@cache
def frames(name: str) -> dict[int, list[Frame]]:
    """Return the segments of each stream, without segments that an ICMP error quotes."""
    command = [needs.program("tshark"), "-r", str(needs.SHARED / name), "-Y", "tcp && !icmp", "-T", "fields", "-E", "occurrence=f"]
    command += ["-o", "tcp.relative_sequence_numbers:TRUE", *(word for field in FIELDS for word in ("-e", field))]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    streams: dict[int, list[Frame]] = defaultdict(list)
    for line in done.stdout.splitlines():
        number, time, stream, port, seq, length, ack, window, flags, tsval, tsecr = line.split("\t")
        frame = Frame(
            int(number),
            tshark.time_ns(time) or 0,
            int(stream),
            int(port),
            int(seq),
            int(length),
            int(ack or 0),
            int(window),
            int(flags, 16),
            int(tsval) if tsval else None,
            int(tsecr) if tsecr else None,
        )
        streams[frame.stream].append(frame)
    return streams


@dataclass(frozen=True, slots=True)
class Case:
    """A finding with the segments that its sender sent and received.

    A named frame is one in the finding's `evidence_frames`. `named` has all segments of each connection with a named frame.
    """

    finding: Finding
    sent: list[Frame]
    heard: list[Frame]
    named: list[list[Frame]]

    @property
    def evidence(self) -> list[Frame]:
        """The named frames that the finding's sender sent."""
        return [frame for frame in self.sent if frame.number in self.finding.evidence_frames]

    @property
    def round_trip_ns(self) -> int:
        """The RTT (ns) from the capture point to the sender, measured on the handshake, minus a tenth.

        The value is 0 if the handshake's answer was not captured.
        """
        asked = [frame for frame in self.heard if frame.flags & SYN]
        answers = [frame for frame in self.sent if asked and frame.number > asked[0].number and frame.flags & ACK]
        return (answers[0].ts_ns - asked[0].ts_ns) * 9 // 10 if answers else 0


@cache
def cases(name: str) -> list[Case]:
    """Return the findings on one capture that the reviewed list contains, or must contain because they are proved."""
    tables = judged(needs.SHARED / name)
    ports = {row["conn"]: row for row in tables.connections.select("conn", "client_port", "server_port").collect().iter_rows(named=True)}
    found = []
    for finding in advised(tables).findings:
        if finding.confidence is not Confidence.PROVED and (name, finding.id, finding.confidence) not in CONSISTENT:
            continue
        first, *_ = finding.evidence_frames
        (stream,) = [every for every in frames(name).values() if first in {frame.number for frame in every}]
        mine = ports[finding.conn]["client_port" if finding.from_client else "server_port"]
        named = [every for every in frames(name).values() if any(one.number in finding.evidence_frames for one in every)]
        found.append(Case(finding, [one for one in stream if one.port == mine], [one for one in stream if one.port != mine], named))
    return found


def listed() -> dict[str, list[tuple[str, str, str, str]]]:
    """Return the lines of the reviewed list by capture: (connection and sender, finding, confidence, verdict)."""
    lines: dict[str, list[tuple[str, str, str, str]]] = defaultdict(list)
    for line in LIST.read_text(encoding="utf-8").splitlines():
        if re.match(r"\| [^ ]+\.(pcap|cap)", line):
            name, way, finding, confidence, _, _, verdict = (cell.strip() for cell in line.strip("|").split("|"))
            lines[name].append((way, finding, confidence, verdict))
    return lines


NAMES = list(listed())
CONSISTENT = {
    (name, finding, confidence) for name, lines in listed().items() for _, finding, confidence, _ in lines if confidence == "consistent"
}


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    value: str = request.param
    return value


def test_every_proved_finding_was_read_by_hand_and_is_valid(name: str) -> None:
    found = [case.finding for case in cases(name)]
    mine = sorted((f"{one.conn}, {'client' if one.from_client else 'server'}", one.id, str(one.confidence)) for one in found)
    assert mine == sorted(line[:3] for line in listed()[name])
    assert all(verdict.startswith("valid") for *_, verdict in listed()[name])


def test_no_other_capture_has_a_proved_finding_that_nobody_read() -> None:
    others = [path for path in proved_findings.captures(needs.SHARED) if str(path.relative_to(needs.SHARED)) not in NAMES]
    unread = [(path.name, one.title) for path in others for one in proved_findings.to_read(path, str(path.relative_to(needs.SHARED)))]
    assert len(others) > len(NAMES)
    assert unread == []


def test_tshark_sees_what_each_finding_says_that_was_read(name: str) -> None:
    needs.tshark_4_0()
    found = cases(name)
    assert found
    for case in found:
        CHECKS[case.finding.id](case)


def slow_handshake(case: Case) -> None:
    """Check that the SYN was sent again or its answer was late. The cost is the time from the first SYN to the end of the handshake."""
    if case.finding.connections > 1:
        (refused if case.heard else unanswered)(case)
        return
    syns = [frame for frame in case.sent if frame.flags & (SYN | ACK) == SYN]
    answers = [frame for frame in case.heard if frame.flags & (SYN | ACK) == SYN | ACK]
    last = max([syns[-1], *answers[:1]], key=lambda frame: frame.ts_ns)
    assert len(syns) > 1 or answers[0].ts_ns - syns[0].ts_ns > NS_PER_S // 2
    assert len({frame.seq for frame in syns}) == 1
    took_s = (last.ts_ns - syns[0].ts_ns) / NS_PER_S
    assert (case.finding.cost_ns or 0) / NS_PER_S == pytest.approx(took_s, rel=0.02)


def refused(case: Case) -> None:
    """Count the SYNs that a RST answered. The cost is the time from each SYN to the last copy of its RST."""
    attempts: list[tuple[int, int]] = []
    for stream in case.named:
        ended = True
        for frame in stream:
            assert frame.flags & (SYN | RST)
            if frame.flags & RST:
                attempts[-1] = attempts[-1][0], frame.ts_ns
            elif ended:
                attempts.append((frame.ts_ns, frame.ts_ns))
            ended = bool(frame.flags & RST)
    assert len(attempts) == case.finding.connections
    assert case.finding.cost_ns == pytest.approx(sum(end - start for start, end in attempts), rel=1e-6)


def unanswered(case: Case) -> None:
    """Count the connections that contain only SYNs. The cost is the time during which at least one of these attempts was in progress."""
    assert len(case.named) == case.finding.connections
    assert all(frame.flags & (SYN | ACK) == SYN for stream in case.named for frame in stream)
    reached, took_ns = 0, 0
    for first, last in sorted((stream[0].ts_ns, stream[-1].ts_ns) for stream in case.named):
        took_ns += max(last - max(first, reached), 0)
        reached = max(reached, last)
    assert case.finding.cost_ns == pytest.approx(took_ns, rel=1e-6)


def timer(case: Case) -> None:
    """Check that bytes are sent again after a silence of the sender that is long enough for a retransmission timer."""
    reached, before, fired = 0, None, 0
    for frame in case.sent:
        if not frame.departs:
            continue
        silence_s = (frame.ts_ns - before.ts_ns) / NS_PER_S if before else 0.0
        again = frame.seq < reached
        fired += frame.number in case.finding.evidence_frames and again and MIN_TIMER_S <= silence_s <= MAX_TIMER_S
        reached, before = max(reached, frame.end), frame
    assert fired >= 1
    assert (case.finding.cost_ns or 0) >= MIN_TIMER_S * NS_PER_S


def loss(case: Case) -> None:
    """Check that bytes are sent again and that no ACK had covered them before."""
    reached, repaired = 0, 0
    stream = sorted([*case.sent, *case.heard], key=lambda frame: frame.number)
    acked, mine = 0, {frame.number for frame in case.sent}
    for frame in stream:
        if frame.number not in mine:
            acked = max(acked, frame.ack)
        elif frame.length:
            repaired += frame.seq < reached and frame.end > acked
            reached = max(reached, frame.end)
    assert repaired >= 1


def full_window(case: Case) -> None:
    """Check that at a named frame, the window had room for less than two segments.

    The room follows from the ACKs that can have reached the sender.
    """
    longest = max(frame.length for frame in case.sent)
    offers = [(frame.ts_ns + case.round_trip_ns, frame.ack + frame.window) for frame in case.heard if not frame.flags & SYN]
    room = [
        max((edge for since_ns, edge in offers if since_ns <= frame.ts_ns), default=frame.end + 2 * longest) - frame.end
        for frame in case.evidence
        if frame.length
    ]
    assert any(-longest <= left < 2 * longest for left in room)


def closed_window(case: Case) -> None:
    """Check that the receiver advertised a window of 0 bytes between the first and the last named frame."""
    first, last = case.evidence[0].number, case.evidence[-1].number
    assert any(frame.window == 0 for frame in case.heard if first < frame.number < last)


def needless(case: Case) -> None:
    """Check that retransmits were spurious: an ACK had already covered the bytes, or a later ACK echoes the timestamp of the original."""
    idle = 0
    for frame in case.evidence:
        first = next((one for one in case.sent if one.number < frame.number and one.seq <= frame.seq < one.end), None)
        if first is None:
            continue
        covered = any(one.ack >= frame.end for one in case.heard if first.number < one.number < frame.number)
        answer = next((one for one in case.heard if one.number > frame.number and one.ack >= frame.end), None)
        echoed = answer is not None and first.tsval != frame.tsval and answer.tsecr == first.tsval is not None
        idle += covered or echoed
    assert idle >= 1


def marks(case: Case) -> None:
    """Check that the receiver reports congestion marks after the first named frame.

    The sender must report as many window reductions as the finding says.
    """
    reports = [frame for frame in case.heard if frame.flags & (SYN | ECE) == ECE]
    reductions = [frame for frame in case.sent if frame.flags & (SYN | CWR) == CWR]
    assert reports[0].number > case.finding.evidence_frames[0]
    assert set(case.finding.evidence_frames) <= {frame.number for frame in case.sent}
    assert case.finding.title.endswith(f" {len(reductions)} times")


CHECKS = {
    "congestion-marks": marks,
    "handshake-slow": slow_handshake,
    "timeout": timer,
    "loss": loss,
    "receiver-window-limited": full_window,
    "spurious-retransmission": needless,
    "zero-window": closed_window,
}
