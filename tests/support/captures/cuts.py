"""Compares the ledger of a cut capture with the ledger of the whole capture, for the time that both captures cover.

A cut capture begins later or ends earlier than the whole capture.

    python tests/support/captures/cuts.py CAPTURE...

The command prints each cut whose causes differ. It omits captures with more than `MAX_CONNECTIONS` connections.
"""

from __future__ import annotations

import subprocess
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from ipaddress import ip_address
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final, TypeAlias

from tcptrace_lab.engine.segments import read
from tests.support import needs
from tests.support.captures import damage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

MAX_CONNECTIONS: Final = 40
MIN_FRAMES: Final = 8

SHARE: Final = 0.05
"""Largest share of a direction's lifetime that is allowed to have another cause after the cut.

A cut capture shows less of the path, so waits can begin or end at other times.
"""
FLOOR_NS: Final = 2_000_000
"""Time that is always allowed to have another cause. A cut capture can have only a few frames of a connection."""

OF_SILENCE: Final = frozenset({"idle", "application", "peer"})
"""Causes of silence. After a cut, one of them is allowed to replace another.

Whether a silence is idle depends on all pauses of the transfer, and on which host opened the connection.
"""

Direction: TypeAlias = tuple[int, bool]
"""A direction: connection number, and True for the client's direction."""


@dataclass(frozen=True, slots=True)
class Span:
    """One interval of a ledger."""

    start_ns: int
    end_ns: int
    cause: str


@dataclass(frozen=True, slots=True)
class Told:
    """The ledger of one file, and the direction of each frame."""

    spans: Mapping[Direction, list[Span]]
    directions: Mapping[int, Direction]

    @property
    def connections(self) -> int:
        """Return the number of connections."""
        return len({conn for conn, _ in self.spans})


@dataclass(frozen=True, slots=True)
class Otherwise:
    """A direction whose ledger has other causes in the cut capture than in the whole capture."""

    direction: Direction
    life_ns: int
    otherwise_ns: Mapping[tuple[str, str], int]
    """Nanoseconds for each pair (cause in the whole capture, cause in the cut capture).

    Time that is unknown in the cut capture is left out.
    """

    @property
    def share(self) -> float:
        """Return the share of the direction's lifetime that has another cause.

        The share is 0 if the deviation is short enough to be allowed.
        """
        told_ns = sum(self.otherwise_ns.values())
        return told_ns / self.life_ns if told_ns > FLOOR_NS else 0.0


def source(path: Path, folder: Path) -> tuple[int, list[damage.Packet]]:
    """Return the link type and the packets of a capture, in any format that Wireshark reads."""
    plain = folder / f"{path.name}.nsecpcap"
    subprocess.run([needs.program("editcap"), "-F", "nsecpcap", path, plain], check=True, capture_output=True)
    return damage.read(plain)


def reported(path: Path, frames_before: int = 0) -> Told:
    """Return the ledger of the capture `path`.

    In the whole capture, `frames_before` frames come before the first frame of `path`.
    """
    tables = read(path, worth=())
    spans: dict[Direction, list[Span]] = defaultdict(list)
    rows = tables.ledger.sort("start_ns", maintain_order=True).collect()
    for conn, from_client, start_ns, end_ns, cause in rows.select("conn", "from_client", "start_ns", "end_ns", "cause").iter_rows():
        spans[conn, from_client].append(Span(start_ns, end_ns, str(cause)))
    frames = tables.segments.select("frame", "conn", "from_client").collect()
    return Told(spans, {frame + frames_before: (conn, from_client) for frame, conn, from_client in frames.iter_rows()})


def by_frames(part: tuple[float, float]) -> Callable[[list[damage.Packet]], slice]:
    """Return a function that selects a part of a capture by its frames.

    `part` has the begin and the end as shares of the capture, from 0 to 1.
    """
    return lambda packets: slice(int(len(packets) * part[0]), int(len(packets) * part[1]))


def by_time(part: tuple[float, float]) -> Callable[[list[damage.Packet]], slice]:
    """Return a function that selects a part of a capture by its time.

    `part` has the begin and the end as shares of the capture, from 0 to 1.
    """

    def cut(packets: list[damage.Packet]) -> slice:
        first_ns, last_ns = (of(packet.ts_ns for packet in packets) for of in (min, max))
        from_ns, to_ns = (first_ns + (last_ns - first_ns) * share for share in part)
        inside = [place for place, packet in enumerate(packets) if from_ns <= packet.ts_ns <= to_ns]
        return slice(inside[0], inside[-1] + 1)

    return cut


