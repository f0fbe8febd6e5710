"""The overhead of ATM cells is compared with calculations by hand."""

from __future__ import annotations

import pytest

from tcptrace_lab.capture import atm


@pytest.mark.parametrize(
    ("pdu_bytes", "cells"),
    [(0, 1), (40, 1), (41, 2), (48, 2), (88, 2), (89, 3), (1508, 32), (9188 + 8, 192), (9180 + 8, 192), (65_535, 1366)],
)
def test_a_pdu_takes_as_many_cells_as_payload_and_trailer_fill(pdu_bytes: int, cells: int) -> None:
    assert atm.cells(pdu_bytes) == cells
    assert atm.line_bytes(pdu_bytes) == cells * 53


def test_share_of_the_line_for_an_mss_of_9148() -> None:
    """A PDU has 9148 (MSS) + 40 (headers) + 8 (LLC/SNAP) + 8 (AAL5 trailer) = 9204 bytes.

    It takes 192 cells, or 10,176 bytes on the line.
    """
    assert atm.payload_share(9148, 40) == 9148 / 10_176
    assert round(atm.payload_share(9148, 40), 4) == 0.8990
    assert round(atm.oc3c_payload_bound_mbps(9148, 40), 1) == 134.6
    assert round(atm.payload_bound_mbps(atm.TAXI_100_LINE_MBPS, 9148, 40), 1) == 89.9


def test_llc_costs_a_cell_where_it_does_not_fit() -> None:
    """An ACK of 40 bytes and the AAL5 trailer fill one cell. With LLC/SNAP, the ACK takes two cells."""
    assert (atm.cells(40), atm.cells(48)) == (1, 2)
    assert atm.payload_share(0, 40) == 0
    assert atm.payload_share(8, 32, llc=False) == 8 / 53
    assert atm.payload_share(8, 32) == 8 / 106


def test_cells_carry_48_of_53_bytes_of_the_line() -> None:
    """A line of 149.76 Mb/s carries 135.63 Mb/s of cell payload. No segment size gives a higher throughput."""
    assert round(atm.OC3C_LINE_MBPS * 48 / 53, 2) == 135.63
    assert all(atm.oc3c_payload_bound_mbps(mss_bytes, 40) < 135.64 for mss_bytes in range(1, 65_488, 97))


@pytest.mark.parametrize("pdu_bytes", [-1, 65_536])
def test_no_pdu_is_negative_or_longer_than_its_length_field_shows(pdu_bytes: int) -> None:
    with pytest.raises(ValueError, match="an AAL5 PDU holds 0 to 65535 bytes"):
        atm.cells(pdu_bytes)


def test_no_size_is_negative() -> None:
    with pytest.raises(ValueError, match="negative"):
        atm.payload_share(-1, 40)
