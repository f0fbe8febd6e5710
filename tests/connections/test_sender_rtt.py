"""The sender's smallest RTT, estimated from captures at either end, compared with the kernel's own value (`tcpi_min_rtt`).

Each committed capture has a JSON file with the TCP_INFO of both ends.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.command import tcptrace_lab
from tests.support.packets import capture
from tests.support.places import CAPTURES

if TYPE_CHECKING:
    from pathlib import Path

AT_RECEIVER = ["ethernet-loss-at-server", "ethernet-reordering-at-server", "ethernet-small-receive-window-at-server", "ethernet-duplicates"]
"""Captures at the server, to which the client sends over a path with an RTT of 20 ms."""

AT_SENDER = ["ethernet-loss", "ethernet-ipv6-bulk", "ethernet-slow-start", "ethernet-two-way"]

SHARE, US = 0.03, 50
"""The estimate is allowed to differ from the kernel's value by 3% or 50 µs."""


def reported(path: Path, folder: Path) -> dict[str, Any]:
    done = tcptrace_lab("analyze", path, "--json", "-", "-o", folder / "report.html")
    (connection,) = json.loads(done.stdout)["connections"]
    found: dict[str, Any] = connection["client_to_server"]
    return found


def kernel_us(name: str) -> int:
    (account,) = json.loads((CAPTURES / f"{name}.json").read_text())["connections"]
    found: int = account["client"]["tcp_info"]["tcpi_min_rtt"]
    return found


@pytest.mark.parametrize("name", [*AT_RECEIVER, *AT_SENDER])
def test_smallest_round_trip_of_the_sender_is_the_kernels_from_either_end(name: str, tmp_path: Path) -> None:
    (path,) = CAPTURES.glob(f"{name}.pcap*")
    direction, kernel = reported(path, tmp_path), kernel_us(name)
    found = direction["sender_rtt_min_ms"]
    assert abs(found["estimate"] * 1000 - kernel) <= max(SHARE * kernel, US)
    assert found["lower_bound"] * 1000 <= kernel + US
    assert found["samples"] == direction["rtt_ms"]["samples"] > 0
    if name in AT_RECEIVER:
        assert found["lower_bound"] < 1, "the receiver is near"


def test_without_an_answer_of_the_sender_only_the_least_is_known(tmp_path: Path) -> None:
    """Without a handshake and timestamps, nothing shows when an ACK reached the client."""
    path = capture(tmp_path / "middle.pcap", "0.0 C > S P. 1:101 ack 1 win 502\n0.02 S > C . ack 101 win 509")
    assert reported(path, tmp_path)["sender_rtt_min_ms"] == {"samples": 1, "lower_bound": 20.0, "estimate": None}
