"""tcptrace-lab: find out where the time of a slow TCP transfer goes, and what to change. The input is a packet capture.

Read the packages in the order in which the data flow: `capture` (files) → the Rust engine `_core` → `engine` (its tables) →
`connections` → `causes` and `ledger` → `messages` → `findings` → `verdict` → `outputs`, `report` and `cli`. `analysis.analyze` is the
whole road in one function. Imports point one way, from the commands down to the engine. `schema` defines every column, `errors` every
exception.

`__all__` lists the public names. Each is imported on first use, so that importing the package is cheap.
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
"""Public name → the module that defines it. A public name that is missing here is itself a module."""


def __getattr__(name: str) -> Any:  # noqa: ANN401  (a module's attribute can be anything)
    """Import a public name on first use (PEP 562)."""
    if name not in __all__:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    module = importlib.import_module(f"{__name__}.{_HOME.get(name, name)}")
    value = getattr(module, name) if name in _HOME else module
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names, for completion."""
    return sorted({*globals(), *__all__})
