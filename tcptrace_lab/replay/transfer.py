"""`replay transfer`: runs a schedule unchanged and with changes, and compares all runs with the original."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tcptrace_lab.process import temporary
from tcptrace_lab.replay.namespace_replay import play
from tcptrace_lab.replay.side_by_side import Figures, Replayed, figures, side_by_side

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcptrace_lab.replay.changes import Changes
    from tcptrace_lab.replay.schedule import Schedule

PLAIN = "replay"


@dataclass(frozen=True, slots=True)
class Order:
    """The transfers to run.

    Attributes:
        schedule: schedule of the original.
        changes: changes to try. Without changes, only the unchanged replay runs.
        plain: also run the unchanged replay.
        folder: folder for the captures; None: the captures are deleted.
        timeout_s: limit of each transfer; None: derived from the original's duration.
        at: the end at which to capture, `client` or `server`.
    """

    schedule: Schedule
    changes: Changes
    plain: bool = True
    folder: Path | None = None
    timeout_s: float | None = None
    at: str = "client"


def transfer(order: Order, original: Figures | None, doing: Callable[[str], None] | None = None) -> Replayed:
    """Run the transfers, and compare them with the original. If `original` is None, the first run serves as the original.

    Raises:
        LabFailed, MissingTool, UsageError: raised by `namespace_replay.play`.
    """
    wanted: list[tuple[str, Schedule]] = [(PLAIN, order.schedule)] if order.plain or not order.changes else []
    if order.changes:
        wanted.append((order.changes.words(), order.changes.applied(order.schedule)))
    with temporary.folder() as scratch:
        folder = order.folder or Path(scratch)
        made = [_made(name, schedule, folder, order, doing) for name, schedule in wanted]
    return side_by_side(made[0], made[1:]) if original is None else side_by_side(original, made)


def _made(name: str, schedule: Schedule, folder: Path, order: Order, doing: Callable[[str], None] | None) -> Figures:
    if doing is not None:
        doing(f"transfer: {name}")
    capture = folder / f"{file_stem(name)}.pcapng"
    try:
        play(schedule, capture, timeout_s=order.timeout_s, at=order.at)
    except BaseException:
        capture.unlink(missing_ok=True)  # the transfer was incomplete
        raise
    return figures(name, [str(capture)])


def file_stem(name: str) -> str:
    """Return the stem of a capture's file name: `--nodelay --send-buffer 65536` becomes `nodelay-send-buffer-65536`."""
    return "-".join(word.lstrip("-") for word in name.split())
