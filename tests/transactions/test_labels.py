"""The first bytes of a connection give it a label.

The tests write these bytes by hand, and some are hostile. The labels appear in all outputs.
"""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tcptrace_lab import analyze, report
from tcptrace_lab.connections.anonymizer import Anonymizer
from tcptrace_lab.transactions.labels import MAX_LABEL, label
from tests.support import packets
from tests.support.command import tcptrace_lab
from tests.support.pages.html_pages import HOSTILE, Page

if TYPE_CHECKING:
    from pathlib import Path


def hello(name: bytes | None, session: bytes = b"") -> bytes:
    """Return a ClientHello with two cipher suites, a padding extension and a server name (RFC 8446, 4.1.2; RFC 6066, 3)."""
    names = b"" if name is None else struct.pack("!HHHBH", 0, len(name) + 5, len(name) + 3, 0, len(name)) + name
    extensions = struct.pack("!HH", 21, 3) + bytes(3) + names
    body = b"\3\3" + bytes(32) + bytes((len(session),)) + session + struct.pack("!H", 4) + bytes(4) + b"\1\0"
    body += struct.pack("!H", len(extensions)) + extensions
    handshake = b"\1" + len(body).to_bytes(3, "big") + body
    return b"\x16\3\1" + struct.pack("!H", len(handshake)) + handshake


STARTUP = b"user\0web\0database\0shop\0\0"

