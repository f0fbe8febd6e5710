"""Labels that say what a connection was for, such as `HTTP GET example.org/`, `TLS example.org` or `SSH OpenSSH_9.2`.

A label is made from the first data of both directions. The bytes can be hostile, so at most `MAX_BYTES` of each direction are read, and
lengths in them are checked. A label is printable and has at most `MAX_LABEL` characters.
"""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING

import polars as pl

from tcptrace_lab.capture.frames import readable
from tcptrace_lab.text.escape import printable
from tcptrace_lab.transactions.payloads import first_data, pieces

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

MAX_CONNECTIONS = 50
"""Maximum number of connections that get a label. Connections with findings come first, then the largest ones."""

MAX_FRAMES = 100_000
"""Data after this frame is not read for labels. Reading this many frames takes about 0.1 s."""

MAX_UNPACKED_BYTES = 1 << 25
"""Largest compressed file that is decompressed again for labels."""

MAX_BYTES, MAX_LABEL = 1_024, 80

_REQUEST = re.compile(rb"([A-Z][A-Z-]{2,19}) (\S{1,256}) (HTTP|RTSP|SIP)/\d\.\d", re.ASCII)
_HOST = re.compile(rb"\r?\nHost:[ \t]*([^\s]{1,100})", re.IGNORECASE | re.ASCII)
_SSH = re.compile(rb"SSH-\d\.\d+-([^\r\n]{1,40})")
_REDIS = re.compile(rb"\*\d{1,4}\r\n\$\d{1,4}\r\n([A-Za-z]{1,20})\r\n")
_GREETING = re.compile(rb"220[ -]([^\r\n]{0,60})")
_PORT_WORDS = {
    b"+OK": "POP3",
    b"* OK": "IMAP",
    b"RFB ": "VNC",
    b"\x13BitTorrent protocol": "BitTorrent",
    b"@RSYNCD:": "rsync",
    b"AMQP": "AMQP",
}
"""First bytes of a server or a client → name of the protocol."""

_HANDSHAKE, _CLIENT_HELLO, _SERVER_NAME = 22, 1, 0
_POSTGRES_V3, _POSTGRES_SSL = 196_608, 80_877_103
_MYSQL_V10 = 10


def found(names: Sequence[str], segments: pl.LazyFrame, connections: pl.LazyFrame, wanted: Sequence[int]) -> dict[int, str]:
    """Return the label of each connection that has one.

    Args:
        names: the files of the capture; they are read again up to the first data of these connections.
        segments: rows of `schema.SEGMENTS`.
        connections: rows of `schema.CONNECTIONS`.
        wanted: connections that people look at first. The largest other connections follow, up to `MAX_CONNECTIONS` in all.
    """
    size = pl.col("client_payload_bytes") + pl.col("server_payload_bytes")
    rows = connections.filter(size > 0).select("conn", "client_port", "server_port", size=size).collect()
    if rows.is_empty():
        return {}
    if rows.height > MAX_CONNECTIONS:  # the query takes half a millisecond, so it is skipped if it would change nothing
        named = pl.col("conn").is_in(list(wanted)[:MAX_CONNECTIONS])
        rows = rows.top_k(MAX_CONNECTIONS, by=[named, "size", "conn"], reverse=[False, False, True])
    ports = {conn: (client, server) for conn, client, server in rows[["conn", "client_port", "server_port"]].iter_rows()}
    begins: dict[int, dict[bool, bytes]] = {}
    with readable(names, MAX_UNPACKED_BYTES) as paths:
        if paths is None:
            return {}
        for piece in pieces(paths, first_data(segments, list(ports), MAX_FRAMES), ports):
            begins.setdefault(piece.conn, {}).setdefault(piece.from_client, piece.data[:MAX_BYTES])
    labels = {conn: label(both.get(True, b""), both.get(False, b"")) for conn, both in begins.items()}
    return {conn: words for conn, words in labels.items() if words is not None}


def label(client: bytes, server: bytes) -> str | None:
    """Return what a connection was for, judged by the first bytes of both directions; None if unknown."""
    for rule in _RULES:
        if words := rule(client[:MAX_BYTES], server[:MAX_BYTES]):
            shown = printable(words)
            return shown if len(shown) <= MAX_LABEL else f"{shown[: MAX_LABEL - 1]}…"
    return None


