"""What the line leaves for data, in words: cells, frames and headers of a connection, and the bound that they set.

The shares are columns of `schema.CONNECTIONS`; the engine reckons them. Here they become sentences, for the report and the terminal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

NAMES = {"atm": "ATM", "ethernet": "Ethernet"}
"""`schema.LINES` in words."""


def name(connection: Mapping[str, Any]) -> str:
    """The line of a row of `schema.CONNECTIONS`: `ATM, VPI 0 VCI 32`; empty where its cost is not known."""
    line = NAMES.get(connection["line"] or "", "")
    channel = "" if connection["vci"] is None else f", VPI {connection['vpi']} VCI {connection['vci']}"
    return line + channel


def best(connection: Mapping[str, Any], side: str) -> str:
    """`at most 89.9% of the line rate is data: full segments of 9,148 bytes with 48 bytes of headers`; empty if not known."""
    share, full_bytes = connection[f"{side}_best_payload_share"], connection[f"{side}_full_segment_bytes"]
    if share is None:
        return ""
    header_bytes = connection[f"{side}_header_bytes"]
    stamped = " (TCP timestamps counted)" if connection["client_timestamps"] and connection["server_timestamps"] else ""
    of_line = _of_oc3c(share) if connection["line"] == "atm" else ""
    full = f"full segments of {full_bytes:,} bytes with {header_bytes} of headers{stamped}"
    return f"at most {_percent(share)} of the line rate is data{of_line}: {full}"


def _of_oc3c(share: float) -> str:
    from tcptrace_lab.atm.cost import OC3C_LINE_MBPS  # noqa: PLC0415  (a package that only captures of ATM need)

    return f" ({share * OC3C_LINE_MBPS:.1f} of OC-3c's {OC3C_LINE_MBPS:.2f} Mb/s)"


def carried(connection: Mapping[str, Any], side: str) -> str:
    """`12,345 cells, of which 88.7% was data`; empty off ATM."""
    cells, share = connection[f"{side}_cells"], connection[f"{side}_cell_payload_share"]
    if cells is None:
        return ""
    return f"{cells:,} cells" + ("" if share is None else f", of which {_percent(share)} was data")


def sentence(connection: Mapping[str, Any], side: str) -> str:
    """All of it about one direction: `ATM, VPI 0 VCI 32: 12,345 cells, of which 88.7% was data; at most …`; empty if nothing is known."""
    known = [words for words in (carried(connection, side), best(connection, side)) if words]
    return f"{name(connection)}: {'; '.join(known)}" if known else ""


def _percent(share: float) -> str:
    return f"{share * 100:.1f}%"
