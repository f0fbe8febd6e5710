"""tshark finds no problem in the captures that models write, and the engine finds what the models did.

Other tests check the files with settings.
"""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from scapy.layers.inet import IP, TCP
from scapy.utils import rdpcap

from tcptrace_lab import errors
from tcptrace_lab.capture.atm import AtmForm
from tcptrace_lab.cli.commands.simulate import simulate as command
from tcptrace_lab.errors import UsageError
from tcptrace_lab.simulation import At, Medium, declared, truth_document, write_capture
from tcptrace_lab.simulation.capture import BASE_NS
from tcptrace_lab.simulation.frames import payload
from tcptrace_lab.simulation.programs import program
from tcptrace_lab.stacks import STACKS, Close, Mark, Read, Repeat, Run, Set, Setting, Think, WaitUntil, Write, simulate
from tcptrace_lab.stacks import run as run_module
from tcptrace_lab.text.quantities import duration_ns, rate_bps, size_bytes
from tests.support import needs, published
from tests.support.command import only_line, tcptrace_lab
from tests.support.engine import read
from tests.support.peers import tshark

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

EXCHANGES: dict[str, Any] = {
    "client": {"stack": "sunos4", "send_buffer": "16K", "receive_buffer": "16K", "program": "3 * (write 9000/4K; read 500; think 30ms)"},
    "server": {"stack": "sunos4", "send_buffer": "16K", "receive_buffer": "16K", "program": "3 * (read 9000; write 500)"},
    "forward": {"rate": "10M", "delay": "1ms"},
}
PATHS: dict[str, dict[str, Any]] = {"loss": {"loss": 0.05, "seed": 3}, "named": {"drop": [4, 9]}}


def with_stack(stack: str) -> dict[str, Any]:
    return EXCHANGES | {end: {**EXCHANGES[end], "stack": stack} for end in ("client", "server")}


def captured(what: Mapping[str, Any], path: Path, **where: Any) -> tuple[Run, Setting]:
    setting = declared(what)
    run = simulate(setting, truth=True)
    with path.open("wb") as stream:
        write_capture(run, setting, stream, **where)
    return run, setting


def complaints(path: Path) -> list[str]:
    """Return the problems that tshark reports.

    These are expert messages above "chat" and "note", retransmits, losses and reordering.
    """
    names = ["_ws.expert.message", "_ws.expert.severity", "tcp.analysis.retransmission", "tcp.analysis.lost_segment"]
    found = []
    for row in tshark.frames(path, names):
        severities = [int(value) for value in row["_ws.expert.severity"].split(",") if value]
        found += [row["_ws.expert.message"]] if max(severities, default=0) >= WARNING else []
        found += [name for name in names[2:] if row[name]]
    return found


WARNING = 0x00600000
"""The severity PI_WARN in Wireshark's epan/proto.h. Notes and chats have smaller numbers."""


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("at", list(At))
def test_exchange_of_two_equal_stacks_is_clean_to_tshark(tmp_path: Path, stack: str, at: At) -> None:
    path = tmp_path / "run.pcap"
    run, _ = captured(with_stack(stack), path, at=at)
    assert run.client.done
    assert run.server.done
    assert complaints(path) == []


def test_old_stack_and_a_modern_one_use_no_option_that_only_one_knows(tmp_path: Path) -> None:
    path = tmp_path / "run.pcap"
    captured(EXCHANGES | {"client": {**EXCHANGES["client"], "stack": "linux"}}, path)
    rows = list(tshark.frames(path, ["tcp.options.timestamp.tsval", "tcp.options.wscale.shift", "tcp.flags.str", "tcp.len"]))
    assert {row["tcp.options.timestamp.tsval"] for row in rows} == {""}
    assert [row["tcp.options.wscale.shift"] != "" for row in rows if "S" in row["tcp.flags.str"]] == [True, False]
    assert max(int(row["tcp.len"]) for row in rows) == 1460
    assert complaints(path) == []


def test_checksums_are_those_that_scapy_computes(tmp_path: Path) -> None:
    path = tmp_path / "run.pcap"
    captured(with_stack("sunos4"), path)
    for packet in rdpcap(str(path)):
        again = packet.copy()
        del again[IP].chksum, again[TCP].chksum
        assert bytes(again) == bytes(packet)


@pytest.mark.parametrize("at", list(At))
def test_engine_reads_the_segments_that_the_model_sent(tmp_path: Path, at: At) -> None:
    path = tmp_path / "run.pcap"
    run, _ = captured(EXCHANGES, path, at=at)
    seen = [
        (BASE_NS + (packet.sent_ns if packet.from_client == (at is At.CLIENT) else packet.arrived_ns or 0), packet)
        for packet in run.packets
    ]
    expected = [
        (time_ns, packet.from_client, packet.seq, packet.payload_bytes, packet.window_bytes)
        for time_ns, packet in sorted(seen, key=lambda pair: pair[0])
    ]
    rows = read(path).segments
    assert rows.select("ts_ns", "from_client", "seq", "payload_bytes", "window_bytes").rows() == expected


