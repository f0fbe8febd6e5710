"""The text of a comparison, shared by the terminal, Markdown and HTML output: names, figures, verdicts and methods."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from tcptrace_lab.comparison.figures import CONNECTION_TIME, FIGURES, Level
from tcptrace_lab.comparison.significance import Method, Verdict
from tcptrace_lab.text import numbers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tcptrace_lab.comparison.comparison import Comparison
    from tcptrace_lab.comparison.findings import InGroup, Kind
    from tcptrace_lab.comparison.match import Lane, Unmatched
    from tcptrace_lab.comparison.significance import Change, Compared
    from tcptrace_lab.comparison.t_test import Sample

ARROWS = {"client": "client → server", "server": "server → client"}

VERDICTS = {
    Verdict.BETTER: "better",
    Verdict.WORSE: "worse",
    Verdict.MORE: "more",
    Verdict.LESS: "less",
    Verdict.SAME: "the same",
    Verdict.NONE_SHOWN: "not significant",
    Verdict.UNKNOWN: "not tested",
}
"""Words for each verdict."""

SMALLEST_P = 0.001
"""Smaller p-values are shown as `p<0.001`."""

_MANY_TIMES = 10
"""A change to this multiple or more is written as `× 12` instead of a percentage. A decrease by 99% or more is written as `÷ 120`."""

_NEARLY_ALL = -0.99
_NO_CHANGE = 0.005
"""A smaller relative change is written as `±0%`."""

PORTS_NAMED = 5
"""Maximum number of unmatched ports in the text. The JSON contains all."""

MIRROR = "peer"
"""The cause "waiting for a message from the peer".

The causes of the other direction explain this time. So this cause is never reported as the largest change.
"""

_CONNECTION_TIME = FIGURES.index(CONNECTION_TIME)


def letter(group: int) -> str:
    """Return the group's letter: 0 → A."""
    return chr(ord("A") + group)


def group_name(comparison: Comparison, group: int) -> str:
    """Return the name of a group, made from its captures: `before-1`, or `before-1 and 2 more`."""
    runs = comparison.groups[group]
    more = len(runs) - 1
    return runs[0].name + (f" and {more} more" if more else "")


def service_name(lane: Lane) -> str:
    """Return the name of a service, such as `port 443`. If its captures have different ports (`matched_by` is `only_one`), name all."""
    ports = lane.server_ports
    return f"port{'s' if len(ports) > 1 else ''} {', '.join(map(str, ports))}"


def connections_of(lane: Lane) -> tuple[str, ...]:
    """Return the number of connections of each group: `1`, or `3 + 3 + 2` for three captures."""
    return tuple(" + ".join("0" if service is None else f"{service.connections:,}" for service in group) for group in lane.services)


def figure_name(one: Compared) -> str:
    """Return the name of a figure: `throughput, client → server`."""
    if isinstance(one.key, tuple):
        return f"{one.key[1]}, {ARROWS[one.key[0]]}"
    figure = FIGURES[one.key]
    return figure.title if figure.direction is None else f"{figure.title}, {ARROWS[figure.direction]}"


def value(amount: float | None, kind: str) -> str:
    """Return a value with its unit. `kind` is the kind of a `Figure`."""
    if amount is None:
        return numbers.UNKNOWN
    if kind == "share":
        return numbers.share(amount)
    return numbers.rate(amount) if kind == "rate" else numbers.duration(round(amount))


def cell(sample: Sample, kind: str) -> str:
    """Return a sample as text: `527 ± 12 ms`, or `500 ms to 554 ms` for two values. Equal values have no interval."""
    interval, two = sample.interval, sample.range_of_two
    if two is not None and two[0] < two[1]:
        return f"{value(two[0], kind)} to {value(two[1], kind)}"
    text = value(sample.mean, kind)
    if sample.mean is None or interval is None or interval[0] == interval[1]:
        return text
    half = sample.mean - interval[0]
    if sample.mean == 0:
        return f"{text} ± {value(half, kind)}"
    number, unit = text.rsplit(" ", 1) if " " in text else (text.removesuffix("%"), "%")
    in_unit = half / sample.mean * float(number.replace(",", ""))
    return f"{number} ± {numbers.formatted(float(f'{in_unit:.2g}'), 'ratio')[0]} {unit}"


def kind_of(one: Compared) -> str:
    """Return the kind of a figure's values (`Figure.kind`)."""
    return "duration" if isinstance(one.key, tuple) else FIGURES[one.key].kind


