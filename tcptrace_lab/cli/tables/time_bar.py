"""Draws the active time of one direction by cause, as a bar of characters with a legend."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rich.text import Text

from tcptrace_lab import causes
from tcptrace_lab.causes.texts import silence
from tcptrace_lab.cli.console import MAX_TEXT_WIDTH, paragraph
from tcptrace_lab.connections import host_names
from tcptrace_lab.schema import CAUSES
from tcptrace_lab.text import numbers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from rich.console import Console

FILLS = "█▓▒░▞"
"""Characters that fill the largest parts of the bar. The parts can be distinguished without colours."""

OTHERS, OTHERS_FILL = "others", "·"

MIN_SHARE = 0.01
"""Minimum share of the active time for a cause with its own part of the bar."""

MIN_OTHERS = 0.0005
"""If all small causes together take at most this share, they are left out, because the legend would show 0.0%."""


class Part(NamedTuple):
    """A part of the bar: its cause (or `OTHERS`), its time, and the character that fills it."""

    cause: str
    ns: int
    fill: str

    @property
    def style(self) -> str:
        """The colour of this part, as in the reports."""
        return "dim" if self.cause == OTHERS else causes.of_cause(self.cause).colour


def parts(account: Mapping[str, Any], side: str) -> list[Part]:
    """Return the active time of a direction by cause, the largest first. The small causes together are the last part.

    Args:
        account: row of `schema.ACCOUNTS`.
        side: the sender, `client` or `server`.
    """
    ns = {cause: account[f"{side}_{cause.replace('-', '_')}_ns"] or 0 for cause in CAUSES if cause != "idle"}
    active_ns = sum(ns.values())
    largest = sorted((cause for cause in ns if ns[cause] and ns[cause] >= MIN_SHARE * active_ns), key=lambda cause: -ns[cause])
    shown = [Part(cause, ns[cause], fill) for cause, fill in zip(largest, FILLS, strict=False)]
    left_ns = active_ns - sum(part.ns for part in shown)
    return [*shown, Part(OTHERS, left_ns, OTHERS_FILL)] if left_ns > MIN_OTHERS * active_ns else shown


def cells(spent: Sequence[Part], width: int) -> list[int]:
    """Divide `width` cells among the parts in proportion to their time (largest remainder method). The cells add up to `width`."""
    total_ns = sum(part.ns for part in spent)
    whole = [part.ns * width // total_ns for part in spent]
    by_remainder = sorted(range(len(spent)), key=lambda place: -(spent[place].ns * width % total_ns))
    for place in by_remainder[: width - sum(whole)]:
        whole[place] += 1
    return whole


def show(out: Console, account: Mapping[str, Any], row: Mapping[str, Any], why: str = "", *, from_client: bool) -> bool:
    """Print the direction, the reason `why` it is shown, the bar, and its legend. Without active time, print nothing and return false."""
    sides = ("client", "server") if from_client else ("server", "client")
    spent = parts(account, sides[0])
    if not spent:
        return False
    idle_ns, active_ns = account[f"{sides[0]}_idle_ns"] or 0, sum(part.ns for part in spent)
    idle = f" ({numbers.duration(idle_ns)} idle)" if idle_ns else ""
    ends = " → ".join(host_names.host(row, side) for side in sides)
    paragraph(out, f"{numbers.duration(active_ns)} active{idle}, connection {row['conn']}, {' → '.join(sides)} ({ends}){why}")
    width = min(out.width, MAX_TEXT_WIDTH)
    bar, legend = Text(), Text()
    for part, length in zip(spent, cells(spent, width), strict=True):
        bar.append(part.fill * length, part.style)
        words = f"{part.fill} {silence.name(part.cause, account, sides[0])} {numbers.share(part.ns / active_ns)}"
        used = len(legend.plain.rpartition("\n")[2])
        legend.append("" if not used else "\n" if used + len("  ") + len(words) > width else "  ")
        legend.append(part.fill, part.style).append(words.removeprefix(part.fill))
    out.print(bar, soft_wrap=True)
    out.print(legend, soft_wrap=True)
    return True
