"""Answers to the browser's requests about two captures: the report's section on a pair, or the page of `compare`, as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcptrace_lab.analysis import analyze
from tcptrace_lab.comparison import page
from tcptrace_lab.comparison.comparison import of_runs
from tcptrace_lab.comparison.run import of_analysis
from tcptrace_lab.pair import pair_captures
from tcptrace_lab.report.parts.pair import section
from tcptrace_lab.text.numbers import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcptrace_lab.connections.anonymizer import Anonymizer

HREFS = ["capture/0/", "capture/1/"]
"""URLs of the explorers of the two captures."""


def pair(paths: Sequence[str], anonymizer: Anonymizer | None = None) -> dict[str, Any]:
    """Return the answer of `api/pair` for two capture points of the same transfers.

    Raises UsageError if the captures share no connection.
    """
    first, second = (analyze(path, anonymizer=anonymizer) for path in paths)
    found = section(pair_captures(first, second))
    columns = [
        {"name": column["key"], "label": column["label"], "kind": column["kind"], "meaning": column["tooltip"]}
        for column in found["columns"]
    ]
    note = f"{counted(len(found['rows']), 'direction')} of {counted(found['total'], 'connection')} in both captures"
    return {
        "names": [first.name, second.name],
        "hrefs": HREFS,
        "headline": " ".join(found["answer"]),
        "facts": [],
        "tables": [_table("directions", "Packets between the two capture points", note, columns, found["rows"])],
        "problems": found["words"],
    }


def compared(paths: Sequence[str], anonymizer: Anonymizer | None = None) -> dict[str, Any]:
    """Return the answer of `api/pair` for a capture before a change and a capture after it."""
    first, second = (analyze(path, anonymizer=anonymizer) for path in paths)
    found = page.data(of_runs([[of_analysis(first)], [of_analysis(second)]]))
    columns = [
        _column("figure", "figure", "What is compared"),
        _column("before", "A", "In the first capture"),
        _column("after", "B", "In the second capture"),
        _column("change", "change", "From the first capture to the second"),
    ]
    tables = [
        _table(f"service-{place}", service["name"], "A is the first capture, B the second", columns, _rows(service))
        for place, service in enumerate(found["services"])
    ]
    return {
        "names": [first.name, second.name],
        "hrefs": HREFS,
        "headline": " ".join(found["headlines"]),
        "facts": [],
        "tables": tables,
        "problems": found["notes"],
    }


def _rows(service: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "figure": row["name"],
            "before": row["cells"][0]["text"],
            "after": row["cells"][1]["text"],
            "change": "; ".join(change["text"] for change in row["changes"]),
        }
        for row in (*service["figures"], *service["ledger"])
    ]


def _column(name: str, label: str, meaning: str) -> dict[str, str]:
    return {"name": name, "label": label, "kind": "text", "meaning": meaning}


def _table(key: str, title: str, note: str, columns: list[dict[str, str]], rows: list[dict[str, Any]]) -> dict[str, Any]:
    linked = [{"capture_id": None, "href": None, **row} for row in rows]
    return {"key": key, "title": title, "note": note, "columns": columns, "rows": linked}
