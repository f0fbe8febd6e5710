"""With `--anonymize`, no output contains an address or a name of the capture.

Each address and name always gets the same pseudonym. The verdict does not change.
"""

from __future__ import annotations

import ipaddress
import json
from typing import TYPE_CHECKING

import pytest

from tcptrace_lab import analyze
from tcptrace_lab.connections.anonymizer import Anonymizer
from tcptrace_lab.replay.gains import modelled
from tests.support import needs, packets
from tests.support.captures.hostile import EXCHANGE, NAMES, SECRETS, leaks, write, written
from tests.support.command import tcptrace_lab
from tests.support.places import CAPTURES

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A capture that contains host names. Its file name and the name of its folder also contain host names."""
    folder = tmp_path / "198.51.100.77" / NAMES[0]
    folder.mkdir(parents=True)
    return write(folder / f"{NAMES[1]}-203.0.113.45.pcapng")


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
    assert not leaks(outputs)


def test_default_names_of_outputs_name_nobody(hostile: Path, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    assert all(tcptrace_lab(command, hostile, "--anonymize", folder=work).returncode == 0 for command in ("analyze", "annotate"))
    assert sorted(path.name for path in work.rglob("*.*")) == ["capture-annotated.pcapng", "capture.html"]


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
    """Without `--anonymize`, the outputs contain the strings that the other tests search for."""
    report, copy = tmp_path / "report.html", tmp_path / "copy.pcapng"
    assert tcptrace_lab("analyze", hostile, "-o", report).returncode == 0
    assert tcptrace_lab("annotate", hostile, "-o", copy).returncode == 0
    page, packet_bytes = report.read_bytes(), copy.read_bytes()
    assert {secret for secret in (*SECRETS, *NAMES) if secret.encode() not in page} <= {NAMES[2]}  # no output shows the Host header
    assert all(ipaddress.ip_address(text).packed in packet_bytes for text in SECRETS)
    assert all(name.encode() in packet_bytes for name in NAMES[1:])


def test_the_reproducer_names_nobody(tmp_path: Path) -> None:
    """The reproducer runs in its own network, with addresses of RFC 5737."""
    path = tmp_path / f"{NAMES[1]}.pcapng"
    path.write_bytes((CAPTURES / "ethernet-nagle-on.pcapng").read_bytes())
    found, _ = modelled(analyze(path, anonymizer=Anonymizer()))
    scripts = [finding.modelled.script for finding in found.findings if finding.modelled is not None]
    assert scripts
    assert all("# From: capture, connection 0" in script and NAMES[1] not in script and str(tmp_path) not in script for script in scripts)


def test_a_comparison_holds_no_address_and_no_name(hostile: Path, tmp_path: Path) -> None:
    """`compare` writes a page, JSON, Markdown and terminal output."""
    out = {"-o": tmp_path / "c.html", "--json": tmp_path / "c.json", "--markdown": tmp_path / "c.md"}
    options = [part for option, path in out.items() for part in (option, str(path))]
    done = tcptrace_lab("compare", str(hostile), str(hostile), *options, "--anonymize-key", "k")
    assert done.returncode == 0, done.stderr
    texts = {path.name: path.read_bytes() for path in out.values()} | {"stdout": done.stdout, "stderr": done.stderr}
    assert not leaks(texts)


@pytest.fixture
def stalled(tmp_path: Path) -> Path:
    """A capture with a stall that the models reproduce.

    The addresses of its hosts are in `SECRETS`, and its file name contains host names.
    """
    data = (CAPTURES / "ethernet-nagle-on.pcapng").read_bytes()
    for old, new in zip(("192.0.2.1", "192.0.2.2"), SECRETS, strict=False):
        data = data.replace(ipaddress.ip_address(old).packed, ipaddress.ip_address(new).packed)
    path = tmp_path / NAMES[0] / f"{NAMES[1]}-{SECRETS[0]}.pcapng"
    path.parent.mkdir()
    path.write_bytes(data)
    return path


REPLAYS = {
    "whatif": ("whatif", "--json", "out/whatif.json"),
    "script": ("script", "--whole", "-o", "out", "--schedule", "out/small.json"),
    "schedule": ("transfer", "--schedule", "out/schedule.json"),
}


@pytest.mark.parametrize("what", REPLAYS)
def test_no_output_of_replay_holds_an_address_or_a_name(stalled: Path, tmp_path: Path, what: str) -> None:
    work = tmp_path / "work"
    (work / "out").mkdir(parents=True)
    command, *options = REPLAYS[what]
    done = tcptrace_lab("replay", command, stalled, *options, "--anonymize", folder=work)
    assert done.returncode == 0, done.stderr
    outputs = written(work) | {"stdout": done.stdout, "stderr": done.stderr}
    assert len(outputs) > 2
    assert not leaks(outputs)
    assert any(b"capture" in data for data in outputs.values())
    shown = tcptrace_lab("replay", command, stalled, *options, folder=work)
    assert shown.returncode == 0
    assert leaks(written(work)) or what == "whatif"  # the JSON of `whatif` has only durations


@pytest.mark.live
def test_a_replayed_transfer_names_nobody(stalled: Path, tmp_path: Path) -> None:
    """The JSON and the page name hosts by pseudonyms.

    The folder contains the captures of the replay, but not the user's capture.
    """
    needs.root()
    work = tmp_path / "work"
    work.mkdir()
    done = tcptrace_lab("replay", "transfer", stalled, "--nodelay", "-o", "out", "--json", "all.json", "--anonymize", folder=work)
    assert done.returncode == 0, done.stderr
    outputs = written(work) | {"stdout": done.stdout, "stderr": done.stderr}
    assert {"all.json", "out/compared.html", "out/replay.pcapng"} <= outputs.keys()
    assert not [(secret, name) for secret, name in leaks(outputs) if not name.endswith(".pcapng")]
    assert not [name for name, data in outputs.items() for text in (*SECRETS, *NAMES) if text.encode() in data]


def test_a_schedule_is_not_anonymized_again(tmp_path: Path) -> None:
    path = tmp_path / "schedule.json"
    path.write_text("{}")
    done = tcptrace_lab("replay", "transfer", "--from-schedule", path, "--anonymize")
    assert done.returncode == 2
    assert b"a schedule holds no address" in done.stderr


def test_a_message_with_several_files_has_one_pseudonym_for_each() -> None:
    paths = ["/var/log/slow", "/var/log/slow.pcap"]
    hidden = Anonymizer("key")
    words = hidden.without_paths("'/var/log/slow.pcap', then slow; slow.pcap", paths)
    one, other = map(hidden.file, paths)
    assert words == f"'{other}', then {one}; {other}"
