"""`replay transfer`: original, replay and cure, made and laid side by side."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tcptrace_lab.process import temporary
from tcptrace_lab.replay.laid import Figures, Laid, figures, lay
from tcptrace_lab.replay.private import play

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tcptrace_lab.replay.changes import Changes
    from tcptrace_lab.replay.schedule import Schedule

PLAIN = "replay"


@dataclass(frozen=True, slots=True)
class Order:
    """What is made.

    Attributes:
        schedule: of the original.
        changes: to be tried; none: only the replay as it was.
        plain: also make it as it was.
        folder: where the captures stay; None: nowhere.
        timeout_s: of each transfer; None: by the original's time.
        at: which end captures, `client` or `server`.
    """

    schedule: Schedule
    changes: Changes
    plain: bool = True
    folder: Path | None = None
    timeout_s: float | None = None
    at: str = "client"


def transfer(order: Order, original: Figures | None, doing: Callable[[str], None] | None = None) -> Laid:
    """Make the transfer again, as it was and with the changes, and lay all side by side; without an original, beside the first of them.

    Raises:
        LabFailed, MissingTool, UsageError: as `private.play`.
    """
    wanted: list[tuple[str, Schedule]] = [(PLAIN, order.schedule)] if order.plain or not order.changes else []
    if order.changes:
        wanted.append((order.changes.words(), order.changes.applied(order.schedule)))
    with temporary.folder() as scratch:
        folder = order.folder or Path(scratch)
        made = [_made(name, schedule, folder, order, doing) for name, schedule in wanted]
    return lay(made[0], made[1:]) if original is None else lay(original, made)


def _made(name: str, schedule: Schedule, folder: Path, order: Order, doing: Callable[[str], None] | None) -> Figures:
    if doing is not None:
        doing(f"transfer: {name}")
    capture = folder / f"{file_stem(name)}.pcapng"
    try:
        play(schedule, capture, timeout_s=order.timeout_s, at=order.at)
    except BaseException:
        capture.unlink(missing_ok=True)  # a part of a transfer, that nobody asked to keep
        raise
    return figures(name, [str(capture)])


def file_stem(name: str) -> str:
    """`--nodelay --send-buffer 65536` → `nodelay-send-buffer-65536`."""
    return "-".join(word.lstrip("-") for word in name.split())


def own_figures(paths: Sequence[str], conn: int) -> Figures:
    """The original's."""
    return figures("original", paths, conn)
