"""TCP over ATM: what it costs, and any TCP capture rewritten as one taken on an ATM line.

- `cost`: how many cells a packet takes, and what share of the line is left for data.
- `aal5`: PDUs and cells, byte by byte.
- `source`, `forms`, `records`: what a conversion reads, makes of it, and writes.
- `conversion`: `convert`, from the capture to its other form.
"""

from __future__ import annotations

from tcptrace_lab.capture.atm.aal5 import aal5_pdu, atm_cells, atm_header, crc32
from tcptrace_lab.capture.atm.conversion import Converted, convert
from tcptrace_lab.capture.atm.cost import (
    OC3C_LINE_BPS,
    OC3C_LINE_MBPS,
    TAXI_100_LINE_MBPS,
    cells,
    line_bytes,
    oc3c_payload_bound_mbps,
    payload_bound_mbps,
    payload_share,
)
from tcptrace_lab.capture.atm.forms import AtmForm

__all__ = [
    "OC3C_LINE_BPS",
    "OC3C_LINE_MBPS",
    "TAXI_100_LINE_MBPS",
    "AtmForm",
    "Converted",
    "aal5_pdu",
    "atm_cells",
    "atm_header",
    "cells",
    "convert",
    "crc32",
    "line_bytes",
    "oc3c_payload_bound_mbps",
    "payload_bound_mbps",
    "payload_share",
]
