"""Retransmissions, compared with the kernel's own count: each capture of `captures/` has a file with the TCP_INFO of both ends.

Linux defines the fields of TCP_INFO in `include/uapi/linux/tcp.h`. `tcpi_total_retrans` counts all retransmitted segments, including
probes, spurious ones and SYNs. `tcpi_bytes_retrans` counts the bytes of data in these segments, `tcpi_total_rto` counts timeouts, and
`tcpi_dsack_dups` counts received D-SACKs. The relay on the path logged which packets it dropped, delayed and duplicated.
"""

from __future__ import annotations

import json
import re
from typing import Any

import polars as pl
import pytest

from tcptrace_lab import schema
from tests.support import engine
from tests.support.ledgers import judged
from tests.support.places import CAPTURES

SIDES = sorted(schema.SIDES)
JIFFY_MS = 4.0
"""Resolution of the kernel's counters of the time in which something limited a sender (250 Hz)."""


def _settings() -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted(CAPTURES.glob("*.json"))]


def _setting(name: str) -> dict[str, Any]:
    setting: dict[str, Any] = json.loads((CAPTURES / f"{name}.json").read_text())
    return setting


def _directions(setting: dict[str, Any]) -> list[tuple[dict[str, Any], dict[str, int], pl.DataFrame]]:
    """Return the figures (`segments`, …), the TCP_INFO and the sent segments of each host that has TCP_INFO."""
    read = engine.read(CAPTURES / setting["file"])
    rows = {(row["client_port"], row["server_port"]): row for row in read.connections.iter_rows(named=True)}
    found = []
    for connection in setting["connections"]:
        ports = tuple(connection[side]["port"] for side in ("client", "server") if side in connection)
        for side in SIDES:
            info = connection.get(side, {}).get("tcp_info")
            if info and ports in rows:
                row = rows[ports]
                figures = {name.removeprefix(f"{side}_"): value for name, value in row.items() if name.startswith(f"{side}_")}
                own = read.segments.filter((pl.col("conn") == row["conn"]) & (pl.col("from_client") == schema.SIDES[side]))
                found.append((figures, info, own))
    return found


def test_every_capture_has_the_kernels_account() -> None:
    assert sum(bool(_directions(setting)) for setting in _settings()) >= 50


@pytest.mark.parametrize("setting", _settings(), ids=lambda setting: setting["file"])
def test_resent_segments_and_bytes_are_those_of_the_kernel(setting: dict[str, Any]) -> None:
    for figures, info, own in _directions(setting):
        assert figures["retransmitted_segments"] == info["tcpi_total_retrans"]
        assert figures["retransmitted_bytes"] == info["tcpi_bytes_retrans"]
        assert own["retransmit_trigger"].is_not_null().sum() == info["tcpi_total_retrans"]
        timeouts = own.filter((pl.col("retransmit_trigger") == "timeout") | (pl.col("kind") == "syn_retransmit")).height
        assert timeouts == info["tcpi_total_rto"]


@pytest.mark.parametrize("setting", _settings(), ids=lambda setting: setting["file"])
def test_needless_resends_are_those_that_a_dsack_reported(setting: dict[str, Any]) -> None:
    """Each D-SACK that reached the sender reports a spurious retransmission, or a packet that the network duplicated."""
    for figures, info, _ in _directions(setting):
        assert figures["spurious_retransmissions"] + figures["network_duplicates"] == info["tcpi_dsack_dups"]


@pytest.mark.parametrize("setting", _settings(), ids=lambda setting: setting["file"])
def test_nothing_is_taken_for_a_copy_or_missing_where_the_capture_is_whole(setting: dict[str, Any]) -> None:
    for figures, _, _ in _directions(setting):
        assert (figures["capture_duplicates"], figures["not_captured_bytes"], figures["not_captured_holes"]) == (0, 0, 0)


def test_duplicates_and_late_packets_are_those_that_the_relay_made() -> None:
    duplicates = _setting("ethernet-duplicates")
    ((figures, _, _),) = [one for one in _directions(duplicates) if one[0]["data_segments"]]
    assert figures["network_duplicates"] == len(duplicates["relay"]["forward"]["log"]["duplicated_indexes"])
    reordering = _setting("ethernet-reordering-at-server")
    ((figures, _, _),) = [one for one in _directions(reordering) if one[0]["data_segments"]]
    assert figures["out_of_order_segments"] == len(reordering["relay"]["forward"]["log"]["delayed_indexes"])


def test_a_lost_probe_is_followed_by_a_timeout() -> None:
    ((_, _, own),) = [one for one in _directions(_setting("ethernet-tail-loss")) if one[0]["retransmitted_segments"]]
    assert own.filter(pl.col("retransmit_trigger").is_not_null())["kind"].to_list() == ["tail_probe", "tail_probe", "rto_retransmit"]


def _ledger(setting: dict[str, Any]) -> dict[str, float]:
    """Return the milliseconds of each cause in the first connection's client direction."""
    tables = judged(CAPTURES / setting["file"])
    row = tables.accounts.collect().row(0, named=True)
    return {
        name.removeprefix("client_").removesuffix("_ns"): (ns or 0) / 1e6 for name, ns in row.items() if re.fullmatch("client_.*_ns", name)
    }


@pytest.mark.parametrize("setting", _settings(), ids=lambda setting: setting["file"])
def test_time_that_window_and_send_buffer_held_is_the_kernels(setting: dict[str, Any]) -> None:
    """The ledger's time for the receive window is compared with `tcpi_rwnd_limited`.

    The two times are allowed to differ by 5% of the busy time, by 1.25 RTTs or by a jiffy, whichever is longest. The ledger's time for the
    send buffer is at least 90% of `tcpi_sndbuf_limited`.
    """
    info = setting["connections"][0].get("client", {}).get("tcp_info") if setting.get("connections") else None
    if not info:
        return  # no TCP_INFO of the client
    held = _ledger(setting)
    near_ms = max(info["tcpi_busy_time"] / 20_000, 1.25 * info["tcpi_rtt"] / 1000, JIFFY_MS)
    assert held["receiver_window"] + held["zero_window"] == pytest.approx(info["tcpi_rwnd_limited"] / 1000, abs=near_ms)
    assert held["send_buffer"] >= 0.9 * info["tcpi_sndbuf_limited"] / 1000
