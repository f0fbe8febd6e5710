"""Writes the JSON document of a `Verification`: counts per item, and differences grouped by rule."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import IO, TYPE_CHECKING, Any

from tcptrace_lab.verify.differences import UNEXPLAINED
from tcptrace_lab.verify.rules import BY_NAME

if TYPE_CHECKING:
    from tcptrace_lab.verify.checksums import Checksums
    from tcptrace_lab.verify.differences import Difference
    from tcptrace_lab.verify.run import Verification

SCHEMA_VERSION = 2


def write_json(verification: Verification, stream: IO[bytes]) -> None:
    """Write the JSON document (UTF-8, ending with a newline), one rule at a time.

    `verify.schema.json` in the package is its JSON Schema. Differences with the rule `unexplained` come first. Up to
    `differences.MAX_LISTED` differences of each rule are listed; `count` includes all of them.
    """
    head = json.dumps(_head(verification), ensure_ascii=False)
    stream.write(head.removesuffix("}").encode() + b', "explanations": [')
    for number, rule in enumerate(ordered(verification)):
        stream.write((b", " if number else b"") + _explanation(verification, rule).encode())
    stream.write(b"]}\n")


def ordered(verification: Verification) -> list[str]:
    """Return the rules by number of differences, largest first. However, `unexplained` is always the first rule."""
    found = verification.account.found
    return sorted(found, key=lambda rule: (rule != UNEXPLAINED, -found[rule], rule))


def totals(verification: Verification) -> dict[str, int]:
    """Return the counts, summed over all items."""
    counts = verification.account.counts.values()
    return {name: sum(getattr(count, name) for count in counts) for name in ("compared", "equal", "explained", "unexplained")}


def _head(verification: Verification) -> dict[str, Any]:
    return {
        "schema_version": SCHEMA_VERSION,
        "capture": verification.path,
        "tools": [{"name": tool, "error": verification.refused.get(tool)} for tool in verification.tools],
        "summary": totals(verification),
        "items": [
            {
                "tool": tool,
                "item": item,
                "compared": count.compared,
                "equal": count.equal,
                "explained": count.explained,
                "unexplained": count.unexplained,
            }
            for (tool, item), count in verification.account.counts.items()
        ],
        "checksums": _checksums(verification.checksums) if "tshark" in verification.tools else None,
    }


def _checksums(checksums: Checksums) -> dict[str, Any]:
    return {
        "checked": checksums.checked,
        "bad": checksums.bad,
        "lost_by_corruption": checksums.corrupted,
        "directions": [
            {
                "connection": conn,
                "from_client": from_client,
                "checked": one.checked,
                "bad": one.bad,
                "bad_with_data": one.bad_with_data,
                "retransmitted": one.retransmitted,
                "verdict": one.verdict,
                "frames": one.frames,
            }
            for conn, from_client, one in checksums.directions()
        ],
    }


def _explanation(verification: Verification, name: str) -> str:
    rule = BY_NAME.get(name)
    listed = verification.account.differences.get(name, [])
    document = {
        "rule": name,
        "description": rule.why if rule else None,
        "source": rule.source if rule else None,
        "count": verification.account.found[name],
        "differences": [_difference(difference) for difference in listed],
    }
    return json.dumps(document, ensure_ascii=False, default=_plain)


def _plain(value: object) -> object:
    """Convert a value that `json` cannot serialize. An iterable, such as a Polars series, becomes a list, anything else becomes text."""
    return list(value) if isinstance(value, Iterable) else str(value)


def _difference(difference: Difference) -> dict[str, Any]:
    return {
        "tool": difference.tool,
        "item": difference.item,
        "frame": difference.frame,
        "connection": difference.conn,
        "from_client": difference.from_client,
        "ours": difference.ours,
        "theirs": difference.theirs,
        "text": difference.words,
    }
