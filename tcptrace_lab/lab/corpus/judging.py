"""Compares the engine's results for a transfer with the kernel's ledger: the time per cause, and the verdict on each capture."""

from __future__ import annotations

from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any, NamedTuple

from tcptrace_lab import verdict
from tcptrace_lab.analysis import analyze
from tcptrace_lab.errors import TcptraceLabError
from tcptrace_lab.lab.corpus.middle import client_side_ns
from tcptrace_lab.lab.kernel_ledger.agreement import MIDDLE, Router, capture_of, kernel_rows, of_capture

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from tcptrace_lab.lab.kernel_ledger.agreement import Piece
    from tcptrace_lab.verdict import Verdict

MAX_WAITS = 3
"""Number of waits that are kept for each confusion. The longest waits are kept."""
JOINED = (
    frozenset({"loss-recovery", "timeout", "congestion-window"}),
    frozenset({"nagle", "nagle-delayed-ack"}),
    frozenset({"receiver-window", "zero-window"}),
)
"""Sets of causes that count as a single cause when the kernel's largest cause is determined.

The verdict joins causes in the same way (`verdict.direction.OF_LOSSES` and similar sets).
"""


class Key(NamedTuple):
    """The key by which time is summed.

    Attributes:
        at: the capture point.
        group: the kernel's cause, in a few words.
        exact: the causes that follow from the kernel's gate that opened last.
        gates: the gates according to the kernel.
        cause, confidence: cause and confidence in the ledger of the capture.
        is_accepted, is_exact, is_strict: True if `cause` is among the `accepted`, `exact` or `strict` causes (`AllowedCauses`).
    """

    at: str
    group: str
    exact: str
    gates: str
    cause: str
    confidence: str
    is_accepted: bool
    is_exact: bool
    is_strict: bool


class Wait(NamedTuple):
    """A wait in the ledger of a capture. `ns` is the time in which the kernel's ledger disagrees."""

    ns: int
    conn: int
    frame_before: int | None
    frame_after: int | None


@dataclass(frozen=True, slots=True)
class Headline:
    """The verdict on one capture.

    Attributes:
        at: the capture point: the sender, the receiver or the router, as seen from the verdict's direction.
        said: the causes in the verdict.
        confidence: the verdict's confidence; None if the verdict names no cause, or only `unknown`.
        kernel: the causes that took most of this direction's time according to the kernel.
        is_right: True if the kernel accepts the verdict's causes for at least as long as the kernel's own largest cause lasted.
    """

    at: str
    said: str
    confidence: str | None
    kernel: str
    is_right: bool
    sentence: str


@dataclass(slots=True)
class Judged:
    """The results for one transfer.

    Attributes:
        entry: line of the transfer in the manifest.
        sums: nanoseconds of each key, over the data directions.
        waits: longest waits of each confusion.
        headlines: one entry for each capture.
        error: reason why the transfer could not be judged, if there is one.
    """

    entry: dict[str, Any]
    sums: dict[Key, int] = field(default_factory=dict)
    waits: dict[Key, list[Wait]] = field(default_factory=dict)
    headlines: list[Headline] = field(default_factory=list)
    error: str = ""


def judge_all(folder: Path, entries: Sequence[dict[str, Any]], processes: int) -> Iterator[Judged]:
    """Judge the transfers of a folder in several processes. The results are in the order of `entries`."""
    if processes <= 1:
        yield from map(partial(judge, folder), entries)
        return
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        yield from pool.map(partial(judge, folder), entries, chunksize=4)


def judge(folder: Path, entry: dict[str, Any]) -> Judged:
    """Judge the captures of one transfer."""
    judged = Judged(entry)
    transfer = folder / entry["name"]
    try:
        _judge(transfer, judged)
    except (TcptraceLabError, OSError) as error:
        judged.error = str(error)
    return judged


def _judge(transfer: Path, judged: Judged) -> None:
    kernel = kernel_rows(transfer)
    every: list[Piece] = []
    for name, point in points(judged.entry):
        analysis = analyze(capture_of(transfer, name))
        pieces = list(of_capture(transfer, analysis, kernel, point))
        every += pieces
        headline = _headline(verdict.of(analysis), pieces)
        if headline is not None:
            judged.headlines.append(headline)
    judged.sums, judged.waits = summed(every)


def points(entry: dict[str, Any]) -> Iterator[tuple[str, str | Router]]:
    """Yield the name and the capture point of each capture of a transfer."""
    yield "client", "client"
    yield "server", "server"
    yield MIDDLE, Router(*(client_side_ns(entry[way]["delay_s"]) for way in ("forward", "backward")))


def summed(pieces: Iterable[Piece]) -> tuple[dict[Key, int], dict[Key, list[Wait]]]:
    """Return the nanoseconds by key, and the longest waits of each key that is not accepted. Only the data directions count."""
    sums: dict[Key, int] = defaultdict(int)
    longest: dict[Key, dict[tuple[int, int | None, int | None], int]] = defaultdict(lambda: defaultdict(int))
    for piece in pieces:
        if piece.is_of_data:
            key = _key(piece)
            sums[key] += piece.ns
            if not key.is_accepted:
                longest[key][piece.conn, piece.frame_before, piece.frame_after] += piece.ns
    waits = {key: [Wait(ns, *wait) for wait, ns in sorted(mine.items(), key=lambda item: -item[1])] for key, mine in longest.items()}
    return dict(sums), {key: mine[:MAX_WAITS] for key, mine in waits.items()}


def _key(piece: Piece) -> Key:
    allowed = piece.allowed
    right = (piece.cause in allowed.accepted, piece.cause in allowed.exact, piece.cause in allowed.strict)
    return Key(piece.at, allowed.group, "/".join(sorted(allowed.exact)), piece.gates, piece.cause, piece.confidence, *right)


def _headline(found: Verdict, pieces: Sequence[Piece]) -> Headline | None:
    """Compare the verdict with the kernel's ledger of the verdict's direction.

    The kernel's ledger lacks the handshake, and ends with the last data. Return None if the kernel's ledger covers less than half of the
    time that the verdict describes.
    """
    mine = [piece for piece in pieces if (piece.conn, piece.from_client) == (found.conn, found.from_client)]
    side = "client" if found.from_client else "server"
    named_ns = sum(found.account.get(f"{side}_{cause.replace('-', '_')}_ns") or 0 for cause in found.causes)
    if not mine or 2 * sum(piece.ns for piece in mine if piece.cause in found.causes) < named_ns:
        return None
    exact: dict[frozenset[str], int] = defaultdict(int)
    accepted_ns = 0
    for piece in mine:
        for causes in {_joined(cause) for cause in piece.allowed.exact}:
            exact[causes] += piece.ns
        if not found.causes.isdisjoint(piece.allowed.accepted):
            accepted_ns += piece.ns
    largest = max(exact, key=lambda causes: exact[causes])
    is_unknown = not found.causes or "unknown" in found.causes
    confidence = None if is_unknown or found.confidence is None else str(found.confidence)
    is_right = not is_unknown and accepted_ns >= exact[largest]
    return Headline(mine[0].at, _words(found.causes), confidence, _words(largest), is_right, found.sentence)


def _joined(cause: str) -> frozenset[str]:
    return next((causes for causes in JOINED if cause in causes), frozenset({cause}))


def _words(causes: frozenset[str]) -> str:
    return "/".join(sorted(causes))
