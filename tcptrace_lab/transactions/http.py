"""Incremental HTTP/1 parser. h11 parses heads and chunked bodies; the bytes of other bodies are only counted.

Each message has its own h11 object, so that an error in one message does not affect the next message. h11 checks heads as servers and
clients do, and limits their size. The parser cannot continue if bytes of a head or of chunks are missing or invalid. It then skips data up
to the next segment of the direction that begins with a request or a response.
"""

from __future__ import annotations

import re
from collections import deque
from typing import TYPE_CHECKING

import h11

from tcptrace_lab.transactions.transaction import Transaction, text

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcptrace_lab.transactions.payloads import Piece

    Handler = Callable[[str, "_Direction"], "_Framing | None"]

MAX_HEAD_BYTES = 1 << 16
"""Maximum size of a head. Servers accept 8 to 64 KiB."""
MAX_UNANSWERED = 10_000
"""Maximum number of requests without a response. No client pipelines that many."""

REQUEST_LINE = re.compile(rb"([A-Z][A-Z0-9!#$%&'*+.^_`|~-]{1,31}) (\S{1,8192}) HTTP/1\.[01]\r?\n")
REQUEST_START = re.compile(rb"[A-Z][A-Z0-9-]{1,31} (?:/|\*|http|[\w.-]+:\d)")
"""Start of a request at the beginning of a segment: a method, and a target in one of the four forms of RFC 9112, 3.2."""
STATUS_LINE = re.compile(rb"HTTP/1\.[01] (\d{3})")
ANSWER_START = re.compile(rb"HTTP/1\.[01] \d{3}")

HEAD_END = re.compile(rb"\r?\n\r?\n")
FRAMING_FIELD = re.compile(rb"(?i)(?:content-length|transfer-encoding):")

_INFORMATIONAL, _SWITCHING, _OK, _REDIRECTION = 100, 101, 200, 300
_BODILESS = {204, 304}
"""Status codes of responses that have no body, whatever their fields say (RFC 9112, 6.3)."""


_ASKED = [("Host", "any"), ("Connection", "upgrade"), ("Upgrade", "any")]
"""Fields of the dummy request that h11 receives before a response. They allow any response, including a protocol upgrade."""


