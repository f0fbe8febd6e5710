"""Writes the index of an archive: one HTML page with the contents that `overview` computes.

The page contains its data (compressed with zlib) and a script. The script draws only the table rows and figures that are in view. The
Content-Security-Policy identifies this script by its hash, allows no other script, and forbids all network requests. Data is inserted as
text, never as markup.
"""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from tcptrace_lab.archive.dataset import query
from tcptrace_lab.archive.index.overview import overview
from tcptrace_lab.report.figures.plots import CAUSE_COLOURS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tcptrace_lab.archive.index.regressions import Comparison
    from tcptrace_lab.archive.storage import Place

INDEX = "index.html"

POLICY = "default-src 'none'; script-src {script}; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"

_HERE = Path(__file__).parent
_REPORT_STYLE = _HERE.parents[1] / "report" / "static" / "report.css"


def write(place: Place, baseline: str | None, *, is_named: bool = True) -> Comparison | None:
    """Write the index. Return the comparison with the baseline archive; None without a baseline.

    If `is_named` is True, the comparison contains the path of the baseline.

    Raises:
        OutputUnwritable: the disk is full, or permission is denied.
        UsageError: the baseline is not an archive.
    """
    with query.opened(place.root) as tables:
        comparison = None
        if baseline is not None:
            from tcptrace_lab.archive.index.regressions import compare  # noqa: PLC0415

            comparison = compare(tables, baseline)
            if not is_named:
                comparison = replace(comparison, baseline="the baseline")
        page = render(overview(tables, comparison))
    place.write(INDEX, page.encode())
    return comparison


def render(contents: Mapping[str, Any]) -> str:
    """Return the page as HTML text. Backslash escapes replace lone surrogates, which come from file names that are not UTF-8."""
    script = _static("index.js")
    data = {**contents, "colours": CAUSE_COLOURS}
    environment = Environment(
        loader=FileSystemLoader(_HERE / "templates"), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    text = environment.get_template("index.html.j2").render(
        policy=POLICY.format(script=_hash_source(script)),
        style=Markup(_REPORT_STYLE.read_text(encoding="utf-8") + _static("index.css")),  # noqa: S704  (ours)
        script=Markup(script),  # noqa: S704  (ours)
        data=base64.b64encode(zlib.compress(json.dumps(data, separators=(",", ":"), allow_nan=False).encode())).decode("ascii"),
        totals=contents["totals"],
        comparison=contents["comparison"],
    )
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _static(name: str) -> str:
    return (_HERE / "static" / name).read_text(encoding="utf-8")


def _hash_source(script: str) -> str:
    """Return the script's hash as a source expression of the Content-Security-Policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
