"""Models of TCP stacks, and the loop of events in which two of them talk.

Read in this order: `setting` (what is simulated), `run` (one of them), `stack` (what makes a stack), `bsd` and its neighbours (what they
decide), `known` (their figures), `endpoint` with `timers` and `congestion` (what all do alike), `process` (programs and sockets),
`events` and `path` (time, processors and lines), `truth` (the model's own ledger).

Which message sizes stall, and which buffers can lock a stream, also follows from the rules alone, without time: `ranges`.

The model is deterministic: integer nanoseconds, one heap of events, chance only from a seed.
The public names are those of `__all__`, imported when first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tcptrace_lab.stacks.known import STACKS
    from tcptrace_lab.stacks.packet import Packet
    from tcptrace_lab.stacks.path import Link
    from tcptrace_lab.stacks.run import Run, Side, simulate
    from tcptrace_lab.stacks.setting import Close, Costs, Flush, Host, Mark, Read, Repeat, Set, Setting, Step, Think, WaitUntil, Write
    from tcptrace_lab.stacks.stack import Stack
    from tcptrace_lab.stacks.truth import Hold

_HOMES = {
    "known": ("STACKS",),
    "packet": ("Packet",),
    "path": ("Link",),
    "setting": ("Close", "Costs", "Flush", "Host", "Mark", "Read", "Repeat", "Set", "Setting", "Step", "Think", "WaitUntil", "Write"),
    "run": ("Run", "Side", "simulate"),
    "stack": ("Stack",),
    "truth": ("Hold",),
}
"""Module → the public names that it defines."""

__all__ = [
    "STACKS", "Close", "Costs", "Flush", "Hold", "Host", "Link", "Mark", "Packet", "Read", "Repeat", "Run", "Set", "Setting", "Side",
    "Stack", "Step", "Think", "WaitUntil", "Write", "simulate",
]  # fmt: skip


def __getattr__(name: str) -> Any:  # noqa: ANN401  (a module's attribute can be anything)
    """Import a public name on first use (PEP 562)."""
    for home, names in _HOMES.items():
        if name in names:
            value = globals()[name] = getattr(importlib.import_module(f"{__name__}.{home}"), name)
            return value
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)
