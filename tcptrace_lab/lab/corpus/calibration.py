"""Writes the page `docs/how-sure.md` and its reliability curve.

They show how often the verdict is right at each confidence.
"""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import TYPE_CHECKING

from tcptrace_lab.lab.corpus.drawn import DEVELOPMENT, HELD_BACK
from tcptrace_lab.lab.corpus.sums import (
    MOST_LIKELY,
    POSSIBLY,
    PROVED,
    UNKNOWN,
    WORDS,
    added,
    cost,
    is_sure_and_wrong,
    ns_of,
    said,
    where,
)
from tcptrace_lab.lab.kernel_ledger.agreement import POINTS
from tcptrace_lab.report.markdown_table import table
from tcptrace_lab.text.numbers import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from tcptrace_lab.lab.corpus.judging import Judged, Key

OTHER_STACK = "other stack"
"""Name of the page's section about other TCP stacks. The other sections are about the parts of the corpus."""
PAGE, CURVE = "how-sure.md", "how-sure.svg"
GRADES = (POSSIBLY, MOST_LIKELY, PROVED)
CLAIMED = {PROVED: 1.0, MOST_LIKELY: 0.95, POSSIBLY: 0.60}
"""The share of correct verdicts that each confidence word promises.

If fewer verdicts are correct, a weaker word would cost less (`sums.cost_of`).
"""
MIN_S = 1.0
"""Minimum total time for which a share is printed. In less time, a single wait would decide the share (a choice)."""
SAMPLES, WITHIN = 1_000, 0.95
"""Number of bootstrap samples, and share of the samples that the confidence interval contains.

A bootstrap sample is a set of transfers that is drawn with replacement.
"""
_SECONDS_AND_SHARES = [words for grade in reversed(GRADES) for words in (f"{grade}, s", "right")]
TITLES = {DEVELOPMENT: "Development part", HELD_BACK: "Held-back part", OTHER_STACK: "Another TCP stack"}
_ABOUT = {
    DEVELOPMENT: "Rules and constants were developed with these transfers. For other transfers, expect lower shares.",
    HELD_BACK: "No rule was developed with these programs and paths. These transfers are compared only once, when the rules are final.",
    OTHER_STACK: "gVisor's netstack is the sender, or the receiver of data from Linux; the ground truth is its recorded state.",
}
_INTRODUCTION = f"""# How sure it is
<!-- Made by `python -m tcptrace_lab.lab.corpus calibration`; do not edit. -->

Each cause that tcptrace-lab names has a confidence. This page shows how often causes of each confidence are right, measured for
transfers by programs in common use, over random paths. The ground truth is the ledger of the Linux kernel, which shows at every instant why
a sender waited. [The lab](lab/README.md#transfers-at-scale) describes the method and its limits.

| confidence in a headline | confidence in a finding | should be right in |
|---|---|---:|
| **{PROVED}** | *proved* | 100 of 100 |
| **{MOST_LIKELY}** | *consistent* | 95 of 100 |
| **{POSSIBLY}** | *possible* | 60 of 100 |
| **{UNKNOWN}** | – | no cause is named |

**Shares are shares of time**, except for headlines. For each connection, the direction with more bytes is compared. A second is right
if the kernel's ledger accepts the cause that tcptrace-lab names; if several reasons to wait held at once, each of them is accepted. A
headline is right if the kernel accepts its cause for at least the time of the kernel's own largest cause. Brackets contain 95%
confidence intervals (bootstrap over transfers). A dash means less than {MIN_S:.0f} s.

*Sure and wrong* is the share of all time in which a wrong cause is *{PROVED}* or *{MOST_LIKELY}*. *Cost of a second* is a penalty. A
second that is *{PROVED}* or *{MOST_LIKELY}* costs 0 if right and 10 if wrong. A second that is *{POSSIBLY}* costs 0.4 if right and 1.9 if
wrong. A second that is *{UNKNOWN}* costs 1.
"""


def write(folder: Path, parts: Mapping[str, Sequence[Judged]]) -> Iterator[str]:
    """Write the page and its curve to a folder. Yield one line of text about each file.

    Args:
        folder: folder for both files: `docs/`.
        parts: the judged transfers of each part of the corpus, or of another stack. The curve shows only the first entry.
    """
    sections = [_section(part, [one for one in every if not one.error]) for part, every in parts.items()]
    curve = "\n![Share of time that is right, by confidence and capture point](how-sure.svg)\n"
    (folder / PAGE).write_text(_INTRODUCTION + curve + "".join(sections))
    yield f"{folder / PAGE}"
    (folder / CURVE).write_text(_curve(next(iter(parts.values()))))
    yield f"{folder / CURVE}"


