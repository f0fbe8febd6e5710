"""Ranks and medians show the regressions and outliers of an archive. Each of them is reported with the numbers from which it follows."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest

from tcptrace_lab.archive.dataset import query
from tcptrace_lab.archive.index.outliers import outliers
from tcptrace_lab.archive.index.regressions import compare, p_value
from tcptrace_lab.archive.index.transfers import transfers
from tcptrace_lab.findings.finding import Severity
from tests.support.captures import archives
from tests.support.command import new_process

if TYPE_CHECKING:
    from pathlib import Path

SYN_NS = 10_000_000


def handshakes(folder: Path, times_ms: list[float], first: int) -> Path:
    """Write one capture for each handshake time, and return the folder.

    The captures are numbered from `first`, and all have one client address.
    """
    folder.mkdir(exist_ok=True)
    for place, time_ms in enumerate(times_ms):
        archives.handshake(folder / f"h{first + place}.pcap", first + place, time_ms / 1000)
    return folder


def test_p_of_the_rank_test_is_that_of_the_published_example() -> None:
    # This is Mann and Whitney's textbook example. Tortoises and hares finish in the order T H H H H H T T T T T H. The statistic U of the
    # tortoises is 25, and its maximum is 6 × 6 = 36.
    hares, tortoises = np.array([2.0, 3, 4, 5, 6, 12]), np.array([1.0, 7, 8, 9, 10, 11])
    u, mean, deviation = 25, 18, math.sqrt(6 * 6 * 13 / 12)
    assert p_value(hares, tortoises) == pytest.approx(math.erfc((u - mean - 0.5) / deviation / math.sqrt(2)))
    assert p_value(np.array([1.0, 1]), np.array([1.0, 1])) == 1.0


def test_ties_narrow_the_spread_of_the_rank_sum() -> None:
    # Calculated by hand, the ranks are 1.5 1.5 4 4 4 6. The ranks of the new values add up to 4 + 4 + 6 = 14. The smallest possible sum is
    # 6, so U = 14 − 6 = 8. The mean of U is 4.5, and the term for ties is (2³−2) + (3³−3) = 30.
    old, new = np.array([1.0, 1, 2]), np.array([2.0, 2, 3])
    deviation = math.sqrt(9 / 12 * (7 - 30 / 30))
    assert p_value(old, new) == pytest.approx(math.erfc((8 - 4.5 - 0.5) / deviation / math.sqrt(2)))


@pytest.fixture(scope="module")
def before_and_after(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two archives: one of six handshakes of about 10 ms, and one of six handshakes of about 25 ms."""
    folder = tmp_path_factory.mktemp("slower")
    archives.made(handshakes(folder / "a", [10, 10.2, 10.4, 9.9, 10.1, 10.3], 0), folder / "before")
    archives.made(handshakes(folder / "b", [25, 25.5, 26, 24.7, 25.2, 25.7], 100), folder / "after")
    return folder / "before", folder / "after"


def test_handshakes_that_became_slower_are_reported_with_medians_and_numbers(before_and_after: tuple[Path, Path]) -> None:
    before, after = before_and_after
    with query.opened(str(after)) as tables:
        found = compare(tables, str(before))
    change = next(change for change in found.changes if change.metric == "syn_ns")
    assert (change.n_before, change.n_now) == (6, 6)
    assert change.before == pytest.approx(10_150_000)
    assert change.now == pytest.approx(25_350_000)
    assert change.ratio == pytest.approx(2.5, rel=0.02)
    assert change.severity == Severity.HIGH
    assert found.worst == Severity.HIGH
    assert "(n = 6) before" in change.words


def test_the_other_way_round_nothing_became_slower(before_and_after: tuple[Path, Path]) -> None:
    before, after = before_and_after
    with query.opened(str(before)) as tables:
        found = compare(tables, str(after))
    assert found.changes == ()
    assert found.compared > 0


def test_an_archive_compared_with_itself_has_nothing_new(before_and_after: tuple[Path, Path]) -> None:
    before, _ = before_and_after
    with query.opened(str(before)) as tables:
        assert compare(tables, str(before)).compared == 0


def test_fail_on_with_a_baseline_asks_how_much_slower(before_and_after: tuple[Path, Path]) -> None:
    before, after = before_and_after
    sources = after.parent / "b"
    done = new_process("batch", sources, "-o", after, "--no-reports", "--jobs", "1", "--baseline", before, "--fail-on", "high")
    assert done.returncode == 1
    assert b"slower: 10.0.0.1 \xe2\x86\x92 10.0.0.2:80: handshake 2.5" in done.stderr
    back = new_process("batch", after.parent / "a", "-o", before, "--no-reports", "--jobs", "1", "--baseline", after, "--fail-on", "low")
    assert back.returncode == 0


def test_one_transfer_unlike_its_fellows_is_an_outlier_and_few_have_none(tmp_path: Path) -> None:
    times_ms = [10, 10.1, 10.2, 9.9, 10, 10.1, 9.8, 10, 30]
    archives.made(handshakes(tmp_path / "in", times_ms, 0), tmp_path / "out")
    with query.opened(str(tmp_path / "out")) as tables:
        ways = transfers(tables).collect()
    odd = outliers(ways).filter(pl.col("metric") == "syn_ns")
    assert set(odd["value"]) == {30_000_000.0}
    assert odd["n"].to_list() == [9] * odd.height
    # The spread has its minimum of 5 % (MIN_SPREAD), so z = 0.6745 · ln(30 / 10) / 0.05.
    assert odd["z"][0] == pytest.approx(0.6745 * math.log(30 / 10) / 0.05)
    assert outliers(ways.head(7)).is_empty()
