"""Writes a simulated run of `stacks` as a capture file that any tool can read, and the true causes of its waits as JSON.

Read in this order:

- `settings`: the input of a run, from TOML or command options;
- `programs`: the text form of what an application does;
- `frames`: segments as IP packets;
- `capture`: the capture file, in any supported link type;
- `truth`: the ledger and counters as JSON.
"""

from __future__ import annotations

from tcptrace_lab.simulation.capture import At, Medium, write_capture
from tcptrace_lab.simulation.settings import declared
from tcptrace_lab.simulation.truth import truth_document

__all__ = ["At", "Medium", "declared", "truth_document", "write_capture"]
