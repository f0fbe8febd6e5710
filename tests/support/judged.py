"""Analyzes a capture with one connection, and returns its row of `schema.CONNECTIONS` with all conclusions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import tcptrace_lab
from tests.support import packets
from tests.support.places import CAPTURES

if TYPE_CHECKING:
    from pathlib import Path


def judged(path: Path) -> dict[str, Any]:
    """Return the row of the only connection of the capture `path`."""
    tables = tcptrace_lab.read(path)
    (row,) = tables.connections.collect().to_dicts()
    found: dict[str, Any] = row
    return found


def judged_text(folder: Path, text: str) -> dict[str, Any]:
    """Return the row of the only connection of the exchange `text` (grammar of `packets`)."""
    return judged(packets.capture(folder / "exchange.pcap", text))


def scenarios() -> dict[str, dict[str, Any]]:
    """Map the name of each committed capture to the settings with which it was made."""
    return {path.stem: json.loads(path.read_text()) for path in sorted(CAPTURES.glob("*.json"))}


def scenario(name: str) -> dict[str, Any]:
    """Return the row of the only connection of the committed capture `name`."""
    return judged(CAPTURES / scenarios()[name]["file"])
