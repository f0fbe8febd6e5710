"""Live transfers are traced in the kernel. The kernel's ledger agrees with TCP_INFO and with the intended cause of each transfer."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from tcptrace_lab.errors import LabFailed, MissingTool
from tcptrace_lab.lab.experiment import run
from tcptrace_lab.lab.kernel_ledger import build
from tcptrace_lab.lab.kernel_ledger.gates import DEFERRED_BY_WINDOW, NAGLE, RECEIVER_WINDOW
from tcptrace_lab.lab.kernel_ledger.ledger import write_ledger
from tcptrace_lab.lab.kernel_ledger.trace import tracing
from tcptrace_lab.lab.kernel_ledger.transfers import KNOWN
from tcptrace_lab.text.numbers import NS_PER_S

if TYPE_CHECKING:
    from pathlib import Path

    from tcptrace_lab.lab.experiment import Experiment

pytestmark = pytest.mark.live

WITHIN_S = 0.03
"""Allowed difference in seconds. TCP_INFO counts times in jiffies, and it rounds at each change of the cause."""


@pytest.fixture(autouse=True, scope="module")
def _can_trace() -> None:
    try:
        build.tracer()
    except (MissingTool, LabFailed) as error:
        pytest.skip(str(error))


def traced(experiment: Experiment, folder: Path) -> tuple[pl.DataFrame, dict[str, Any]]:
    """Return the client's rows of the kernel's ledger, and the client's TCP_INFO at the end of the transfer."""
    outcome = run(replace(experiment, vantages=("client",)), folder, tracing)
    (account,) = outcome.accounts
    side: Any = account["client"]
    return write_ledger(folder).filter(pl.col("is_client")), side["tcp_info"]


def seconds(rows: pl.DataFrame, *gates: str) -> float:
    """Return the total time, in seconds, of the waits in which one of these gates opened last."""
    mine = rows.filter(pl.col("last").list.eval(pl.element().is_in(gates)).list.any())
    return float(mine.select((pl.col("end_ns") - pl.col("start_ns")).sum()).item()) / NS_PER_S


def test_time_at_the_receivers_window_is_that_of_tcp_info(tmp_path: Path) -> None:
    rows, info = traced(KNOWN["window-64k-40ms"], tmp_path)
    limited_s = info["tcpi_rwnd_limited"] / 1_000_000
    assert limited_s > 0.5
    assert seconds(rows, RECEIVER_WINDOW, DEFERRED_BY_WINDOW) == pytest.approx(limited_s, abs=WITHIN_S)


def test_intervals_touch_and_add_up_to_the_life_of_the_sender(tmp_path: Path) -> None:
    rows, _ = traced(KNOWN["window-16k-10ms"], tmp_path)
    starts, ends = rows["start_ns"].to_list(), rows["end_ns"].to_list()
    assert starts[1:] == ends[:-1]
    assert sum(end - start for start, end in zip(starts, ends, strict=True)) == ends[-1] - starts[0]


def test_questions_in_two_writes_wait_for_nagle_and_a_held_ack(tmp_path: Path) -> None:
    """The client sends each of 25 questions in two writes.

    The second write waits for a round trip of 20 ms and for a delayed ACK of at least 40 ms.
    """
    rows, _ = traced(KNOWN["nagle-100-100-20ms"], tmp_path)
    assert seconds(rows, NAGLE) > 25 * 0.05
    assert seconds(rows.filter(pl.col("context").list.contains("ack-held")), NAGLE) > 0.8 * seconds(rows, NAGLE)


def test_with_nodelay_nagle_holds_nothing(tmp_path: Path) -> None:
    rows, _ = traced(KNOWN["nodelay-server-thinks"], tmp_path)
    assert seconds(rows, NAGLE) == 0
