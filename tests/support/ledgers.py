"""The ledger of a hand-written exchange, and the time that each cause takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from tcptrace_lab import causes, schema
from tcptrace_lab.engine.segments import Tables, read
from tcptrace_lab.findings import cause_findings
from tests.support import packets

if TYPE_CHECKING:
    import os
    from pathlib import Path

    from tcptrace_lab.findings.cause_findings import Advised

NS_PER_MS = 1_000_000


def judged(path: str | os.PathLike[str]) -> Tables:
    """Return the tables of a capture, with causes."""
    return read(path, worth=causes.worth())


def judged_text(tmp_path: Path, text: str) -> Tables:
    """Return the tables of an exchange written as text, with causes."""
    return judged(packets.capture(tmp_path / "exchange.pcap", text))


def advised(found: Tables) -> Advised:
    """Return the findings about the causes in these tables."""
    return cause_findings.findings(found.accounts, found.segments, found.connections, found.details)


def sums(found: Tables, *, from_client: bool) -> dict[str, int]:
    """Return the nanoseconds of each cause that occurs in one direction of the first connection."""
    side = "client" if from_client else "server"
    row = found.accounts.collect().row(0, named=True)
    reported = {cause: row[f"{side}_{cause.replace('-', '_')}_ns"] or 0 for cause in schema.CAUSES}
    return {cause: ns for cause, ns in reported.items() if ns}


def parts(found: Tables, frame: int) -> list[tuple[str, int]]:
    """Return (cause, nanoseconds) for each interval of a wait, in order of time. The wait ends with segment `frame`."""
    own = found.ledger.filter(pl.col("frame_after") == frame).sort("start_ns").collect()
    return [(cause, end - start) for cause, start, end in own.select("cause", "start_ns", "end_ns").iter_rows()]


def lasted(tmp_path: Path, text: str) -> dict[str, float]:
    """Return the milliseconds of each cause in the ledger of the client's direction."""
    return {cause: ns / NS_PER_MS for cause, ns in sums(judged_text(tmp_path, text), from_client=True).items()}


def lasted_of_server(tmp_path: Path, text: str) -> dict[str, float]:
    """Return the milliseconds of each cause in the ledger of the server's direction."""
    return {cause: ns / NS_PER_MS for cause, ns in sums(judged_text(tmp_path, text), from_client=False).items()}
