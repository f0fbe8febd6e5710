"""Measures the report of a large capture in Chromium: its size, how soon it can be used, and how long a zoom takes.

    python benchmarks/speed/report.py [CAPTURE | REPORT.html] [--runs 3]

The default is `data/mixed-96.pcap` with ten million packets (see README.md). The exit code is 1 if a promise is broken.

*Interactive* is the time from the start of the navigation until the page is loaded, has shown a frame, and the browser is idle for the
first time. A *zoom* begins with a click on "zoom in", "zoom out", "earlier" or "later" of the first connection, whose figures are all
drawn. It ends with the second frame after the click. The *frame* of a zoom is the longest time in which nothing new is shown. It is the
time from the click to the first frame or from the first to the second frame, whichever is longer. The second frame shows the result.
Figures out of sight follow later, one per frame.

On a busy machine, wall time means little. So the processor time of the page's thread is measured too, by the browser itself.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from playwright.sync_api import sync_playwright

if TYPE_CHECKING:
    from playwright.sync_api import CDPSession

HERE = Path(__file__).parents[1]

MAX_BYTES, MAX_INTERACTIVE_MS, MAX_ZOOM_MS = 6_000_000, 2_000, 100
"""The promised maximum values."""

MOVES = ("in", "in", "later", "in", "earlier", "out", "in", "in", "later", "out")

INTERACTIVE = """() => new Promise((done) => {
    const idle = () => requestAnimationFrame(() => requestIdleCallback(() => done(performance.now())));
    document.readyState === 'complete' ? idle() : addEventListener('load', idle);
})"""

DRAW = """async () => {
    const article = document.querySelector('.connection');
    const figures = [...article.querySelectorAll('figure:not([hidden])')].filter((each) => each.querySelector('.plot'));
    const begin = performance.now();
    for (const figure of figures) {
        figure.scrollIntoView({ block: 'center', behavior: 'instant' });
        while (figure.dataset.drawn !== 'yes') await new Promise(requestAnimationFrame);
    }
    return [figures.length, performance.now() - begin];
}"""

ZOOM = """(way) => new Promise((done) => {
    const button = document.querySelector(`.connection [data-move=${way}]`);
    performance.mark('asked');
    button.click();
    const since = () => performance.measure('zoom', 'asked').duration;
    setTimeout(() => requestAnimationFrame(() => {
        const first = since();
        requestAnimationFrame(() => done([Math.max(first, since() - first), since()]));
    }));
})"""


def measured(page_path: Path) -> dict[str, Any]:
    """Open the report once. Return the measured times in milliseconds."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_context(offline=True, viewport={"width": 1400, "height": 900}).new_page()
        page.goto(page_path.resolve().as_uri(), wait_until="commit")
        interactive_ms = page.evaluate(INTERACTIVE)
        figures, draw_ms = page.evaluate(DRAW)
        clock = page.context.new_cdp_session(page)
        clock.send("Performance.enable", {"timeDomain": "threadTicks"})
        before_s = busy_s(clock)
        zooms_ms = [page.evaluate(ZOOM, way) for way in MOVES]
        cpu_ms = (busy_s(clock) - before_s) * 1e3 / len(MOVES)
        browser.close()
    return {"interactive": interactive_ms, "figures": figures, "draw": draw_ms, "zooms": zooms_ms, "cpu": cpu_ms}


def busy_s(clock: CDPSession) -> float:
    """Return the processor time in seconds that the page's own thread has used for tasks."""
    metrics = {one["name"]: one["value"] for one in clock.send("Performance.getMetrics")["metrics"]}
    return float(metrics["TaskDuration"])


def report_of(path: Path, folder: Path) -> Path:
    """Make the report of a capture and return its path. If `path` is a report, return `path`."""
    if path.suffix == ".html":
        return path
    made = folder / "report.html"
    subprocess.run([sys.executable, "-m", "tcptrace_lab", "analyze", str(path), "-o", str(made), "--quiet"], check=True)
    return made


def main() -> int:
    """Measure the report, print the results, and compare them with the promises."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", nargs="?", type=Path, default=HERE / "data" / "mixed-96.pcap")
    parser.add_argument("--runs", type=int, default=3)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        report = report_of(asked.path, Path(folder))
        size = report.stat().st_size
        runs = [measured(report) for _ in range(asked.runs)]
    interactive_ms = statistics.median(run["interactive"] for run in runs)
    frames_ms, zooms_ms = zip(*(zoom for run in runs for zoom in run["zooms"]), strict=True)
    rows = (
        ("size, MB", size / 1e6, MAX_BYTES / 1e6),
        ("interactive, ms", interactive_ms, MAX_INTERACTIVE_MS),
        ("zoom, ms a frame", statistics.median(frames_ms), MAX_ZOOM_MS),
    )
    print(f"{asked.path.name}: {runs[0]['figures']} figures drawn in {statistics.median(run['draw'] for run in runs):.0f} ms")
    for name, found, most in rows:
        print(f"{name:20} {found:8.2f}   at most {most:g}   {'kept' if found <= most else 'BROKEN'}")
    print(f"{'  longest of all':20} {max(frames_ms):8.2f}")
    print(f"{'zoom, ms in all':20} {statistics.median(zooms_ms):8.2f}   median of {len(zooms_ms)}, to the second frame")
    print(f"{'zoom, CPU ms (mean)':20} {statistics.median(run['cpu'] for run in runs):8.2f}   of the page's thread, all figures")
    return int(any(found > most for _, found, most in rows))


if __name__ == "__main__":
    sys.exit(main())