def _section(part: str, judged: Sequence[Judged]) -> str:
    total = added(judged)
    programs, paths = (len({one.entry[name] for one in judged}) for name in ("program", "path"))
    kernels = ", ".join(sorted({one.entry["kernel"].split("-")[0] for one in judged}))
    seconds = ns_of(total) / NS_PER_S
    return f"""
## {TITLES[part]}
{len(judged):,} transfers by {programs} programs over {paths} families of paths, on Linux {kernels}; {seconds:,.0f} s of time
were compared at three capture points. {_ABOUT[part]}

{table(["captured at", *_SECONDS_AND_SHARES, f"{UNKNOWN}, s", "sure and wrong", "cost of a second"], list(_by_point(judged)))}
### {TITLES[part]}: causes
{"".join(f"{line}{chr(10)}" for line in by_cause(total))}
{"".join(f"{line}{chr(10)}" for line in _by_cause_and_point(total))}
### {TITLES[part]}: headlines

{table(["captured at", *(word for grade in reversed(GRADES) for word in (grade, "right")), UNKNOWN], list(_headlines(judged)))}"""


def _by_point(judged: Sequence[Judged]) -> Iterator[list[str]]:
    total = added(judged)
    for at in ("all", *POINTS):
        mine = where(total, at=at) if at in POINTS else total
        whole = ns_of(mine)
        if whole:
            shares = [(_share(mine, grade), _interval(judged, at, grade)) for grade in reversed(GRADES)]
            cells = [cell for (seconds, right), interval in shares for cell in (seconds, right + interval)]
            unknown = f"{ns_of(mine, lambda key: said(key) == UNKNOWN) / NS_PER_S:,.1f}"
            yield [at, *cells, unknown, f"{ns_of(mine, is_sure_and_wrong) / whole:.1%}", f"{cost(mine):.2f}"]


def by_cause(total: Mapping[Key, int]) -> Iterator[str]:
    """Yield the lines of a table: time and correct share by cause and confidence, over all capture points."""
    rows = [
        [cause, *(cell for grade in reversed(GRADES) for cell in _share(sums, grade))]
        for cause, sums in [("all", total), *((cause, where(total, cause=cause)) for cause in _causes(total))]
    ]
    yield from table(["cause by tcptrace-lab", *_SECONDS_AND_SHARES], rows).splitlines()


def _causes(total: Mapping[Key, int]) -> list[str]:
    return sorted({key.cause for key in total} - {UNKNOWN}, key=lambda cause: -ns_of(where(total, cause=cause)))


def _by_cause_and_point(total: Mapping[Key, int]) -> Iterator[str]:
    """Yield the lines of a table: the correct share by cause, confidence and capture point.

    Causes with too little time for a share are omitted.
    """
    columns = [(at, grade) for grade in reversed(GRADES) for at in POINTS]
    rows = []
    for cause in _causes(total):
        shares = [_right_of(where(total, cause=cause, at=at), grade) for at, grade in columns]
        if any(share is not None for share in shares):
            rows.append([cause, *("–" if share is None else f"{share:.0%}" for share in shares)])
    yield from table(["share that is right", *(f"{grade}: {at}" for at, grade in columns)], rows).splitlines()


def _right_of(sums: Mapping[Key, int], grade: str) -> float | None:
    mine = {key: ns for key, ns in sums.items() if said(key) == grade}
    whole = ns_of(mine)
    return ns_of(mine, lambda key: key.is_accepted) / whole if whole >= MIN_S * NS_PER_S else None


def _share(sums: Mapping[Key, int], grade: str) -> tuple[str, str]:
    """Return two table cells for a confidence: the seconds, and their correct share."""
    whole = ns_of(sums, lambda key: said(key) == grade)
    right = _right_of(sums, grade)
    return f"{whole / NS_PER_S:,.1f}", "–" if right is None else f"{right:.1%}"