def test_payload_is_the_stream_whatever_was_resent(tmp_path: Path) -> None:
    """The client's stream is reassembled by tshark. The value of each byte must be its offset modulo 251."""
    path = tmp_path / "run.pcap"
    run, _ = captured(EXCHANGES | {"forward": EXCHANGES["forward"] | PATHS["named"]}, path, at=At.SERVER)
    assert any(packet.resent_for for packet in run.packets)
    stream: dict[int, int] = {}
    for row in tshark.frames(path, ["tcp.srcport", "tcp.seq", "tcp.payload"]):
        if row["tcp.srcport"] == "40000":
            stream.update(enumerate(bytes.fromhex(row["tcp.payload"]), int(row["tcp.seq"])))
    assert stream == {offset: offset % 251 for offset in range(1, 27_001)}
    assert b"".join(payload(packet) for packet in run.packets[:1]) == b""


def test_lost_packets_are_in_the_senders_capture_alone(tmp_path: Path) -> None:
    what = EXCHANGES | {"forward": EXCHANGES["forward"] | PATHS["named"]}
    run, _ = captured(what, tmp_path / "sender.pcap", at=At.CLIENT)
    captured(what, tmp_path / "receiver.pcap", at=At.SERVER)
    assert read(tmp_path / "sender.pcap").segments.height - read(tmp_path / "receiver.pcap").segments.height == len(PATHS["named"]["drop"])
    assert truth_document(run, declared(what))["lost_packets"] == {"client_to_server": 2, "server_to_client": 0}


def test_every_form_of_atm_is_a_medium() -> None:
    assert {form.value for form in AtmForm} == {medium.value for medium in Medium} - {"ethernet", "loopback", "raw"}


@pytest.mark.parametrize("medium", list(Medium))
def test_every_medium_carries_the_same_segments(tmp_path: Path, medium: Medium) -> None:
    captured(EXCHANGES, tmp_path / "ethernet.pcap")
    captured(EXCHANGES, tmp_path / "other.pcap", medium=medium)
    columns = ["ts_ns", "from_client", "seq", "ack", "payload_bytes", "window_bytes"]
    expected, found = (read(tmp_path / name).segments.select(columns) for name in ("ethernet.pcap", "other.pcap"))
    assert found.rows() == expected.rows()


def test_cells_of_both_directions_are_in_time_order(tmp_path: Path) -> None:
    """The receiver's ACKs arrive during a bulk transfer, in which each data segment takes at least 190 cells."""
    done = tcptrace_lab(
        "simulate",
        "--link",
        "erf-cells",
        "--mss",
        "9148",
        "--rate",
        "100M",
        "--delay",
        "50us",
        "--client",
        "write 200K",
        "-o",
        "cells.pcap",
        folder=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    asked: list[str | Path] = [needs.program("tshark"), "-n", "-r", tmp_path / "cells.pcap", "-T", "fields", "-e", "frame.time_delta"]
    shown = subprocess.run(asked, capture_output=True, timeout=60, check=True)
    steps = [float(step) for step in shown.stdout.split()]
    assert len(steps) > 200_000 // 48
    assert min(steps) >= 0


def test_same_setting_is_the_same_file_and_another_seed_is_not(tmp_path: Path) -> None:
    lossy = EXCHANGES | {"forward": EXCHANGES["forward"] | PATHS["loss"]}
    other = EXCHANGES | {"forward": EXCHANGES["forward"] | PATHS["loss"] | {"seed": 4}}
    files = [tmp_path / name for name in ("a", "b", "c")]
    for what, path in zip((lossy, lossy, other), files, strict=True):
        captured(what, path)
    assert files[0].read_bytes() == files[1].read_bytes() != files[2].read_bytes()


def test_models_ledger_covers_each_direction_from_the_first_frame_at_its_sender_to_the_last(tmp_path: Path) -> None:
    run, setting = captured(EXCHANGES, tmp_path / "run.pcap")
    document = truth_document(run, setting)
    published.check("truth", document)
    for way, from_client in (("client_to_server", True), ("server_to_client", False)):
        times = (packet.sent_ns if packet.from_client == from_client else packet.arrived_ns for packet in run.packets)
        ends = [time_ns for time_ns in times if time_ns is not None]
        spans = [(hold["start_ns"], hold["end_ns"]) for hold in document["ledger"] if hold["from_client"] == from_client]
        assert [end for _, end in spans[:-1]] == [start for start, _ in spans[1:]]
        assert (spans[0][0], spans[-1][1]) == (BASE_NS + min(ends), BASE_NS + max(ends))
        assert sum(document["ledger_s"][way].values()) == pytest.approx((max(ends) - min(ends)) / 1e9)


def test_program_is_read_as_it_is_written() -> None:
    assert program("write 8K/4K; 2 * (read 1; think 20ms); 3 * read; nodelay on; cork off; mark done; wait 1s; close") == (
        Write(8192, 4096),
        Repeat((Read(1), Think(20_000_000)), 2),
        Repeat((Read(),), 3),
        Set("no_delay", on=True),
        Set("cork", on=False),
        Mark("done"),
        WaitUntil(1_000_000_000),
        Close(),
    )
    assert program("") == ()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("wrote 8K", "'wrote' is not an action"),
        ("write", "followed by one word"),
        ("write 8K read 1", "followed by one word"),
        ("write 0", "is not a message"),
        ("2 * (write 1", "the end is found where [)] is expected"),
        ("write 1)", "'[)]' is unexpected here"),
        ("2 write 1", "'write' is found where \\* is expected"),
        ("nodelay maybe", "on or off"),
        ("99999999 * read 1", "more than 10,000,000 steps"),
        ("1 * (" * 30, "nested brackets"),
    ],
)
def test_program_that_says_nothing_sensible_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        program(text)