def change_words(change: Change, kind: str) -> str:
    """Return a change as text: `−91%`, `× 12` or `÷ 120`.

    If the first mean is 0, return the absolute difference. If the change is unknown, return a dash.
    """
    if change.change is None:
        return numbers.UNKNOWN
    if change.share is None:
        return "none" if change.change == 0 else f"+{value(change.change, kind)}"
    if change.share + 1 >= _MANY_TIMES:
        return f"× {change.share + 1:,.0f}"
    if -1 < change.share <= _NEARLY_ALL:
        return f"÷ {1 / (change.share + 1):,.0f}"
    if abs(change.share) < _NO_CHANGE:
        return "±0%"
    return f"{change.share:+.0%}".replace("-", "−")


def verdict_words(change: Change, short: Mapping[Verdict, str] | None = None) -> str:
    """Return a verdict as text: `better, p<0.001`; `not significant, p=0.31`; `not tested`.

    `short` contains other words for some verdicts.
    """
    verdict_text = (short or {}).get(change.verdict, VERDICTS[change.verdict])
    if change.p_adjusted is None:
        return verdict_text
    p = f"<{SMALLEST_P}" if change.p_adjusted < SMALLEST_P else f"={change.p_adjusted:.2g}"
    return f"{verdict_text}, p{p}"


def sampled_words(one: Compared) -> str:
    """Return the sample size of each group: `3 and 3 captures`."""
    counts = " and ".join(f"{sample.count:,}" for sample in one.samples)
    return f"{counts} {one.level}" if one.level is not None else counts


def headline(comparison: Comparison, group: int) -> str:
    """Return a sentence about the difference of a group from the first, for the service whose total connection time changed most."""
    if not comparison.lanes:
        return f"{letter(group)}: no service occurs in both groups, so nothing can be compared."
    lane = max(range(len(comparison.lanes)), key=lambda place: _lost_ns(comparison, place, group))
    where = f" on {service_name(comparison.lanes[lane])}" if len(comparison.lanes) > 1 else ""
    connection_time = next((one for one in comparison.figures[lane] if one.key == _CONNECTION_TIME), None)
    if connection_time is None:
        return f"{letter(group)}: times are unknown."
    change = connection_time.changes[group - 1]
    before, after = (value(connection_time.samples[place].mean, "duration") for place in (0, group))
    p = verdict_words(change).split(", ")[-1]
    tested = {
        Verdict.UNKNOWN: "not tested, because each group has one value",
        Verdict.NONE_SHOWN: f"not significant ({p})",
    }.get(change.verdict, f"significant ({p})")
    if change.verdict is Verdict.UNKNOWN:
        tested += _within(comparison.figures[lane], group)
    moved = _moved(comparison.ledger[lane], group)
    return f"{letter(group)} {_pace(change)}{where}: {after} instead of {before} per connection; {tested}.{moved}"


def _pace(change: Change) -> str:
    """Return a change in words: `is 90% faster`, `is 26% slower`, `takes 12 times as long`, `is 120 times faster`, or `takes as long`."""
    share = change.share
    if share is None:
        return "takes longer" if (change.change or 0) > 0 else "takes as long"
    if abs(share) < _NO_CHANGE:
        return "takes as long"
    if share + 1 >= _MANY_TIMES:
        return f"takes {share + 1:,.0f} times as long"
    if -1 < share <= _NEARLY_ALL:
        return f"is {1 / (share + 1):,.0f} times faster"
    return f"is {abs(share):.0%} {'faster' if share < 0 else 'slower'}"


def _within(figures: Sequence[Compared], group: int) -> str:
    """Return the most significant difference within captures: `; within these captures, message time, …, is significantly better`."""
    sure = [one for one in figures if one.changes[group - 1].verdict in {Verdict.BETTER, Verdict.WORSE}]
    if not sure:
        return ""
    best = min(sure, key=lambda one: one.changes[group - 1].p_adjusted or 0)
    return f"; within these captures, {figure_name(best)}, is significantly {VERDICTS[best.changes[group - 1].verdict]}"


def _lost_ns(comparison: Comparison, lane: int, group: int) -> float:
    """Return the total change of a service's connection time: the change per connection, times the first group's number of connections."""
    connection_time = next((one for one in comparison.figures[lane] if one.key == _CONNECTION_TIME), None)
    change = None if connection_time is None else connection_time.changes[group - 1].change
    first = comparison.lanes[lane].services[0]
    return abs(change or 0) * max((service.connections for service in first if service is not None), default=0)


