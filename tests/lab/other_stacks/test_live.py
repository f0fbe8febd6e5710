"""Each stack makes one live transfer, and its records agree with what the program did."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jsonschema
import polars as pl
import pytest

from tcptrace_lab.errors import LabFailed, MissingTool
from tcptrace_lab.lab.corpus import manifest
from tcptrace_lab.lab.kernel_ledger import build as kernel
from tcptrace_lab.lab.kernel_ledger.ledger import LEDGER
from tcptrace_lab.lab.networks.network import CLIENT_IPV4
from tcptrace_lab.lab.other_stacks.making import make
from tcptrace_lab.lab.other_stacks.stacks import STACKS
from tcptrace_lab.text.numbers import NS_PER_MS

if TYPE_CHECKING:
    from pathlib import Path

    from tcptrace_lab.lab.other_stacks.stacks import Stack

pytestmark = pytest.mark.live


@pytest.fixture(params=STACKS)
def stack(request: pytest.FixtureRequest) -> Stack:
    found = STACKS[request.param]
    try:
        kernel.tracer()
        found.program()
    except (MissingTool, LabFailed) as error:
        pytest.skip(str(error))
    return found


def test_a_question_in_two_writes_waits_for_the_delayed_ack_by_the_stacks_own_account(stack: Stack, tmp_path: Path) -> None:
    """Each of 25 questions waits for a round trip and for a delayed ACK of at most 40 ms. The peer is Linux."""
    number = list(stack.kinds).index("two-writes-nagle")
    (line,) = make(stack, tmp_path, 1, range(number, number + 1))
    assert line.endswith("records"), line
    (entry,) = manifest.entries(tmp_path / stack.part)
    jsonschema.validate(entry, manifest.SCHEMA)
    folder = tmp_path / stack.part / entry["name"]
    assert {path.name for path in folder.iterdir()} >= {"client.pcapng", "server.pcapng", "middle.pcap", LEDGER}
    rows = pl.read_parquet(folder / LEDGER).filter(pl.col("sender_address") == CLIENT_IPV4)
    held = rows.filter(pl.col("gates").list.contains("nagle")).select((pl.col("end_ns") - pl.col("start_ns")).sum()).item()
    assert 25 * 30 * NS_PER_MS < held < entry["duration_s"] * 1_000 * NS_PER_MS
    assert rows["least_transit_ns"].drop_nulls().min() == pytest.approx(entry["forward"]["delay_s"] * 1e9, rel=0.5)