@pytest.mark.parametrize(
    ("what", "complaint"),
    [
        ({"client": {"stack": "sunos5"}}, "client.stack: unknown stack 'sunos5'"),
        ({"client": {"sendbuffer": "16K"}}, "client.sendbuffer is not a setting of a run"),
        ({"forward": {"loss": 1.5}}, "forward.loss: 1.5 is not a probability"),
        ({"forward": {"delay": 5}}, "forward.delay: 5 is not a time"),
        ({"mss_bytes": 70_000}, "mss_bytes: 70000 is not between"),
        ({"no_slow_start": "yes"}, "no_slow_start: 'yes' is neither true nor false"),
        ({"client": []}, r"client is a table, not \[\]"),
        ({"server": {"program": 3}}, "server.program: 3 is not text"),
    ],
)
def test_setting_that_cannot_be_right_is_named_by_its_key(what: dict[str, Any], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        declared(what)


def test_quantities_are_read_with_their_units() -> None:
    assert [size_bytes(text) for text in ("1460", "16K", "1.5KB", "1M")] == [1460, 16_384, 1536, 1_048_576]
    assert [rate_bps(text) for text in ("10M", "1.5Mb/s", "9600")] == [10_000_000, 1_500_000, 9600]
    assert [duration_ns(text) for text in ("1.5ms", "250us", "2s", "2", "7ns")] == [1_500_000, 250_000, 2 * 10**9, 2 * 10**9, 7]
    for wrong in ("", "K", "-1", "1.0001", "16X", "1e3"):
        with pytest.raises(UsageError):
            size_bytes(wrong)


def test_command_writes_capture_and_truth_and_options_override_the_file(tmp_path: Path) -> None:
    (tmp_path / "setting.toml").write_text(
        'mss_bytes = 1460\n[client]\nstack = "sunos4"\nprogram = "write 10K"\n[server]\nstack = "sunos4"\n[forward]\ndelay = "5ms"\n'
    )
    done = tcptrace_lab("simulate", "setting.toml", "--mss", "512", "-o", "run.pcap", "--truth", "truth.json", "--quiet", folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, b"")
    truth = json.loads((tmp_path / "truth.json").read_text())
    rows = read(tmp_path / "run.pcap").segments
    assert (truth["client"]["mss_bytes"], rows["payload_bytes"].max()) == (512, 512)
    assert int(rows.filter("from_client")["payload_bytes"].sum()) == 10_240
    assert rows["ts_ns"][1] - rows["ts_ns"][0] == 10_000_000  # the handshake takes twice the delay


@pytest.mark.parametrize(
    "wrong", [["--stack", "vms"], ["--at", "moon"], ["--link", "token-ring"], ["--drop", "a"], ["missing.toml"], ["--client", "write 1 2"]]
)
def test_command_refuses_in_one_line_and_writes_nothing(tmp_path: Path, wrong: list[str]) -> None:
    done = tcptrace_lab("simulate", *wrong, "-o", "run.pcap", folder=tmp_path)
    assert done.returncode == errors.EXIT_USAGE
    assert only_line(done.stderr)
    assert list(tmp_path.iterdir()) == []


def test_run_that_would_not_end_is_refused_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_module, "MAX_PACKETS", 1_000)
    path = tmp_path / "run.pcap"
    with pytest.raises(UsageError, match=r"more than 1,000 packets, and the run is at .* s") as refused:
        command(path=str(path), client="write 1G", quiet=True)
    assert "--until" in (refused.value.remedy or "")
    assert not path.exists()
    assert command(path=str(path), client="write 1G", rate="10M", until="500ms", quiet=True) == 0
