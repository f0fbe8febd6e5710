"""The real captures whose analysis is compared with other programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support import needs
from tests.support.places import CAPTURES

if TYPE_CHECKING:
    from pathlib import Path

REFUSED = {"seladb-PcapPlusPlus__solaris.snoop"}
"""Captures of a format that the engine refuses, but tshark reads."""


REFUSED_BY_TSHARK = {"the-tcpdump-group-tcpdump__brcm-tag.pcap", "the-tcpdump-group-tcpdump__dsa.pcap"}
"""Captures of a link type that tshark 4.0 refuses."""


def real() -> list[Path]:
    """Return the paths of the captures that are compared with other programs."""
    shared = [name for name in needs.index() if not name.startswith("malformed/")]
    own = sorted(path for path in CAPTURES.glob("*") if path.suffix in {".pcap", ".pcapng", ".gz", ".zst"})
    return [needs.SHARED / name for name in shared if name not in REFUSED | REFUSED_BY_TSHARK] + own
