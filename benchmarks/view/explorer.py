"""Measures the explorer: `python benchmarks/view/explorer.py CAPTURE|ARCHIVE`.

The script opens the explorer twice, sends the requests of a user, and prints the times as Markdown. The promises are about the capture
`mixed-96` of benchmarks/traffic, with 10 million packets. A time over HTTP is that of a whole answer, as a median of five. A time in
Chromium lasts until the page has painted what was requested.

With `--limit-mb 1000`, the explorer runs in a memory control group, which kills it if it needs more (Linux, version 1 or 2, root). Mapped
memory, allocated memory and the page cache count.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import playwright.sync_api

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

RUNS = 5

WATCH = """() => {
    const react = window.Plotly.react;
    window.Plotly.react = async (plot, ...rest) => {
        const { top, bottom } = plot.getBoundingClientRect();
        const made = await react(plot, ...rest);
        if (bottom > 0 && top < innerHeight) window.drawnInSight = performance.now();
        return made;
    };
}"""
"""Records when the last visible figure was drawn."""

ZOOM = """() => new Promise((resolve) => {
    const begin = performance.now();
    const figures = document.querySelector('#figures');
    let busy = false;
    const watch = () => {
        busy ||= figures.ariaBusy === 'true';
        if (busy && figures.ariaBusy === 'false') resolve([window.drawnInSight - begin, performance.now() - begin]);
        else setTimeout(watch, 1);
    };
    [...document.querySelectorAll('button')].find((each) => each.textContent.trim() === 'zoom in').click();
    watch();
})"""
"""Clicks on *zoom in*. Returns the time until the visible figures are drawn, and the time until all figures are drawn."""

GROUPS = (Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup"))
"""The folders of memory control groups, of version 1 and of version 2."""


@contextmanager
def _limited(limit_mb: int | None) -> Iterator[Callable[[], None] | None]:
    """Yield a function that puts the calling process into a control group with this limit. Without a limit, yield None."""
    if limit_mb is None:
        yield None
        return
    root = next(root for root in GROUPS if root.is_dir())
    group = root / f"tcptrace-lab-{os.getpid()}"
    group.mkdir()
    limit = next(group / name for name in ("memory.limit_in_bytes", "memory.max") if (group / name).exists())
    limit.write_text(str(limit_mb * 1_000_000))

    def enter() -> None:
        (group / "cgroup.procs").write_text(str(os.getpid()))

    try:
        yield enter
    finally:
        group.rmdir()


@contextmanager
def _opened(capture: str, cache: str, enter: Callable[[], None] | None) -> Iterator[tuple[subprocess.Popen[str], str, float]]:
    """Yield the running explorer: its process, its address, and the time until it answered."""
    begin_s = time.monotonic()
    command = [sys.executable, "-m", "tcptrace_lab", "view", capture, "--no-browser", "--quiet"]
    environment = {**os.environ, "XDG_CACHE_HOME": cache}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, preexec_fn=enter)  # noqa: PLW1509
    assert process.stdout is not None
    try:
        url = process.stdout.readline().strip()
        yield process, url, time.monotonic() - begin_s
    finally:
        process.terminate()  # a program that a shell starts in the background ignores interrupts
        process.wait(10)


def _peak_mb(process: subprocess.Popen[str]) -> float:
    """Return the peak of the resident memory in MB."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{process.pid}/status").read_text())
    assert found is not None
    return int(found[1]) * 1024 / 1e6


def _median_ms(url: str, runs: int = RUNS) -> float:
    times = []
    for _ in range(runs):
        begin_s = time.monotonic()
        with urllib.request.urlopen(url) as answer:  # noqa: S310  (our own server)
            answer.read()
        times.append(time.monotonic() - begin_s)
    return statistics.median(times) * 1e3


def _capture_rows(url: str) -> dict[str, str]:
    """Return the addresses of a user's requests for a capture, by description."""
    with urllib.request.urlopen(f"{url}api/connections?sort=segments&descending=1&limit=1") as answer:  # noqa: S310  (our own server)
        conn = int(re.findall(rb'"id":(\d+)', answer.read())[0])
    figures = f"{url}api/connection/{conn}/figures?width=1400"
    return {
        "page of the capture": url,
        "overview over time, all of it": f"{url}api/timeline?width=1400",
        "100 connections by bytes": f"{url}api/connections?sort=bytes&descending=1&limit=100",
        "search by text": f"{url}api/connections?text=10.0&limit=100",
        "page of the largest connection": f"{url}connection/{conn}",
        "its figures, all of it": figures,
        "its figures, 200 ms": f"{figures}&from_ns=1000000000&to_ns=1200000000",
        "its figures, 1 ms": f"{figures}&from_ns=1000000000&to_ns=1001000000",
        "100 of its segments": f"{url}api/connection/{conn}/segments?limit=100",
    }


