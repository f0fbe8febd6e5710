"""Rules for all tests: which tests do not run on this machine, and how the end of the output reports this.

In CI, every test must run, because a skipped test proves nothing.
"""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING, TypeVar

import pytest
from hypothesis import settings

from tests.support import needs
from tests.support.framing import atm_captures
from tests.support.places import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from tcptrace_lab.capture.atm import AtmForm

Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)

IN_CI = os.environ.get("CI", "").lower() not in {"", "0", "false"}

TESTS = ROOT / "tests"

SLOW = {
    "archive/test_batch.py",
    "archive/test_cluster.py",
    "archive/test_tables.py",
    "archive/test_watch.py",
    "benchmarks/test_generator.py",
    "capture/atm/test_forms.py",
    "capture/test_convert.py",
    "capture/test_hostile.py",
    "capture/test_same_rows.py",
    "captures/test_set.py",
    "cli/test_errors.py",
    "cli/test_help.py",
    "cli/test_recordings.py",
    "comparison/test_comparison.py",
    "connections/test_capture_quality.py",
    "connections/test_rates.py",
    "connections/test_sender_rtt.py",
    "engine/test_bounds.py",
    "engine/test_threads.py",
    "findings/test_bottleneck.py",
    "lab/corpus/test_faults.py",
    "lab/corpus/test_gains.py",
    "ledger/test_cut_captures.py",
    "ledger/test_other_rules.py",
    "ledger/test_shared_path.py",
    "messages/test_messages.py",
    "messages/test_prediction.py",
    "messages/test_size_groups.py",
    "outputs/test_annotate.py",
    "outputs/test_anonymous_archive.py",
    "outputs/test_export.py",
    "outputs/test_wireshark_profile.py",
    "pair/test_memory.py",
    "pair/test_pair.py",
    "replay/test_packets.py",
    "replay/test_schedule.py",
    "replay/test_script.py",
    "replay/test_whatif.py",
    "simulation/test_roundtrip.py",
    "simulation/test_simulate.py",
    "stacks/test_papers.py",
    "verify/test_against_tshark.py",
    "verify/test_command.py",
    "verify/test_conversations.py",
    "verify/test_tshark.py",
    "view/test_archive.py",
    "view/test_cache.py",
    "view/test_capture.py",
    "view/test_two.py",
    "wire/test_links.py",
}
"""Test files that `make check` does not run, because each takes at least 5 s of CPU time.

Four slow files are not in this list, because changed words or verdicts often break them: `cli/test_commands.py`, `cli/test_answer.py`,
`ledger/test_ledger.py` and `report/test_plotted_values.py`.
"""

settings.register_profile("without-deadline", deadline=None)  # on a busy machine, a Hypothesis example can take any time
settings.load_profile("without-deadline")


def _refuse_skip(report: Report) -> Report:
    """Turn a skipped test into a failed one if this is CI. Keep the reason."""
    if IN_CI and report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        report.outcome = "failed"
        report.longrepr = f"skipped, which CI does not allow: {reason}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    return _refuse_skip((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    return _refuse_skip((yield))


def pytest_configure() -> None:
    """Check that the test files in `SLOW` exist, and that the folder in the environment variable `CAPTURES` exists."""
    if missing := [name for name in SLOW if not (TESTS / name).is_file()]:
        raise pytest.UsageError(f"conftest.SLOW: not there: {', '.join(missing)}")
    if os.environ.get("CAPTURES") and needs.why_no_captures():
        raise pytest.UsageError(f"CAPTURES={os.environ['CAPTURES']} is no folder")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Add the markers that `-m` selects.

    Skip tests whose captures are missing. Skip live tests on machines that cannot run them.
    """
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
    """Print at the end how many tests were not run and why."""
    yield
    reports = terminalreporter.stats.get("skipped", [])
    for reason, count in sorted(Counter(report.longrepr[2].removeprefix("Skipped: ") for report in reports).items()):
        terminalreporter.write_line(f"not run: {count} {reason}", yellow=True)


@pytest.fixture(scope="session")
def converted(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, AtmForm], atm_captures.Conversion]:
    """Return a function that converts the capture with a given name to a form of TCP over ATM.

    The function makes each conversion only once.
    """
    return atm_captures.converter(tmp_path_factory.mktemp("atm"))
