"""A comparison as GitHub-flavoured Markdown, for a ticket. Strings from captures and file names are escaped or in code spans."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcptrace_lab.comparison import texts
from tcptrace_lab.report.markdown_table import table
from tcptrace_lab.text import numbers
from tcptrace_lab.text.escape import markdown, markdown_code

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tcptrace_lab.comparison import Comparison
    from tcptrace_lab.comparison.significance import Compared

SERVICES = 20
"""Maximum number of services that are shown in full. Services with most data are shown. The JSON contains all services."""


def text(comparison: Comparison) -> str:
    """Return the Markdown document, which ends with a newline."""
    return "\n".join(_blocks(comparison)).rstrip("\n") + "\n"


def _blocks(comparison: Comparison) -> Iterator[str]:
    later = range(1, len(comparison.groups))
    yield "## TCP: before and after" if later else "## TCP: repetitions"
    yield ""
    for group in later:
        yield f"**{markdown(texts.headline(comparison, group))}**\n"
    for place, runs in enumerate(comparison.groups):
        for run in runs:
            yield f"- {texts.letter(place)}: {markdown_code(str(run.capture['path']))}: {markdown(run.verdict)}"
    for note in texts.notes(comparison):
        yield f"- Note: {markdown(note)}"
    yield ""
    for place, lane in enumerate(comparison.lanes[:SERVICES]):
        counts = ", ".join(f"{texts.letter(group)} {count}" for group, count in enumerate(texts.connections_of(lane)))
        yield f"### {texts.service_name(lane).capitalize()} (connections: {counts})\n"
        yield table(_headings(comparison, "figure"), [_row(one) for one in comparison.figures[place]])
        yield table(_headings(comparison, "time by cause"), [_row(one) for one in comparison.ledger[place]])
    if len(comparison.lanes) > SERVICES:
        yield f"and {len(comparison.lanes) - SERVICES} more services, in the JSON\n"
    if comparison.findings:
        yield "### Findings\n"
        letters = [texts.letter(group) for group in range(len(comparison.groups))]
        yield table(["finding", *letters, *_states(comparison)], _findings(comparison))

    for group in later:
        yield f"{texts.letter(group)} against A: {markdown(' '.join(texts.method(comparison, group)))}\n"


def _headings(comparison: Comparison, first: str) -> list[str]:
    headings = [first, "A"]
    for group in range(1, len(comparison.groups)):
        headings += [texts.letter(group), "change", "chance"]
    return headings


def _states(comparison: Comparison) -> list[str]:
    many = len(comparison.groups) > 2  # noqa: PLR2004  (with two groups, the second one needs no name)
    return [f"in {texts.letter(group)}" if many else "" for group in range(1, len(comparison.groups))]


def _row(one: Compared) -> list[str]:
    kind = texts.kind_of(one)
    cells = [_cell(one, group, kind) for group in range(len(one.samples))]
    row = [texts.figure_name(one), cells[0]]
    for cell, change in zip(cells[1:], one.changes, strict=True):
        row += [cell, texts.change_words(change, kind), texts.verdict_words(change)]
    return [markdown(cell) for cell in row]


def _cell(one: Compared, group: int, kind: str) -> str:
    text_of_cell = texts.cell(one.samples[group], kind)
    return f"{text_of_cell} ({numbers.share(one.shares[group])})" if one.shares else text_of_cell


def _findings(comparison: Comparison) -> list[list[str]]:
    sizes = [len(group) for group in comparison.groups]
    return [
        [
            texts.kind_name(kind),
            *(texts.in_group_words(group, size) for group, size in zip(kind.groups, sizes, strict=True)),
            *kind.states,
        ]
        for kind in comparison.findings
    ]
