"""What the ledger says of an exchange that is written by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import packets

from tcptrace_lab import ledger
from tcptrace_lab.segments import read

if TYPE_CHECKING:
    from pathlib import Path

NS_PER_MS = 1_000_000


def lasted(tmp_path: Path, text: str) -> dict[str, float]:
    """Milliseconds that the ledger of the client's direction gives to each cause."""
    found = read(packets.capture(tmp_path / "exchange.pcap", text))
    own = ledger.by_cause(ledger.sums(found.segments, found.connections)).filter("from_client")
    return {cause: ns / NS_PER_MS for cause, ns in own.select("cause", "ns").iter_rows()}
