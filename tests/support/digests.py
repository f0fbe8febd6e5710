"""Digests of the output for captures."""

from __future__ import annotations

import hashlib
import io

from tcptrace_lab import analyze
from tcptrace_lab.findings import table as findings
from tcptrace_lab.outputs import export
from tcptrace_lab.outputs.formats import Format, TableName


def digests(*paths: str) -> list[str]:
    """Return the digests of every table (as NDJSON) and of the JSON document."""
    found = []
    for path in paths:
        analysis = analyze(path)
        for table in TableName:
            written = io.BytesIO()
            rows = findings.rows(analysis.findings).lazy() if table is TableName.FINDINGS else export.read_table([path], table)[0]
            export.export(rows, table, Format.NDJSON, written)
            found.append(f"{table} {hashlib.sha256(written.getvalue()).hexdigest()}")
        document = io.BytesIO()
        analysis.write_json(document)
        found.append(f"json {hashlib.sha256(document.getvalue()).hexdigest()}")
    return found
