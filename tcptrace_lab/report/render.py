"""The plain dictionary of `data.py` → one HTML page that needs no network.

Three walls keep strings of a capture from becoming markup or code: Jinja2 escapes everything that is not made here; figures
travel as base64, an alphabet without meaning in HTML; and the page's Content-Security-Policy runs only the two scripts
whose hashes it names, and forbids every request. One of the two is Plotly's; it travels compressed, a third of its size, and
is unpacked when the first figure comes into view. Where many reports lie together, Plotly's script can lie beside them, once
(`shared_scripts`): then the policy lets the page run that one file, by a nonce that no capture can foresee.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import secrets
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from tcptrace_lab.report import define
from tcptrace_lab.report.compiled import Compiled
from tcptrace_lab.report.figures.plots import CAUSE_COLOURS, CAUSE_PATTERNS
from tcptrace_lab.report.pack import Packing
from tcptrace_lab.report.parts.table import HTML_ROWS, cells
from tcptrace_lab.text import numbers

if TYPE_CHECKING:
    from collections.abc import Mapping

_HERE = Path(__file__).parent

POLICY = "default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'"
"""Plotly writes style attributes, and makes pictures of figures through data: and blob: addresses, which are not requests."""


PLOTLY: Final = "plotly-basic-4.1.1.min.js"
"""Plotly's smallest bundle that draws lines and marks (see `static/README.md`), as it is called beside reports that share it."""

PLOTLY_SOURCE: Final = "'sha256-mXhOOr+wexQqFeUhpDnm2a3c6ts/eVU/0kxyd08GSbo='"
"""The hash of that script, as `_hash_source` makes it: to unpack it for that would take half as long as all the rest of a small page."""

Scripts = Literal["inline", "shared"]
"""Where Plotly's script is: in the page, or in a file beside it."""


def render(report: Mapping[str, Any], scripts: Scripts = "inline") -> str:
    """The page, as text. Characters that UTF-8 cannot write (lone surrogates of odd file names) are spelled out.

    Args:
        report: as `data` gives it.
        scripts: `shared` leaves Plotly's script out; the files of `shared_scripts` have to lie in the page's folder.
    """
    drawn = report["drawn"] or report["sizes"] or (report["pair"] and report["pair"]["drawn"])
    return page("report.html.j2", figures=bool(drawn), scripts=scripts, report=report)


def shared_scripts() -> dict[str, bytes]:
    """Name → content of the files that pages with `scripts="shared"` need in their folder."""
    return {PLOTLY: gzip.decompress(_plotly())}


def page(template: str, *, figures: bool, scripts: Scripts = "inline", **values: object) -> str:
    """A page from one of our templates, as text; `figures` says whether it needs Plotly."""
    packing = Packing()
    own = _static("report.js")
    # Stands for the nonce until the page is known, and cannot be met in it by accident or by design.
    unknown = secrets.token_hex(32) if scripts == "shared" and figures else ""
    sources = [_hash_source(own), *([f"'nonce-{unknown}'"] if unknown else [PLOTLY_SOURCE] if figures else [])]
    text = (
        _environment()
        .get_template(template)
        .render(
            **values,
            pack=packing.later,
            colours=CAUSE_COLOURS,
            patterns=_PATTERNS,
            definitions=_definitions,
            html_rows=HTML_ROWS,
            policy=POLICY.format(scripts=" ".join(sources)),
            style=Markup(_static("report.css")),  # noqa: S704  (ours)
            plotly=base64.b64encode(_plotly()).decode("ascii") if figures and not unknown else "",
            shared={"name": PLOTLY, "nonce": unknown} if unknown else None,
            script=Markup(own),  # noqa: S704  (ours)
        )
    )
    text = packing.put_in(text.encode("utf-8", "backslashreplace").decode("utf-8"))
    # The nonce is the hash of all that the page says: the same page has the same, and a capture cannot hold its own hash.
    return text.replace(unknown, hashlib.sha256(text.replace(unknown, "").encode()).hexdigest()) if unknown else text


def fragment(template: str, **values: object) -> str:
    """A piece of HTML from one of our templates, for a page that is not ours: no script, no style sheet."""
    text = _environment().get_template(template).render(**values, colours=CAUSE_COLOURS)
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


_PATTERN_CLASSES: Final = {
    "": "plain",
    "/": "rising",
    "\\": "falling",
    "x": "crossed",
    "-": "level",
    "|": "upright",
    "+": "squared",
    ".": "dotted",
}
"""Plotly's names of patterns → the style sheet's."""

_PATTERNS: Final = {cause: _PATTERN_CLASSES[pattern] for cause, pattern in CAUSE_PATTERNS.items()}


@cache
def _definitions() -> Markup:
    """What the words of a report mean: the same in each."""
    text = _environment().get_template("_definitions.html.j2").render(words=define.words(), colours=CAUSE_COLOURS, patterns=_PATTERNS)
    return Markup(text)  # noqa: S704  (ours, escaped)


@cache
def _plotly() -> bytes:
    """Plotly's script, compressed with gzip."""
    return (_HERE / "static" / f"{PLOTLY}.gz").read_bytes()


def plotly_script() -> str:
    """Plotly's script."""
    return gzip.decompress(_plotly()).decode("utf-8")


@cache
def _static(name: str) -> str:
    return (_HERE / "static" / name).read_text(encoding="utf-8")


@cache
def _hash_source(script: str) -> str:
    """The script as a CSP source: browsers run an inline script only if the hash of its text is named."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


@cache
def _environment() -> Environment:
    """With our templates, each compiled once."""
    environment = Environment(
        loader=FileSystemLoader(_HERE / "templates"), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.bytecode_cache = Compiled(environment)
    environment.tests["sentence"] = lambda fact: fact["kind"] == "sentence"
    environment.filters |= {
        "said": numbers.said,
        "count": numbers.count,
        "size": numbers.size,
        "share": numbers.share,
        "cells": cells,
    }
    return environment