def _moved(ledger: Sequence[Compared], group: int) -> str:
    """Return the cause whose time changed most: ` Largest change: nagle-delayed-ack, client → server, 477 ms less.`."""
    known = [(abs(one.changes[group - 1].change or 0), one) for one in ledger if one.key[1:] != (MIRROR,)]  # type: ignore[index]
    amount, most = max(known, key=lambda pair: pair[0], default=(0, None))
    if most is None or not amount:
        return ""
    less = "less" if (most.changes[group - 1].change or 0) < 0 else "more"
    return f" Largest change: {figure_name(most)}, {value(amount, 'duration')} {less}."


def method(comparison: Comparison, group: int) -> list[str]:
    """Return sentences about the samples, the tests, the assumptions of the tests, and what the tests cannot show."""
    changes = [(one, one.changes[group - 1]) for lane in comparison.figures for one in lane]
    tests = [change.method for _, change in changes if change.tested is not None]
    levels = {one.level for one, change in changes if change.tested is not None}
    sentences = []
    if Level.CAPTURES in levels:
        sizes = " and ".join(str(len(comparison.groups[place])) for place in (0, group))
        sentences.append(f"The samples have one value per capture ({sizes}), assumed to be independent and nearly normally distributed.")
    if levels - {None, Level.CAPTURES}:
        names = " or ".join(sorted(str(level) for level in levels - {None, Level.CAPTURES}))
        sentences.append(
            f"Each group has one capture, and its {names} are the sample; correlated neighbouring values count less. A significant "
            "difference shows only that these two captures differ, not that another run would differ."
        )
    if tests:
        how = [
            "Welch's t test" if Method.WELCH in tests else "",
            "Student's t test of one value against several" if Method.POOLED in tests else "",
        ]
        sentences.append(
            f"{' and '.join(filter(None, how))}, {len(tests)} figures, p-values with Holm's correction; ± is the 95% confidence "
            "interval of the mean; for a sample of two values, both are shown."
        )
    if any(change.verdict is Verdict.UNKNOWN and change.change is not None for _, change in changes):
        sentences.append("Not tested: with one value per group, the spread is unknown. Capture each case several times.")
    return sentences


def notes(comparison: Comparison) -> list[str]:
    """Return notes on the whole comparison, such as different capture points, limited capture quality, and unmatched services."""
    sentences = []
    vantages = {known for group in comparison.groups for run in group if (known := tuple(v for v in run.vantages if v != "unknown"))}
    if len(vantages) > 1:
        sentences.append("The capture points differ: RTTs and bytes in flight cannot be compared.")
    sentences += [
        f"{letter(group)} {run.name}: capture quality {run.capture['quality']['rating']}"
        for group, runs in enumerate(comparison.groups)
        for run in runs
        if run.capture["quality"]["rating"] != "good"
    ]
    sentences += [
        f"{service_name(lane)}: assumed to be one service, because no other service is left in any group"
        for lane in comparison.lanes
        if lane.matched_by == "only_one"
    ]
    sentences += [_not_compared(comparison, run, list(services)) for run, services in groupby(comparison.unmatched, _capture_of)]
    return sentences


def _capture_of(one: Unmatched) -> tuple[int, int]:
    return one.group, one.capture


def _not_compared(comparison: Comparison, run: tuple[int, int], services: Sequence[Unmatched]) -> str:
    """Return `not compared: ports 21, 8080 and 7 more of A before (12 connections), which another group lacks`.

    Most payload comes first.
    """
    group, capture = run
    ports = ", ".join(str(one.server_port) for one in services[:PORTS_NAMED])
    more = f" and {len(services) - PORTS_NAMED:,} more" if len(services) > PORTS_NAMED else ""
    count = sum(one.connections for one in services)
    return (
        f"not compared: port{'' if len(services) == 1 else 's'} {ports}{more} of {letter(group)} {comparison.groups[group][capture].name} "
        f"({count:,} connection{'' if count == 1 else 's'}), which another group lacks"
    )


def kind_name(kind: Kind) -> str:
    """Return the name of a kind of finding: `loss, port 443, client → server`."""
    parts = [kind.id, *(["port " + ", ".join(map(str, kind.server_ports))] if kind.server_ports else [])]
    return ", ".join([*parts, *([ARROWS[kind.direction]] if kind.direction else [])])


def in_group_words(group: InGroup, captures: int) -> str:
    """Return severity and cost: `high, 477 ms`, or `high, 477 ms (2 of 3)` for several captures. Without the finding, return a dash."""
    if group.severity is None:
        return numbers.UNKNOWN
    cost = "" if group.cost_ns is None else f", {numbers.duration(round(group.cost_ns))}"
    return f"{group.severity}{cost}" + (f" ({group.captures} of {captures})" if captures > 1 else "")
