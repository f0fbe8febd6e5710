"""The manifest of a corpus has one JSON line per transfer. It lies beside the transfers' folders. `SCHEMA` is its JSON Schema."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tcptrace_lab.errors import UsageError
from tcptrace_lab.lab.corpus.drawn import CONGESTION_CONTROLS, PARTS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MANIFEST = "manifest.jsonl"
SCHEMA_VERSION = 2

_TEXT, _COUNT = {"type": "string"}, {"type": "integer", "minimum": 0}
_PROPERTIES: dict[str, Any] = {
    "schema_version": {"const": SCHEMA_VERSION},
    "name": _TEXT | {"description": "the transfer's folder, beside this file"},
    "part": {"enum": list(PARTS)},
    "seed": {"type": "integer"},
    "number": _COUNT | {"description": "number of the transfer among those of the seed"},
    "program": _TEXT,
    "family": _TEXT | {"description": "family of programs"},
    "server": _TEXT | {"description": "command, with its placeholders"},
    "client": _TEXT,
    "path": _TEXT | {"description": "the family of paths"},
    "mtu_bytes": _COUNT,
    "forward": {"type": "object", "description": "settings of the relay from client to server, as `PathModel.describe` returns them"},
    "backward": {"type": "object", "description": "settings of the relay from server to client"},
    "congestion_control": {"enum": [*CONGESTION_CONTROLS, "none"], "description": "none: of smoltcp, not of its Linux peer"},
    "paused": {
        "type": ["object", "null"],
        "description": "an end whose processes are stopped for `paused_s` in each period of `period_s`; null: none",
        "properties": {"end": {"enum": ["client", "server"]}, "period_s": {"type": "number"}, "paused_s": {"type": "number"}},
    },
    "competing": {
        "type": "array",
        "description": "programs that used the same bottleneck meanwhile, and whether the server of each has an address of its own; "
        "missing or empty: none",
        "items": {"type": "object", "properties": {"program": _TEXT, "is_other_host": {"type": "boolean"}}},
    },
    "is_complete": {"type": "boolean", "description": "whether the client ended by itself, and not by the time limit"},
    "duration_s": {"type": "number", "description": "time from the client's start to its end"},
    "frames": {"type": "object", "description": "capture point → frames", "additionalProperties": _COUNT},
    "tracer_records": _COUNT | {"description": "records of the kernel's tracer"},
    "kernel": _TEXT | {"description": "release of the kernel"},
}
SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "One transfer of a corpus",
    "type": "object",
    "properties": _PROPERTIES,
    "required": [name for name in _PROPERTIES if name != "competing"],
    "additionalProperties": False,
}


def append(folder: Path, entry: dict[str, Any]) -> None:
    """Append a line to the manifest. Only one process at a time can write to a manifest."""
    with (folder / MANIFEST).open("a") as lines:
        lines.write(json.dumps(entry) + "\n")


def entries(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the entries of a folder's manifest; nothing if there is no manifest.

    If several entries have one name, only the last of them is yielded.

    Raises:
        UsageError: a line has another `schema_version`.
    """
    file = folder / MANIFEST
    found = {entry["name"]: entry for entry in map(json.loads, file.read_text().splitlines())} if file.exists() else {}
    for entry in found.values():
        if (version := entry.get("schema_version", 1)) != SCHEMA_VERSION:
            remedy = "make the corpus anew, or rename the keys as docs/json.md lists"
            raise UsageError(f"schema_version is {version}, and only {SCHEMA_VERSION} can be read", where=str(file), remedy=remedy)
    yield from found.values()