def _interval(judged: Sequence[Judged], at: str, grade: str) -> str:
    """Return the bootstrap interval of the correct share.

    Each bootstrap sample draws whole transfers, because the times within one transfer are not independent.
    """
    pairs = []
    for one in judged:
        mine = [(key, ns) for key, ns in one.sums.items() if said(key) == grade and at in {key.at, "all"}]
        pairs.append((sum(ns for key, ns in mine if key.is_accepted), sum(ns for _, ns in mine)))
    if sum(whole for _, whole in pairs) < MIN_S * NS_PER_S:
        return ""
    chance = Random(f"{at} {grade}")  # noqa: S311  (repeatable)
    shares = []
    for _ in range(SAMPLES):
        drawn = chance.choices(pairs, k=len(pairs))
        if whole := sum(ns for _, ns in drawn):
            shares.append(sum(ns for ns, _ in drawn) / whole)
    shares.sort()
    outside = round(len(shares) * (1 - WITHIN) / 2)
    return f" [{shares[outside]:.1%}, {shares[-1 - outside]:.1%}]"


def _headlines(judged: Sequence[Judged]) -> Iterator[list[str]]:
    every = [headline for one in judged for headline in one.headlines]
    for at in ("all", *POINTS):
        mine = [headline for headline in every if at in {headline.at, "all"}]
        counts = Counter((UNKNOWN if one.confidence is None else WORDS[one.confidence], one.is_right) for one in mine)
        cells = []
        for grade in reversed(GRADES):
            whole = counts[grade, True] + counts[grade, False]
            cells += [str(whole), f"{counts[grade, True] / whole:.0%}" if whole else "–"]
        yield [at, *cells, str(counts[UNKNOWN, False])]


_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 700, 360, 60, 210, 20, 50
_COLOURS = ("#1b6ca8", "#c2571a", "#3a7d44")  # one colour for each capture point; the colours differ in greyscale, too
_LINES = (0, 20, 40, 60, 80, 100)


def _curve(judged: Sequence[Judged]) -> str:
    """Draw the reliability curve: the correct share against the promised share, with one line per capture point.

    The area of a dot is proportional to its time.
    """
    total = added(one for one in judged if not one.error)
    marks = [_text(_LEFT - 8, _y(share / 100) + 4, f"{share} %", "end") + _line(_y(share / 100)) for share in _LINES]
    marks += [_text(_x(grade), _HEIGHT - _BOTTOM + 20, f"{grade}: {CLAIMED[grade]:.0%}", "middle") for grade in GRADES]
    claimed = " ".join(f"{_x(grade)},{_y(CLAIMED[grade])}" for grade in GRADES)
    marks.append(f'<polyline points="{claimed}" fill="none" stroke="#777" stroke-dasharray="5 4"/>')
    legend = [("what the words claim", "#777"), *((f"captured at the {at}", colour) for at, colour in zip(POINTS, _COLOURS, strict=True))]
    for number, (words, colour) in enumerate(legend):
        marks.append(f'<rect x="{_WIDTH - _RIGHT + 8}" y="{_TOP + 20 * number}" width="12" height="4" fill="{colour}"/>')
        marks.append(_text(_WIDTH - _RIGHT + 24, _TOP + 20 * number + 6, words, "start"))
    for at, colour in zip(POINTS, _COLOURS, strict=True):
        mine = where(total, at=at)
        dots = [(grade, right) for grade in GRADES if (right := _right_of(mine, grade)) is not None]
        points = " ".join(f"{_x(grade)},{_y(right)}" for grade, right in dots)
        marks.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        for grade, right in dots:
            seconds = ns_of(mine, lambda key, grade=grade: said(key) == grade) / NS_PER_S  # type: ignore[misc]
            tip = f"{at}, {grade}: {right:.1%} of {seconds:,.0f} s"
            marks.append(
                f'<circle cx="{_x(grade)}" cy="{_y(right)}" r="{2 + seconds**0.5 / 6:.1f}" fill="{colour}" fill-opacity="0.6">'
                f"<title>{tip}</title></circle>"
            )
    style = "font-family='sans-serif' font-size='12' fill='#333'"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" {style}>'
    return f'{head}\n<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#fff"/>\n' + "\n".join(marks) + "\n</svg>\n"


def _x(grade: str) -> int:
    return round(_LEFT + (_WIDTH - _LEFT - _RIGHT) * (GRADES.index(grade) + 0.5) / len(GRADES))


def _y(share: float) -> int:
    return round(_TOP + (_HEIGHT - _TOP - _BOTTOM) * (1 - share))


def _line(y: int) -> str:
    return f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y}" y2="{y}" stroke="#ddd"/>'


def _text(x: int, y: int, words: str, anchor: str) -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}">{words}</text>'
