"""Writes connections in the form of tcptrace's long listing (`tcptrace -lrW`).

Labels and layout are those of tcptrace, so that tools that read its listing find the figures. The figures are ours. An unknown figure is
`NA`. `tcptrace_figures` documents which figures tcptrace computes differently.
"""

from __future__ import annotations

import itertools
from datetime import datetime
from typing import IO, TYPE_CHECKING, Any

from tcptrace_lab.outputs.tcptrace_figures import FIGURES, Direction, Figure
from tcptrace_lab.text.numbers import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import polars as pl

    from tcptrace_lab._core import CaptureInfo

RULE = "=" * 32
NS_PER_US = 1_000

SLICE_CONNECTIONS = 4_096
"""Number of connections that are in memory as Python objects at a time. They take about 40 MB."""

_SPACED = {"RTT samples", "RTT from 3WHS", "RTT full_sz smpls", "post-loss acks"}
"""Labels before which the listing has an empty line."""

_AMBIGUOUS = (
    "\t  The next 5 figures describe ACKs of segments that were sent several times;\n\t  their times begin with the last transmission.\n"
)
_DUPLICATES = "       ** these packets were captured twice; only this figure counts the copies\n"


def _any(column: str) -> Callable[[Direction], bool]:
    """Return a condition that is true if a direction has a value other than 0, False or null in this column."""
    return lambda direction: bool(direction[column])


def _scales(direction: Direction) -> bool:
    return direction["window_scale_offered"] is not None


_SHOWN_IF: Mapping[str, Callable[[Direction], bool]] = {
    "resets sent": _any("rst_segments"),
    "req 1323 ws/ts": lambda direction: _scales(direction) or bool(direction["timestamps"]),
    "adv wind scale": _scales,
    "req sack": _any("sack_permitted"),
    "sacks sent": _any("sack_permitted"),
    "hardware dups": lambda direction: bool(direction["capture_duplicates"] or direction["network_duplicates"]),
    **dict.fromkeys(
        ("ambiguous acks", "RTT min (last)", "RTT max (last)", "RTT avg (last)", "RTT sdv (last)"), _any("rtt_retransmitted_samples")
    ),
}
"""Label → condition. A label is listed if its condition is true for at least one direction; labels without a condition always are."""


def host_letters(number: int) -> str:
    """Return tcptrace's name of a host: a, b, …, z, aa, ab, … for the numbers 0, 1, …. Each connection has two hosts."""
    letters = ""
    number += 1
    while number:
        number, digit = divmod(number - 1, 26)
        letters = chr(ord("a") + digit) + letters
    return letters


def hosts(conn: int) -> tuple[str, str]:
    """Return the names of client and server of a connection."""
    return host_letters(2 * conn), host_letters(2 * conn + 1)


def write_listing(connections: pl.LazyFrame, info: CaptureInfo, name: str, stream: IO[bytes]) -> None:
    """Write the long listing of all connections, in batches.

    Args:
        connections: rows of `schema.CONNECTIONS`.
        info: facts about the capture.
        name: the capture's name, as the user gave it.
        stream: receives the text (UTF-8).

    Raises:
        OSError: the stream cannot be written.
    """
    stream.write(_head(info).encode())
    for position, connection in enumerate(_rows(connections)):
        rule = f"{RULE}\n" if position else ""
        stream.write((rule + listing(connection, name)).encode(errors="backslashreplace"))


def _rows(connections: pl.LazyFrame) -> Iterator[dict[str, Any]]:
    batches = connections.collect_batches(maintain_order=True, chunk_size=SLICE_CONNECTIONS)
    return itertools.chain.from_iterable(batch.iter_rows(named=True) for batch in batches)


def _head(info: CaptureInfo) -> str:
    count = info["connections"]
    return (
        f"{info['packets']} packets seen, {info['tcp_segments']} TCP packets traced\n"
        f"trace file elapsed time: {_elapsed(_difference(info['first_ts_ns'], info['last_ts_ns']))}\n"
        f"TCP connection info:\n{count} TCP connection{'' if count == 1 else 's'} traced:\n"
    )


def listing(connection: Mapping[str, Any], name: str) -> str:
    """Return the long listing of one connection (a row of `schema.CONNECTIONS`); `name` is the name of the capture."""
    a, b = hosts(connection["conn"])
    directions = Direction(connection, "client"), Direction(connection, "server")
    lines = [
        f"TCP connection {connection['conn'] + 1}:",
        f"\thost {a + ':':<4}      {connection['client_addr']}:{connection['client_port']}",
        f"\thost {b + ':':<4}      {connection['server_addr']}:{connection['server_port']}",
        f"\tcomplete conn: {_complete(directions)}",
        f"\tfirst packet:  {_moment(connection['first_ts_ns'])}",
        f"\tlast packet:   {_moment(connection['last_ts_ns'])}",
        f"\telapsed time:  {_elapsed(directions[0].duration_ns)}",
        f"\ttotal packets: {sum(direction['segments'] for direction in directions)}",
        f"\tfilename:      {name}",
        f"   {a}->{b}:\t\t\t      {b}->{a}:",
    ]
    return "\n".join(lines) + "\n" + "".join(_line(figure, directions) for figure in FIGURES)


def _line(figure: Figure, directions: tuple[Direction, Direction]) -> str:
    """Return one figure of both directions as a line of the listing; empty if the figure is not listed."""
    shown_if = _SHOWN_IF.get(figure.label)
    if shown_if is not None and not any(shown_if(direction) for direction in directions):
        return ""
    before = "\n" if figure.label in _SPACED else _AMBIGUOUS if figure.label == "ambiguous acks" else ""
    after = _DUPLICATES if figure.label == "hardware dups" else ""
    fields = (f"     {figure.label + ':':<18} {value:>9} {unit:<5}" for value, unit in (_field(figure, side) for side in directions))
    return before + "".join(fields) + "\n" + after


def _field(figure: Figure, direction: Direction) -> tuple[str, str]:
    value = figure.text(direction)
    return value, "" if value == "NA" else figure.unit


def _complete(directions: tuple[Direction, Direction]) -> str:
    syns, fins = (sum(direction[column] > 0 for direction in directions) for column in ("syn_segments", "fin_segments"))
    whole = syns == fins == len(directions)
    word = "RESET" if any(direction["rst_segments"] for direction in directions) else "yes" if whole else "no"
    return word if whole else f"{word}\t(SYNs: {syns})  (FINs: {fins})"


def _moment(ts_ns: int | None) -> str:
    """Return the local time in tcptrace's format: `Sat Oct 20 19:12:57.956084 2012`."""
    if ts_ns is None:
        return "NA"
    seconds, fraction_ns = divmod(ts_ns, NS_PER_S)
    try:
        moment = datetime.fromtimestamp(seconds).astimezone()
    except (OverflowError, ValueError, OSError):
        return f"{seconds}.{fraction_ns // NS_PER_US:06}"
    return f"{moment:%a %b} {moment.day:2} {moment:%H:%M:%S}.{fraction_ns // NS_PER_US:06} {moment.year:04}"


def _difference(first_ns: int | None, last_ns: int | None) -> int | None:
    return None if first_ns is None or last_ns is None else last_ns - first_ns


def _elapsed(nanoseconds: int | None) -> str:
    if nanoseconds is None:
        return "NA"
    minutes, rest_ns = divmod(nanoseconds, 60 * NS_PER_S)
    return f"{minutes // 60}:{minutes % 60:02}:{rest_ns // NS_PER_S:02}.{rest_ns % NS_PER_S // NS_PER_US:06}"
