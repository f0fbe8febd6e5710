"""Modelled captures of Comer & Lin's published deadlocks (SunOS 4.1).

Each finding shows the deadlock, its bytes and the buffer that fixes it. The study's table says which buffers are slow and which are fast. A
calculation by hand agrees: there is a deadlock if the send buffer is too small for the thresholds of both hosts. The receiver sends an ACK
after two segments of 9148 bytes or 35% of its buffer, whichever is less. The sender sends when a full segment or half of the receive buffer
is queued, whichever is less.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import pytest

import tcptrace_lab
from tcptrace_lab.simulation import At, declared, write_capture
from tcptrace_lab.stacks import simulate

if TYPE_CHECKING:
    from pathlib import Path

    from tcptrace_lab.findings.finding import Finding

KIB = 1024
LOCK = "throughput-deadlock"


@cache
def written(send_kib: int, receive_kib: int, at: At, folder: Path, *, nodelay: bool) -> Path:
    """Write a capture at one host: 2 MB over ATM at 100 Mb/s, which the applications write and read 4 KB at a time."""
    ends = {"stack": "sunos4", "send_buffer": send_kib * KIB, "receive_buffer": receive_kib * KIB, "phase": "70ms", "nodelay": nodelay}
    setting = declared(
        {
            "mss_bytes": 9148,
            "no_slow_start": True,
            "client": {**ends, "program": "write 2M/4K"},
            "server": {**ends, "program": "512 * read 4K"},
            "forward": {"rate": "100M", "delay": "50us", "framing": "atm"},
        }
    )
    path = folder / "run.pcap"
    with path.open("wb") as stream:
        write_capture(simulate(setting), setting, stream, at=at)
    return path


def locks(send_kib: int, receive_kib: int, folder: Path, *, at: At = At.CLIENT, nodelay: bool = False) -> list[Finding]:
    analysis = tcptrace_lab.analyze(written(send_kib, receive_kib, at, folder, nodelay=nodelay))
    return [finding for finding in analysis.findings if finding.id == LOCK]


@pytest.mark.parametrize("at", list(At))
@pytest.mark.parametrize(
    ("send_kib", "receive_kib", "needed_bytes"),
    [(16, 24, 9148 + 8602), (16, 28, 9148 + 10036), (16, 36, 9148 + 12903), (20, 48, 9148 + 17204)],
)
def test_published_lock_is_proved_with_the_buffer_that_rules_it_out(
    tmp_path: Path, send_kib: int, receive_kib: int, needed_bytes: int, at: At
) -> None:
    (lock,) = locks(send_kib, receive_kib, tmp_path, at=at)
    assert lock.confidence == "proved"
    assert (lock.cost_share or 0) > 0.9
    assert f"raise the send buffer (SO_SNDBUF) to at least {needed_bytes:,} bytes" in lock.remedy[0]
    assert any("TCP_NODELAY" in remedy for remedy in lock.remedy)


@pytest.mark.parametrize(("send_kib", "receive_kib"), [(16, 16), (24, 24), (32, 24), (48, 48)])
def test_buffers_that_were_fast_show_no_lock(tmp_path: Path, send_kib: int, receive_kib: int) -> None:
    assert locks(send_kib, receive_kib, tmp_path) == []


def test_nodelay_cures_the_lock_that_nagle_makes(tmp_path: Path) -> None:
    assert locks(16, 24, tmp_path, nodelay=True) == []


def test_nodelay_leaves_the_lock_of_a_send_buffer_below_what_the_receiver_waits_for(tmp_path: Path) -> None:
    """35 % of the receive buffer of 48 KB is 17,204 bytes, more than the send buffer of 16 KB."""
    (lock,) = locks(16, 48, tmp_path, nodelay=True)
    assert lock.confidence == "consistent"
    assert "raise the send buffer (SO_SNDBUF) to at least 17,204 bytes, which is at most 820 more" in lock.remedy[0]
    assert not any("TCP_NODELAY" in remedy for remedy in lock.remedy)
