"""`--anonymize`: no output holds an address or a name of the capture, pseudonyms are consistent, and the answer stays the same."""

from __future__ import annotations

import ipaddress
import json
import os
import struct
from typing import TYPE_CHECKING

import pytest

from tcptrace_lab import analyze
from tcptrace_lab.connections.anonymizer import Anonymizer
from tcptrace_lab.replay.gains import modelled
from tests.support import packets
from tests.support.command import tcptrace_lab
from tests.support.places import CAPTURES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SECRETS = ("198.51.100.77", "203.0.113.45", "2001:db8:77::abcd", "2001:db8:99::1", "203.0.113.99")
NAMES = ("customer-db", "alice-laptop", "intern.example", "Top-Secret")

EXCHANGE = """
    host C 198.51.100.77:40000 isn 1000
    host S 203.0.113.45:80 isn 5000
    host D [2001:db8:77::abcd]:41000 isn 7000
    host T [2001:db8:99::1]:443 isn 9000
    host U 198.51.100.77:53000
    host V 203.0.113.99:53
    0.000 C > S  S   0:0(0)        win 65535 <mss 1460, sackOK, wscale 7, opt 30 0012c6336400cb00712d>
    0.020 S > C  S.  0:0(0) ack 1  win 65535 <mss 1460, sackOK, wscale 7>
    0.020 C > S  .          ack 1  win 512
    0.021 C > S  P.  1:101  ack 1  win 512
    0.041 S > C  .          ack 101
    0.042 S > C  P.  1:1461 ack 101
    0.042 C > S  .          ack 1461
    1.500 C > S  P.  101:201  ack 1461
    1.800 C > S  P.  101:201  ack 1461
    2.400 C > S  P.  101:201  ack 1461
    2.420 S > C  .          ack 201
    2.500 U > V udp 60
    2.510 V > U udp 100
    3.000 D > T  S   0:0(0)        win 65535 <mss 1440>
    3.020 T > D  S.  0:0(0) ack 1  win 65535 <mss 1440>
    3.020 D > T  .          ack 1
    3.021 D > T  P. 1:501   ack 1
    3.041 T > D  .          ack 501
    3.300 T > D  P. 1:1441  ack 501
    3.300 D > T  .          ack 1441
"""


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A capture whose folder, name, interface, comment and payload name hosts."""
    folder = tmp_path / "198.51.100.77" / NAMES[0]
    folder.mkdir(parents=True)
    path = packets.capture(folder / f"{NAMES[1]}-203.0.113.45.pcapng", EXCHANGE)
    data = path.read_bytes()
    request = f"GET /{NAMES[3]} HTTP/1.1\r\nHost: {NAMES[2]}\r\nX: 198.51.100.77\r\n\r\n".encode()
    head = struct.pack("!HHI", 40_000, 80, 1001)
    payload = data.index(head, data.index(head) + 1) + 20  # of the second segment with this sequence number
    data = data[:payload] + request + data[payload + len(request) :]
    assert len(request) <= 100
    comment = f"captured at {NAMES[1]} 198.51.100.77".encode()
    option = struct.pack("<HH", 1, len(comment)) + comment + bytes(-len(comment) % 4) + bytes(4)
    size = 28 + len(option)
    section = struct.pack("<IIIHHq", 0x0A0D0D0A, size, 0x1A2B3C4D, 1, 0, -1) + option + struct.pack("<I", size)
    first = struct.unpack_from("<I", data, 4)[0]
    path.write_bytes(section + data[first:])
    return path


def spellings() -> Iterator[bytes]:
    """Every address as text (short and long), as bytes in both orders, as hexadecimal digits, and every name."""
    for text in SECRETS:
        address = ipaddress.ip_address(text)
        yield from {text.encode(), address.exploded.encode(), address.exploded.upper().encode(), str(address).encode()}
        yield from (address.packed, address.packed[::-1], address.packed.hex().encode(), address.packed.hex(":").encode())
        yield text.replace(".", "-").encode()
        yield str(int(address)).encode()
    for number in range(1, 7):
        yield bytes((2, 0, 0, 0, 0, number))  # the MAC addresses that `packets` writes
        yield f"02:00:00:00:00:{number:02x}".encode()
    yield from (name.encode() for name in NAMES)


def written(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, and its name."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


OUTPUTS = {
    "analyze": (
        "analyze",
        "-o",
        "out/report.html",
        "--json",
        "out/all.json",
        "--markdown",
        "out/ticket.md",
        "--multiqc",
        "out/qc",
        "--verbose",
    ),
    "annotate": ("annotate", "-o", "out/copy.pcapng"),
    "listing": ("export", "--format", "tcptrace", "-o", "out/listing.txt"),
    "xplot": ("export", "--format", "xplot", "-o", "out/graphs"),
    **{
        table: ("export", "--table", table, "-o", f"out/{table}.csv")
        for table in ("segments", "connections", "ledger", "messages", "transactions", "findings", "datagrams", "flows", "rates", "stalls")
    },
}


@pytest.mark.parametrize("what", OUTPUTS)
def test_no_output_holds_an_address_or_a_name(hostile: Path, tmp_path: Path, what: str) -> None:
    work = tmp_path / "work"
    (work / "out").mkdir(parents=True)
    command, *options = OUTPUTS[what]
    done = tcptrace_lab(command, hostile, *options, "--anonymize", folder=work)
    assert done.returncode == 0, done.stderr
    outputs = written(work) | {"stdout": done.stdout, "stderr": done.stderr}
    assert len(outputs) > 2
    for secret in spellings():
        found = [name for name, data in outputs.items() if secret in data or secret in os.fsencode(name)]
        assert not found, (secret, found)


def test_default_names_of_outputs_name_nobody(hostile: Path, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    assert all(tcptrace_lab(command, hostile, "--anonymize", folder=work).returncode == 0 for command in ("analyze", "annotate"))
    assert sorted(written(work)) == ["reports/capture-annotated.pcapng", "reports/capture.html"]


def test_addresses_keep_their_common_prefix_and_stay_different() -> None:
    hidden = Anonymizer("a key")
    pairs = [
        ("10.1.2.3", "10.1.2.4", 29),
        ("10.1.2.3", "10.1.99.4", 17),
        ("10.0.0.1", "138.0.0.1", 0),
        ("2001:db8::1", "2001:db8:1::1", 47),
    ]
    for first, second, shared in pairs:
        ours = [ipaddress.ip_address(hidden.address(one)) for one in (first, second)]
        assert [str(one) for one in ours] != [first, second]
        assert {one.version for one in ours} == {ipaddress.ip_address(first).version}
        assert ours[0].max_prefixlen - (int(ours[0]) ^ int(ours[1])).bit_length() == shared


def test_one_key_gives_the_same_pseudonyms_and_none_gives_others_each_time() -> None:
    addresses = [f"192.0.2.{number}" for number in range(50)]
    same, again, *others = (
        [hidden.address(one) for one in addresses]
        for hidden in (Anonymizer("k"), Anonymizer("k"), Anonymizer("K"), Anonymizer(), Anonymizer())
    )
    assert same == again
    assert len(set(same)) == len(addresses)
    assert len({tuple(one) for one in (same, *others)}) == 4


@pytest.mark.parametrize("name", ["ethernet-nagle-on", "ethernet-loss", "ethernet-syn-loss", "ethernet-ipv6-bulk"])
def test_the_anonymous_copy_has_the_same_findings(name: str, tmp_path: Path) -> None:
    source, copy = CAPTURES / f"{name}.pcapng", tmp_path / "copy.pcapng"
    assert tcptrace_lab("annotate", source, "-o", copy, "--anonymize").returncode == 0
    original, again = analyze(source), analyze(copy)
    assert again.capture["tcp_segments"] == original.capture["tcp_segments"]
    kept = [(one.id, one.conn, one.from_client, one.cost_ns, one.evidence_frames) for one in original.findings if one.causes]
    assert [(one.id, one.conn, one.from_client, one.cost_ns, one.evidence_frames) for one in again.findings if one.causes] == kept


def test_an_anonymous_analysis_differs_in_nothing_but_names() -> None:
    source, hidden = CAPTURES / "ethernet-loss.pcapng", Anonymizer("k")
    original, other = (json.dumps(one.to_dict()) for one in (analyze(source), analyze(source, anonymizer=hidden)))
    for address in ("192.0.2.1", "192.0.2.2"):
        original = original.replace(f'"{address}"', f'"{hidden.address(address)}"').replace(f"{address} ", f"{hidden.address(address)} ")
        original = original.replace(f"{address};", f"{hidden.address(address)};").replace(f"{address},", f"{hidden.address(address)},")
    assert json.loads(other) | {"capture": None} == json.loads(original) | {"capture": None}
    assert json.loads(other)["capture"]["path"] == "capture"


def test_where_names_original_addresses(tmp_path: Path) -> None:
    path = packets.capture(tmp_path / "x.pcap", EXCHANGE)
    analysis = analyze(path, where="client_addr = '198.51.100.77'", anonymizer=Anonymizer())
    assert analysis.connections.collect()["conn"].to_list() == [0]


def test_without_the_option_the_outputs_do_hold_them(hostile: Path, tmp_path: Path) -> None:
    """Without `--anonymize`, the strings that these tests search for are present."""
    report, copy = tmp_path / "report.html", tmp_path / "copy.pcapng"
    assert tcptrace_lab("analyze", hostile, "-o", report).returncode == 0
    assert tcptrace_lab("annotate", hostile, "-o", copy).returncode == 0
    page, packet_bytes = report.read_bytes(), copy.read_bytes()
    assert {secret for secret in (*SECRETS, *NAMES) if secret.encode() not in page} <= {NAMES[2]}  # no output shows the Host header
    assert all(ipaddress.ip_address(text).packed in packet_bytes for text in SECRETS)
    assert all(name.encode() in packet_bytes for name in NAMES[1:])


def test_the_reproducer_names_nobody(tmp_path: Path) -> None:
    """The program itself uses addresses of RFC 5737 for its own network; names come from the capture only."""
    path = tmp_path / f"{NAMES[1]}.pcapng"
    path.write_bytes((CAPTURES / "ethernet-nagle-on.pcapng").read_bytes())
    found, _ = modelled(analyze(path, anonymizer=Anonymizer()))
    scripts = [finding.modelled.script for finding in found.findings if finding.modelled is not None]
    assert scripts
    assert all("# From: capture, connection 0" in script and NAMES[1] not in script and str(tmp_path) not in script for script in scripts)


def test_a_comparison_holds_no_address_and_no_name(hostile: Path, tmp_path: Path) -> None:
    """All four outputs of `compare`: page, JSON, Markdown and terminal."""
    out = {"-o": tmp_path / "c.html", "--json": tmp_path / "c.json", "--markdown": tmp_path / "c.md"}
    options = [part for option, path in out.items() for part in (option, str(path))]
    done = tcptrace_lab("compare", str(hostile), str(hostile), *options, "--anonymize-key", "k")
    assert done.returncode == 0, done.stderr
    texts = [path.read_bytes() for path in out.values()] + [done.stdout, done.stderr]
    assert not [(spelling, place) for spelling in spellings() for place, text in enumerate(texts) if spelling in text]
