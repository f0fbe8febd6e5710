"""A list of the public names of the package. Whoever adds or removes a name must change this list."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType

import pytest

import tcptrace_lab
from tcptrace_lab import errors


def test_the_public_names_are_these() -> None:
    assert sorted(tcptrace_lab.__all__) == ["Analysis", "Finding", "analyze", "batch", "compare", "errors", "read"]
    assert set(tcptrace_lab.__all__) <= set(dir(tcptrace_lab))


def test_every_public_name_is_there_and_says_what_it_is() -> None:
    for name in tcptrace_lab.__all__:
        assert getattr(tcptrace_lab, name).__doc__
    assert isinstance(tcptrace_lab.errors, ModuleType)
    assert tcptrace_lab.errors is errors


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'anlyze'"):
        tcptrace_lab.anlyze  # noqa: B018  (the attribute access is the test)


def test_importing_the_package_imports_nothing_else() -> None:
    heavy = "('tcptrace_lab.', 'polars', 'numpy')"
    script = f"import sys; import tcptrace_lab; sys.exit(str([name for name in sys.modules if name.startswith({heavy})]))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=60, check=False)
    assert done.stderr == b"[]\n"
