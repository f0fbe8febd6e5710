"""Tables that compare the two ledgers: shares of time by cause and by transfer, confused seconds, and the largest disagreements."""

from __future__ import annotations

from collections import defaultdict
from statistics import median
from typing import TYPE_CHECKING

from tcptrace_lab.lab.kernel_ledger.agreement import RECEIVER, SENDER, clock_ns, pieces
from tcptrace_lab.text.numbers import NS_PER_MS, NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from tcptrace_lab.lab.kernel_ledger.agreement import Piece

LARGEST = 10
"""Number of disagreements that are listed. The largest are listed."""
MIN_CONFUSED_S = 0.005
"""Smallest value, in seconds, in the matrix."""
CLOCKS_AGREE_NS = 20_000


def report(folders: Sequence[Path], *, all_directions: bool = False, largest: int = LARGEST) -> Iterator[str]:
    """Yield the lines of a comparison of the transfers in `folders`."""
    every: list[Piece] = []
    skews: list[int] = []
    for folder in folders:
        every.extend(pieces(folder, all_directions=all_directions))
        skews.extend(clock_ns(folder))
    yield f"{len(folders)} transfers"
    if skews:
        near = sum(abs(skew) <= CLOCKS_AGREE_NS for skew in skews) / len(skews)
        yield f"capture clock minus kernel clock: median {median(skews) / 1_000:+.1f} µs, {near:.1%} of {len(skews):,} within 20 µs"
    yield from _shares_by(every, "kernel says", lambda piece: piece.allowed.group)
    yield from _shares_by(every, "transfer", lambda piece: piece.folder.name)
    for at in (SENDER, RECEIVER):
        yield from _matrix([piece for piece in every if piece.at == at], at)
    yield from _disagreements(every, largest)


def _shares_by(every: Sequence[Piece], title: str, key: Callable[[Piece], str]) -> Iterator[str]:
    yield ""
    columns = [f"{at} {what}" for at in (SENDER, RECEIVER) for what in ("s", "accepted", "exact", "strict")]
    yield f"| {title} | {' | '.join(columns)} |"
    yield f"|---|{'---:|' * len(columns)}"
    groups: dict[str, list[Piece]] = defaultdict(list)
    for piece in every:
        groups[key(piece)].append(piece)
    ordered = sorted(groups.items(), key=lambda item: -_ns(item[1]))
    for name, members in [("all", list(every)), *ordered]:
        cells = [cell for at in (SENDER, RECEIVER) for cell in _cells([piece for piece in members if piece.at == at])]
        yield f"| {name} | {' | '.join(cells)} |"


def _cells(members: Sequence[Piece]) -> list[str]:
    whole = _ns(members)
    if not whole:
        return ["", "", "", ""]
    agree = (
        _ns(piece for piece in members if piece.cause in piece.allowed.accepted),
        _ns(piece for piece in members if piece.cause in piece.allowed.exact),
        _ns(piece for piece in members if piece.cause in piece.allowed.strict),
    )
    return [f"{whole / NS_PER_S:.2f}", *(f"{ns / whole:.1%}" for ns in agree)]


def _ns(members: Iterable[Piece]) -> int:
    return sum(piece.ns for piece in members)


def _exact(piece: Piece) -> str:
    return "/".join(sorted(piece.allowed.exact))


def _matrix(members: Sequence[Piece], at: str) -> Iterator[str]:
    """Yield a matrix of seconds: one row per cause of the kernel, and one column per cause of the ledger. Brackets show rejected time."""
    seconds: dict[tuple[str, str], int] = defaultdict(int)
    wrong: dict[tuple[str, str], int] = defaultdict(int)
    for piece in members:
        seconds[_exact(piece), piece.cause] += piece.ns
        wrong[_exact(piece), piece.cause] += piece.ns * (piece.cause not in piece.allowed.accepted)
    causes = sorted({cause for (_, cause), ns in seconds.items() if ns >= MIN_CONFUSED_S * NS_PER_S})
    yield ""
    yield f"Seconds at the {at}: the kernel's exact cause (lines), the ledger's cause (columns); in brackets: seconds not accepted"
    yield f"| kernel | {' | '.join(causes)} |"
    yield f"|---|{'---:|' * len(causes)}"
    for exact in sorted({exact for exact, _ in seconds}, key=lambda exact: -sum(ns for (one, _), ns in seconds.items() if one == exact)):
        yield f"| {exact} | {' | '.join(_confused(seconds[exact, cause], wrong[exact, cause]) for cause in causes)} |"


def _confused(ns: int, wrong_ns: int) -> str:
    if ns < MIN_CONFUSED_S * NS_PER_S:
        return ""
    return f"{ns / NS_PER_S:.2f}" + (f" [{wrong_ns / NS_PER_S:.2f}]" if wrong_ns >= MIN_CONFUSED_S * NS_PER_S else "")


def _disagreements(every: Sequence[Piece], largest: int) -> Iterator[str]:
    """Yield the largest confusions, with their longest waits.

    A confusion consists of a transfer, the kernel's gates, and a wrong cause in the ledger. The size of a confusion is the total time of
    the waits with the wrong cause.
    """
    wrong: dict[tuple[Path, str, str, str], list[Piece]] = defaultdict(list)
    for piece in every:
        if piece.cause not in piece.allowed.accepted:
            wrong[piece.folder, piece.at, piece.gates, piece.cause].append(piece)
    yield ""
    yield f"The {largest} largest disagreements"
    yield "| transfer | at | kernel: opened last (also closed) | ledger | s | longest: frames (ms) |"
    yield "|---|---|---|---|---:|---|"
    for (folder, at, gates, cause), members in sorted(wrong.items(), key=lambda item: -_ns(item[1]))[:largest]:
        yield f"| {folder.name} | {at} | {gates} | {cause} | {_ns(members) / NS_PER_S:.2f} | {_longest(members)} |"


def _longest(members: Sequence[Piece], most: int = 3) -> str:
    """Return the waits with the longest disagreement: connection, frame before, frame after."""
    waits: dict[tuple[int, int | None, int | None], int] = defaultdict(int)
    for piece in members:
        waits[piece.conn, piece.frame_before, piece.frame_after] += piece.ns
    ordered = sorted(waits.items(), key=lambda item: -item[1])[:most]
    words = [f"{conn + 1}: {before or '…'}–{after or '…'} ({ns / NS_PER_MS:.1f})" for (conn, before, after), ns in ordered]
    more = f" and {len(waits) - most} more" if len(waits) > most else ""
    return ", ".join(words) + more
