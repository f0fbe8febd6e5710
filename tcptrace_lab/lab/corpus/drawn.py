"""Draws the transfers of a seed: program, path, congestion control, and whether one end is paused.

Also assigns each transfer to a part of the corpus: development or held back.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from tcptrace_lab.lab.corpus import paths
from tcptrace_lab.lab.corpus.programs import PROGRAMS
from tcptrace_lab.lab.corpus.running import Competitor, Paused

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcptrace_lab.lab.networks.network import Medium

DEVELOPMENT, HELD_BACK = PARTS = ("development", "held-back")
CONGESTION_CONTROLS = ("reno", "cubic", "bbr")
DEVELOPED_ON = frozenset({"iperf3", "nginx", "openssh", "python-http", "redis", "sampler"})
"""Program families that are never held back, because the engine's rules were developed with them before the corpus existed."""
ONE_IN = 4
"""On average, one in this many families is held back (a choice). A hash of the family's name decides."""
COMPETITORS = (
    "iperf3-reverse",
    "iperf3-window-64k",
    "nginx-curl",
    "nginx-wrk-pages",
    "nginx-ab-keep-alive",
    "python-http-curl",
    "redis-set-large",
    "scp-download",
    "socat-file",
)
"""Programs that compete with the main program for the bottleneck: downloads, uploads, and requests over persistent connections.

None of these programs is held back.
"""
SHARED_PATHS = ("asymmetric", "batches", "far", "long-queue", "short-queue")
"""Paths without random loss, whose bottleneck several programs together can fill."""
OTHER_HOST_SHARE = 0.3
"""Share of the competitors whose server is another host (a choice)."""
PAUSED_SHARE = 0.15
"""Share of the transfers in which the processes of one end are stopped from time to time (a choice)."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """The settings of one transfer.

    Attributes:
        name: name of the transfer's folder.
        seed, number: the seed, and the number of the transfer among all transfers of this seed.
        program: a name in `PROGRAMS`.
        path: a name in `paths.PATHS`.
        medium: the path, which was drawn from the family `path`.
        congestion_control: the congestion control of both ends.
        paused: the end whose processes are stopped periodically.
        competing: name of each competing program, and True if its server has an address of its own.
    """

    name: str
    seed: int
    number: int
    program: str
    path: str
    medium: Medium
    congestion_control: str
    paused: Paused | None
    competing: tuple[tuple[str, bool], ...] = ()

    @property
    def competitors(self) -> list[Competitor]:
        """Return the programs that compete with this transfer for the bottleneck."""
        return [Competitor(PROGRAMS[name], is_other_host) for name, is_other_host in self.competing]

    @property
    def part(self) -> str:
        """Return the part of the corpus to which this transfer belongs."""
        return part_of(PROGRAMS[self.program].family, self.path)


def part_of(family: str, path: str) -> str:
    """Return the part of the corpus for a program family and a path family.

    A transfer is held back if its program family or its path family is held back. Nobody looks at held-back transfers during development.
    """
    return HELD_BACK if HELD_BACK in {part_of_family(family), part_of_path(path)} else DEVELOPMENT


def part_of_family(family: str) -> str:
    """Return the part of the corpus to which this program family belongs."""
    return HELD_BACK if family not in DEVELOPED_ON and _is_held_back(f"program {family}") else DEVELOPMENT


def part_of_path(path: str) -> str:
    """Return the part of the corpus to which this path family belongs."""
    return HELD_BACK if _is_held_back(f"path {path}") else DEVELOPMENT


def _is_held_back(source: str) -> bool:
    return hashlib.sha256(source.encode()).digest()[0] % ONE_IN == 0


def transfers(seed: int, numbers: range, programs: Sequence[str] = tuple(PROGRAMS), most_competitors: int = 0) -> list[Drawn]:
    """Return the transfers of a seed.

    Programs are assigned in rounds of `len(programs)` transfers: each round uses each program once. Paths are assigned in rounds, too.

    Args:
        seed: the seed of the random choices.
        numbers: numbers of the transfers to return.
        programs: names of programs to draw from.
        most_competitors: maximum number of programs that compete with each transfer. If not 0, at least one program competes.
    """
    if most_competitors:
        return [_shared(seed, number, programs, most_competitors) for number in numbers]
    return [_drawn(seed, number, programs) for number in numbers]


def _shared(seed: int, number: int, programs: Sequence[str], most: int) -> Drawn:
    """Draw a transfer with competitors.

    No end is paused, so every wait comes from the bottleneck or from a program.
    """
    program = _dealt(programs, f"{seed} programs", number)
    path = _dealt(SHARED_PATHS, f"{seed} shared paths", number)
    chance = Random(f"{seed} {number} shared")  # noqa: S311  (repeatable)
    competing = tuple((chance.choice(COMPETITORS), chance.random() < OTHER_HOST_SHARE) for _ in range(chance.randint(1, most)))
    name = f"{seed}-{number:04}-{program}-beside-{len(competing)}"
    return Drawn(name, seed, number, program, path, paths.drawn(path, chance), chance.choice(CONGESTION_CONTROLS), None, competing)


def _drawn(seed: int, number: int, programs: Sequence[str]) -> Drawn:
    program = _dealt(programs, f"{seed} programs", number)
    path = _dealt(tuple(paths.PATHS), f"{seed} paths", number)
    chance = Random(f"{seed} {number}")  # noqa: S311  (repeatable)
    medium = paths.drawn(path, chance)
    congestion_control = chance.choice(CONGESTION_CONTROLS)
    paused = _paused(chance) if chance.random() < PAUSED_SHARE else None
    return Drawn(f"{seed}-{number:04}-{program}", seed, number, program, path, medium, congestion_control, paused)


def _dealt(names: Sequence[str], seed: str, number: int) -> str:
    """Return the name for transfer `number`. Each round contains every name once, in a random order."""
    hand, place = divmod(number, len(names))
    pack = list(names)
    Random(f"{seed} {hand}").shuffle(pack)  # noqa: S311
    return pack[place]


def _paused(chance: Random) -> Paused:
    """Draw the pauses of one end. The period is 20 ms (shared processor), 100 ms (busy processor) or 1 s (suspended program)."""
    period_s = chance.choice((0.02, 0.1, 1.0))
    return Paused(chance.choice(("client", "server")), period_s, period_s * chance.uniform(0.3, 0.8))
