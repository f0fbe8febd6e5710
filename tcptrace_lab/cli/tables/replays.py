"""Prints the original transfer and its replays side by side, in 80 columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from tcptrace_lab.cli.console import console, plain_table
from tcptrace_lab.replay.side_by_side import DIRECTIONS, FIXED_LEFT, REPRODUCED_WITHIN
from tcptrace_lab.text.escape import printable
from tcptrace_lab.text.numbers import duration_s

if TYPE_CHECKING:
    from tcptrace_lab.replay.side_by_side import Figures, Replayed

MIN_SHARE = 0.02
"""Minimum share of the time that a shown cause takes in the original or in a replay."""

ARROWS = {"client_to_server": "→", "server_to_client": "←"}


def show(compared: Replayed) -> None:
    """Print durations, causes by direction, and what became of the stall to stdout."""
    every = (compared.original, *compared.replays)
    table, out = plain_table(), console()
    table.add_column("")
    for one in every:
        table.add_column(Text(printable(one.name)), justify="right", overflow="fold")
    table.add_row("time", *(duration_s(one.duration_s) for one in every))
    for direction in DIRECTIONS:
        for cause in _causes(every, direction):
            table.add_row(f"{ARROWS[direction]} {cause}", *(duration_s(one.ledger_s[direction].get(cause, 0.0)) for one in every))
    out.print(table)
    for line in verdict(compared):
        out.print(Text(line))


def _causes(every: tuple[Figures, ...], direction: str) -> list[str]:
    names = {cause for one in every for cause, spent in one.ledger_s[direction].items() if spent >= MIN_SHARE * one.duration_s}
    return sorted(names, key=lambda cause: -every[0].ledger_s[direction].get(cause, 0.0))


def verdict(compared: Replayed) -> list[str]:
    """Return sentences that state whether the stall came back, and which changes fixed it."""
    stall = compared.stall
    if stall is None:
        return ["No TCP cause took 5% or more of the original's time."]
    where = f"{stall.family} of the {'client' if stall.direction == 'client_to_server' else 'server'}"
    lines = []
    for one in compared.replays:
        stalled_s = one.stalled_s(stall.family, stall.direction)
        spent = f"{duration_s(stalled_s)} instead of {duration_s(stall.seconds)}"
        if one.name == "replay":
            duration_words = "came back" if compared.reproduced() else f"did not come back within {REPRODUCED_WITHIN:.0%}"
            lines.append(f"The stall ({where}) {duration_words}: {spent}.")
        else:
            result_words = "fixed it" if compared.fixed(one) else f"left more than {FIXED_LEFT:.0%} of it"
            change_s = compared.original.duration_s - one.duration_s
            took = f"the transfer took {duration_s(abs(change_s))} {'less' if change_s >= 0 else 'more'}"
            lines.append(f"{printable(one.name)} {result_words}: {spent}; {took}.")
    return lines
