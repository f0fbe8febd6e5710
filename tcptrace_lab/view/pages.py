"""The explorer's pages and static files.

A page contains what the reader should see at once: the headline, the capture quality, the findings. The page's script then requests all
other data from the server. Strings from a capture never become markup: Jinja2 escapes them here, and the scripts only set text. The content
security policy forbids inline scripts, and permits requests to this server only.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from tcptrace_lab import causes
from tcptrace_lab.report.render import PATTERNS, STATIC, environment, plotly_script
from tcptrace_lab.schema import CAUSES
from tcptrace_lab.text import numbers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_HERE: Final = Path(__file__).parent

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""The Content-Security-Policy of every answer. Plotly sets style attributes, and exports images through data: and blob: URLs."""

Kind = Literal["capture", "connection", "archive", "pair", "error"]

_MEDIA_TYPES: Final = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8"}

_ROOTS: Final = {"connection": "../"}
"""Kind of page → relative URL of the folder that contains `static/` and `api/`."""

_FINDINGS_SHOWN: Final = 12
"""Maximum number of findings listed in a page. The list of connections can be filtered by each kind of finding."""


def page(kind: Kind, data: Mapping[str, Any], above: str = "") -> str:
    """Return one page as HTML text. All its URLs are relative.

    Args:
        kind: which page.
        data: answer of the API for the subject of the page: `api/capture`, `api/connection/N`, `api/archive`, `api/pair`. For `error`, the
            `status` and a `message` of one line.
        above: name of the page from which a capture was opened (two folders up); empty if there is none.
    """
    template = environment(_HERE / "templates").get_template(f"{kind}.html.j2")
    text = template.render(
        kind=kind,
        data=data,
        above=above,
        root=_ROOTS.get(kind, ""),
        findings=data.get("findings", [])[:_FINDINGS_SHOWN],
        bar=_bar(data.get("causes", ())),
        words={cause: {"colour": causes.OURS[cause].colour, "pattern": PATTERNS[cause], "means": CAUSES[cause]} for cause in CAUSES},
        patterns=PATTERNS,
        colours={cause: causes.OURS[cause].colour for cause in CAUSES},
    )
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def static(name: str) -> tuple[bytes, str] | None:
    """Return the contents and media type of a file below `static/`; None if there is no file of this name. Names never become paths."""
    return _files().get(name)


@cache
def _files() -> dict[str, tuple[bytes, str]]:
    """Return contents and media type by name: our own files, and files of the report that the explorer shares."""
    shared = [STATIC / name for name in ("report.css", "figures.js")]
    own = [path for path in _HERE.joinpath("static").iterdir() if path.suffix in _MEDIA_TYPES]
    files = {path.name: (path.read_bytes(), _MEDIA_TYPES[path.suffix]) for path in [*shared, *own]}
    return files | {"plotly.js": (plotly_script().encode(), _MEDIA_TYPES[".js"])}


def _bar(accounts: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Return the bar of `_spent.html.j2` for time by cause; None if there is no time. Shares are of the active time."""
    spent = {account["cause"]: account["ns"] for account in accounts if account["ns"] and account["cause"] != "idle"}
    active_ns = sum(spent.values())
    if not active_ns:
        return None
    parts = [
        {
            "cause": cause,
            "name": cause,
            "means": CAUSES[cause],
            "ns": ns,
            "share": ns / active_ns,
            "of_active": numbers.share(ns / active_ns),
        }
        for cause, ns in sorted(spent.items(), key=lambda part: -part[1])
    ]
    return {"time": f"{numbers.duration(active_ns)} of active time", "parts": parts}