class Conversation:
    """Both directions of one HTTP connection. `transactions` contains its transactions in order of appearance."""

    def __init__(self, conn: int) -> None:
        self._conn = conn
        self.transactions: list[Transaction] = []
        self._awaiting: deque[Transaction] = deque()
        self._requests, self._answers = _Direction(), _Direction()
        self._request: Transaction | None = None
        self._answer: Transaction | None = None
        self._request_body = self._answer_body = 0
        self._over = False

    def take(self, piece: Piece) -> None:
        """Process the next bytes of one direction."""
        if not self._over:
            if piece.from_client:
                self._requests.take(piece, self._on_request, REQUEST_START)
            else:
                self._answers.take(piece, self._on_answer, ANSWER_START)

    def end(self, *, closed: bool) -> None:
        """End the conversation. `closed` is true if the connection ended with a FIN, which completes a response without a length."""
        answer = self._answer
        if answer is not None and answer.state == "unfinished" and closed and self._answers.until_close and not self._over:
            answer.state = "whole"
            answer.last_frame, answer.last_ts_ns = self._answers.frame, self._answers.ts_ns
            answer.answer_bytes, answer.body_bytes = self._answers.message_bytes, max(self._request_body, self._answers.body_bytes)

    def _on_request(self, event: str, direction: _Direction) -> _Framing | None:
        if event == "start":
            self._request = Transaction(self._conn, "http", request_frame=direction.frame, request_ts_ns=direction.ts_ns)
            direction.role, direction.asked_by = h11.SERVER, "GET"
            return None
        request = self._request
        if request is None:
            return None
        if event == "head":
            request.method, request.target = direction.method, direction.target
            self._announce(request)
            return _Framing(length=direction.length, chunked=direction.chunked)
        if event == "end":
            request.requested_ts_ns, request.request_bytes = direction.ts_ns, direction.message_bytes
            request.body_bytes = direction.body_bytes
            self._request = None
        else:
            self._lost_request(request, event, direction)
        return None

    def _lost_request(self, request: Transaction, event: str, direction: _Direction) -> None:
        if request.method is None:
            line = REQUEST_LINE.match(direction.head)
            if line is None and event == "malformed" and not REQUEST_START.match(direction.head):
                self._request = None
                return
            request.method, request.target = (text(line[1]), text(line[2])) if line else (None, None)
            self._announce(request)
        request.state = event
        self._request = None

    def _announce(self, request: Transaction) -> None:
        self.transactions.append(request)
        self._awaiting.append(request)
        if len(self._awaiting) > MAX_UNANSWERED:
            self._awaiting.popleft()

    def _on_answer(self, event: str, direction: _Direction) -> _Framing | None:
        if event == "start":
            if self._answer is None or self._answer.last_frame is not None or self._answer.state in {"bytes_missing", "malformed"}:
                self._answer = self._asked()
                self._answer.answer_frame, self._answer.answer_ts_ns = direction.frame, direction.ts_ns
            direction.role, direction.asked_by = h11.CLIENT, self._answer.method or "GET"
            return None
        answer = self._answer
        if answer is None:
            return None
        if event == "head":
            return self._answer_head(answer, direction)
        if event == "end":
            self._answered(answer, direction)
        else:
            line = STATUS_LINE.match(direction.head)
            answer.status = answer.status or (int(line[1]) if line else None)
            answer.state = event if answer.state in {"unanswered", "unfinished", "request_missing"} else answer.state
            self._answer = None
        return None

    def _asked(self) -> Transaction:
        """Return the oldest request without a response. If there is none, return a new transaction with an unknown request."""
        if self._awaiting:
            return self._awaiting.popleft()
        unknown = Transaction(self._conn, "http", state="request_missing")
        self.transactions.append(unknown)
        return unknown

    def _answer_head(self, answer: Transaction, direction: _Direction) -> _Framing | None:
        status = direction.status
        if _INFORMATIONAL <= status < _OK and status != _SWITCHING:
            return _Framing(length=0, again=True)
        answer.status = status
        if answer.state == "unanswered":
            answer.state = "unfinished"
        connected = answer.method == "CONNECT" and _OK <= status < _REDIRECTION
        if connected or status == _SWITCHING:
            self._over = True  # the bytes after this point belong to another protocol
            return _Framing(length=0)
        if answer.method == "HEAD" or status in _BODILESS:
            return _Framing(length=0)
        return _Framing(length=direction.length, chunked=direction.chunked, until_close=direction.length is None and not direction.chunked)

    def _answered(self, answer: Transaction, direction: _Direction) -> None:
        answer.last_frame, answer.last_ts_ns = direction.frame, direction.ts_ns
        answer.answer_bytes = direction.message_bytes
        if answer.state != "bytes_missing":
            answer.body_bytes = max(answer.body_bytes or 0, direction.body_bytes)
        if answer.state == "unfinished":
            answer.state = "whole"
        self._answer = None


class _Framing:
    """How the parser finds the end of a message body."""

    __slots__ = ("again", "chunked", "length", "until_close")

    def __init__(self, *, length: int | None, chunked: bool = False, until_close: bool = False, again: bool = False) -> None:
        self.length = length
        self.chunked = chunked
        self.until_close = until_close
        self.again = again


