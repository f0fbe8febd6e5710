"""Original and replays side by side in the terminal, 80 columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from tcptrace_lab.cli.console import console, plain_table
from tcptrace_lab.replay.side_by_side import CURED_LEFT, DIRECTIONS, RETURN_WITHIN
from tcptrace_lab.text.escape import printable
from tcptrace_lab.text.numbers import duration_s

if TYPE_CHECKING:
    from tcptrace_lab.replay.side_by_side import Figures, Laid

LEAST_SHARE = 0.02
"""Causes that hold less than this of every transfer are not shown."""

ARROWS = {"client_to_server": "→", "server_to_client": "←"}


def show(laid: Laid) -> None:
    """Print them to stderr: time, causes by direction, and what became of the stall."""
    every = (laid.original, *laid.replays)
    table, out = plain_table(), console()
    table.add_column("")
    for one in every:
        table.add_column(Text(printable(one.name)), justify="right", overflow="fold")
    table.add_row("time", *(duration_s(one.duration_s) for one in every))
    for way in DIRECTIONS:
        for cause in _causes(every, way):
            table.add_row(f"{ARROWS[way]} {cause}", *(duration_s(one.ledger_s[way].get(cause, 0.0)) for one in every))
    out.print(table)
    for line in verdict(laid):
        out.print(Text(line))


def _causes(every: tuple[Figures, ...], way: str) -> list[str]:
    names = {cause for one in every for cause, spent in one.ledger_s[way].items() if spent >= LEAST_SHARE * one.duration_s}
    return sorted(names, key=lambda cause: -every[0].ledger_s[way].get(cause, 0.0))


def verdict(laid: Laid) -> list[str]:
    """What became of the stall, in words."""
    told = laid.stall
    if told is None:
        return ["No TCP cause took 5% or more of the original's time."]
    where = f"{told.family} of the {'client' if told.direction == 'client_to_server' else 'server'}"
    lines = []
    for one in laid.replays:
        held_s = one.held_s(told.family, told.direction)
        spent = f"{duration_s(held_s)} instead of {duration_s(told.seconds)}"
        if one.name == "replay":
            came = "came back" if laid.returned() else f"did not come back within {RETURN_WITHIN:.0%}"
            lines.append(f"The stall ({where}) {came}: {spent}.")
        else:
            gone = "fixed it" if laid.cured(one) else f"left more than {CURED_LEFT:.0%} of it"
            change_s = laid.original.duration_s - one.duration_s
            took = f"the transfer took {duration_s(abs(change_s))} {'less' if change_s >= 0 else 'more'}"
            lines.append(f"{printable(one.name)} {gone}: {spent}; {took}.")
    return lines