def _searches(url: str) -> dict[str, str]:
    """Return the addresses of searches that come for the first time. No earlier search has prepared their results."""
    return {
        "all connections by a column, for the first time": f"{url}api/connections?sort=duration_ns&descending=1",
        "all connections by client, for the first time": f"{url}api/connections?sort=client",
        "a search by text, for the first time": f"{url}api/connections?text=10.0.0.7",
        "a filter by address, for the first time": f"{url}api/connections?address=10.0.0.7",
        "all connections as CSV, by duration": f"{url}api/connections.csv?sort=duration_ns&descending=1",
    }


def _archive_rows(url: str) -> dict[str, str]:
    """Return the addresses of a user's requests for an archive, by description."""
    sql = "SELECT%20server_port%2C%20SUM(client_payload_bytes)%20AS%20b%20FROM%20connections%20GROUP%20BY%20server_port%20ORDER%20BY%20b"
    return {
        "page of the archive": url,
        "its sums, causes over time, worst captures": f"{url}api/archive",
        "100 captures": f"{url}api/archive/captures?limit=100",
        "an SQL query over all connections": f"{url}api/archive/query?sql={sql}",
    }


def _in_chromium(url: str, *, archive: bool) -> Iterator[tuple[str, float]]:
    """Yield the times of the first paint and of the complete page. For a capture, also yield the median of five zooms.

    The zooms are those of the largest connection.
    """
    with playwright.sync_api.sync_playwright() as tool:
        browser = tool.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1400, "height": 900})
        page.goto(url)  # Chromium itself warms up
        page.wait_for_selector("#list tbody td")
        begin_s = time.monotonic()
        page.reload(wait_until="commit")
        page.wait_for_selector("#list tbody td")
        whole_s = time.monotonic() - begin_s
        paint = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
        yield "Chromium: first paint of the page", page.evaluate(paint)
        yield "Chromium: the page with its list", whole_s * 1e3
        if archive:
            return
        begin_s = time.monotonic()
        page.goto(_capture_rows(url)["page of the largest connection"])
        page.wait_for_selector("#figures[aria-busy=false] .plot.js-plotly-plot")
        yield "Chromium: page of the largest connection, until its figures are drawn", (time.monotonic() - begin_s) * 1e3
        page.evaluate(WATCH)
        page.locator("#figures .plot").first.scroll_into_view_if_needed()
        in_sight, all_drawn = zip(*(page.evaluate(ZOOM) for _ in range(RUNS)), strict=True)
        yield "Chromium: a zoom, until the figures in sight are drawn anew", statistics.median(in_sight)
        yield "Chromium: a zoom, until all figures are", statistics.median(all_drawn)
        browser.close()


def main() -> None:
    """Measure one capture or archive."""
    parser = argparse.ArgumentParser(description="Measure the explorer.")
    parser.add_argument("subject")
    parser.add_argument("--limit-mb", type=int)
    given = parser.parse_args()
    archive = Path(given.subject).is_dir()
    with tempfile.TemporaryDirectory() as cache, _limited(given.limit_mb) as enter:
        with _opened(given.subject, cache, enter) as (process, _, first_s):
            peak_mb = _peak_mb(process)
        size_mb = sum(file.stat().st_size for file in Path(cache).rglob("*") if file.is_file()) / 1e6
        with _opened(given.subject, cache, enter) as (process, url, second_s):
            print("| what | measured |\n|---|---|")
            print(f"| first `view`, until it serves | {first_s:.1f} s |")
            print(f"| peak memory until then | {peak_mb:.0f} MB |")
            print(f"| tables on disk | {size_mb:.0f} MB |")
            print(f"| second `view`, until it serves | {second_s:.2f} s |")
            for what, address in (_archive_rows(url) if archive else _capture_rows(url)).items():
                print(f"| {what} | {_median_ms(address):.0f} ms |", flush=True)
            for what, address in ({} if archive else _searches(url)).items():
                print(f"| {what} | {_median_ms(address, 1):.0f} ms |", flush=True)
            for what, taken_ms in _in_chromium(url, archive=archive):
                print(f"| {what} | {taken_ms:.0f} ms |", flush=True)
            print(f"| peak memory while serving | {_peak_mb(process):.0f} MB |")


if __name__ == "__main__":
    main()
