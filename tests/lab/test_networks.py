"""The lab's networks carry traffic, and the lab's reports are true. No process or file is left over, even after an error."""

from __future__ import annotations

import math
import shutil
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest

import tcptrace_lab
from tcptrace_lab import errors
from tcptrace_lab.lab.capturing.capture import Capture, capturing
from tcptrace_lab.lab.experiment import Experiment, run
from tcptrace_lab.lab.hosts import tcp_info
from tcptrace_lab.lab.hosts.applications import Bulk, Exchanges
from tcptrace_lab.lab.hosts.sockets import SocketOptions
from tcptrace_lab.lab.networks.network import Medium
from tcptrace_lab.lab.networks.path import Fate, PathModel

MTU_BYTES, MSS_BYTES = 1_500, 1_448


def open_files() -> list[str]:
    """Return the open files of this process, including network namespaces."""
    links = []
    for link in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # the file descriptor of the directory itself
            links.append(str(link.readlink()))
    return sorted(links)


def children() -> list[str]:
    """Return the IDs of this process's children that it has not waited for yet."""
    return [child for task in Path("/proc/self/task").iterdir() for child in (task / "children").read_text().split()]


@pytest.mark.live
@pytest.mark.parametrize("kind", ["lo", "veth", "tap", "tun"])
@pytest.mark.parametrize("ipv6", [False, True])
def test_every_medium_carries_an_exchange(kind: str, ipv6: bool, tmp_path: Path) -> None:  # noqa: FBT001  (pytest gives it)
    medium = Medium(kind, 65_536 if kind == "lo" else MTU_BYTES, ipv6=ipv6)  # type: ignore[arg-type]
    outcome = run(Experiment(medium, Exchanges((300,), 700, count=2), vantages=("client",)), tmp_path)
    (connection,) = tcptrace_lab.read(outcome.captures["client"]).connections.collect().iter_rows(named=True)
    assert (connection["client_payload_bytes"], connection["server_payload_bytes"]) == (600, 1400)
    info = outcome.accounts[0]["client"]["tcp_info"]  # type: ignore[index]
    assert (info["tcpi_bytes_sent"], info["tcpi_bytes_received"]) == (600, 1400)


@pytest.mark.live
def test_offload_shows_long_segments_at_the_ends_and_wire_packets_between(tmp_path: Path) -> None:
    medium = Medium("tap", MTU_BYTES, offloads=True, forward=PathModel(delay_s=0.005), backward=PathModel(delay_s=0.005))
    vantages = ("client", "client-wire", "server-wire", "server")
    outcome = run(Experiment(medium, Bulk(300_000), vantages=vantages), tmp_path)
    longest = {
        vantage: tcptrace_lab.read(path).segments.select(pl.col("payload_bytes").max()).collect().item()
        for vantage, path in outcome.captures.items()
    }
    assert longest["client"] > MSS_BYTES
    assert longest["client-wire"] == longest["server-wire"] == MSS_BYTES
    assert outcome.relay is not None
    assert max(entry.frame_bytes for entry in outcome.relay.forward_log.entries) == MTU_BYTES + 14


@pytest.mark.live
def test_path_does_to_packets_what_its_log_says(tmp_path: Path) -> None:
    """The receiver's capture lacks the lost packets and has the duplicated packets twice.

    `test_kernel.py` compares the log packet by packet.
    """
    forward = PathModel(
        delay_s=0.005,
        loss_share=0.02,
        duplicate_share=0.02,
        reorder_share=0.02,
        reorder_delay_s=(0.001, 0.008),
        seed=5,
        undisturbed_packets=3,
    )
    medium = Medium("tap", MTU_BYTES, forward=forward, backward=PathModel(delay_s=0.005))
    outcome = run(Experiment(medium, Bulk(400_000)), tmp_path)
    assert outcome.relay is not None
    log = outcome.relay.forward_log
    fates = {fate: len(log.indexes(fate)) for fate in Fate}
    assert min(fates[Fate.LOST], fates[Fate.DUPLICATED], fates[Fate.DELAYED]) >= 1
    tables = {vantage: tcptrace_lab.read(path).connections.collect() for vantage, path in outcome.captures.items()}
    every = pl.sum_horizontal("client_segments", "client_network_duplicates", "client_capture_duplicates")
    seen = {vantage: connections.select(every).item() for vantage, connections in tables.items()}
    assert seen["client"] == len(log.entries)
    assert seen["server"] == len(log.delivered) == len(log.entries) - fates[Fate.LOST] + fates[Fate.DUPLICATED]


