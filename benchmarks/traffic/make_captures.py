"""Makes the big captures of the benchmarks: `python benchmarks/traffic/make_captures.py` writes what is missing in `benchmarks/data/`.

Beside each capture stands a `.json` with what was put into it, counted while it was written.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from frames import FIN, SYN, UNCUT_SNAPLEN, Framer, Rows
from traffic import PACKETS_PER_SHORT_CONNECTION, busy_link, one_transfer, short_connections

if TYPE_CHECKING:
    from collections.abc import Iterator

DATA: Final = Path(__file__).resolve().parents[1] / "data"
_GENERATOR_VERSION: Final = 1
"""Raised whenever the same recipe gives other bytes, so that stale captures are made again."""
_SEED: Final = 1
_PACKETS_PER_LANE: Final = 25_000
_MIN_LANES: Final = 8
_CONNECTIONS_PER_LANE: Final = 16
"""Roughly: what one lane carries in the mixed capture."""
_MAX_BULK_LANES: Final = 40
_BULK_SEGMENTS: Final = 5000
"""Median of the connections in the full-size capture: 7 MB each."""
_RECORDS_PER_WRITE: Final = {True: 50_000, False: 10_000}
"""Segments made into bytes at once, cut / uncut: some 10 MB."""


@dataclass(frozen=True)
class Recipe:
    """One capture to be made.

    Attributes:
        name: file name without suffix; the kind of traffic comes before the first dash.
        packets: how many; the capture ends in mid-traffic, as captures do.
        snaplen: bytes kept of each frame.
        nanoseconds: resolution of the time stamps.
    """

    name: str
    packets: int
    snaplen: int
    nanoseconds: bool = False

    def path(self, folder: Path) -> Path:
        """Where the capture is or will be."""
        return folder / f"{self.name}.pcap"

    def traffic(self) -> Iterator[Rows]:
        """Its segments in slabs; may give more than `packets`."""
        kind = self.name.split("-")[0]
        lanes = max(_MIN_LANES, self.packets // _PACKETS_PER_LANE)
        if kind == "mixed":
            return busy_link(_SEED, lanes, segments_median=self.packets / lanes / _CONNECTIONS_PER_LANE)
        if kind == "full":
            return busy_link(_SEED, min(lanes, _MAX_BULK_LANES), segments_median=_BULK_SEGMENTS, bulk_only=True)
        if kind == "single":
            return one_transfer(_SEED, self.packets)
        return short_connections(_SEED, self.packets // PACKETS_PER_SHORT_CONNECTION)


def recipes(divisor: int = 1) -> dict[str, Recipe]:
    """The captures of the benchmark by kind, with `divisor` times fewer packets."""
    suffix = "" if divisor == 1 else f"-{divisor}th"
    return {
        "mixed": Recipe(f"mixed-96{suffix}", 10_000_000 // divisor, 96),
        "full": Recipe(f"full{suffix}", 1_500_000 // divisor, UNCUT_SNAPLEN),
        "single": Recipe(f"single-96{suffix}", 3_000_000 // divisor, 96),
        "short": Recipe(f"short-96{suffix}", 10_000_000 // divisor, 96),
    }


def make(recipe: Recipe, folder: Path) -> dict[str, object]:
    """Writes the capture and its `.json`; returns what the `.json` holds.

    The file gets its name only when it is whole, so that an interrupted run leaves nothing that looks finished.
    """
    path = recipe.path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".unfinished")
    framer = Framer(recipe.snaplen, nanoseconds=recipe.nanoseconds)
    at_once = _RECORDS_PER_WRITE[recipe.snaplen < UNCUT_SNAPLEN]
    counts = dict.fromkeys(("packets", "connections", "fin_segments", "data_segments", "retransmissions"), 0)
    with unfinished.open("wb") as out:
        out.write(framer.file_header())
        for slab in recipe.traffic():
            rows = slab[: recipe.packets - counts["packets"]]
            for first in range(0, len(rows), at_once):
                out.write(framer.records(rows[first : first + at_once]))
            _count(counts, rows)
            if counts["packets"] == recipe.packets:
                break
    origin = {"generator_version": _GENERATOR_VERSION, "seed": _SEED, "file_bytes": unfinished.stat().st_size}
    made: dict[str, object] = {**asdict(recipe), **counts, **origin}
    unfinished.replace(path)
    path.with_suffix(".json").write_text(json.dumps(made, indent=1) + "\n")
    return made


def _count(counts: dict[str, int], rows: Rows) -> None:
    flags = rows["flags"]
    counts["packets"] += len(rows)
    counts["connections"] += int(np.count_nonzero(flags == SYN))
    counts["fin_segments"] += int(np.count_nonzero(flags & FIN))
    counts["data_segments"] += int(np.count_nonzero(rows["payload_bytes"]))
    counts["retransmissions"] += int(np.count_nonzero(rows["resent"]))


def ensure(recipe: Recipe, folder: Path) -> dict[str, object]:
    """The capture's facts; makes the capture if it is missing or from another recipe."""
    path = recipe.path(folder)
    facts = path.with_suffix(".json")
    if path.exists() and facts.exists():
        known: dict[str, object] = json.loads(facts.read_text())
        same = all(known.get(key) == value for key, value in asdict(recipe).items())
        if same and known["generator_version"] == _GENERATOR_VERSION and known["file_bytes"] == path.stat().st_size:
            return known
    started = time.perf_counter()
    made = make(recipe, folder)
    print(f"{path.name}: {made['packets']:,} packets in {time.perf_counter() - started:.1f} s", file=sys.stderr)
    return made


def main() -> None:
    """Makes what is missing."""
    parser = argparse.ArgumentParser(description="Makes the big captures of the benchmarks that are missing.")
    parser.add_argument("--divisor", type=int, default=1, help="this many times fewer packets")
    parser.add_argument("--into", type=Path, default=DATA, metavar="FOLDER", help="where the captures are kept (default: %(default)s)")
    parser.add_argument(
        "--only", nargs="+", choices=recipes(), metavar="CAPTURE", default=list(recipes()), help=f"of {', '.join(recipes())}"
    )
    options = parser.parse_args()
    for kind, recipe in recipes(options.divisor).items():
        if kind in options.only:
            ensure(recipe, options.into)


if __name__ == "__main__":
    main()
