"""Writes an HTML page that compares a captured transfer with its replays. The page has the layout of `compare`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcptrace_lab import comparison
from tcptrace_lab.analysis import analyze
from tcptrace_lab.comparison import page, texts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcptrace_lab.replay.evidence import Evidence
    from tcptrace_lab.replay.side_by_side import Replayed


def write_page(compared: Replayed, evidence: Evidence | None, verdict: Sequence[str], path: str) -> None:
    """Write the comparison page for the original and all replays.

    Args:
        compared: the original and its replays.
        evidence: data of the original from its capture; None if the schedule came from a file. The unchanged replay then serves as the
            original.
        verdict: sentences for the top of the page.
        path: file to write.
    """
    if evidence is None:
        original = analyze(compared.original.capture)
    else:
        original = analyze(evidence.paths, connection=evidence.conn, anonymizer=evidence.anonymizer)
    analyses = [original, *(analyze(one.capture) for one in compared.replays)]
    names = "; ".join(f"{texts.letter(place)}: {one.name}" for place, one in enumerate((compared.original, *compared.replays)))
    page.write_page(comparison.compare(*analyses), path, [f"{names}.", *verdict])