KNOWN = {
    "HTTP GET example.org/index.html": (b"GET /index.html HTTP/1.1\r\nAccept: */*\r\nHost: example.org\r\n\r\n", b""),
    "HTTP CONNECT example.org:443": (b"CONNECT example.org:443 HTTP/1.1\r\nHost: example.org:443\r\n\r\n", b""),
    "HTTP POST /upload": (b"POST /upload HTTP/1.0\r\n\r\n", b""),
    "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b""),
    "TLS www.example.org": (hello(b"www.example.org", bytes(32)), b""),
    "TLS": (hello(None), b""),
    "SSH OpenSSH_9.2p1 Debian-2": (b"SSH-2.0-PuTTY_0.78\r\n", b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n"),
    "SSH PuTTY_0.78": (b"SSH-2.0-PuTTY_0.78\r\n", b""),
    "SMTP mail.example.org ESMTP Postfix": (b"", b"220 mail.example.org ESMTP Postfix\r\n"),
    "SMTP mx ready": (b"EHLO host\r\n", b"220 mx ready\r\n"),
    "FTP (vsFTPd 3.0.3)": (b"USER anonymous\r\n", b"220 (vsFTPd 3.0.3)\r\n"),
    "redis SET": (b"*3\r\n$3\r\nset\r\n$1\r\na\r\n$1\r\nb\r\n", b"+OK\r\n"),
    "PostgreSQL shop": (struct.pack("!II", 8 + len(STARTUP), 196_608) + STARTUP, b""),
    "PostgreSQL": (struct.pack("!II", 8, 80_877_103), b"S"),
    "MySQL 10.11.6-MariaDB": (b"", b"\x5b\0\0\0\x0a10.11.6-MariaDB\0\1\0\0\0"),
    "MQTT": (b"\x10\x0c\0\4MQTT\4\2\0\x3c\0\0", b""),
    "IMAP": (b"", b"* OK ready\r\n"),
}


@pytest.mark.parametrize("words", KNOWN)
def test_first_bytes_name_what_a_connection_is_for(words: str) -> None:
    assert label(*KNOWN[words]) == words


@pytest.mark.parametrize(
    "client", [b"", bytes(200), b"GET without a version\r\n", b"\x16\3\1", b"220 not from a server", b"*3\r\n$", b"hello"]
)
def test_other_bytes_name_nothing(client: bytes) -> None:
    assert label(client, b"") is None or label(client, b"") == "TLS"


@pytest.mark.parametrize("length", range(len(hello(b"www.example.org"))))
def test_a_hello_that_is_cut_anywhere_is_no_error(length: int) -> None:
    found = label(hello(b"www.example.org")[:length], b"")
    assert found is None or found.startswith("TLS")


@given(
    st.binary(max_size=300),
    st.binary(max_size=300),
    st.sampled_from([b"", b"GET /", b"\x16\3\1\2\0\1", b"220 ", b"SSH-2.0-", b"*1\r\n$4\r\n"]),
)
def test_any_bytes_give_a_short_printable_label_or_none(client: bytes, server: bytes, start: bytes) -> None:
    for both in ((start + client, server), (client, start + server)):
        found = label(*both)
        assert found is None or (0 < len(found) <= MAX_LABEL and found.isprintable())


def test_control_characters_are_escaped_and_long_names_are_cut() -> None:
    assert label(b"GET /\x1b[31m\x07 HTTP/1.1\r\n\r\n", b"") == "HTTP GET /\\x1b[31m\\x07"
    found = label(b"GET /" + b"a" * 200 + b" HTTP/1.1\r\n\r\n", b"")
    assert found is not None
    assert (len(found), found[-1]) == (MAX_LABEL, "…")


def capture(folder: Path, request: bytes, name: str = "web.pcap", **options: int) -> Path:
    path = packets.capture(
        folder / name,
        f"""
        0.000 C > S  S   0:0(0)        win 65535 <mss 1460>
        0.020 S > C  S.  0:0(0) ack 1  win 65535 <mss 1460>
        0.020 C > S  .          ack 1
        0.021 C > S  P.  1:{len(request) + 1} ack 1
        0.041 S > C  P.  1:1461 ack {len(request) + 1}
        0.042 C > S  .          ack 1461
        """,
        **options,  # type: ignore[arg-type]
    )
    data = path.read_bytes()
    head = struct.pack("!HHI", 40_000, 80, 1001)
    at = data.index(head, data.index(head) + 1) + 20
    room = min(len(request), options.get("snaplen_bytes", 1 << 18) - 54)
    path.write_bytes(data[:at] + request[:room] + data[at + room :])
    return path


REQUEST = b"GET /data HTTP/1.1\r\nHost: files.example.org\r\n\r\n"
LABEL = "HTTP GET files.example.org/data"


def test_terminal_json_and_report_name_the_connection(tmp_path: Path) -> None:
    path = capture(tmp_path, REQUEST)
    done = tcptrace_lab("analyze", path, "--json", "all.json", "-o", "page.html", folder=tmp_path)
    assert f"connection 0: {LABEL}" in done.stdout.decode()
    (connection,) = json.loads((tmp_path / "all.json").read_text())["connections"]
    assert connection["label"] == LABEL
    assert LABEL in Page((tmp_path / "page.html").read_text()).text


def test_a_connection_without_data_has_no_label(tmp_path: Path) -> None:
    path = packets.capture(tmp_path / "syn.pcap", "0.000 C > S  S   0:0(0) win 65535")
    analysis = analyze(path)
    assert analysis.labels == {}
    assert analysis.to_dict()["connections"][0]["label"] is None


def test_a_capture_cut_by_its_snap_length_gives_what_is_there(tmp_path: Path) -> None:
    """Packets are truncated after 54 bytes of headers and 20 or 10 bytes of the request.

    The first 20 bytes contain the whole first line. The first 10 bytes lack the HTTP version.
    """
    assert analyze(capture(tmp_path, REQUEST, snaplen_bytes=54 + 20)).labels == {0: "HTTP GET /data"}
    assert analyze(capture(tmp_path, REQUEST, snaplen_bytes=54 + 10)).labels == {}


def test_hostile_names_become_no_markup(tmp_path: Path) -> None:
    request = b"GET /" + HOSTILE.encode().replace(b" ", b"+") + b" HTTP/1.1\r\n\r\n"
    page = Page(report.render(report.data(analyze(capture(tmp_path, request)))))
    assert not any("alert" in script for script in page.scripts)
    assert not any(tag == "img" for tag, _ in page.elements)


def test_an_anonymous_analysis_has_no_labels(tmp_path: Path) -> None:
    assert analyze(capture(tmp_path, REQUEST), anonymizer=Anonymizer()).labels == {}
