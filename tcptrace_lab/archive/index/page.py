"""The index of an archive: `overview` as one HTML page beside the reports.

The page holds its data deflated, and a script that draws what is looked at: tables of which only the rows in view exist, figures when
they come into view. Its Content-Security-Policy runs that script alone, by its hash, and forbids every request; data becomes text, never
markup.
"""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
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
    from tcptrace_lab.archive.place import Place

INDEX = "index.html"

POLICY = "default-src 'none'; script-src {script}; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"

_HERE = Path(__file__).parent
_REPORT_STYLE = _HERE.parents[1] / "report" / "static" / "report.css"


def write(place: Place, baseline: str | None) -> Comparison | None:
    """Write the index; what a comparison with another archive found, if that was asked for.

    Raises:
        OutputUnwritable: no room, no rights.
        UsageError: the other archive is none.
    """
    with query.opened(place.root) as tables:
        comparison = None
        if baseline is not None:
            from tcptrace_lab.archive.index.regressions import compare  # noqa: PLC0415

            comparison = compare(tables, baseline)
        page = render(overview(tables, comparison))
    place.write(INDEX, page.encode())
    return comparison


def render(told: Mapping[str, Any]) -> str:
    """The page, as text. Characters that UTF-8 cannot write (lone surrogates of odd file names) are spelled out."""
    script = _static("index.js")
    data = {**told, "colours": CAUSE_COLOURS}
    environment = Environment(
        loader=FileSystemLoader(_HERE / "templates"), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    text = environment.get_template("index.html.j2").render(
        policy=POLICY.format(script=_hash_source(script)),
        style=Markup(_REPORT_STYLE.read_text(encoding="utf-8") + _static("index.css")),  # noqa: S704  (ours)
        script=Markup(script),  # noqa: S704  (ours)
        data=base64.b64encode(zlib.compress(json.dumps(data, separators=(",", ":"), allow_nan=False).encode())).decode("ascii"),
        totals=told["totals"],
        comparison=told["comparison"],
    )
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _static(name: str) -> str:
    return (_HERE / "static" / name).read_text(encoding="utf-8")


def _hash_source(script: str) -> str:
    """The script as a CSP source."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
