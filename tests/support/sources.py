"""The source files of this repository, and what they import."""

from __future__ import annotations

import ast
import subprocess
from pathlib import PurePosixPath

from tests.support import needs
from tests.support.places import ROOT


def tracked(*patterns: str) -> list[PurePosixPath]:
    """Return the files of this repository that match git's patterns, or all files if there are none.

    The paths are relative to the root of the repository.
    """
    listed = subprocess.run(
        [needs.program("git"), "-c", f"safe.directory={ROOT}", "ls-files", "-z", "--", *patterns],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [PurePosixPath(name) for name in listed.stdout.split("\0") if name]


def imported(tree: ast.AST) -> set[str]:
    """Return the modules that are imported at run time.

    Imports under `if TYPE_CHECKING` do not count.
    """
    found: set[str] = set()
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.ImportFrom):
            found |= {str(node.module), *(f"{node.module}.{name.name}" for name in node.names)}
        elif isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        found |= imported(node)
    return found
