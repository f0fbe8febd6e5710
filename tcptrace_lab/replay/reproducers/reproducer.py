"""`replay script`: makes a minimal reproducer of a connection's main stall.

The main stall of the capture (`side_by_side.stall`) and its finding are selected first. Then the schedule is reconstructed, and a model is
fitted to the capture (`whatif.fit`). With this model, `shrink` finds the smallest schedule that still shows the stall. The output is a
Python script (`python_script`) or a packetdrill script (`packetdrill`). `prove` runs the result over real sockets.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tcptrace_lab.errors import CaptureInsufficient, UsageError
from tcptrace_lab.process import temporary
from tcptrace_lab.replay.changes import Changes, remedy
from tcptrace_lab.replay.namespace_replay import play
from tcptrace_lab.replay.reconstruct import reconstruct
from tcptrace_lab.replay.reproducers import packetdrill, python_script, stall_oracle
from tcptrace_lab.replay.reproducers.shrink import MAX_S, Shrunk, Size, shrink
from tcptrace_lab.replay.reproducers.stall_oracle import Expected, Oracle, oracle
from tcptrace_lab.replay.side_by_side import DIRECTIONS, FIXED_LEFT, figures, of_document, original_document, stall
from tcptrace_lab.replay.whatif import fit
from tcptrace_lab.text.numbers import NS_PER_S, counted, duration_s

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tcptrace_lab.replay.evidence import Evidence
    from tcptrace_lab.replay.schedule import Schedule
    from tcptrace_lab.replay.side_by_side import Figures, Stall

MAX_FRAMES: Final = 10
"""Maximum number of frame numbers in the heading."""

UNSHRUNK: Final = "--whole writes the complete schedule without shrinking it"
BLOCK_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Reproducer:
    """A reproducer of a stall.

    Attributes:
        evidence: data of the original connection.
        stall: the stall to reproduce.
        finding: the finding of `analyze` about the stall; None: there is none.
        remedy: changes that remove the stall.
        whole: the complete schedule of the connection.
        shrunk: the smallest schedule that shows the stall; None: not shrunk.
        oracle: decides whether a schedule shows the stall; None: not shrunk.
        expected: expected durations with the stall and without it.
        digest: SHA-256 of the capture file.
    """

    evidence: Evidence
    stall: Stall
    finding: Mapping[str, Any] | None
    remedy: Changes
    whole: Schedule
    shrunk: Shrunk | None
    oracle: Oracle | None
    expected: Expected
    digest: str

    @property
    def schedule(self) -> Schedule:
        """The schedule to run: the shrunk schedule if there is one, else the complete schedule."""
        return self.whole if self.shrunk is None else self.shrunk.schedule

    def program(self) -> str:
        """The Python script."""
        return python_script.program(self.schedule, self.expected, self.remedy.words(), [*self._heading(), *self._outcome()])

    def packetdrill(self) -> str:
        """The packetdrill script.

        Raises:
            CaptureInsufficient: the schedule was not shrunk, or packetdrill supports no path on which the model shows the stall.
        """
        if self.oracle is None:
            raise CaptureInsufficient(
                "a packetdrill script is made from the model's run, and no model was fitted",
                where=self.evidence.capture,
                remedy="leave out --whole, or use --kind python",
            )
        words = [
            *self._heading(),
            "",
            f"The kernel under test is the {_side(self.stall)}'s. The script passes if this kernel waits as described (the stall occurs).",
            f"With {self.remedy.words()} it would not wait"
            + ("; write [1] for [0] behind TCP_NODELAY, and the script fails." if self.remedy.nodelay else "."),
        ]
        return packetdrill.script(self.schedule, self.oracle, tuple(python_script.comments(words, "")), self.whole.path)

    def _heading(self) -> list[str]:
        conn = self.evidence.conn
        lines = [f"From: {self.evidence.capture}, connection {conn}", f"SHA-256: {self.digest}"]
        if self.finding is not None:
            frames = self.finding["evidence"]["frames"][:MAX_FRAMES]
            lines.append(f"Finding: {self.finding['id']} ({self.finding['confidence']}): {self.finding['title']}")
            lines += [f"Frames: frame.number in {{{','.join(map(str, frames))}}}"] if frames else []
        lines.append(f"Original: {self.stall_words()}.")
        lines.append(self.cut_words())
        return lines

    def stall_words(self) -> str:
        """Describe the stall of the original."""
        stall_found, life = duration_s(self.stall.seconds), duration_s(self.evidence.life_ns / NS_PER_S)
        return f"{self.stall.family} took {stall_found} of {life} at the {_side(self.stall)}"

    def _outcome(self) -> list[str]:
        expected = self.expected
        lines = [
            "",
            f"Unchanged: stall of {duration_s(expected.stalled_s)}, {duration_s(expected.with_s)} in total; exit status 1.",
            f"With {self.remedy.words()}: {duration_s(expected.without_s)} in total; exit status 0.",
        ]
        return lines + [f"{unknown[0].upper()}{unknown[1:]}." for unknown in self.whole.unknowns]

    def cut_words(self) -> str:
        """Describe how much the schedule was shrunk."""
        if self.shrunk is None:
            size = Size.of(self.whole)
            writes, written, paused = counted(size.writes, "write"), counted(size.written_bytes, "byte"), counted(size.pauses, "pause")
            return f"Not shrunk: {writes} of {written} in total, {paused}."
        before, after = self.shrunk.before, self.shrunk.after
        words = (
            f"Shrunk from {counted(before.writes, 'write')} of {counted(before.written_bytes, 'byte')} in total to {after.writes:,} of "
            f"{after.written_bytes:,}, from {counted(before.pauses, 'pause')} to {after.pauses:,}, over {self.path_words()}"
        )
        minimal = "; cannot be shrunk further" if self.shrunk.is_minimal else "; the search was stopped early"
        return f"{words}{minimal} ({self.shrunk.runs:,} runs of the model)."

    def path_words(self) -> str:
        """Describe the path over which the schedule runs."""
        path = self.schedule.path
        if not stall_oracle.has_delay(self.schedule):
            return "loopback" if path.loopback else f"loopback with an MTU of {path.mtu_bytes:,}"
        return f"a path with an RTT of {duration_s(path.base_rtt_ns / NS_PER_S)} and an MTU of {path.mtu_bytes:,}"


def _side(stall_found: Stall) -> str:
    return "client" if DIRECTIONS[stall_found.direction] else "server"


def reproduce(evidence: Evidence, *, whole: bool = False, max_s: float = MAX_S, doing: Callable[[str], None] | None = None) -> Reproducer:
    """Find the main stall of a connection, and the smallest schedule that shows it.

    Args:
        evidence: data of the connection.
        whole: if True, the schedule is not shrunk, and no model is needed.
        max_s: time limit for shrinking, in seconds. At the limit, the best result so far is used.
        doing: called with a progress message.

    Raises:
        CaptureInsufficient: the connection has no stall, or none with a known remedy, or no model fits.
    """
    tell = doing or (lambda _words: None)
    document = original_document(evidence)
    original = of_document("original", evidence.capture, document)
    stall_found = stall(original)
    if stall_found is None:
        raise CaptureInsufficient(f"connection {evidence.conn} has no stall to reproduce", where=evidence.capture)
    schedule = reconstruct(evidence)
    try:
        change = remedy(schedule, stall_found.family)
    except UsageError:
        raise CaptureInsufficient(
            f"the main cause in connection {evidence.conn} is {stall_found.family}: normal TCP behaviour, not a stall to reproduce",
            where=evidence.capture,
        ) from None
    finding = _finding(document, stall_found)
    digest = _digest(evidence.paths)
    if whole:
        return Reproducer(
            evidence, stall_found, finding, change, schedule, None, None, _as_captured(original, stall_found, schedule), digest
        )
    if stall_found.family == "loss":
        raise CaptureInsufficient(
            f"packet loss stalled connection {evidence.conn}, and the model does not recover from it as Linux does (RACK, "
            "tail-loss probes)",
            where=evidence.capture,
            remedy=UNSHRUNK,
        )
    question = _question(evidence, schedule, original, stall_found, change, tell)
    tell("shrinking")
    small = shrink(schedule, question, max_s=max_s)
    if not question.is_seen(small.schedule):
        question.must_be_seen = True
        small = shrink(schedule, question, max_s=max_s)
    expected = question.expected(small.schedule)
    assert expected is not None  # noqa: S101  (the shrunk schedule shows the stall, so there are expected durations)
    return Reproducer(evidence, stall_found, finding, change, schedule, small, question, expected, digest)


def _question(
    evidence: Evidence, schedule: Schedule, original: Figures, stall_found: Stall, change: Changes, tell: Callable[[str], None]
) -> Oracle:
    tell("fitting the model")
    try:
        return oracle(schedule, fit(evidence, schedule, original).equal_fits, stall_found, change)
    except CaptureInsufficient as error:
        raise CaptureInsufficient(error.what, where=error.where, remedy=UNSHRUNK) from None


def _as_captured(original: Figures, stall_found: Stall, schedule: Schedule) -> Expected:
    """Return the expected durations if no model is fitted: the original's duration, with and without the time of the stall."""
    took_s = original.duration_s
    return Expected(stall_found.seconds, took_s, max(0.0, took_s - stall_found.seconds), 0.0, 0.0, schedule.path.base_rtt_ns / NS_PER_S)


