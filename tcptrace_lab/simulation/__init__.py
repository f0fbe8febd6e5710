"""What the models of `stacks` do, as a capture that any tool reads, with the model's own ledger beside it.

Read in this order: `programs` (what the programs do, as text), `settings` (all that a run depends on, as a mapping), `frames` (the run's
segments as IP packets), `capture` (a file of them, in any framing), `truth` (the model's ledger and figures).
"""

from __future__ import annotations

from tcptrace_lab.simulation.capture import At, Medium, write_capture
from tcptrace_lab.simulation.settings import declared
from tcptrace_lab.simulation.truth import truth_document

__all__ = ["At", "Medium", "declared", "truth_document", "write_capture"]
