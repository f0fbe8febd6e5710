"""Five requests and answers over a path of 10 ms per direction.

The files are captures at three points, and a hand-written kernel ledger.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from tcptrace_lab.lab.kernel_ledger.events import SCHEMA as EVENT_SCHEMA
from tcptrace_lab.lab.kernel_ledger.ledger import LEDGER, SCHEMA
from tcptrace_lab.lab.kernel_ledger.trace import EVENTS
from tests.support import packets

if TYPE_CHECKING:
    from pathlib import Path

MS = 1_000_000
QUESTIONS = 5

ENTRY: dict[str, Any] = {
    "schema_version": 2,
    "name": "one",
    "program": "questions",
    "path": "short",
    "congestion_control": "cubic",
    "paused": None,
    "forward": {"delay_s": 0.010},
    "backward": {"delay_s": 0.010},
}
"""The entry of this transfer in the manifest, with the fields that comparisons need."""

GAP_MS = 70

QUESTION_MS = [100 + GAP_MS * number for number in range(QUESTIONS)]
"""Times of the requests (ms).

A request takes 10 ms to the server. After 30 ms, the server answers. The answer takes 10 ms to the client. After 20 ms, the client sends
the next request.
"""


def exchange(from_client_ms: int) -> str:
    """Return the packets in a capture at a point that is `from_client_ms` away from the client."""
    question_late, answer_late = from_client_ms, 50 - from_client_ms
    lines = [
        *("host A 192.0.2.1:40001", "host B 192.0.2.2:5001"),
        f"{question_late}ms A > B S 0:0(0) win 64240 <mss 1460>",
        f"{20 - from_client_ms}ms B > A S. 0:0(0) ack 1 win 65160 <mss 1460>",
        f"{20 + question_late}ms A > B . 1:1(0) ack 1 win 64240",
    ]
    for number, at_ms in enumerate(QUESTION_MS):
        question, answer = 1 + 100 * number, 1 + 50 * number
        lines += [
            f"{at_ms + question_late}ms A > B P. {question}:{question + 100}(100) ack {answer}",
            f"{at_ms + answer_late}ms B > A P. {answer}:{answer + 50}(50) ack {question + 100}",
        ]
    return "\n".join(lines)


def kernel_rows(own_turn: str) -> list[tuple[object, ...]]:
    """Return the kernel's ledger of the client's direction.

    `own_turn` is the cause of the time in which the client prepares a request.
    """
    ends = ("192.0.2.1", 40_001, "192.0.2.2", 5_001, True)
    rows: list[tuple[object, ...]] = []
    for at_ms in QUESTION_MS:
        for start_ms, end_ms, gate, context in (
            (0, 10, "peer-turn", ["in-transit", "unacked", "round-trip"]),
            (10, 20, "peer-turn", ["unacked", "round-trip"]),
            (20, 40, "peer-turn", ["unacked"]),
            (40, 50, "peer-in-transit", ["unacked"]),
            (50, GAP_MS, own_turn, []),
        ):
            times = (packets.BASE_NS + (at_ms + start_ms) * MS, packets.BASE_NS + (at_ms + end_ms) * MS)
            rows.append((*ends, *times, [gate], [gate], context, 10 * MS))
    return rows


def transfer(folder: Path, own_turn: str = "own-turn") -> Path:
    """Write the files of a finished transfer into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    for point, from_client_ms in (("client", 0), ("middle", 5), ("server", 10)):
        packets.capture(folder / f"{point}.pcap", exchange(from_client_ms))
    pl.DataFrame(kernel_rows(own_turn), schema=SCHEMA, orient="row").write_parquet(folder / LEDGER)
    pl.DataFrame(schema=EVENT_SCHEMA).write_parquet(folder / EVENTS)
    return folder
