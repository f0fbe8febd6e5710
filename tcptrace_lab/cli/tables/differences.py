"""The result of `verify` in the terminal: a table of comparisons, and the differences by explanation."""

from __future__ import annotations

import itertools
import textwrap
from typing import TYPE_CHECKING

from rich.text import Text

from tcptrace_lab.cli.console import console, plain_table
from tcptrace_lab.text import numbers
from tcptrace_lab.text.escape import printable
from tcptrace_lab.verify.differences import UNEXPLAINED, Count
from tcptrace_lab.verify.output import ordered, totals
from tcptrace_lab.verify.rules import BY_NAME
from tcptrace_lab.verify.rules.texts import span

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.table import Table

    from tcptrace_lab.verify import Verification
    from tcptrace_lab.verify.differences import Difference

EXAMPLES = 3
"""Maximum number of differences that are shown per explanation, unless the user requests all."""

_COUNTS = ("compared", "equal", "explained", "unexplained")


def show(verification: Verification, *, every: bool = False) -> None:
    """Print the result to stdout: all differences if `every` is true, otherwise a few examples of each explanation."""
    out = console()
    out.print(Text(result(verification)))
    out.print(Text(headline(verification)))
    for tool, words in verification.refused.items():
        out.print(Text(f"{tool} did not read the whole file: {printable(words)}"))
    if verification.checksums.bad:
        out.print(Text(verification.checksums.words()))
    out.print(_table(verification, every=every))
    for name in ordered(verification):
        for line in explanation(verification, name, None if every else EXAMPLES):
            indent = line[: len(line) - len(line.lstrip())]
            first, *rest = textwrap.wrap(line.strip(), out.width - len(indent) - 2, break_on_hyphens=False) or [""]
            for number, part in enumerate((first, *rest)):
                out.print(Text(f"{indent}{'  ' if number else ''}{part}"), soft_wrap=True)


def result(verification: Verification) -> str:
    """Return the result in one line: `No unexplained difference.`, or how many differences are unexplained, and in which items."""
    count = totals(verification)["unexplained"]
    if not count:
        return "No unexplained difference."
    items = sorted({one.item for one in verification.account.differences[UNEXPLAINED]})
    return f"{numbers.counted(count, 'unexplained difference')}, in {', '.join(items)}: tcptrace-lab may be wrong."


def headline(verification: Verification) -> str:
    """Return the counts in one line: `slow.pcap against tshark: 12,040 comparisons, 11,900 equal, 140 explained, 0 unexplained`."""
    sums = totals(verification)
    tools = " and ".join(verification.tools)
    counts = ", ".join(f"{sums[name]:,} {name}" for name in _COUNTS[1:])
    return f"{printable(verification.path)} against {tools}: {sums['compared']:,} comparisons, {counts}"


def explanation(verification: Verification, name: str, examples: int | None) -> list[str]:
    """Return the lines on one explanation: its text, the number of differences that it explains, and examples."""
    account = verification.account
    rule = BY_NAME.get(name)
    why = rule.why if rule is not None else "no rule explains these; tcptrace-lab may be wrong"
    lines = [
        "",
        f"{account.found[name]:,} × {name if name == UNEXPLAINED else why} [{name}]" if rule else f"{account.found[name]:,} {name}: {why}",
    ]
    listed = account.differences[name]
    shown = 0
    for group in itertools.islice(_by_place(listed), examples):
        shown += len(group)
        lines.append(f"  {_line(group)}")
    more = account.found[name] - shown
    if more:
        lines.append(f"  and {more:,} more" + ("" if examples is None else "; --all lists them"))
    return lines


def _by_place(listed: list[Difference]) -> Iterator[list[Difference]]:
    """Yield groups of consecutive differences that are in one frame or figure, and have one explanation."""
    for _, group in itertools.groupby(listed, key=lambda one: (one.conn, one.frame, one.from_client, one.words)):
        yield list(group)


def _line(group: list[Difference]) -> str:
    first = group[0]
    place = [] if first.conn is None else [f"connection {first.conn}"]
    if first.frame is not None:
        place.append(f"frame {first.frame}")
    elif first.from_client is not None:
        place.append("client" if first.from_client else "server")
    values = "; ".join(f"{one.item}: ours {_value(one.ours, one.item)}, {one.tool} {_value(one.theirs, one.item)}" for one in group)
    words = f" ({first.words})" if first.words else ""
    return printable(f"{', '.join(place)}: {values}{words}")


def _value(value: object, item: str) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int) and item.endswith("_ns"):
        return span(value)
    return f"{value:,}" if isinstance(value, int) else str(value)


def _table(verification: Verification, *, every: bool) -> Table:
    table = plain_table()
    table.add_column("with", no_wrap=True)
    table.add_column("what", no_wrap=True)
    for name in _COUNTS:
        table.add_column(name, justify="right", no_wrap=True)
    same: dict[str, Count] = {}
    for (tool, item), count in verification.account.counts.items():
        if count.equal == count.compared and not every:
            sums = same.setdefault(tool, Count())
            sums.compared += count.compared
            sums.equal += count.equal
        else:
            table.add_row(tool, item, *_cells(count))
    for tool, sums in same.items():
        items = sum(count.equal == count.compared for (of, _), count in verification.account.counts.items() if of == tool)
        table.add_row(tool, f"{items} other{'' if items == 1 else 's'}", *_cells(sums))
    return table


def _cells(count: Count) -> list[Text]:
    return [Text(f"{getattr(count, name):,}") for name in _COUNTS]
