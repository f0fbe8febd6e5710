"""tcptrace-lab: find out where the time of a slow TCP transfer goes, and what to change. The input is a packet capture.

Read the packages in the order in which the data flow: `capture` (files) → the Rust engine `_core` → `engine` (its tables) → `connections` →
`causes` and `ledger` → `messages` → `findings` → `verdict` → `outputs`, `report` and `cli`. The function `analysis.analyze` runs all the
steps. Imports go in one direction only: from the commands (`cli`) down to the engine (`_core`). `schema` defines the columns of all tables,
and `errors` all exceptions.

`__all__` lists the public names. A public name is imported when it is first used, so that `import tcptrace_lab` is fast.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tcptrace_lab import errors
    from tcptrace_lab.analysis import Analysis, analyze
    from tcptrace_lab.archive.run import batch
    from tcptrace_lab.comparison import compare
    from tcptrace_lab.engine.segments import read
    from tcptrace_lab.findings.finding import Finding

__all__ = ["Analysis", "Finding", "analyze", "batch", "compare", "errors", "read"]

_HOME = {
    "Analysis": "analysis",
    "analyze": "analysis",
    "batch": "archive.run",
    "Finding": "findings.finding",
    "compare": "comparison",
    "read": "engine.segments",
}
"""Public name → module that defines it. Other public names are modules."""


def __getattr__(name: str) -> Any:  # noqa: ANN401  (a module's attribute can be anything)
    """Import a public name when it is first used (PEP 562)."""
    if name not in __all__:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    module = importlib.import_module(f"{__name__}.{_HOME.get(name, name)}")
    value = getattr(module, name) if name in _HOME else module
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names, for tab completion."""
    return sorted({*globals(), *__all__})
