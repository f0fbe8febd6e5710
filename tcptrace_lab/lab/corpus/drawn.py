"""Which transfers a seed stands for: program, path, congestion control, and whether an end is paused; and in which part each belongs."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from tcptrace_lab.lab.corpus import paths
from tcptrace_lab.lab.corpus.programs import PROGRAMS
from tcptrace_lab.lab.corpus.running import Paused

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcptrace_lab.lab.networks.network import Medium

DEVELOPMENT, HELD_BACK = PARTS = ("development", "held-back")
CONGESTION_CONTROLS = ("reno", "cubic", "bbr")
DEVELOPED_ON = frozenset({"iperf3", "nginx", "openssh", "python-http", "redis", "sampler"})
"""Families of programs that rules were developed on before there was a corpus: never held back."""
ONE_IN = 4
"""One in this many families, by their hash, is held back (a choice)."""
PAUSED_SHARE = 0.15
"""Share of the transfers in which one end is stopped from time to time (a choice)."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """One transfer, before it is made.

    Attributes:
        name: the name of its folder.
        seed, number: where it comes from.
        program: a name in `PROGRAMS`.
        path: a name in `paths.PATHS`.
        medium: a path of that family.
        congestion_control: of both ends.
        paused: the end whose processes are stopped periodically.
    """

    name: str
    seed: int
    number: int
    program: str
    path: str
    medium: Medium
    congestion_control: str
    paused: Paused | None

    @property
    def part(self) -> str:
        """Where it belongs."""
        return part_of(PROGRAMS[self.program].family, self.path)


def part_of(family: str, path: str) -> str:
    """Held back is what comes from a source that nobody looks at while rules are developed: a family of programs, or one of paths."""
    return HELD_BACK if HELD_BACK in {part_of_family(family), part_of_path(path)} else DEVELOPMENT


def part_of_family(family: str) -> str:
    """Where transfers of a family of programs belong, on any path that is not held back."""
    return HELD_BACK if family not in DEVELOPED_ON and _is_held_back(f"program {family}") else DEVELOPMENT


def part_of_path(path: str) -> str:
    """Where transfers over a family of paths belong, by any program that is not held back."""
    return HELD_BACK if _is_held_back(f"path {path}") else DEVELOPMENT


def _is_held_back(source: str) -> bool:
    return hashlib.sha256(source.encode()).digest()[0] % ONE_IN == 0


def transfers(seed: int, numbers: range, programs: Sequence[str] = tuple(PROGRAMS)) -> list[Drawn]:
    """The transfers of a seed. Any `len(programs)` in a row that begin at a multiple of it have each program once; paths likewise."""
    return [_drawn(seed, number, programs) for number in numbers]


def _drawn(seed: int, number: int, programs: Sequence[str]) -> Drawn:
    program = _dealt(programs, f"{seed} programs", number)
    path = _dealt(tuple(paths.PATHS), f"{seed} paths", number)
    chance = Random(f"{seed} {number}")  # noqa: S311  (repeatable)
    medium = paths.drawn(path, chance)
    congestion_control = chance.choice(CONGESTION_CONTROLS)
    paused = _paused(chance) if chance.random() < PAUSED_SHARE else None
    return Drawn(f"{seed}-{number:04}-{program}", seed, number, program, path, medium, congestion_control, paused)


def _dealt(names: Sequence[str], seed: str, number: int) -> str:
    """As from a pack of cards that is shuffled anew whenever it is empty."""
    hand, place = divmod(number, len(names))
    pack = list(names)
    Random(f"{seed} {hand}").shuffle(pack)  # noqa: S311
    return pack[place]


def _paused(chance: Random) -> Paused:
    """A processor shared with others (every 20 ms), a busy one (every 100 ms), a program suspended (every second)."""
    period_s = chance.choice((0.02, 0.1, 1.0))
    return Paused(chance.choice(("client", "server")), period_s, period_s * chance.uniform(0.3, 0.8))
