"""The values that the studies published, read from `data/`."""

from __future__ import annotations

import csv
from pathlib import Path

DATA = Path(__file__).parent / "data"

KIB = 1024
MEBIBIT = 1 << 20
"""The unit of Mb/s in Comer & Lin's and Law's papers, in bits."""

MEGABIT = 1_000_000
"""The unit of Mb/s in Abrams & Chen's paper, in bits."""

LARGEST_BUFFER_BYTES = 52_428
"""The largest buffer that SunOS 4.1 allows. The tables call it 51K."""


def buffer_bytes(kib: int) -> int:
    """Return the size in bytes of a buffer in Comer & Lin's tables."""
    return LARGEST_BUFFER_BYTES if kib == LARGEST_BUFFER_BYTES // KIB else kib * KIB


def comer_lin(*, no_delay: bool) -> dict[tuple[int, int], float]:
    """Return Table 2, or with TCP_NODELAY Table 3 of Liu et al.

    The key is the send and the receive buffer (KiB), and the value is the rate in Mb/s of 2^20 bits.
    """
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
    """Return the calls in 10,000 writes (Table 3), by routine of TCP and by bytes per write."""
    with (DATA / "mosher_calls_per_10000_sends.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["protocol"] == "tcp"]
    return {row["routine"]: {int(name[1:]): int(value) for name, value in row.items() if name[1:].isdigit()} for row in rows}
