"""In live transfers of known cause, the ledger's causes agree with the kernel, the application and the path's log.

`benchmarks/verdicts/causes.md` has the results of all transfers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tcptrace_lab.lab.causes import EVERY
from tcptrace_lab.lab.known_causes import sharing
from tcptrace_lab.lab.known_causes.scoring import judge, make
from tcptrace_lab.lab.known_causes.transfers import TRANSFERS, drawn

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.live

SHORT = [
    "window 8,192 B, 20 ms, MTU 1500",
    "send buffer 16,384 B, 20 ms, MTU 1500",
    "writes 200+300, 20 ms, MTU 1500",
    "writer gives 20,000 B every 50 ms, 10 ms, MTU 1500",
    "20 requests in writes of 100+100 B, then TCP_NODELAY and 20 such requests with 30 ms of server think time, RTT 10 ms",
    "receive window of 20,000 B, then a send buffer of 8,192 B, RTT 30 ms",
    "2 of 2,000,000 B begin at once, 8 Mb/s, endless queue, 20 ms, MTU 1500, cubic",
    "questions, 100 ms of thought, beside a bulk of 1,000,000 B, 5 Mb/s, endless queue, 20 ms",
    "3 connections of a browser, server thinks 50 ms, client 50 ms, 15 ms, questions in two pieces without NODELAY",
]
"""The transfers that the tests make: one of most kinds, two whose cause changes, and three with parallel connections."""

ATTEMPTS = 3
"""Number of attempts per transfer. A busy machine possibly delays packets, and such a delay counts as network."""


def test_there_are_at_least_sixty_transfers_and_ten_change_under_way() -> None:
    assert len(TRANSFERS) >= 60
    assert sum(len(known.due) > 1 or "then" in name for name, known in TRANSFERS.items()) >= 10
    assert {known.experiment.medium.mtu_bytes for known in TRANSFERS.values()} == {1_500, 9_180, 65_535}


def test_several_connections_or_both_ends_of_one_share_a_path_in_at_least_ten_transfers() -> None:
    assert len(sharing.SHARED) >= 10
    assert {len(known.dues) for known in sharing.SHARED.values()} == {1, 2, 3, 4, 6}


@pytest.mark.parametrize("name", SHORT)
def test_the_ledger_gives_the_known_causes_their_time_from_both_ends(name: str, tmp_path: Path) -> None:
    known = EVERY[name]
    for attempt in range(ATTEMPTS):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        outcome = make(known, folder)
        verdicts = [judge(known, outcome, vantage, conn) for conn in range(len(known.dues)) for vantage in outcome.captures]
        if all(verdict.holds for verdict in verdicts):
            return
    assert [(verdict.found, verdict.truth) for verdict in verdicts if not verdict.holds] == []


def test_the_same_seed_draws_the_same_transfers() -> None:
    for draw in (drawn, sharing.drawn):
        assert [name for name, _ in draw(7, 12)] == [name for name, _ in draw(7, 12)] != [name for name, _ in draw(8, 12)]
