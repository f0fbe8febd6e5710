"""Reads tcptrace's long listing (`-l -r`), which has one row per connection.

tcptrace 6.6.7 prints comma-separated values. Host `a` has sent the first captured packet of a connection.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tcptrace_lab.verify import analyzers

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

OPTIONS = ("-n", "-l", "-r", "-W", "--csv")
"""Options for a long listing as comma-separated values, with RTTs and outstanding data (window estimates), without host names."""

SIDES = ("a2b", "b2a")

COMPLAINT = "PCAP error"
"""Start of tcptrace's message when it cannot read the rest of a file."""

MAX_CONNECTIONS = 10_000
"""Maximum number of connections that are compared, at about 10 kB each. tcptrace itself stores all connections in memory."""


@dataclass(frozen=True, slots=True)
class Listed:
    """One connection in tcptrace's listing.

    Attributes:
        number: number of the connection, from 1.
        ends: (address, port) of host a, and of host b.
        figures: figure → printed text, first for the direction from a, then for the direction from b.
    """

    number: int
    ends: tuple[tuple[str, int], tuple[str, int]]
    figures: tuple[Mapping[str, str], Mapping[str, str]]


def connections(path: str) -> Iterator[Listed]:
    """Yield the TCP connections that tcptrace lists for the capture `path`.

    Raises:
        MissingTool: tcptrace is not installed.
        Refused: tcptrace rejects the file, or ends with an error.
    """
    names: list[str] | None = None
    for line in analyzers.lines("tcptrace", [*OPTIONS, analyzers.argument(path)], complaint=COMPLAINT):
        cells = [cell.strip() for cell in line.split(",")]
        if names is None:
            names = [cell.replace(" ", "_") for cell in cells] if cells[0] == "conn_#" else None
        elif cells[0].isdigit() and len(cells) >= len(names) - 1:
            yield _listed(dict(zip(names, cells, strict=False)))


def _listed(cells: Mapping[str, str]) -> Listed:
    figures = tuple({name.removesuffix(f"_{side}"): value for name, value in cells.items() if name.endswith(f"_{side}")} for side in SIDES)
    ends = tuple((cells[f"host_{side}"], int(cells[f"port_{side}"])) for side in "ab")
    return Listed(int(cells["conn_#"]), (ends[0], ends[1]), (figures[0], figures[1]))
