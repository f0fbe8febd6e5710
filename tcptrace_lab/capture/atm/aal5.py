"""Builds AAL5 PDUs and the ATM cells that carry them, byte by byte (ITU-T I.363.5, I.361)."""

from __future__ import annotations

import struct

from tcptrace_lab.capture.atm.cost import AAL5_TRAILER_BYTES, CELL_PAYLOAD_BYTES, cells

_POLYNOMIAL = 0x04C1_1DB7


def _crc_of_byte(byte: int) -> int:
    crc = byte << 24
    for _ in range(8):
        crc = (crc << 1 ^ _POLYNOMIAL if crc & 0x8000_0000 else crc << 1) & 0xFFFF_FFFF
    return crc


_CRC_TABLE = tuple(_crc_of_byte(byte) for byte in range(256))


def crc32(data: bytes) -> int:
    """Return the CRC-32 of AAL5 (I.363.5, 9.2.1.2): most significant bit first, initial value and final XOR all ones.

    The CRC of the ASCII text "123456789" is FC891918.
    """
    crc = 0xFFFF_FFFF
    for byte in data:
        crc = (crc << 8 & 0xFFFF_FFFF) ^ _CRC_TABLE[crc >> 24 ^ byte]
    return crc ^ 0xFFFF_FFFF


def aal5_pdu(payload: bytes) -> bytes:
    """Return `payload` with padding and trailer, in a multiple of 48 bytes. Raises ValueError above 65,535 bytes of payload."""
    padded = payload.ljust(cells(len(payload)) * CELL_PAYLOAD_BYTES - AAL5_TRAILER_BYTES, b"\0")
    unsigned = padded + struct.pack(">BBH", 0, 0, len(payload))
    return unsigned + struct.pack(">I", crc32(unsigned))


def atm_cells(payload: bytes, vpi: int, vci: int) -> list[bytes]:
    """Return the cells of the AAL5 PDU for `payload`. Each cell has a 4-byte header (no HEC) and 48 bytes of the PDU.

    The lowest bit of the payload type marks the last cell of a PDU (I.361, 2.2.4).

    Raises:
        ValueError: `payload` has more than 65,535 bytes, `vpi` more than 8 bits, or `vci` more than 16 bits.
    """
    pdu = aal5_pdu(payload)
    ends = range(CELL_PAYLOAD_BYTES, len(pdu) + 1, CELL_PAYLOAD_BYTES)
    return [atm_header(vpi, vci, ends_pdu=end == len(pdu)) + pdu[end - CELL_PAYLOAD_BYTES : end] for end in ends]


def atm_header(vpi: int, vci: int, *, ends_pdu: bool) -> bytes:
    """Return the UNI header of a user cell, without the HEC byte. Flow control and loss priority are 0.

    Raises ValueError if VPI or VCI is out of range.
    """
    if not (0 <= vpi < 1 << 8 and 0 <= vci < 1 << 16):
        raise ValueError(f"VPI {vpi} or VCI {vci} is out of range: they have 8 and 16 bits")
    return struct.pack(">I", vpi << 20 | vci << 4 | ends_pdu << 1)
