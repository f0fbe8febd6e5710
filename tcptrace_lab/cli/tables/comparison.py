"""Prints a comparison as lines and tables in 80 columns. Each group stands next to the first group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from tcptrace_lab.cli.console import console, paragraph, plain_table
from tcptrace_lab.comparison import texts
from tcptrace_lab.comparison.figures import FIGURES
from tcptrace_lab.comparison.findings import ABSENT
from tcptrace_lab.comparison.significance import Verdict
from tcptrace_lab.text import numbers
from tcptrace_lab.text.escape import printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from tcptrace_lab.comparison import Comparison
    from tcptrace_lab.comparison.significance import Compared

SERVICES = 5
"""Maximum number of services that are shown, those with the most data first. The report and the JSON have all services."""

CAUSES = 6
"""Maximum number of causes of a service that are shown, half of them for each direction. The causes with the most time are chosen. The
report and the JSON have all causes."""

FINDINGS = 10

LEGEND = "→ data from the client, ← data from the server; ± half of the 95% confidence interval; n.s.: not significant"

_ARROWS = {"client": "→", "server": "←", None: " "}
_NAME, _CELL, _CHANGE, _CHANCE = 20, 17, 7, 15
"""Widths of the columns: name, value (twice), change, significance. With the four blanks between the columns, a line has 80 characters."""

_SHORT = {Verdict.NONE_SHOWN: "n.s."}
"""Verdict → its short form."""


def show(comparison: Comparison) -> None:
    """Print the comparison to stdout, beginning with the result of each group."""
    out = console()
    later = range(1, len(comparison.groups))
    for group in later:
        paragraph(out, texts.headline(comparison, group), style="bold")
    out.print()
    for place, runs in enumerate(comparison.groups):
        head = f"{texts.letter(place)}  "
        for run in runs:
            out.print(Text(f"{head}{printable(str(run.capture['path']))}: {printable(run.verdict)}"))
            head = "   "
    for note in texts.notes(comparison):
        out.print(Text(f"note: {printable(note)}"))
    for group in later or (0,):
        for place in range(min(len(comparison.lanes), SERVICES)):
            counts = texts.connections_of(comparison.lanes[place])
            shown = [0, group] if group else [0]
            counts_text = ", ".join(f"{texts.letter(one)} {counts[one]}" for one in shown)
            out.print(Text(f"\n{texts.service_name(comparison.lanes[place])} (connections: {counts_text})"))
            out.print(_service(comparison, place, shown))
        if comparison.lanes:
            out.print(Text(LEGEND))
        if group:
            out.print(Text(" ".join(texts.method(comparison, group))))
            _findings(comparison, group, out)
    more = len(comparison.lanes) - SERVICES
    if more > 0:
        out.print(Text(f"and {more} more service{'s' if more > 1 else ''}, in the report and the JSON"))


def _service(comparison: Comparison, place: int, groups: list[int]) -> Table:
    table = plain_table()
    table.add_column("", width=_NAME, no_wrap=True)
    for group in groups:
        table.add_column(texts.letter(group), width=_CELL, justify="right", no_wrap=True)
    table.add_column("change" if len(groups) > 1 else "", width=_CHANGE, justify="right", no_wrap=True)
    table.add_column("", max_width=_CHANCE)
    shown = [one for one in comparison.figures[place] if _is_shown(one)]
    for one in shown:
        table.add_row(*map(Text, _cells(one, groups)))
    table.add_row(Text("time by cause"))
    for one in _largest(comparison.ledger[place]):
        table.add_row(*map(Text, _cells(one, groups)))
    return table


def _is_shown(one: Compared) -> bool:
    """Return whether a figure is shown. A figure that is 0 in every group is left out."""
    return any(sample.mean for sample in one.samples)


def _largest(ledger: tuple[Compared, ...]) -> list[Compared]:
    """Return the causes with the most time in each direction, those of the client's direction first."""
    return [one for side in ("client", "server") for one in [each for each in ledger if _side(each) == side][: CAUSES // 2]]


def _side(one: Compared) -> str | None:
    return one.key[0] if isinstance(one.key, tuple) else FIGURES[one.key].direction


def _cells(one: Compared, groups: list[int]) -> list[str]:
    kind = texts.kind_of(one)
    name = one.key[1] if isinstance(one.key, tuple) else FIGURES[one.key].title
    cells = [f"{_ARROWS[_side(one)]} {name}"]
    for group in groups:
        if one.shares:
            share = one.shares[group]
            cells.append(f"{texts.value(one.samples[group].mean, kind)} {'' if share is None else f'({numbers.share(share)})':>6}")
        else:
            cells.append(texts.cell(one.samples[group], kind))
    if len(groups) == 1:
        return [*cells, "", texts.sampled_words(one)]
    change = one.changes[groups[1] - 1]
    return [*cells, texts.change_words(change, kind), texts.verdict_words(change, _SHORT)]


def _findings(comparison: Comparison, group: int, out: Console) -> None:
    """Print lines on new, resolved and remaining findings."""
    listed = [kind for kind in comparison.findings if kind.states[group - 1] != ABSENT]
    if not listed:
        out.print(Text("\nno finding in any group"))
        return
    table = plain_table()
    sizes = [len(comparison.groups[one]) for one in (0, group)]
    out.print()
    for heading in ("finding", "", texts.letter(0), texts.letter(group)):
        table.add_column(heading, no_wrap=heading != "")
    for kind in listed[:FINDINGS]:
        cells = [kind.states[group - 1], texts.kind_name(kind)]
        cells += [texts.in_group_words(kind.groups[one], size) for one, size in zip((0, group), sizes, strict=True)]
        table.add_row(*map(Text, cells))
    out.print(table)
    if len(listed) > FINDINGS:
        out.print(Text(f"and {len(listed) - FINDINGS} more kinds of finding, in the report and the JSON"))
