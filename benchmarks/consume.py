"""The segments table of a capture, produced and consumed: `python benchmarks/consume.py frames|drain CAPTURE`.

`frames` takes it as Polars frames of about a million rows, one at a time, as a program in Python would; `drain` has the
engine build the same Arrow batches and drops them inside, so that what is left is the engine alone.
"""

from __future__ import annotations

import sys
from typing import Final

from tcptrace_lab._core import Engine

_ROWS_AT_ONCE: Final = 1_000_000


def frames(engine: Engine) -> int:
    """Takes all segments as Polars frames; returns their number."""
    import polars as pl  # noqa: PLC0415  (`drain` does without, and its start is measured)

    total = 0
    while rows := len(pl.DataFrame(engine.segments(_ROWS_AT_ONCE))):
        total += rows
    return total


def main() -> None:
    """Consumes one capture and says how much there was."""
    how, path = sys.argv[1:]
    engine = Engine([path])
    rows = engine.drain() if how == "drain" else frames(engine)
    print(f"{rows} segments, {engine.info()['connections']} connections")


if __name__ == "__main__":
    main()
