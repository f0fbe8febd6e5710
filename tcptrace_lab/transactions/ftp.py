"""Parser of an FTP control connection: commands and replies (RFC 959), and the data connection of each transfer (RFC 959, RFC 2428)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tcptrace_lab.transactions.transaction import Transaction, text

if TYPE_CHECKING:
    from tcptrace_lab.transactions.payloads import Piece

MAX_LINE_BYTES = 8_192
"""Length of the longest command or reply line. A longer line is not FTP and is skipped."""

COMMAND = re.compile(rb"([A-Za-z]{3,4})(?: (.*))?\Z", re.DOTALL)
REPLY = re.compile(rb"([1-5]\d\d)([ -])")
GREETING = re.compile(rb"220[ -]")
OPENING = frozenset({"USER", "AUTH", "FEAT", "HOST", "SYST", "OPTS", "CLNT"})
"""First commands of FTP clients (RFC 959, 2228, 2389, 7151; CLNT by convention). None of them starts an SMTP session."""
_PASV = re.compile(rb"(\d{1,3}),(\d{1,3}),(\d{1,3}),(\d{1,3}),(\d{1,3}),(\d{1,3})")
_EPSV = re.compile(rb"\((.)\1\1(\d{1,5})\1\)")
_EPRT = re.compile(rb"(.)[12]\1[^|]{2,64}?\1(\d{1,5})\1")

SECRET = {"PASS", "ACCT", "ADAT"}
TRANSFERS = {"RETR", "STOR", "STOU", "APPE", "LIST", "NLST", "MLSD"}
_PRELIMINARY_END, _SECURED = 200, 234
_PASSIVE, _EXTENDED_PASSIVE = 227, 229
_LARGEST_PORT = 65_535


@dataclass(frozen=True, slots=True)
class Agreed:
    """The endpoint that a control connection announced for a data connection: which side listens, and its port."""

    client_listens: bool
    port: int


class Conversation:
    """Both directions of one control connection.

    Attributes:
        transactions: one per command, in their order.
        agreed: index of a transfer in `transactions` → the endpoint announced for its data connection.
    """

    def __init__(self, conn: int) -> None:
        self._conn = conn
        self.transactions: list[Transaction] = []
        self.agreed: dict[int, Agreed] = {}
        self._lines = {True: _Lines(), False: _Lines()}
        self._open: list[Transaction] = []
        self._next: Agreed | None = None
        self._asked: Agreed | None = None
        self._multiline: bytes | None = None
        self._over = False

    def take(self, piece: Piece) -> None:
        """Process the next bytes of one direction."""
        if self._over:
            return
        lines = self._lines[piece.from_client]
        for line in lines.take(piece):
            if piece.from_client:
                self._command(line, piece, lines)
            else:
                self._reply(line, piece, lines)
        if lines.has_lost:
            lines.has_lost = False
            self._multiline = self._multiline if piece.from_client else None
            for transaction in self._open:
                transaction.state = "bytes_missing"

    def end(self, *, closed: bool) -> None:
        """End the conversation. `closed` has no effect, because FTP replies mark their own end."""
        del closed

    def _command(self, line: bytes, piece: Piece, lines: _Lines) -> None:
        match = COMMAND.match(line)
        if match is None:
            return
        verb, rest = text(match[1]).upper(), match[2] or b""
        transaction = Transaction(self._conn, "ftp", method=verb, target=None if verb in SECRET or not rest else text(rest))
        transaction.request_frame, transaction.request_ts_ns = lines.begun
        transaction.requested_ts_ns, transaction.request_bytes = piece.ts_ns, lines.size
        if verb in TRANSFERS and self._next is not None:
            self.agreed[len(self.transactions)] = self._next
            self._next = None
        if verb in {"PORT", "EPRT"}:
            port = _port_of(_PASV, rest) if verb == "PORT" else _number(_EPRT.search(rest))
            self._asked = None if port is None else Agreed(client_listens=True, port=port)
        self.transactions.append(transaction)
        self._open.append(transaction)

    def _reply(self, line: bytes, piece: Piece, lines: _Lines) -> None:
        match = REPLY.match(line + b" ")
        transaction = self._open[0] if self._open else None
        if transaction is not None:
            if transaction.answer_ts_ns is None:
                transaction.answer_frame, transaction.answer_ts_ns = lines.begun
            transaction.answer_bytes = (transaction.answer_bytes or 0) + lines.size
        if self._multiline is not None:
            if match is None or match[1] != self._multiline or match[2] != b" ":
                return
        elif match is None:
            return
        elif match[2] == b"-":
            self._multiline = match[1]
            return
        self._multiline = None
        if transaction is not None:
            self._replied(transaction, int(match[1]), line, piece)

    def _replied(self, transaction: Transaction, code: int, line: bytes, piece: Piece) -> None:
        transaction.status = code
        if code < _PRELIMINARY_END:
            transaction.state = "unfinished"
            return
        if transaction.state in {"unanswered", "unfinished"}:
            transaction.state = "whole"
        transaction.last_frame, transaction.last_ts_ns = piece.frame, piece.ts_ns
        self._open.pop(0)
        if code == _PASSIVE:
            port = _port_of(_PASV, line)
            self._next = None if port is None else Agreed(client_listens=False, port=port)
        elif code == _EXTENDED_PASSIVE:
            port = _number(_EPSV.search(line))
            self._next = None if port is None else Agreed(client_listens=False, port=port)
        elif transaction.method in {"PORT", "EPRT"} and code < 300:  # noqa: PLR2004  (2xx: the server accepts the port)
            self._next = self._asked
        self._over = code == _SECURED  # TLS follows (RFC 4217)


class _Lines:
    """Splits one direction into lines."""

    def __init__(self) -> None:
        self._data = b""
        self._skipping = False
        self.has_lost = False
        self.begun = (0, 0)
        self.size = 0

    def take(self, piece: Piece) -> list[bytes]:
        """Return the lines that these bytes complete, without line ends. `begun` and `size` describe the last line."""
        lines = []
        if not self._data:
            self.begun = piece.frame, piece.ts_ns
        *ended, rest = (self._data + piece.data).split(b"\n")
        if len(rest) > MAX_LINE_BYTES:
            self._skipping, rest, self.has_lost = True, b"", True
        for line in ended:
            if self._skipping:
                self._skipping = False
                continue
            self.size = len(line) + 1
            lines.append(line.rstrip(b"\r").lstrip(b"\xff\xf4\xf2\xf1"))  # Telnet codes IP and Synch before ABOR (RFC 959, 4.1.3)
        self._data = rest
        if len(piece.data) < piece.size:
            self._data, self._skipping, self.has_lost = b"", True, True
        return lines


def _port_of(pattern: re.Pattern[bytes], words: bytes) -> int | None:
    match = pattern.search(words)
    if match is None:
        return None
    high, low = int(match[5]), int(match[6])
    return high << 8 | low if max(high, low) < 256 and (high or low) else None  # noqa: PLR2004  (two bytes)


def _number(match: re.Match[bytes] | None) -> int | None:
    port = int(match[2]) if match else 0
    return port if 0 < port <= _LARGEST_PORT else None
