"""Compares our xplot files with those of tcptrace."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

from tests.support.captures.real_captures import real
from tests.support.peers.golden import GOLDEN

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

HARMLESS = {"same", "held", "one-byte", "open", "repeated", "reset", "syn-window", "closed-window", "zero-rtt"}
"""Reasons for deviations of figures that do not affect the xplot graphs."""


OTHERWISE: Mapping[str, str] = {
    "zeek-zeek__206_example_a.pcap": "Behind a second SYN tcptrace draws the other side's ACK back at the first number.",
    "zeek-zeek__mixed-vlan-mpls.pcap": "tcptrace does not see the first connection, so its names are one further.",
    "zeek-zeek__rdp-proprietary-encryption.pcap": "A resent segment, captured only once, fills a gap: out of order for tcptrace.",
}
"""The captures in which one graph differs, each with the reason."""


def _reasons() -> Mapping[str, set[str]]:
    found: dict[str, set[str]] = {}
    with GOLDEN.open(encoding="utf-8", newline="") as file:
        for capture, reason, _ in csv.reader(file, delimiter="\t"):
            found.setdefault(capture, set()).add(reason)
    return found


def drawn_alike() -> list[Path]:
    """Return the captures in which tcptrace and tcptrace-lab find equal connections and segments."""
    reasons = _reasons()
    return [path for path in real() if path.name in reasons and reasons[path.name] <= HARMLESS]