class _Direction:
    """Parses the messages of one direction in sequence.

    `handle` is called with `start`, `head` and `end`. For a message that ends early, `handle` is called with `bytes_missing` or
    `malformed`.
    """

    def __init__(self) -> None:
        self.parser: h11.Connection | None = None
        self.frame, self.ts_ns = 0, 0
        self.role: object = h11.SERVER
        self.asked_by = "GET"
        self.head = b""
        self.message_bytes = self.body_bytes = 0
        self.method: str | None = None
        self.target: str | None = None
        self.status = 0
        self.length: int | None = None
        self.chunked = self.until_close = False
        self._left = 0
        self._is_open = False
        self._in_body = False
        self._lost = True  # data is skipped until a segment begins a message

    def take(self, piece: Piece, handle: Handler, begins: re.Pattern[bytes]) -> None:
        """Process the next bytes."""
        self.frame, self.ts_ns = piece.frame, max(piece.ts_ns, self.ts_ns)
        data, missing = piece.data, piece.size - len(piece.data)
        while data:
            if self._lost:
                if not begins.match(data):
                    break
                self._lost = False
            data = self._some(data, handle)
        if missing:
            self._miss(missing, handle)

    def _some(self, data: bytes, handle: Handler) -> bytes:
        """Process bytes of one part of a message; return the remaining bytes."""
        if not self._is_open:
            data = data.lstrip(b"\r\n")  # empty lines before a message are ignored (RFC 9112, 2.2)
            if not data:
                return b""
            self._open(handle)
        if self._in_body and not self.chunked:
            taken = len(data) if self.until_close else min(self._left, len(data))
            self._count(taken, handle)
            return data[taken:]
        return self._read_chunks(data, handle) if self._in_body else self._read_head(data, handle)

    def _open(self, handle: Handler) -> None:
        self._is_open, self._in_body = True, False
        self.head, self.message_bytes, self.body_bytes = b"", 0, 0
        self.until_close = self.chunked = False
        handle("start", self)

    def _count(self, taken: int, handle: Handler) -> None:
        self.message_bytes += taken
        self.body_bytes += taken
        if not self.until_close:
            self._left -= taken
            if self._left == 0:
                self._close(handle)

    def _close(self, handle: Handler) -> None:
        self._is_open = self._in_body = False
        self.parser = None
        handle("end", self)

    def _miss(self, count: int, handle: Handler) -> None:
        """Process bytes that were not captured. In a body without chunks, they are counted. Elsewhere, the parser cannot continue."""
        if self._is_open and self._in_body and not self.chunked and (self.until_close or count <= self._left):
            self._count(count, handle)
        else:
            self._lose("bytes_missing", handle)

    def _lose(self, why: str, handle: Handler) -> None:
        if self._is_open:
            handle(why, self)
        self._is_open, self._in_body, self._lost, self.parser = False, False, True, None

    def _read_head(self, data: bytes, handle: Handler) -> bytes:
        """Process bytes of a head; return the bytes after it."""
        self.head += data
        end = HEAD_END.search(self.head)
        if end is None:
            if len(self.head) > MAX_HEAD_BYTES:
                self._lose("malformed", handle)
            return b""
        self.head, rest = self.head[: end.end()], self.head[end.end() :]
        event = self._parse_head(self.head) or self._parse_head(_needed(self.head, self.role))
        if event is None:
            self._lose("malformed", handle)
            return b""
        self.message_bytes = len(self.head)
        self._begin_body(event, handle)
        return rest

    def _parse_head(self, head: bytes) -> h11.Request | h11.Response | h11.InformationalResponse | None:
        """Parse a head with h11; return None if h11 rejects it. After success, `parser` is ready for the body."""
        self.parser = h11.Connection(h11.CLIENT if self.role is h11.CLIENT else h11.SERVER, max_incomplete_event_size=MAX_HEAD_BYTES)
        if self.role is h11.CLIENT:
            method = self.asked_by if self.asked_by in {"HEAD", "CONNECT"} else "GET"
            self.parser.send(h11.Request(method=method, target="/", headers=_ASKED))
            self.parser.send(h11.EndOfMessage())
        try:
            self.parser.receive_data(head)
            event = self.parser.next_event()
        except h11.RemoteProtocolError:
            return None
        return event if isinstance(event, (h11.Request, h11.Response, h11.InformationalResponse)) else None

    def _begin_body(self, event: h11.Request | h11.Response | h11.InformationalResponse, handle: Handler) -> None:
        """Determine from a head how the body ends."""
        if isinstance(event, h11.Request):
            self.method, self.target = text(event.method), text(event.target)
        else:
            self.status = event.status_code
        fields = {bytes(name): bytes(value) for name, value in event.headers}
        self.chunked = b"transfer-encoding" in fields  # h11 accepts only the coding "chunked"
        length = fields.get(b"content-length")
        self.length = None if length is None or self.chunked else int(length)
        if isinstance(event, h11.Request) and self.length is None and not self.chunked:
            self.length = 0
        framing = handle("head", self) or _Framing(length=0)
        self.chunked, self.until_close = framing.chunked and framing.length is None, framing.until_close
        self._is_open, self._in_body = not framing.again, not framing.again
        self._left = framing.length or 0
        if self._in_body and not self.chunked and not self.until_close and self._left == 0:
            self._close(handle)

    def _read_chunks(self, data: bytes, handle: Handler) -> bytes:
        """Process bytes of a chunked body; return the bytes after it."""
        assert self.parser is not None  # noqa: S101  (its head was read)
        self.message_bytes += len(data)
        try:
            self.parser.receive_data(data)
            while (event := self.parser.next_event()) is not h11.NEED_DATA:
                if isinstance(event, h11.Data):
                    self.body_bytes += len(event.data)
                elif isinstance(event, h11.EndOfMessage):
                    rest = bytes(self.parser.trailing_data[0])
                    self.message_bytes -= len(rest)
                    self._close(handle)
                    return rest
        except h11.RemoteProtocolError:
            self._lose("malformed", handle)
        return b""


def _needed(head: bytes, role: object) -> bytes:
    """Return the fields of a head that show where the message ends, for a head that h11 rejects (spaces in field names, no Host)."""
    first, *lines = head.split(b"\n")
    fields = [line for line in lines if FRAMING_FIELD.match(line)]
    host = [b"Host: any\r"] if role is h11.SERVER else []
    return b"\n".join([first, *host, *fields, b"\r", b""])
