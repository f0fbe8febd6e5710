"""Records of a stack's program, written by hand, and the gates that follow from them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tcptrace_lab.lab.kernel_ledger.ledger import kernel_ledger
from tcptrace_lab.lab.networks.tcp_headers import SYN
from tcptrace_lab.lab.other_stacks.truth import events
from tcptrace_lab.text.numbers import NS_PER_MS

if TYPE_CHECKING:
    from tcptrace_lab.lab.other_stacks.truth import Sender

ISS = (1 << 32) - 1_000
"""The initial sequence number, chosen so that sequence numbers wrap during the transfer."""
MSS, WINDOW = 1_000, 10_000
END_MS = 400


def offset(number: int) -> int:
    """Return the sequence number on the wire of a stream offset."""
    return (ISS + number) % (1 << 32)


def sent(at_ms: float, first: int, size: int, flags: int = 0) -> dict[str, Any]:
    """Return the record of a sent segment."""
    return {"time_ns": at_ms * NS_PER_MS, "kind": "transmit", "seq": offset(first), "bytes": size, "flags": flags, "port": 40_000}


def reported(at_ms: float, una: int, state: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the record of an ACK, and the record of the sender's state after it processed the ACK."""
    received = {"time_ns": at_ms * NS_PER_MS, "kind": "received", "ack": offset(una), "port": 40_000}
    return [received, {"time_ns": at_ms * NS_PER_MS + 1, "kind": "settled", "state": {"snd_una": offset(una)} | state}]


def program(at_ms: float, kind: str, size: int = 0, *, no_space: bool = False) -> dict[str, Any]:
    """Return the record of a system call of the application."""
    return {"time_ns": at_ms * NS_PER_MS, "kind": kind, "bytes": size, "no_space": no_space}


def handshake(answer: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the records of a handshake. `answer` has the records of the SYN-ACK."""
    return [program(0, "connect"), sent(0, 0, 0, SYN), *answer, program(20.1, "connected")]


def wrote(at_ms: float, size: int, *segments: tuple[int, int]) -> list[dict[str, Any]]:
    """Return the records of a write call, and of segments that are sent during it."""
    inside = [sent(at_ms + 0.01 * (number + 1), *segment) for number, segment in enumerate(segments)]
    return [program(at_ms, "write", size), *inside, program(at_ms + 0.5, "written", size)]


def gates_at(records: list[dict[str, Any]], at_ms: float, sender: Sender) -> list[str]:
    """Return the gates that are closed at `at_ms`. `sender` has the rules of the stack."""
    every = [*records, program(END_MS, "shutdown"), program(END_MS + 1, "closed")]
    lines = [json.dumps(one | {"time_ns": int(one["time_ns"])}) for one in every]
    table = kernel_ledger(events(lines, "192.0.2.1", "192.0.2.2", 8_000, sender))
    (row,) = [row for row in table.iter_rows(named=True) if row["start_ns"] <= at_ms * NS_PER_MS < row["end_ns"]]
    assert (row["sender_address"], row["sender_port"], row["receiver_port"], row["is_client"]) == ("192.0.2.1", 40_000, 8_000, True)
    gates: list[str] = row["gates"]
    return gates
