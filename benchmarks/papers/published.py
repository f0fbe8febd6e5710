"""What the studies published, from `data/`."""

from __future__ import annotations

import csv
from pathlib import Path

DATA = Path(__file__).parent / "data"

KIB = 1024
MEBIBIT = 1 << 20
"""Comer & Lin's and Law's Mb/s."""

MEGABIT = 1_000_000
"""Abrams & Chen's Mb/s."""

LARGEST_BUFFER_BYTES = 52_428
"""What SunOS 4.1 allows, and the tables call 51K."""


def buffer_bytes(kib: int) -> int:
    """A buffer of Comer & Lin's tables."""
    return LARGEST_BUFFER_BYTES if kib == LARGEST_BUFFER_BYTES // KIB else kib * KIB


def comer_lin(*, no_delay: bool) -> dict[tuple[int, int], float]:
    """Send and receive buffer (KiB) → Mb/s (2^20): Table 2 and, with TCP_NODELAY, Table 3 of Liu et al."""
    name = "comer_lin_nodelay_mbps.csv" if no_delay else "comer_lin_nagle_mbps.csv"
    with (DATA / name).open(newline="") as file:
        rows = list(csv.DictReader(file))
    found = {}
    for row in rows:
        send = int(row.pop("send_kib"))
        for column, value in row.items():
            found[send, int(column.split("_")[1])] = float(value)
    return found


def mosher_calls() -> dict[str, dict[int, int]]:
    """Routine of TCP → bytes of a write → calls in 10,000 writes (Table 3)."""
    with (DATA / "mosher_calls_per_10000_sends.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["protocol"] == "tcp"]
    return {row["routine"]: {int(name[1:]): int(value) for name, value in row.items() if name[1:].isdigit()} for row in rows}
