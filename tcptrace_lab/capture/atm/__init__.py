"""TCP over ATM: the overhead of ATM cells, and the conversion of a TCP capture to a capture of an ATM link.

- `cost`: cells per packet, and the share of the line rate left for TCP payload.
- `aal5`: AAL5 PDUs and ATM cells, byte by byte.
- `source`: reads the IP packets of a capture.
- `forms`: builds the frames of each output format.
- `records`: writes frames and ERF records to a file.
- `conversion`: converts a TCP capture to a capture of an ATM link.
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
