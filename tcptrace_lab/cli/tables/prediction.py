"""Formats a prediction for the terminal: lines of text, a table of size ranges, and a grid of buffer sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.table import Table

from tcptrace_lab.messages.prediction import grid_sign, lock_words
from tcptrace_lab.text import numbers

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

KIB = 1024


def words(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield lines with the parameters, the assumptions, and the result."""
    asked = document["parameters"]
    yield (
        f"{document['stack']['title']}: full segments of {asked['mss_bytes']:,} bytes, send buffer {asked['send_buffer_bytes']:,}, "
        f"receive buffer {asked['receive_buffer_bytes']:,}, {asked['copy_bytes']:,} bytes copied at a time"
        + (", Nagle's algorithm off" if asked["nodelay"] else "")
    )
    yield from document["rounded"]
    for assumed in document["assumptions"]:
        yield f"assumed: {assumed}"
    first, last = document["sizes"]["from_bytes"], document["sizes"]["to_bytes"]
    yield f"{numbers.share(document['stalled_share'])} of the sizes from {first:,} to {last:,} bytes always stall"
    measured = document["measured"]
    if measured is not None:
        yield f"measured, {measured['name']}: {measured['messages']:,} messages; {_found(measured['ranges'])}"
    yield lock_words(document["deadlock"])


def _found(ranges: list[Any] | None) -> str:
    if ranges is None:
        return "too few to find slow sizes"
    return f"{len(ranges)} ranges of sizes were slow" if ranges else "no range of sizes was slower than others"


def tables(document: Mapping[str, Any], most: int) -> Iterator[Table]:
    """Yield a table of the first `most` size ranges, and the grid of buffer sizes if there is one."""
    ranges = document["ranges"]
    if ranges:
        left = len(ranges) - most
        shown = Table("from", "to", "stalls", box=None, title_justify="left", caption=f"and {left} more ranges" if left > 0 else None)
        for one in ranges[:most]:
            shown.add_row(f"{one['from_bytes']:,}", f"{one['to_bytes']:,}", one["stalls"])
        yield shown
    if document["measured"] is not None and document["measured"]["ranges"]:
        yield _measured(document["measured"], most)
    if document["grid"]:
        yield _grid(document["grid"])


def _measured(measured: Mapping[str, Any], most: int) -> Table:
    """Return a table of the message sizes that were slow in the captures."""
    left = len(measured["ranges"]) - most
    more = f"and {left} more ranges" if left > 0 else None
    shown = Table("from", "to", "messages", "stalled", "for", box=None, title="measured", title_justify="left", caption=more)
    for one in measured["ranges"][:most]:
        times = numbers.duration(round(one["stalled_median_s"] * numbers.NS_PER_S))
        share = numbers.share(one["stalled_share"])
        shown.add_row(f"{one['from_bytes']:,}", f"{one['to_bytes']:,}", f"{one['messages']:,}", share, times)
    return shown


def _grid(cells: list[Mapping[str, Any]]) -> Table:
    """Return a table with one row per send buffer size, and one column per receive buffer size."""
    sends = list(dict.fromkeys(cell["send_buffer_bytes"] for cell in cells))
    receives = list(dict.fromkeys(cell["receive_buffer_bytes"] for cell in cells))
    by_place = {(cell["send_buffer_bytes"], cell["receive_buffer_bytes"]): cell for cell in cells}
    shown = Table(
        "send",
        *map(_size, receives),
        box=None,
        title="share of sizes that always stall; !: a stream can deadlock; ?: a stream can deadlock if writes leave buffer space unused",
        title_justify="left",
    )
    for send in sends:
        shown.add_row(_size(send), *(_cell(by_place[send, receive]) for receive in receives))
    return shown


def _size(value_bytes: int) -> str:
    return f"{value_bytes // KIB}K" if value_bytes % KIB == 0 else f"{value_bytes}"


def _cell(cell: Mapping[str, Any]) -> str:
    return f"{cell['stalled_share']:.0%}{grid_sign(cell)}"
