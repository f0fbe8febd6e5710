"""Runs a query of the explorer's SQL box in a process of its own: `python -m tcptrace_lab.view.query_process ARCHIVE ROWS csv|json`.

The process reads the query from standard input and writes the answer to standard output. The system limits processor time, memory and the
size of files (setrlimit(2)), so that no query can fill the disk or the memory. The caller ends a process that takes too long. A query can
read only the tables of the archive. All statements except SELECT are rejected, and so are Polars' table functions, which read files.
"""

from __future__ import annotations

import json
import re
import resource
import sys
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from tcptrace_lab.engine import memory
from tcptrace_lab.errors import TcptraceLabError, UsageError

PROCESSOR_S = 60
MEMORY_BYTES = 2_000_000_000

_STATEMENTS = re.compile(r"\s*(select|with|show\s+tables|explain)\b", re.IGNORECASE)

_READERS = re.compile(r"(read|scan)_\w", re.IGNORECASE)
"""Names of functions that read files. No column name begins with one of them. The whole query is searched, including quoted parts."""


def check(sql: str) -> None:
    """Raise UsageError if the query is not a single SELECT that reads only the tables of the archive."""
    if not _STATEMENTS.match(sql) or ";" in sql.rstrip().removesuffix(";"):
        raise UsageError("only one SELECT is possible here", remedy="begin with select or with")
    if _READERS.search(sql) or "\\" in sql or re.search(r"\b(from|join)\s*\(?\s*['\"][^'\"]*[/.]", sql, re.IGNORECASE):
        raise UsageError("a query here can read the tables of the archive, but no files", remedy="archive tables lists them")


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (PROCESSOR_S, PROCESSOR_S))
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _plain(value: object) -> Any:  # noqa: ANN401  (anything that JSON has)
    if isinstance(value, (date, datetime, time, timedelta, Decimal, bytes)):
        return str(value)
    if isinstance(value, float) and value not in (value, float("inf"), float("-inf")):
        return None
    return value


def main(root: str, limit: int, form: str, sql: str) -> int:
    """Answer one query and return the exit code. For an invalid query, the code is 2, and one line on standard error says why."""
    _limit()
    from tcptrace_lab.archive.dataset import query  # noqa: PLC0415  (after the limits)
    from tcptrace_lab.outputs.export import text_of_lists  # noqa: PLC0415

    try:
        check(sql)
        with query.opened(root) as tables:
            rows = query.run(tables, sql, limit + 1)
    except TcptraceLabError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    if form == "csv":
        text_of_lists(rows.head(limit).lazy()).collect().write_csv(sys.stdout.buffer)
        return 0
    shown = [[_plain(value) for value in row] for row in rows.head(limit).iter_rows()]
    answer = {"columns": rows.columns, "rows": shown, "truncated": rows.height > limit}
    sys.stdout.write(json.dumps(answer, default=str))
    return 0


if __name__ == "__main__":
    memory.bound()
    sys.exit(main(sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.stdin.read()))