CUTS: Final[Mapping[str, Callable[[list[damage.Packet]], slice]]] = {
    "without the first quarter of its frames": by_frames((0.25, 1)),
    "without the first half of its frames": by_frames((0.5, 1)),
    "without the last quarter of its frames": by_frames((0, 0.75)),
    "without the first quarter of its time": by_time((0.25, 1)),
    "without the last quarter of its time": by_time((0, 0.75)),
}


def _beside(whole: Told, cut: Told) -> dict[Direction, Direction]:
    """Map each direction of the cut capture to the direction with the same frames in the whole capture."""
    found: dict[Direction, Direction] = {}
    for frame, (conn, from_client) in cut.directions.items():
        of_whole, whole_client = whole.directions[frame]
        found.setdefault((conn, from_client), (of_whole, whole_client))
        found.setdefault((conn, not from_client), (of_whole, not whole_client))
    return found


def _common(one: list[Span], other: list[Span]) -> Iterator[tuple[int, str, str]]:
    """Yield (nanoseconds, cause in `one`, cause in `other`) for the time that both ledgers cover."""
    here = there = 0
    while here < len(one) and there < len(other):
        a, b = one[here], other[there]
        both_ns = min(a.end_ns, b.end_ns) - max(a.start_ns, b.start_ns)
        if both_ns > 0:
            yield both_ns, a.cause, b.cause
        if a.end_ns <= b.end_ns:
            here += 1
        else:
            there += 1


def compared(whole: Told, cut: Told) -> Iterator[Otherwise]:
    """Yield the deviation of each direction, for the time that both captures cover."""
    for direction, of_whole in _beside(whole, cut).items():
        life_ns, otherwise_ns = 0, Counter[tuple[str, str]]()
        for both_ns, said, says in _common(whole.spans[of_whole], cut.spans[direction]):
            life_ns += both_ns
            in_silence = "idle" in {said, says} and {said, says} <= OF_SILENCE
            if says not in {said, "unknown"} and not in_silence:
                otherwise_ns[said, says] += both_ns
        yield Otherwise(of_whole, life_ns, otherwise_ns)


def otherwise(path: Path, folder: Path) -> dict[str, list[Otherwise]]:
    """For each cut, return the directions in which the deviation is longer than allowed. The worst direction is first."""
    link_type, packets = source(path, folder)
    whole = reported(damage.write(folder / "whole.pcap", link_type, packets))
    if len(packets) < MIN_FRAMES or not 0 < whole.connections <= MAX_CONNECTIONS:
        return {}
    found = {}
    for name, cut in CUTS.items():
        part = cut(packets)
        kept = reported(damage.write(folder / "cut.pcap", link_type, packets[part]), part.start)
        off = [one for one in compared(whole, kept) if one.share > SHARE]
        if off:
            found[name] = sorted(off, key=lambda one: one.share, reverse=True)
    return found


def only_connection(whole: Told, packets: list[damage.Packet], conn: int) -> list[damage.Packet]:
    """Return the packets of one connection."""
    return [packet for frame, packet in enumerate(packets, 1) if whole.directions.get(frame, (None, True))[0] == conn]


def turned(path: Path, packets: list[damage.Packet]) -> list[damage.Packet]:
    """Return the packets with the host addresses exchanged.

    The checksums stay right, because each packet has both addresses.
    """
    ends = read(path).connections.select("client_addr", "server_addr").unique(maintain_order=True).collect()
    sides = [tuple(ip_address(end).packed for end in row) for row in ends.iter_rows()]
    both = [(one, other) for a, b in sides for one, other in ((a, b), (b, a))]

    def turn(packet: damage.Packet) -> damage.Packet:
        way = next(((one, other) for one, other in both if one + other in packet.data), None)
        return packet if way is None else replace(packet, data=packet.data.replace(way[0] + way[1], way[1] + way[0], 1))

    return [turn(packet) for packet in packets]


def main(paths: list[str]) -> None:
    """Print one line for each direction whose causes differ after a cut."""
    with TemporaryDirectory() as folder:
        for path in map(Path, paths):
            try:
                found = otherwise(path, Path(folder))
            except (subprocess.CalledProcessError, OSError, KeyError) as error:
                sys.stdout.write(f"{path.name}: not judged: {error!r}\n")
                continue
            for name, off in found.items():
                for one in off:
                    said = ", ".join(f"{a} as {b} {ns / 1e6:.1f} ms" for (a, b), ns in Counter(one.otherwise_ns).most_common(3))
                    sys.stdout.write(f"{one.share:6.1%} {path.name} {name}, {one.direction}: {said}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
