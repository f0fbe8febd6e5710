"""Makes pictures of every section of the report, at the widths of a phone, a tablet and a desktop: `python docs/report/pictures.py`.

The pictures are written to the folder of this file as `SECTION-WIDTH.png`; those of the phone show dark mode. Pictures of some sections in
the other colour scheme are written as `SECTION-WIDTH-SCHEME.png`. `README.md` shows the pictures. The script needs Chromium, and Pillow to
reduce the colours of a picture until its file has at most about 60 kB.
"""

from __future__ import annotations

import io
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from PIL import Image
from playwright.sync_api import sync_playwright

import tcptrace_lab
from tcptrace_lab import report

if TYPE_CHECKING:
    from playwright.sync_api import Browser

HERE = Path(__file__).parent
CAPTURES = HERE.parents[1] / "captures"

WIDTHS = {360: "dark", 800: "light", 1400: "light"}
IN_BOTH = {"first-screen", "over-time"}
"""Sections with pictures in light and in dark mode."""

MAX_HEIGHT = 1_000
"""Maximum height of a picture in pixels. Longer sections are cropped."""

COLOURS = 64
MAX_BYTES = 62_000

SECTIONS = {
    # name of the picture: capture, CSS selector of the section, CSS selector of the folded part that is opened before
    "first-screen": ("ethernet-nagle-on", ".headline", ""),
    "findings": ("ethernet-loss", "#findings", "details.finding:first-of-type .zoom"),
    "connections": ("ethernet-short-connections", "#connections", ""),
    "over-time": ("ethernet-loss", "#over-time", ""),
    "waits": ("ethernet-nagle-on", ".stalls", ".stalls"),
    "capture": ("ethernet-loss", "#capture", ""),
    "definitions": ("ethernet-loss", "#definitions", ""),
}


def take(browser: Browser, page_path: Path, section: str, width: int, scheme: str) -> bytes:
    """Return the picture of one section, as PNG."""
    _, place, opened = SECTIONS[section]
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)  # type: ignore[arg-type]
    page.goto(page_path.as_uri())
    page.get_by_role("navigation").first.evaluate("(nav) => { nav.style.position = 'static'; }")  # it must not cover the section
    if opened:
        page.locator(opened).first.evaluate("(details) => { details.open = true; }")
    element = page.locator(place).first
    for plot in element.locator(".plot:visible").all():
        plot.scroll_into_view_if_needed()
        plot.locator("svg.main-svg").first.wait_for(timeout=30_000)
    box = element.bounding_box()
    if box is None:
        raise ValueError(f"{section}: the section is not visible")
    top = box["y"] + page.evaluate("scrollY")
    clip = {"x": 0, "y": max(top - 12, 0), "width": width, "height": min(box["height"] + 24, MAX_HEIGHT)}
    picture = page.screenshot(full_page=True, clip=clip)  # type: ignore[arg-type]
    page.close()
    return picture


def small(picture: bytes) -> bytes:
    """Return the picture with as many colours as its size limit allows, as PNG."""
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    for colours in (COLOURS, 40, 24, 12, 8):
        out = io.BytesIO()
        image.quantize(colours, dither=Image.Dither.NONE).save(out, "PNG", optimize=True)
        if out.tell() <= MAX_BYTES:
            break
    return out.getvalue()


def main() -> None:
    """Make the pictures of the sections that are named as arguments, or of all sections."""
    wanted = sys.argv[1:] or list(SECTIONS)
    os.chdir(CAPTURES.parent)  # commands in the report then name captures relative to the repository
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        pages: dict[str, Path] = {}
        for section in wanted:
            capture = SECTIONS[section][0]
            if capture not in pages:
                pages[capture] = Path(folder) / f"{capture}.html"
                report.write_report(tcptrace_lab.analyze(f"{CAPTURES.name}/{capture}.pcapng"), str(pages[capture]))
            for width, usual in WIDTHS.items():
                other = "light" if usual == "dark" else "dark"
                schemes = {usual: "", **({other: f"-{other}"} if section in IN_BOTH else {})}
                for scheme, suffix in schemes.items():
                    picture = small(take(browser, pages[capture], section, width, scheme))
                    HERE.joinpath(f"{section}-{width}{suffix}.png").write_bytes(picture)
        browser.close()


if __name__ == "__main__":
    main()
