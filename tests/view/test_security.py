"""Each test is one attack on the explorer."""

from __future__ import annotations

import ipaddress
import json
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from tests.support import explorer, packets

if TYPE_CHECKING:
    from collections.abc import Iterator

EXCHANGE = """
    0.000  C > S  S   0:0(0)            win 65535  <mss 1460>
    0.010  S > C  S.  0:0(0)     ack 1  win 65160  <mss 1460>
    0.020  C > S  .   1:1(0)     ack 1  win 65535
    0.030  C > S  P.  1:101(100) ack 1  win 65535
    0.040  S > C  .   1:1(0)     ack 101 win 65160
"""

HOSTILE_NAME = "<img src=x onerror=alert(1)>\"'&{{7*7}}.pcap"


@pytest.fixture(scope="module")
def open_explorer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[explorer.Explorer]:
    folder = tmp_path_factory.mktemp("explorer")
    packets.capture(folder / HOSTILE_NAME, EXCHANGE)
    with explorer.exploring(folder / HOSTILE_NAME, cache=folder / "cache") as found:
        yield found


def _wrong_token(url: str) -> str:
    token = urlsplit(url).path.strip("/")
    return token[:-1] + ("A" if token[-1] != "A" else "B")


@pytest.mark.parametrize("path", ["/", "/api/capture", "/WRONG/", "/WRONG/api/capture", "/WRONG/static/report.css", "//", "/%2e%2e/"])
def test_nothing_is_shown_without_the_token(open_explorer: explorer.Explorer, path: str) -> None:
    answer = open_explorer.ask("", raw=path.replace("WRONG", _wrong_token(open_explorer.url)))
    assert answer.status == 404
    assert b"onerror" not in answer.body


def test_the_token_cannot_be_guessed(open_explorer: explorer.Explorer) -> None:
    assert len(urlsplit(open_explorer.url).path.strip("/")) >= 43  # 256 bits in base 64


@pytest.mark.parametrize("host", ["attacker.example", "127.0.0.1.attacker.example:{port}", "127.0.0.1", "0.0.0.0:{port}", ""])
def test_a_name_that_points_at_this_machine_is_refused(open_explorer: explorer.Explorer, host: str) -> None:
    port = urlsplit(open_explorer.url).port
    assert open_explorer.ask("api/capture", headers={"Host": host.format(port=port)}).status == 421


@pytest.mark.parametrize("origin", ["http://attacker.example", "null", "https://127.0.0.1:{port}", "http://127.0.0.1:1"])
def test_another_site_is_refused(open_explorer: explorer.Explorer, origin: str) -> None:
    port = urlsplit(open_explorer.url).port
    assert open_explorer.ask("api/capture", headers={"Origin": origin.format(port=port)}).status == 403


def test_another_site_that_hides_its_origin_is_refused(open_explorer: explorer.Explorer) -> None:
    assert open_explorer.ask("api/capture", headers={"Sec-Fetch-Site": "cross-site"}).status == 403
    assert open_explorer.ask("api/capture", headers={"Sec-Fetch-Site": "same-origin"}).status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_nothing_can_be_changed(open_explorer: explorer.Explorer, method: str) -> None:
    assert open_explorer.ask("api/capture", method=method).status == 405


@pytest.mark.parametrize(
    "name",
    ["../../../../etc/passwd", "..%2f..%2f..%2f..%2fetc%2fpasswd", "%2fetc%2fpasswd", "pages.py", "../pages.py", "report.css%00.js", "."],
)
def test_no_path_from_outside_opens_a_file(open_explorer: explorer.Explorer, name: str) -> None:
    for place in ("static/", "api/", "connection/", ""):
        answer = open_explorer.ask(place + name)
        assert answer.status in {404, 400} or (place + name) in {".", "static/."}, (place, name, answer.status)
        assert b"root:" not in answer.body
        assert b"POLICY" not in answer.body


def test_names_are_text_in_pages_and_json(open_explorer: explorer.Explorer) -> None:
    assert "<img src=x onerror=alert(1)>" in open_explorer.get("api/capture")["name"]
    page = open_explorer.ask("")
    assert b"<img src=x" not in page.body
    assert b"{{7*7}}" in page.body.replace(b"&#34;", b'"')
    policy = page.headers["content-security-policy"]
    assert "script-src 'self'" in policy
    assert "default-src 'none'" in policy


def test_every_answer_has_the_headers(open_explorer: explorer.Explorer) -> None:
    for path in ("", "api/capture", "static/report.css", "api/connections.csv", "api/nothing"):
        headers = open_explorer.ask(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] == "no-store"
        assert "access-control-allow-origin" not in headers
        assert "server" not in headers


@pytest.mark.parametrize(
    "query",
    [
        {"limit": 10**9},
        {"limit": -1},
        {"offset": "9" * 5_000},
        {"port": "x"},
        {"port": 10**30},
        {"text": "a" * 5_000},
        {"sort": "__import__"},
        {"cause": "nothing"},
        {"finding": "'; drop table"},
        {"offset": "1" * 20_000},
    ],
)
def test_parameters_out_of_bounds_are_refused_in_one_line(open_explorer: explorer.Explorer, query: dict[str, object]) -> None:
    answer = open_explorer.ask("api/connections", query)
    assert answer.status in {400, 414, 431}, answer.status
    if answer.status == 400 and b"error" in answer.body:
        assert "\n" not in json.loads(answer.body)["error"]


def test_a_search_is_text_and_no_pattern(open_explorer: explorer.Explorer) -> None:
    assert open_explorer.get("api/connections", {"text": ".*"})["total"] == 0
    assert open_explorer.get("api/connections", {"address": "10.0.0"})["total"] == 1


def test_it_listens_on_loopback_only(open_explorer: explorer.Explorer) -> None:
    port = urlsplit(open_explorer.url).port
    inodes = {str(entry.readlink()) for entry in Path(f"/proc/{open_explorer.process.pid}/fd").iterdir() if entry.is_symlink()}
    listening = []
    for table, parse in (("tcp", _ipv4), ("tcp6", _ipv6)):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if f"socket:[{fields[9]}]" in inodes and fields[3] == "0A":
                address, hex_port = fields[1].split(":")
                assert int(hex_port, 16) == port
                listening.append(parse(address))
    assert listening
    assert all(address.is_loopback for address in listening)


def _ipv4(text: str) -> ipaddress.IPv4Address:
    return ipaddress.IPv4Address(bytes.fromhex(text)[::-1])


def _ipv6(text: str) -> ipaddress.IPv6Address:
    words = [bytes.fromhex(text[place : place + 8])[::-1] for place in range(0, 32, 8)]
    return ipaddress.IPv6Address(b"".join(words))


def test_fifty_clients_at_once_get_the_same_answers(open_explorer: explorer.Explorer) -> None:
    paths = ["api/capture", "api/connection/0/figures", "api/connection/0/segments", "api/connections", "connection/0"] * 10
    with ThreadPoolExecutor(len(paths)) as clients:
        answers = list(clients.map(open_explorer.ask, paths))
    assert {answer.status for answer in answers} == {200}
    assert len({answer.body for path, answer in zip(paths, answers, strict=True) if path.startswith("api/")}) == 4


def test_a_client_that_says_nothing_blocks_nobody(open_explorer: explorer.Explorer) -> None:
    parts = urlsplit(open_explorer.url)
    silent = [socket.create_connection((parts.hostname, parts.port)) for _ in range(50)]
    silent[0].sendall(b"GET / HTTP/1.1\r\n")
    assert open_explorer.get("api/capture")["connections"] == 1
    for one in silent:
        one.close()
