"""Live transfers are captured at both ends. The two captures show the losses, duplicates and reordering in the path's log, and no others.

Both captures use the clock of this machine, so the true offset between their clocks is 0.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tcptrace_lab import analyze
from tcptrace_lab.lab.experiment import run
from tcptrace_lab.lab.networks import truth
from tcptrace_lab.lab.score import rows, seeded
from tcptrace_lab.lab.trials import TRIALS
from tcptrace_lab.pair import document, pair_captures

if TYPE_CHECKING:
    from pathlib import Path

    from tcptrace_lab.analysis import Analysis
    from tcptrace_lab.lab.networks.path import PathLog

pytestmark = pytest.mark.live

RUNS = ["everything", "everything-ipv6", "everything-no-timestamps", "everything-two-way", "loss-heavy", "reordering-far-behind"]


def frames(log: PathLog, sender: Analysis, receiver: Analysis, *, from_client: bool) -> dict[str, list[int]]:
    """Return the frame numbers of one direction's packets that the log shows as lost, duplicated or reordered.

    The frame numbers of lost packets refer to the sender's capture. All other frame numbers refer to the receiver's capture.
    """
    sent = truth.match(truth.at_sender(log), rows(sender, from_client=from_client))
    received = truth.match(truth.at_receiver(log), rows(receiver, from_client=from_client))
    arrived = {index for index, _ in log.delivered}
    found: dict[str, list[int]] = {
        "lost": [row["frame"] for event, row in sent if event.index not in arrived],
        "duplicated": [],
        "reordered": [],
    }
    seen: set[int] = set()
    for event, row in received:
        if event.index in seen:
            found["duplicated"].append(row["frame"])
        elif event.index < max(seen, default=-1):
            found["reordered"].append(row["frame"])
        seen.add(event.index)
    return found


def judged(name: str, folder: Path, **medium: object) -> tuple[dict[str, Any], dict[str, dict[str, list[int]]]]:
    """Return the JSON document of both captures, and the frame numbers that `frames` returns for each direction."""
    experiment = seeded(TRIALS[name], 3)
    outcome = run(replace(experiment, medium=replace(experiment.medium, **medium)), folder)  # type: ignore[arg-type]
    assert outcome.relay is not None
    client, server = (analyze(outcome.captures[end]) for end in ("client", "server"))
    expected = {
        "client_to_server": frames(outcome.relay.forward_log, client, server, from_client=True),
        "server_to_client": frames(outcome.relay.backward_log, server, client, from_client=False),
    }
    return document(pair_captures(client, server)), expected


@pytest.mark.parametrize("name", RUNS)
def test_losses_copies_and_reordering_are_exactly_those_of_the_log(name: str, tmp_path: Path) -> None:
    whole, expected = judged(name, tmp_path)
    (connection,) = whole["connections"]
    for way, kinds in expected.items():
        assert {kind: connection[way][f"{kind}_frames"] for kind in kinds} == kinds, way
        assert connection[way]["only_at_receiver"] == connection[way]["not_captured"] == 0
    assert sum(len(found) for kinds in expected.values() for found in kinds.values()) >= 8


def test_offset_of_one_clock_to_itself_is_nothing(tmp_path: Path) -> None:
    clock = judged("loss", tmp_path)[0]["clock"]
    assert abs(clock["offset_s"]) <= clock["offset_error_if_symmetric_s"] <= clock["offset_error_s"]
    assert 0.040 <= clock["rtt_min_s"] <= 0.042
