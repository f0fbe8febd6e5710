"""Renders the dictionary of `data.py` as one HTML page that works offline.

Three measures prevent strings of a capture from becoming markup or code. Jinja2 escapes every value that is not part of this package.
Figures are base64 text, which has no meaning in HTML. The Content-Security-Policy allows only the two scripts whose hashes it lists, and
forbids all network requests.

One of the scripts is Plotly. It is compressed to a third of its size, and unpacked when the first figure comes into view. Many reports in
one folder can share Plotly as one file in this folder (`shared_scripts`). The policy then allows the file by a nonce, which a capture
cannot predict.
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

from tcptrace_lab.report import definitions
from tcptrace_lab.report.figures.plots import CAUSE_COLOURS, CAUSE_PATTERNS
from tcptrace_lab.report.pack import Packing
from tcptrace_lab.report.parts.connection_table import HTML_ROWS, cells
from tcptrace_lab.report.template_cache import Compiled
from tcptrace_lab.text import numbers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tcptrace_lab.report.data_types import Statistic

_HERE = Path(__file__).parent

STATIC: Final = _HERE / "static"
"""Our scripts and style sheets."""

POLICY = "default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'"
"""The Content-Security-Policy. Plotly sets style attributes, and exports images through data: and blob: URLs, which are not requests."""


PLOTLY: Final = "plotly-basic-4.1.1.min.js"
"""File name of Plotly's smallest bundle that draws lines and marks (see `static/README.md`). Reports that share Plotly need this file."""

PLOTLY_SOURCE: Final = "'sha256-mXhOOr+wexQqFeUhpDnm2a3c6ts/eVU/0kxyd08GSbo='"
"""Hash of Plotly's script, from `_hash_source`. It is stored here, because computing it requires unpacking the script. That takes half as
long as the rest of rendering a small page."""

Scripts = Literal["inline", "shared"]
"""Where Plotly's script is: in the page (`inline`), or in a file in the folder of the page (`shared`)."""


def render(report: Mapping[str, Any], scripts: Scripts = "inline", provenance: Sequence[str] = ()) -> str:
    """Return the page as HTML text. Lone surrogates (from file names that are not UTF-8) become backslash escapes.

    Args:
        report: the result of `data`.
        scripts: with `shared`, Plotly's script is left out; the files of `shared_scripts` must be in the page's folder.
        provenance: lines for the footer.
    """
    drawn = report["drawn"] or report["sizes"] or (report["pair"] and report["pair"]["drawn"])
    return page("report.html.j2", figures=bool(drawn), scripts=scripts, report=report, provenance=provenance)


def shared_scripts() -> dict[str, bytes]:
    """Return name → contents of the files that pages with `scripts="shared"` need in their folder."""
    return {PLOTLY: gzip.decompress(_plotly())}


def page(template: str, *, figures: bool, scripts: Scripts = "inline", **values: object) -> str:
    """Return a page from one of our templates, as HTML text. `figures` says whether the page needs Plotly."""
    packing = Packing()
    own = _script()
    # A random placeholder stands for the nonce until the page is complete. Nobody can put this text into the page on purpose.
    unknown = secrets.token_hex(32) if scripts == "shared" and figures else ""
    sources = [_hash_source(own), *([f"'nonce-{unknown}'"] if unknown else [PLOTLY_SOURCE] if figures else [])]
    text = (
        environment()
        .get_template(template)
        .render(
            **values,
            pack=packing.later,
            packed=packing.place,
            colours=CAUSE_COLOURS,
            patterns=PATTERNS,
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
    # The nonce is a hash of the page's contents. So equal pages have equal nonces, and a capture cannot contain the nonce of its own page.
    return text.replace(unknown, hashlib.sha256(text.replace(unknown, "").encode()).hexdigest()) if unknown else text


def fragment(template: str, **values: object) -> str:
    """Return an HTML fragment from one of our templates for other pages, without script and style sheet."""
    text = environment().get_template(template).render(**values, colours=CAUSE_COLOURS)
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
"""Plotly's name of a pattern → class in the style sheet."""

PATTERNS: Final = {cause: _PATTERN_CLASSES[pattern] for cause, pattern in CAUSE_PATTERNS.items()}
"""Cause → class in the style sheet."""


def _statistic_rows(lines: Sequence[Statistic]) -> list[tuple[str, tuple[str, str], tuple[str, str]]]:
    """Return the rows of a table of statistics: label, then text and exact text of both values.

    The page's script makes the table, because its HTML would take 11 kB per connection.
    """
    return [
        (line["label"], numbers.formatted(line["client"], line["kind"]), numbers.formatted(line["server"], line["kind"])) for line in lines
    ]


@cache
def _definitions() -> Markup:
    """Return the definitions of terms, which are equal in all reports."""
    text = environment().get_template("_definitions.html.j2").render(words=definitions.words(), colours=CAUSE_COLOURS, patterns=PATTERNS)
    return Markup(text)  # noqa: S704  (ours, escaped)


@cache
def _plotly() -> bytes:
    """Return Plotly's script, compressed with gzip."""
    return (STATIC / f"{PLOTLY}.gz").read_bytes()


def plotly_script() -> str:
    """Return Plotly's script."""
    return gzip.decompress(_plotly()).decode("utf-8")


@cache
def _static(name: str) -> str:
    """Return one of our scripts or style sheets, without indentation, comment lines and exports.

    This is safe, because no string in these files spans two lines.
    """
    lines = map(str.strip, (STATIC / name).read_text(encoding="utf-8").splitlines())
    ours = (line for line in lines if line and not line.startswith(("//", "export ")))
    return "\n".join(line for line in ours if not (line.startswith("/*") and line.endswith("*/")))


@cache
def _script() -> str:
    """Return the script of a page. Its block prevents the names of `figures.js` from becoming global."""
    return "\n".join(('"use strict"; {', _static("figures.js"), _static("report.js"), "}"))


@cache
def _hash_source(script: str) -> str:
    """Return the script's hash for the policy. Browsers run an inline script only if the policy lists its hash."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


@cache
def environment(*folders: Path) -> Environment:
    """Return the Jinja2 environment with our templates, each compiled once.

    A template in `folders` replaces our template of the same name, and can include our other templates.
    """
    environment = Environment(
        loader=FileSystemLoader([*folders, _HERE / "templates"]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,  # the package's files do not change while the program runs
    )
    environment.bytecode_cache = Compiled(environment)
    environment.tests["sentence"] = lambda fact: fact["kind"] == "sentence"
    environment.filters |= {
        "formatted": numbers.formatted,
        "count": numbers.count,
        "counted": numbers.counted,
        "times": numbers.times,
        "size": numbers.size,
        "share": numbers.share,
        "cells": cells,
        "statistic_rows": _statistic_rows,
    }
    return environment
