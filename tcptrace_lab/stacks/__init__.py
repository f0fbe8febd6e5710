"""Models of historical and current TCP stacks, and a discrete-event simulator that runs a connection between two of them.

Read in this order:

- `setting`: the input of a run; `run`: simulates one run and returns the packets;
- `stack`: the definition of a stack; `catalog`: the modelled stacks with their parameters;
- `families/`: the rules in which stacks differ (send buffer, Nagle, delayed ACK, advertised window);
- `endpoint`, `timers`, `congestion`: the TCP that all stacks share;
- `application`: the application and its socket calls;
- `events`, `path`: simulated time, processors and links;
- `model_ledger`: the true cause of every wait.

`ranges` simulates no time. It derives from a stack's rules which message sizes stall, and which buffer sizes can deadlock a stream.

The model is deterministic: it uses integer nanoseconds, a single event heap, and random numbers from a seed. `__all__` lists the public
names. A name is imported when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tcptrace_lab.stacks.catalog import STACKS
    from tcptrace_lab.stacks.model_ledger import Hold
    from tcptrace_lab.stacks.packet import Packet
    from tcptrace_lab.stacks.path import Link
    from tcptrace_lab.stacks.run import Run, Side, simulate
    from tcptrace_lab.stacks.setting import Close, Costs, Flush, Host, Mark, Read, Repeat, Set, Setting, Step, Think, WaitUntil, Write
    from tcptrace_lab.stacks.stack import Stack

_HOMES = {
    "catalog": ("STACKS",),
    "packet": ("Packet",),
    "path": ("Link",),
    "setting": ("Close", "Costs", "Flush", "Host", "Mark", "Read", "Repeat", "Set", "Setting", "Step", "Think", "WaitUntil", "Write"),
    "run": ("Run", "Side", "simulate"),
    "stack": ("Stack",),
    "model_ledger": ("Hold",),
}
"""Public names of each module."""

__all__ = [
    "STACKS", "Close", "Costs", "Flush", "Hold", "Host", "Link", "Mark", "Packet", "Read", "Repeat", "Run", "Set", "Setting", "Side",
    "Stack", "Step", "Think", "WaitUntil", "Write", "simulate",
]  # fmt: skip


def __getattr__(name: str) -> Any:  # noqa: ANN401  (a module's attribute can have any type)
    """Import a public name on first use (PEP 562)."""
    for home, names in _HOMES.items():
        if name in names:
            value = globals()[name] = getattr(importlib.import_module(f"{__name__}.{home}"), name)
            return value
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)
