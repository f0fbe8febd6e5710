"""What holds for all tests: in CI nothing is skipped, because a test that did not run proves nothing. And what several files share."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import atm_captures
import needs
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from tcptrace_lab.atm import AtmForm

Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)

IN_CI = os.environ.get("CI", "").lower() not in {"", "0", "false"}

TESTS = Path(__file__).parent

SLOW = {
    "test_against_tshark.py",
    "test_annotate.py",
    "test_archive_batch.py",
    "test_archive_cluster.py",
    "test_archive_tables.py",
    "test_archive_watch.py",
    "test_atm_forms.py",
    "test_bounds.py",
    "test_captures_set.py",
    "test_cli_errors.py",
    "test_comparison.py",
    "test_conversations.py",
    "test_convert.py",
    "test_engine_threads.py",
    "test_export.py",
    "test_help.py",
    "test_hostile.py",
    "test_messages.py",
    "test_pair.py",
    "test_predict.py",
    "test_replay_packets.py",
    "test_replay_schedule.py",
    "test_replay_script.py",
    "test_rules_of_others.py",
    "test_same_rows.py",
    "test_sender_rtt.py",
    "test_size_groups.py",
    "test_stacks_papers.py",
    "test_verify_tshark.py",
}
"""What `make check` leaves out, as paths in this folder: each takes 9 s of a processor or more (of such, only `test_cli.py` stays)."""


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


def pytest_configure() -> None:
    """What is named must be there: files of tests, a folder of captures."""
    if missing := [name for name in SLOW if not (TESTS / name).is_file()]:
        raise pytest.UsageError(f"conftest.SLOW: not there: {', '.join(missing)}")
    if os.environ.get("CAPTURES") and needs.why_no_captures():
        raise pytest.UsageError(f"CAPTURES={os.environ['CAPTURES']} is no folder")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks for `-m`; and tests whose captures are not here, and live ones where nothing can go live, are left out."""
    absent = {
        "shared_captures": ("tests of the shared captures", needs.why_no_captures()),
        "live": ("live tests", needs.why_not_live() if any(item.get_closest_marker("live") for item in items) else None),
    }
    for item in items:
        if isinstance(item, pytest.Function) and "browser" in item.fixturenames:
            item.add_marker("browser")
        if item.path.relative_to(TESTS).as_posix() in SLOW:
            item.add_marker("slow")
        for mark, (what, why) in absent.items():
            if why and item.get_closest_marker(mark):
                item.add_marker(pytest.mark.skipif(condition=True, reason=f"{what} ({why})"))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Generator[None]:
    """The last lines: how many tests were not run, and why."""
    yield
    reports = terminalreporter.stats.get("skipped", [])
    for reason, count in sorted(Counter(report.longrepr[2].removeprefix("Skipped: ") for report in reports).items()):
        terminalreporter.write_line(f"not run: {count} {reason}", yellow=True)


@pytest.fixture(scope="session")
def converted(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, AtmForm], atm_captures.Conversion]:
    """Capture's name and form of TCP over ATM → the conversion, done once."""
    return atm_captures.converter(tmp_path_factory.mktemp("atm"))