def _text(data: bytes) -> str:
    return data.decode(errors="replace").strip()


def _http(client: bytes, _server: bytes) -> str:
    if client.startswith(b"PRI * HTTP/2.0"):
        return "HTTP/2"
    request = _REQUEST.match(client)
    if request is None:
        return ""
    method, target, protocol = (_text(part) for part in request.groups())
    host = _HOST.search(client)
    return f"{protocol} {method} {_text(host[1]) if host and target.startswith('/') else ''}{target}"


def _tls(client: bytes, _server: bytes) -> str:
    """Return the server name of a ClientHello (RFC 8446, 4.1.2; RFC 6066, 3)."""
    if len(client) < 6 or client[0] != _HANDSHAKE or client[1] != 3 or client[5] != _CLIENT_HELLO:  # noqa: PLR2004  (record header; version 3.x)
        return ""
    at = 5 + 4 + 2 + 32  # lengths of record header, handshake header, version and random
    for length_bytes in (1, 2, 1):  # width of the length fields of session, cipher suites and compression methods
        at += length_bytes + int.from_bytes(client[at : at + length_bytes], "big")
    at += 2
    while at + 4 <= len(client):
        kind, size = struct.unpack_from("!HH", client, at)
        body = client[at + 4 : at + 4 + size]
        if kind == _SERVER_NAME:
            name = body[5 : 5 + int.from_bytes(body[3:5], "big")]
            return f"TLS {_text(name)}" if name else "TLS"
        at += 4 + size
    return "TLS"


def _ssh(client: bytes, server: bytes) -> str:
    banner = _SSH.match(server) or _SSH.match(client)
    return f"SSH {_text(banner[1])}" if banner else ""


def _mail_or_ftp(client: bytes, server: bytes) -> str:
    greeting = _GREETING.match(server)
    if greeting is None:
        return ""
    if client[:4].upper() in {b"EHLO", b"HELO"} or b"SMTP" in greeting[1].upper():
        return f"SMTP {_text(greeting[1])}"
    return f"FTP {_text(greeting[1])}" if client[:4].upper() in {b"USER", b"AUTH", b"FEAT"} or b"FTP" in greeting[1].upper() else ""


def _redis(client: bytes, _server: bytes) -> str:
    command = _REDIS.match(client)
    return f"redis {_text(command[1]).upper()}" if command else ""


def _postgres(client: bytes, _server: bytes) -> str:
    """Return the label of a PostgreSQL startup packet (PostgreSQL's documentation, message formats)."""
    code = int.from_bytes(client[4:8], "big")
    if len(client) < 8 or int.from_bytes(client[:4], "big") > MAX_BYTES or code not in {_POSTGRES_V3, _POSTGRES_SSL}:  # noqa: PLR2004  (two words)
        return ""
    parts = client[8:].split(b"\0")
    given = dict(zip(parts[::2], parts[1::2], strict=False))
    return f"PostgreSQL {_text(given.get(b'database', b''))}".strip()


def _mysql(_client: bytes, server: bytes) -> str:
    """Return the label of a MySQL server's handshake packet, version 10."""
    version = server[5:].partition(b"\0")[0]
    is_first = len(server) > 5 and server[3] == 0 and server[4] == _MYSQL_V10  # noqa: PLR2004  (length, number, version)
    return f"MySQL {_text(version[:40])}" if is_first and version[:1].isdigit() else ""


def _mqtt(client: bytes, _server: bytes) -> str:
    return "MQTT" if client[:1] == b"\x10" and client[2:8] in {b"\0\4MQTT", b"\0\6MQIs"} else ""


def _by_first_word(client: bytes, server: bytes) -> str:
    return next((name for word, name in _PORT_WORDS.items() if server.startswith(word) or client.startswith(word)), "")


_RULES: tuple[Callable[[bytes, bytes], str], ...] = (_http, _tls, _ssh, _mail_or_ftp, _redis, _postgres, _mysql, _mqtt, _by_first_word)
