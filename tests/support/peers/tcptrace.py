"""Runs tcptrace 6.6.7 on a capture, and reads the figures of each connection from its long listing.

The options are `tcptrace -lrW --csv`. tcptrace reads only pcap with microseconds, so both programs read a copy of the capture that editcap
wrote.
"""

from __future__ import annotations

import ipaddress
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.support import needs

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

End = tuple[str, int]
"""One end of a connection: address and port."""

TIME_LIMIT_S = 60


@dataclass(frozen=True, slots=True)
class Listed:
    """One connection in tcptrace's listing.

    It has the two ends, and the figures that tcptrace prints for each end as the sender.
    """

    ends: tuple[End, End]
    figures: tuple[Mapping[str, str], Mapping[str, str]]

    @property
    def key(self) -> frozenset[End]:
        """The set of both ends."""
        return frozenset(self.ends)


def readable(capture: Path, folder: Path) -> Path | None:
    """Return a copy of `capture` as pcap with microseconds.

    Return None if editcap cannot make one (several link types, another format).
    """
    copy = folder / f"{capture.name}.pcap"
    command = [needs.program("editcap"), "-F", "pcap", str(capture), str(copy)]
    done = subprocess.run(command, capture_output=True, timeout=TIME_LIMIT_S, check=False)
    return copy if done.returncode == 0 else None


def run(capture: Path, *options: str, folder: Path | None = None) -> str:
    """Return the output of tcptrace.

    The output is empty if tcptrace refuses the file (unknown link type).
    """
    command = [needs.program("tcptrace"), "-n", *options, str(capture)]
    done = subprocess.run(command, cwd=folder, capture_output=True, timeout=TIME_LIMIT_S, check=False)
    return done.stdout.decode(errors="replace") if done.returncode == 0 else ""


def listed(capture: Path) -> list[Listed]:
    """Return all connections in tcptrace's order, which is the order of their first segments."""
    names: list[str] = []
    found: list[Listed] = []
    for line in run(capture, "-lrW", "--csv").splitlines():
        values = [value.strip() for value in line.split(",")]
        if values[0] == "conn_#":
            names = [name.replace("RTT full", "RTT_full") for name in values]
        elif names and values[0].isdigit():
            row = dict(zip(names, values, strict=True))
            ends = (_end(row["host_a"], row["port_a"]), _end(row["host_b"], row["port_b"]))
            found.append(Listed(ends, (_of(row, "_a2b"), _of(row, "_b2a"))))
    return found


def _of(row: Mapping[str, str], suffix: str) -> Mapping[str, str]:
    return {name.removesuffix(suffix): value for name, value in row.items() if name.endswith(suffix)}


def _end(host: str, port: str) -> End:
    return address(host), int(port)


def address(host: str) -> str:
    """Return an address in our notation. tcptrace writes ::1 as `:0001`."""
    return str(ipaddress.ip_address(f":{host}" if host.startswith(":") and not host.startswith("::") else host))
