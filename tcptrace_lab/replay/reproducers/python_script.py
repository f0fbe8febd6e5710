"""Writes a schedule as a standalone Python script: `standalone.py` with the data of the schedule instead of an example.

The script contains data only as ASCII Python literals. Text from a capture, such as its name, appears only in one-line comments, with
nonprintable characters escaped. So text from a capture cannot become code.
"""

from __future__ import annotations

import textwrap
from pathlib import Path
from pprint import pformat
from typing import TYPE_CHECKING, Any, Final

from tcptrace_lab.replay.reconstruct import IP_TCP_BYTES
from tcptrace_lab.replay.reproducers import stall_oracle
from tcptrace_lab.text.escape import printable
from tcptrace_lab.text.numbers import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tcptrace_lab.replay.reproducers.stall_oracle import Expected
    from tcptrace_lab.replay.schedule import Schedule

TEMPLATE: Final = Path(__file__).with_name("standalone.py")
WIDTH: Final = 100
"""Line width of comments and data."""

_LARGEST_MTU: Final = 65_535
_END: Final = "# ---- end ----"
_HEADING: Final = "# ---- what it is from ----"
_FACTS: Final = "# ---- facts ----"


def program(schedule: Schedule, expected: Expected, remedy: str, heading: Sequence[str]) -> str:
    """Return the text of the script.

    Args:
        schedule: what both ends do, and the path.
        expected: expected durations with the stall and without it.
        remedy: options of the script that remove the stall; empty: no remedy is known.
        heading: lines of text about the origin of the schedule.
    """
    facts = {
        "REMEDY: str": remedy,
        "EXPECTED: dict[str, float]": {name: round(getattr(expected, name), 6) for name in expected.__dataclass_fields__},
        "PATH: dict[str, Any]": _path(schedule),
        "PATH_OPTIONS: dict[str, bool]": {"timestamps": schedule.path.timestamps, "sack": schedule.path.sack},
        "CLIENT: dict[str, Any]": _end(schedule.to_dict()["client"]),
        "SERVER: dict[str, Any]": _end(schedule.to_dict()["server"]),
    }
    text = TEMPLATE.read_text(encoding="utf-8")
    text = _replaced(text, _HEADING, comments(heading, "# "))
    return _replaced(text, _FACTS, [f"{name} = {_literal(value)}" for name, value in facts.items()])


def comments(lines: Sequence[str], mark: str) -> list[str]:
    """Return text as comment lines: printable, wrapped, each line after the comment mark."""
    found: list[str] = []
    for line in lines:
        parts = textwrap.wrap(printable(line), WIDTH - len(mark), break_on_hyphens=False, subsequent_indent="  ") or [""]
        found += [(mark + part).rstrip() for part in parts]
    return found


def _literal(value: object) -> str:
    return ascii(value) if isinstance(value, str) else pformat(value, width=WIDTH, sort_dicts=False, compact=True)


def _replaced(text: str, mark: str, lines: Sequence[str]) -> str:
    """Return the text with `lines` between a marker and the next end marker."""
    before, _, rest = text.partition(f"{mark}\n")
    _, _, after = rest.partition(f"{_END}\n")
    return f"{before}{mark}\n" + "".join(f"{line}\n" for line in lines) + f"{_END}\n{after}"


def _end(side: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in side.items() if value}


def _path(schedule: Schedule) -> dict[str, Any]:
    """Return the path as the script needs it: always IPv4, with the MSS of the original."""
    path = schedule.path
    own = stall_oracle.has_delay(schedule)
    mtu = min(path.mtu_bytes, _LARGEST_MTU) - (IP_TCP_BYTES[path.ipv6] - IP_TCP_BYTES[False])
    return {
        "delay_s": [direction.delay_ns / NS_PER_S for direction in path.directions],
        "rate_bps": [direction.rate_bps for direction in path.directions],
        "lost": [list(direction.lost) for direction in path.directions],
        "loss_share": [direction.loss_share for direction in path.directions],
        "mtu_bytes": mtu if own or not path.loopback else None,
        "own": own,
    }