@pytest.mark.live
def test_nothing_stays_behind_when_the_program_fails(tmp_path: Path) -> None:
    before, others = open_files(), children()
    failing = _Failing(len(others))
    with pytest.raises(ZeroDivisionError):
        run(Experiment(Medium("tap", MTU_BYTES, offloads=True), failing), tmp_path)  # type: ignore[arg-type]
    assert open_files() == before
    assert children() == others


@dataclass
class _Failing:
    """A program that fails while the network is up and two captures run.

    `others` is the number of child processes that the test process has besides the two captures.
    """

    others: int

    def run(self, _meeting: object) -> dict[str, object]:
        assert len(children()) == self.others + 2
        raise ZeroDivisionError


@pytest.mark.live
def test_capture_in_a_place_that_is_not_there_is_a_line_about_dumpcap(tmp_path: Path) -> None:
    others = children()
    with (
        Medium("lo", 65_536).network() as network,
        pytest.raises(errors.LabFailed, match="dumpcap did not start"),
        capturing(network.points["client"], tmp_path / "no" / "such.pcapng", snaplen_bytes=128),
    ):
        pytest.fail("it did start")
    assert children() == others


@pytest.mark.live
def test_nobody_waits_for_what_an_ended_dumpcap_would_have_written(tmp_path: Path) -> None:
    """The dumpcap process ends early if the disk has no space for its file."""
    with (
        Medium("lo", 65_536).network() as network,
        pytest.raises(errors.LabFailed, match=r"dumpcap ended early.*check free disk space"),
        capturing(network.points["client"], tmp_path / "some.pcapng", snaplen_bytes=128) as capture,
    ):
        _never_shows(capture)


def _never_shows(capture: Capture) -> None:
    capture.dumpcap.process.kill()
    capture.dumpcap.process.wait()
    capture.shows(b"what never comes", math.inf)


@pytest.mark.live
def test_without_rights_the_lab_says_what_it_needs_and_exits_with_5() -> None:
    script = "import sys; from tcptrace_lab.lab.score import main; sys.exit(main(['loss']))"
    command = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == errors.EXIT_MISSING_TOOL, done.stderr
    assert done.stderr == "unshare(CLONE_NEWNET): Operation not permitted; run it as root, because it builds network namespaces\n"


@pytest.mark.live
def test_missing_dumpcap_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def which(tool: str) -> str | None:
        return None if tool == "dumpcap" else f"/usr/bin/{tool}"

    monkeypatch.setattr(shutil, "which", which)
    with pytest.raises(errors.MissingTool, match="dumpcap"):
        run(Experiment(Medium("lo", 65_536), Bulk(1_000)), tmp_path)


def test_tcp_info_of_an_older_kernel_leaves_out_what_it_does_not_give() -> None:
    """The struct of Linux 2.6 has 104 bytes. Newer kernels append fields to it."""
    raw = bytes([1, 0, 0, 0, 0, 0x7, 0x75, 0]) + bytes(range(96))
    info = tcp_info.decode(raw)
    assert (info["tcpi_state"], info["tcpi_options"]) == ("ESTABLISHED", ["timestamps", "sack", "wscale"])
    assert (info["tcpi_snd_wscale"], info["tcpi_rcv_wscale"]) == (5, 7)
    assert info["tcpi_total_retrans"] == int.from_bytes(bytes(range(92, 96)), sys.byteorder)
    assert "tcpi_min_rtt" not in info


@pytest.mark.live
def test_socket_options_reach_the_kernel(tmp_path: Path) -> None:
    options = SocketOptions(congestion_control="reno", nodelay=True, receive_buffer_bytes=16_384, send_buffer_bytes=20_000)
    assert options.describe() == {
        "TCP_CONGESTION": "reno",
        "TCP_NODELAY": True,
        "SO_RCVBUF (server, requested)": 16_384,
        "SO_SNDBUF (client, requested)": 20_000,
    }
    medium = Medium("tap", MTU_BYTES, forward=PathModel(delay_s=0.010), backward=PathModel(delay_s=0.010))
    outcome = run(Experiment(medium, Bulk(200_000), options, vantages=("client",)), tmp_path)
    connection = tcptrace_lab.read(outcome.captures["client"]).connections.collect().row(0, named=True)
    assert connection["server_max_window_bytes"] <= 2 * 16_384, "the kernel doubles what was asked for"