_FINDINGS: Final = {
    "nagle": ("nagle-delayed-ack", "throughput-deadlock", "delayed-ack"),
    "window": ("receiver-window-limited", "zero-window"),
    "send-buffer": ("send-buffer-limited",),
    "loss": ("loss", "timeout"),
    "application": ("application-limited",),
}
"""Family of causes (`side_by_side.FAMILIES`) → ids of the findings about it."""


def _finding(document: Mapping[str, Any], stall_found: Stall) -> Mapping[str, Any] | None:
    about: list[dict[str, Any]] = [
        finding
        for finding in document["findings"]
        if finding["id"] in _FINDINGS.get(stall_found.family, ()) and finding["from_client"] == DIRECTIONS[stall_found.direction]
    ]
    return max(about, key=lambda finding: finding["cost_s"] or 0.0, default=None)


def _digest(paths: Sequence[str]) -> str:
    made = hashlib.sha256()
    for path in paths:
        with open(path, "rb") as file:  # noqa: PTH123  (opens the path exactly as the user gave it)
            while block := file.read(BLOCK_BYTES):
                made.update(block)
    return made.hexdigest()


@dataclass(frozen=True, slots=True)
class Proof:
    """Results of running a reproducer over real sockets, from the analysis of the captures. Times are in seconds.

    Attributes:
        stalled_s, fixed_stalled_s: time that the stall's causes took, unchanged and with the remedy.
        took_s, fixed_s: duration of the connection, unchanged and with the remedy.
        needed_s: minimum of `stalled_s` for the stall to count as reproduced.
    """

    stalled_s: float
    fixed_stalled_s: float
    took_s: float
    fixed_s: float
    needed_s: float

    @property
    def holds(self) -> bool:
        """True if the stall is reproduced, and the remedy removes the stall."""
        return self.stalled_s >= self.needed_s and self.fixed_stalled_s <= FIXED_LEFT * self.stalled_s


def prove(made: Reproducer) -> Proof:
    """Run a reproducer in private network namespaces, unchanged and with the remedy.

    Raises:
        LabFailed, MissingTool, UsageError: raised by `namespace_replay.play`.
    """
    needed_s = made.expected.stalled_s * FIXED_LEFT if made.oracle is None else made.oracle.need_ns / NS_PER_S
    found: list[tuple[float, float]] = []
    for schedule in (made.schedule, made.remedy.applied(made.schedule)):
        with temporary.folder() as folder:
            capture = Path(folder, "proof.pcapng")
            play(schedule, capture)
            seen = figures("proof", [str(capture)])
            found.append((seen.stalled_s(made.stall.family, made.stall.direction), seen.duration_s))
    (stalled_s, took_s), (fixed_stalled_s, fixed_s) = found
    return Proof(stalled_s, fixed_stalled_s, took_s, fixed_s, needed_s)
