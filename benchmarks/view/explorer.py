"""Times of the explorer: `python benchmarks/view/explorer.py CAPTURE`. Opens it twice, asks as a user would, and prints Markdown.

The capture of the promises is `mixed-96` of benchmarks/traffic (10 million packets). Times are of whole answers over HTTP, median of five.
"""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

RUNS = 5


def _opened(capture: str, cache: str) -> tuple[subprocess.Popen[str], str, float]:
    """Start the explorer; the time until it serves."""
    begin_s = time.monotonic()
    command = [sys.executable, "-m", "tcptrace_lab", "view", capture, "--no-browser", "--quiet"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "XDG_CACHE_HOME": cache})
    assert process.stdout is not None
    url = process.stdout.readline().strip()
    return process, url, time.monotonic() - begin_s


def _peak_mb(process: subprocess.Popen[str]) -> float:
    """Peak of the resident memory, in MB."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{process.pid}/status").read_text())
    assert found is not None
    return int(found[1]) * 1024 / 1e6


def _ended(process: subprocess.Popen[str]) -> None:
    process.terminate()  # an interrupt is ignored by what a shell starts in the background
    process.wait(10)


def _median_ms(url: str) -> float:
    times = []
    for _ in range(RUNS):
        begin_s = time.monotonic()
        with urllib.request.urlopen(url) as answer:  # noqa: S310  (our own server)
            answer.read()
        times.append(time.monotonic() - begin_s)
    return statistics.median(times) * 1e3


def main(capture: str) -> None:
    """Measure one capture."""
    with tempfile.TemporaryDirectory() as cache:
        process, _, first_s = _opened(capture, cache)
        peak_mb = _peak_mb(process)
        _ended(process)
        size_mb = sum(file.stat().st_size for file in Path(cache).rglob("*") if file.is_file()) / 1e6
        process, url, second_s = _opened(capture, cache)
        largest = f"{url}api/connections?sort=segments&descending=1&limit=1"
        with urllib.request.urlopen(largest) as answer:  # noqa: S310
            conn = int(re.findall(rb'"id":(\d+)', answer.read())[0])
        figures = f"{url}api/connection/{conn}/figures?width=1400"
        rows = {
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
        print("| what | measured |\n|---|---|")
        print(f"| first `view`, until it serves | {first_s:.1f} s |")
        print(f"| peak memory of reading and writing the tables | {peak_mb:.0f} MB |")
        print(f"| tables on disk | {size_mb:.0f} MB |")
        print(f"| second `view`, until it serves | {second_s:.2f} s |")
        for what, address in rows.items():
            print(f"| {what} | {_median_ms(address):.0f} ms |", flush=True)
        print(f"| peak memory while serving | {_peak_mb(process):.0f} MB |")
        _ended(process)


if __name__ == "__main__":
    main(sys.argv[1])
