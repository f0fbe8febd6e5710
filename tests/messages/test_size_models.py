"""In sweeps of message sizes, the sizes in the predicted ranges stall, and no others.

Models of hosts make some sweeps, and the kernel of this machine makes the others.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from tcptrace_lab import analyze
from tcptrace_lab.lab.experiment import Experiment, run
from tcptrace_lab.lab.hosts.applications import EchoSweep
from tcptrace_lab.lab.hosts.sockets import SocketOptions
from tcptrace_lab.lab.networks.network import Medium
from tcptrace_lab.stacks.ranges import STACKS, Settings, Stalls, predicted_ranges
from tests.support.captures.modelled_sweeps import ATM, K, joined
from tests.support.command import tcptrace_lab

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tcptrace_lab import Analysis
    from tcptrace_lab.messages.size_groups import GroupSizes


ETHERNET = [(4 * K + 1, 4 * K + 1459), *((4 * K + (2 * n + 1) * 1460 + 1, 4 * K + (2 * n + 2) * 1460 - 1) for n in range(9))]
"""Ranges of message sizes that stall over Ethernet, according to the published formula."""

SWEEPS = 8
"""Maximum number of sweeps that this kernel makes until one stalls.

In some connections, the receiver acknowledges every segment at once, so nothing stalls.
"""

STEP = 330
"""Difference between consecutive message sizes, in bytes."""


def simulated(folder: Path, sizes: Sequence[int], *options: str) -> Analysis:
    """Return the analysis of a sweep of echoed messages, captured at the client.

    Both hosts run SunOS with buffers of 16 KB.
    """
    asks = "; ".join(f"write {size}; read {size}" for size in sizes)
    echoes = "; ".join(f"read {size}; write {size}" for size in sizes)
    setting, capture = folder / "sweep.toml", folder / "sweep.pcap"
    setting.write_text(f'[client]\nprogram = "{asks}"\n[server]\nprogram = "{echoes}"\n')
    buffers = ("--stack", "sunos4", "--send-buffer", "16K", "--receive-buffer", "16K")
    done = tcptrace_lab("simulate", setting, *buffers, "--no-slow-start", *options, "-o", capture)
    assert done.returncode == 0, done.stderr.decode()
    return analyze(capture)


def swept(last: int, step: int = STEP, times: int = 1) -> list[int]:
    sizes = list(range(150, last, step)) * times
    random.Random(2).shuffle(sizes)  # noqa: S311  (random order, not a secret)
    return sizes


def of(analysis: Analysis, *, from_client: bool) -> GroupSizes:
    (group,) = [one for one in analysis.message_sizes if one.from_client == from_client]
    return group


def test_a_sweep_over_atm_shows_the_published_ranges_and_the_prediction_agrees(tmp_path: Path) -> None:
    sizes = swept(30_000)
    analysis = simulated(tmp_path, sizes, "--mss", "9148", "--delay", "200us")
    for from_client in (True, False):
        group = of(analysis, from_client=from_client)
        assert [(one.from_bytes, one.to_bytes) for one in group.measured] == joined(ATM, sizes)
        assert group.parameters.stack == "sunos4"
        assert [(one.from_bytes, one.to_bytes) for one in group.predicted[:2]] == ATM[:2]
        assert {one.stalls for one in group.predicted} == {Stalls.ALWAYS}


def test_a_sweep_over_ethernet_shows_the_published_bands(tmp_path: Path) -> None:
    sizes = swept(30_000)
    analysis = simulated(tmp_path, sizes, "--mss", "1460", "--rate", "10M", "--delay", "5us", "--framing", "ethernet")
    found = [(one.from_bytes, one.to_bytes) for one in of(analysis, from_client=True).measured]
    assert found == [span for span in joined(ETHERNET, sizes) if span[0] >= 4 * K]


def test_without_nagles_algorithm_the_sweep_shows_nothing(tmp_path: Path) -> None:
    analysis = simulated(tmp_path, swept(30_000), "--mss", "9148", "--delay", "200us", "--nodelay")
    assert "anomalous-message-sizes" not in [finding.id for finding in analysis.findings]
    assert all(group.measured == () for group in analysis.message_sizes)


def test_a_header_before_a_body_does_not_show_the_size_of_pieces(tmp_path: Path) -> None:
    """The application writes a header of 100 bytes and then the body.

    A body smaller than a segment waits for the ACK of the header, and a larger body does not. This does not mean that the application
    writes in pieces of 100 bytes.
    """
    sizes = swept(17_000)
    capture = tmp_path / "header.pcap"
    client, server = (
        "; ".join(f"write 100; write {size}; read 100" for size in sizes),
        "; ".join(f"read {size + 100}; write 100" for size in sizes),
    )
    done = tcptrace_lab("simulate", "--stack", "linux", "--client", client, "--server", server, "--delay", "20us", "-o", capture)
    assert done.returncode == 0, done.stderr.decode()
    group = of(analyze(capture), from_client=True)
    assert [(one.from_bytes, one.to_bytes) for one in group.measured] == [(250, 1240)]  # sizes 150 to 1140, plus the header of 100
    assert (group.parameters.copy_bytes, group.predicted) == (None, ())


@pytest.mark.live
def test_this_kernel_stalls_at_the_sizes_that_the_rules_of_linux_predict(tmp_path: Path) -> None:
    """The application writes pieces of 4 KB, and the MSS is 1448.

    Which ranges stall depends on when the receiver reads. Some messages in a slow range do not stall, because the receiver sends some ACKs
    at once.
    """
    rules = predicted_ranges(STACKS["linux"], Settings(1448, 4 << 20, 4 << 20, 4096), 1, 17_000)
    found = []
    for attempt in range(SWEEPS):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        outcome = run(Experiment(Medium("veth", 1500), EchoSweep(tuple(swept(17_000, 150, 4)))), folder)
        analysis = analyze(outcome.captures["client"])
        assert {group.parameters.stack for group in analysis.message_sizes} <= {"linux"}
        assert {group.parameters.copy_bytes for group in analysis.message_sizes} <= {4096}
        found = [one for group in analysis.message_sizes for one in group.measured]
        for one in found:
            assert any(rule.from_bytes <= one.from_bytes and one.to_bytes <= rule.to_bytes for rule in rules), one
        if found:
            break
    assert found, f"no size stalls in {SWEEPS} sweeps"


@pytest.mark.live
def test_this_kernel_without_nagles_algorithm_shows_no_slow_sizes(tmp_path: Path) -> None:
    outcome = run(Experiment(Medium("veth", 1500), EchoSweep(tuple(swept(17_000, 150))), SocketOptions(nodelay=True)), tmp_path)
    assert all(group.measured == () for group in analyze(outcome.captures["client"]).message_sizes)
