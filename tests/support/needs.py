"""Skips tests that need something that the machine lacks: root, programs, shared captures.

pytest prints the reason. Shared captures (made by others) are in the folder that the environment variable `CAPTURES` names, or in
`../shared/captures`. A test that reads one of them has the mark `shared_captures`. If the folder exists, it must contain all shared
captures that tests name.
"""

from __future__ import annotations

import csv
import functools
import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.places import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterable

    from _pytest.mark import ParameterSet


SHARED = Path(os.environ.get("CAPTURES") or ROOT.parent / "shared" / "captures").absolute()
"""The folder of shared captures, with their `INDEX.tsv`."""

shared_captures = pytest.mark.shared_captures
"""The mark of tests that read shared captures."""

PACKAGES = {
    "editcap": "wireshark-common",
    "capinfos": "wireshark-common",
    "mergecap": "wireshark-common",
    "reordercap": "wireshark-common",
    "xz": "xz-utils",
}
"""Program → its Debian package, if the package has another name."""


def each(paths: Iterable[Path]) -> list[ParameterSet]:
    """Return test parameters for these captures. Shared captures get their mark."""
    return [pytest.param(path, marks=shared_captures if path.is_relative_to(SHARED) else (), id=path.name) for path in paths]


@functools.cache
def index() -> dict[str, dict[str, str]]:
    """Map the name of each shared capture to its row of the index.

    The result is empty if there are no shared captures.
    """
    if why_no_captures():
        return {}
    with (SHARED / "INDEX.tsv").open(encoding="utf-8", newline="") as file:
        return {row["file"]: row for row in csv.DictReader(file, delimiter="\t")}


def why_no_captures() -> str | None:
    """Return why there are no shared captures, or None if there are some."""
    return None if SHARED.is_dir() else f"no {os.path.relpath(SHARED, ROOT)}; CAPTURES=folder"


@functools.cache
def why_not_live() -> str | None:
    """Return why this machine cannot make transfers over network namespaces, or None if it can."""
    if os.geteuid() != 0:
        return "not root"
    if subprocess.run(["unshare", "--net", "true"], capture_output=True, check=False).returncode != 0:
        return "root may not make network namespaces here"
    return None if shutil.which("dumpcap") else "dumpcap is not installed; Debian: apt-get install tshark"


def root() -> None:
    """Skip the test unless root runs it."""
    if os.geteuid() != 0:
        pytest.skip("tests that mount or make captures (not root)")


def program(name: str, *others: str) -> str:
    """Return the path of a program, or of one of its substitutes `others`.

    Skip the test if none of them is installed.
    """
    path = next(filter(None, map(shutil.which, (name, *others))), None)
    if path is None:
        pytest.skip(f"tests with {name} (not installed; Debian: apt-get install {PACKAGES.get(name, name)})")
    return path


@functools.cache
def _tshark_version() -> str:
    """Return the first line of `tshark --version`: "TShark (Wireshark) 4.0.17 (Git …"."""
    said = subprocess.run([program("tshark"), "--version"], capture_output=True, text=True, check=True).stdout
    return next(word.rstrip(".") for word in said.split() if word[:1].isdigit())


def tshark_4_0() -> None:
    """Skip the test unless tshark has version 4.0. The rules in `tcptrace_lab.verify` describe this version."""
    program("tshark")
    if not _tshark_version().startswith("4.0."):
        pytest.skip(f"comparisons with tshark 4.0 ({_tshark_version()} is installed)")
