"""Makes the big captures of the benchmarks that are missing in `benchmarks/data/`: `python benchmarks/traffic/make_captures.py`.

Beside each capture, a `.json` has the contents of the capture, counted while the capture was written.
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
"""This number is raised when a recipe gives other bytes, so that stale captures are made again."""
_SEED: Final = 1
_PACKETS_PER_LANE: Final = 25_000
_MIN_LANES: Final = 8
_CONNECTIONS_PER_LANE: Final = 16
"""Approximate number of connections in one lane of the mixed capture."""
_MAX_BULK_LANES: Final = 40
_BULK_SEGMENTS: Final = 5000
"""Median number of segments per connection in the full-size capture. They carry 7 MB."""
_RECORDS_PER_WRITE: Final = {True: 50_000, False: 10_000}
"""Number of segments that are converted to bytes at once, in truncated captures and in others. They take about 10 MB."""


@dataclass(frozen=True)
class Recipe:
    """A description of one capture.

    Attributes:
        name: file name without suffix. The kind of traffic comes before the first dash.
        packets: number of packets. The capture ends while traffic continues, as real captures do.
        snaplen: number of bytes that are kept of each frame.
        nanoseconds: whether timestamps have nanoseconds.
    """

    name: str
    packets: int
    snaplen: int
    nanoseconds: bool = False

    def path(self, folder: Path) -> Path:
        """Return the path at which the capture is or will be."""
        return folder / f"{self.name}.pcap"

    def traffic(self) -> Iterator[Rows]:
        """Yield the segments in slabs. There can be more than `packets`."""
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
    """Return the captures of the benchmark by kind, with the number of packets divided by `divisor`."""
    suffix = "" if divisor == 1 else f"-{divisor}th"
    return {
        "mixed": Recipe(f"mixed-96{suffix}", 10_000_000 // divisor, 96),
        "full": Recipe(f"full{suffix}", 1_500_000 // divisor, UNCUT_SNAPLEN),
        "single": Recipe(f"single-96{suffix}", 3_000_000 // divisor, 96),
        "short": Recipe(f"short-96{suffix}", 10_000_000 // divisor, 96),
    }


def make(recipe: Recipe, folder: Path) -> dict[str, object]:
    """Write the capture and its `.json`. Return the contents of the `.json`.

    The file gets its name only when it is complete. So an interrupted run leaves nothing that looks complete.
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
    """Return the contents of the capture's `.json`. Make the capture if it is missing or comes from another recipe."""
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
    """Make the captures that are missing."""
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
