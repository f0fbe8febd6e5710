"""Texts on link overhead: cells, frames and headers, and the largest share of the line rate that data can reach.

The engine computes the shares, which are columns of `schema.CONNECTIONS`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

NAMES = {"atm": "ATM", "ethernet": "Ethernet"}
"""Link (`schema.LINES`) → its name in texts."""


def name(connection: Mapping[str, Any]) -> str:
    """Return the link of a connection, such as `ATM, VPI 0 VCI 32`; empty if its overhead is unknown."""
    line = NAMES.get(connection["link"] or "", "")
    channel = "" if connection["vci"] is None else f", VPI {connection['vpi']} VCI {connection['vci']}"
    return line + channel


def best(connection: Mapping[str, Any], side: str) -> str:
    """Return `at most 89.9% of the line rate is data: full segments of 9,148 bytes with 48 bytes of headers`; empty if unknown."""
    share, full_bytes = connection[f"{side}_best_payload_share"], connection[f"{side}_full_segment_bytes"]
    if share is None:
        return ""
    header_bytes = connection[f"{side}_header_bytes"]
    stamped = " (TCP timestamps counted)" if connection["client_timestamps"] and connection["server_timestamps"] else ""
    of_line = _of_oc3c(share) if connection["link"] == "atm" else ""
    full = f"full segments of {full_bytes:,} bytes with {header_bytes} of headers{stamped}"
    return f"at most {_percent(share)} of the line rate is data{of_line}: {full}"


def _of_oc3c(share: float) -> str:
    from tcptrace_lab.capture.atm.cost import OC3C_LINE_MBPS  # noqa: PLC0415  (only ATM captures need this package)

    return f" ({share * OC3C_LINE_MBPS:.1f} of OC-3c's {OC3C_LINE_MBPS:.2f} Mb/s)"


def carried(connection: Mapping[str, Any], side: str) -> str:
    """Return the cells of a direction: `12,345 cells, of which 88.7% was data`; empty for links other than ATM."""
    cells, share = connection[f"{side}_cells"], connection[f"{side}_cell_payload_share"]
    if cells is None:
        return ""
    return f"{cells:,} cells" + ("" if share is None else f", of which {_percent(share)} was data")


def sentence(connection: Mapping[str, Any], side: str) -> str:
    """Describe one direction: `ATM, VPI 0 VCI 32: 12,345 cells, of which 88.7% was data; at most …`; empty if the overhead is unknown."""
    known = [words for words in (carried(connection, side), best(connection, side)) if words]
    return f"{name(connection)}: {'; '.join(known)}" if known else ""


def _percent(share: float) -> str:
    return f"{share * 100:.1f}%"
