"""Commands import only the modules that they need.

`--help` imports no slow module. `analyze` imports only modules of the smallest installation, and those that its options need.
"""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
import sysconfig
import tomllib
from importlib import metadata
from typing import TYPE_CHECKING

import pytest

from tests.support import packets
from tests.support.command import TIME_LIMIT_S
from tests.support.places import CAPTURES, ROOT

if TYPE_CHECKING:
    from pathlib import Path

NAGLE = str(CAPTURES / "ethernet-nagle-on.pcapng")
LOSS = str(CAPTURES / "ethernet-loss.pcapng")

LISTED = """
import json, sys
from tcptrace_lab.cli import run
code = run(sys.argv[2:])
files = {name: getattr(module, "__file__", None) or "" for name, module in sys.modules.items()}
print(json.dumps([code, sorted(files), sorted({name.split(".")[0] for name, file in files.items() if file.startswith(sys.argv[1])})]))
"""


def listed(*arguments: str) -> tuple[set[str], set[str]]:
    """Run a command. Return the modules that it imports, and the top-level packages in site-packages that it imports."""
    command = [sys.executable, "-c", LISTED, sysconfig.get_paths()["platlib"], *arguments]
    done = subprocess.run(command, capture_output=True, timeout=TIME_LIMIT_S, check=True)
    code, modules, packages = json.loads(done.stdout.splitlines()[-1])
    assert code == 0, done.stderr.decode()
    return set(modules), set(packages) - {"_distutils_hack", "tcptrace_lab"}


def normal(requirement: str) -> str:
    """Return the normalized name of the distribution, for example `polars` for `Polars>=2,<3`."""
    return re.sub(r"[-_.]+", "-", re.split(r"[^\w.-]", requirement, maxsplit=1)[0]).lower()


def core() -> set[str]:
    """Return the names of the distributions that the package requires without extras."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        return set(map(normal, tomllib.load(file)["project"]["dependencies"]))


def with_their_own(distributions: set[str]) -> set[str]:
    """Return these distributions and everything that they require.

    Extras, and requirements of other operating systems, are left out.
    """
    found, left = set[str](), set(distributions)
    while left:
        found.add(name := left.pop())
        with contextlib.suppress(metadata.PackageNotFoundError):
            left |= {normal(line) for line in metadata.requires(name) or () if "extra ==" not in line} - found
    return found


@pytest.mark.parametrize(
    ("arguments", "used"),
    [
        (["analyze", NAGLE, "-q"], {"jinja2", "polars", "typer"}),
        (["analyze", NAGLE], {"jinja2", "polars", "rich", "typer"}),
        (["analyze", NAGLE, "--json", "-"], {"jinja2", "polars", "typer"}),
        (["analyze", LOSS, "--whatif"], {"dpkt", "jinja2", "polars", "rich", "typer"}),
    ],
    ids=lambda value: " ".join(value[2:]) or "alone" if isinstance(value, list) else "",
)
def test_analyze_imports_only_what_it_needs_of_the_lightest_install(arguments: list[str], used: set[str], tmp_path: Path) -> None:
    _, packages = listed(*arguments, "-o", str(tmp_path / "report.html"))
    homes = metadata.packages_distributions()
    distributions = {normal(homes[package][0]) for package in packages}
    assert distributions <= with_their_own(core())
    assert distributions & core() == used


def test_udp_flows_need_no_more_than_connections(tmp_path: Path) -> None:
    capture = packets.capture(tmp_path / "call.pcap", "0 C > S udp 160\n20ms S > C udp 160\n40ms C > S udp 160")
    _, packages = listed("analyze", str(capture), "-q", "-o", str(tmp_path / "report.html"))
    assert "numpy" not in packages


def test_a_quiet_analysis_imports_no_module_of_other_commands(tmp_path: Path) -> None:
    modules, _ = listed("analyze", LOSS, "-q", "-o", str(tmp_path / "report.html"))
    assert (
        modules & {"statistics", "tcptrace_lab.stacks.ranges", "tcptrace_lab.comparison", "tcptrace_lab.replay", "tcptrace_lab.lab"}
        == set()
    )
    assert "tcptrace_lab.analysis" in modules


@pytest.mark.parametrize("arguments", [["--help"], ["analyze", "--help"]], ids=" ".join)
def test_help_comes_without_the_heavy_libraries(arguments: list[str]) -> None:
    modules, packages = listed(*arguments)
    assert packages & {"polars", "plotly", "numpy", "rich", "jinja2"} == set()
    assert "tcptrace_lab._core" not in modules
