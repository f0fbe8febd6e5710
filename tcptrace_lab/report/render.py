"""The plain dictionary of `data.py` → one HTML page that needs nothing else: no network, no second file.

Three walls keep strings of a capture from becoming markup or code: Jinja2 escapes everything that is not made here; figures
travel as base64, an alphabet without meaning in HTML; and the page's Content-Security-Policy runs only the two scripts
whose hashes it names, and forbids every request. One of the two is Plotly's; it travels deflated, a third of its size, and
is unpacked when the first figure comes into view.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from tcptrace_lab import numbers
from tcptrace_lab.report.pack import deflate, pack
from tcptrace_lab.report.plots import CAUSE_COLOURS

if TYPE_CHECKING:
    from collections.abc import Mapping

_HERE = Path(__file__).parent

POLICY = "default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'"
"""Plotly writes style attributes, and makes pictures of figures through data: and blob: addresses, which are not requests."""


def render(report: Mapping[str, Any]) -> str:
    """The page, as text. Characters that UTF-8 cannot write (lone surrogates of odd file names) are spelled out."""
    drawn = report["drawn"] or report["sizes"] or (report["pair"] and report["pair"]["drawn"])
    return page("report.html.j2", figures=bool(drawn), report=report)


def page(template: str, *, figures: bool, **values: object) -> str:
    """A page from one of our templates, as text; `figures` says whether it needs Plotly."""
    plotly, own = plotly_script(), _static("report.js")
    text = (
        _environment()
        .get_template(template)
        .render(
            **values,
            colours=CAUSE_COLOURS,
            policy=POLICY.format(scripts=f"{_hash_source(plotly)} {_hash_source(own)}"),
            style=Markup(_static("report.css")),  # noqa: S704  (ours)
            plotly=deflate(plotly) if figures else "",
            script=Markup(own),  # noqa: S704  (ours)
        )
    )
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


@cache
def plotly_script() -> str:
    """Plotly's script, out of the installed package; found without importing it, which would take longer than reading it.

    Raises:
        FileNotFoundError: the package is not installed, or keeps its script somewhere else.
    """
    spec = find_spec("plotly")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        path = Path(folder) / "package_data" / "plotly.min.js"
        if path.is_file():
            return path.read_text(encoding="utf-8")
    message = "plotly.min.js was not found in the installed plotly package"
    raise FileNotFoundError(message)


def _static(name: str) -> str:
    return (_HERE / "static" / name).read_text(encoding="utf-8")


def _hash_source(script: str) -> str:
    """The script as a CSP source: browsers run an inline script only if the hash of its text is named."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_HERE / "templates"), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"said": numbers.said, "count": numbers.count, "size": numbers.size, "pack": pack, "share": numbers.share}
    return environment
