"""Converts a TCP capture to a capture of an ATM link.

For output forms that record each cell, `convert` can leave out cells to simulate cell loss.

Cells are timed at the rate of OC-3c, 149.76 Mb/s. If a packet follows the previous packet too soon for this rate, its first cells get the
time of the previous packet. On a real link, these cells would come later.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tcptrace_lab.capture.atm.aal5 import atm_cells
from tcptrace_lab.capture.atm.cost import CELL_BYTES, OC3C_LINE_BPS
from tcptrace_lab.capture.atm.forms import ERF_TYPE_ATM, AtmForm, layout, routed
from tcptrace_lab.capture.atm.records import erf_record, writer
from tcptrace_lab.capture.atm.source import frames, header_bytes, ip_packet
from tcptrace_lab.errors import CaptureUnreadable, UsageError, place
from tcptrace_lab.text.numbers import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from pathlib import Path
    from typing import BinaryIO

    from tcptrace_lab.capture.atm.source import Frame


@dataclass(frozen=True, slots=True)
class Converted:
    """The result of `convert`.

    Attributes:
        packets: IP packets written.
        skipped: frames without an IP packet, which are left out.
        padded: packets that snaplen had truncated and that were padded with zeros.
        cells: cells on the link, including the cells that were left out as lost; None for forms without cells.
    """

    packets: int
    skipped: int
    padded: int
    cells: int | None


def convert(
    source: Path,
    target: Path,
    form: str,
    *,
    vpi: int = 0,
    vci: int = 32,
    lose_cells: Collection[int] = (),
    pad_cut: bool = True,
) -> Converted:
    """Write the IP packets of the capture `source` to `target`, as a capture of `form`. Times keep nanosecond resolution.

    Args:
        source: uncompressed pcap or pcapng file; link types Ethernet (with VLAN tags), NULL, LOOP, RAW, IPV4, IPV6, SLL, SLL2. Frames
            without an IP packet are left out.
        target: output file: pcap with nanosecond timestamps, or ERF records.
        form: an `AtmForm` or its value.
        vpi: virtual path identifier of both directions, 0 to 255; ignored by forms without ATM headers.
        vci: virtual channel identifier of both directions, 0 to 65,535; ignored by forms without ATM headers.
        lose_cells: indices of the cells to leave out, as if they were lost. The first cell of the file has index 0. Only for forms with
            cells.
        pad_cut: if True, zeros are added to each packet that snaplen truncated, up to the length in its IP header. All lengths and the
            number of cells are then correct, but checksums are wrong. If False, a truncated packet is an error.

    Raises:
        UsageError: the form, a link type, the VPI, the VCI or a cell index is invalid; the form cannot represent a packet or its time; a
            truncated packet must not be padded (`pad_cut`), or lacks a part of its headers.
        CaptureUnreadable: `source` is neither pcap nor pcapng (NotACapture), is damaged, or ends within a record.
        OSError: a file cannot be opened, read or written. After an error while converting, `target` is removed.
    """
    kind = _form(form)
    if lose_cells and not kind.is_cells:
        raise UsageError(f"the form {kind} has no cells to lose", remedy=f"use {AtmForm.ERF_CELLS} or {AtmForm.ERF_FILE_CELLS}")
    if target.exists() and target.samefile(source):
        raise UsageError("source and target are one file", where=str(target))
    conversion = _Conversion(str(source), kind, (vpi, vci), frozenset(lose_cells), pad_cut=pad_cut)
    with source.open("rb") as reading, target.open("wb") as writing:
        try:
            return conversion.run(reading, writer(kind, writing))
        except BaseException:
            target.unlink()
            raise


def _form(form: str) -> AtmForm:
    try:
        return AtmForm(form)
    except ValueError:
        raise UsageError(f"there is no form {form!r}", remedy="use one of " + ", ".join(AtmForm)) from None


class _Conversion:
    """One run of `convert`. A ValueError about a packet becomes a UsageError with the frame number."""

    def __init__(self, source: str, form: AtmForm, channel: tuple[int, int], lost: frozenset[int], *, pad_cut: bool) -> None:
        self._source = source
        self._form = form
        self._layout = layout(form)
        self._channel = channel
        self._lost = lost
        self._pad_cut = pad_cut
        self._frame = self._packets = self._skipped = self._padded = self._cells = 0
        self._last_ns: int | None = None

    def run(self, reading: BinaryIO, write: Callable[[int, bytes], None]) -> Converted:
        try:
            for frame in frames(reading):
                self._frame += 1
                packet = self._packet(frame)
                if packet is None:
                    self._skipped += 1
                    continue
                self._packets += 1
                for ts_ns, record in self._records(frame.ts_ns, packet):
                    write(ts_ns, record)
        except ValueError as error:
            raise UsageError(str(error), where=place(self._source, self._frame, None)) from error
        except CaptureUnreadable as error:
            error.where = self._source
            raise
        if any(not 0 <= index < self._cells for index in self._lost):
            raise UsageError(f"a cell to lose does not exist: the capture has cells 0 to {self._cells - 1}", where=self._source)
        return Converted(self._packets, self._skipped, self._padded, self._cells if self._form.is_cells else None)

    def _packet(self, frame: Frame) -> bytes | None:
        """Return the IP packet in `frame`, padded to its length on the wire; None if the frame has no IP packet."""
        found = ip_packet(frame)
        if found is None:
            return None
        packet, wire_bytes = found
        if len(packet) < wire_bytes:
            if not self._pad_cut:
                raise ValueError(f"the snap length cut {wire_bytes - len(packet)} bytes off the packet, and padding is not allowed")
            if len(packet) < header_bytes(packet):
                raise ValueError("the snap length cut the packet's headers, and padding cannot replace them")
            self._padded += 1
        return packet.ljust(wire_bytes, b"\0")

    def _records(self, ts_ns: int, packet: bytes) -> Iterator[tuple[int, bytes]]:
        """Yield the frames or ERF records of a packet, with their times."""
        if self._form.is_cells:
            yield from self._cell_records(ts_ns, packet)
            return
        body = self._layout.body(packet, *self._channel)
        yield ts_ns, body if self._layout.erf_type is None else erf_record(ts_ns, self._layout.erf_type, body)

    def _cell_records(self, ts_ns: int, packet: bytes) -> Iterator[tuple[int, bytes]]:
        """Yield the cell records of a packet, in time order.

        The last cell of the PDU has the packet's time. The other cells precede the last cell back to back, at OC-3c's rate. No cell is
        earlier than the previous packet, whatever the direction of that packet: both directions use one channel, so the cells of two PDUs
        are never interleaved.
        """
        pdu_cells = atm_cells(routed(packet), *self._channel)
        for behind, cell in zip(range(len(pdu_cells) - 1, -1, -1), pdu_cells, strict=True):
            index = self._cells
            self._cells += 1
            if index not in self._lost:
                cell_ts_ns = ts_ns - behind * CELL_BYTES * 8 * NS_PER_S // OC3C_LINE_BPS
                if self._last_ns is not None:
                    cell_ts_ns = max(cell_ts_ns, min(self._last_ns, ts_ns))
                yield cell_ts_ns, erf_record(cell_ts_ns, ERF_TYPE_ATM, cell)
        self._last_ns = ts_ns
