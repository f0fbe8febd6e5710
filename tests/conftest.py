"""What holds for all tests: in CI nothing is skipped, because a test that did not run proves nothing. And what several files share."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypeVar

import atm_captures
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from tcptrace_lab.atm import AtmForm

Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)

IN_CI = os.environ.get("CI", "").lower() not in {"", "0", "false"}


def _refuse_skip(report: Report) -> Report:
    """A skipped report becomes a failed one, with the reason kept."""
    if IN_CI and report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        report.outcome = "failed"
        report.longrepr = f"skipped, which CI does not allow: {reason}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Tests that skip."""
    return _refuse_skip((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Modules that skip as a whole."""
    return _refuse_skip((yield))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Live transfers go through network namespaces, which only root may make; CI is root."""
    if item.get_closest_marker("live") and os.geteuid() != 0 and not IN_CI:
        pytest.skip("builds network namespaces, which needs root")


@pytest.fixture(scope="session")
def converted(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, AtmForm], atm_captures.Conversion]:
    """Capture's name and form of TCP over ATM → the conversion, done once."""
    return atm_captures.converter(tmp_path_factory.mktemp("atm"))
