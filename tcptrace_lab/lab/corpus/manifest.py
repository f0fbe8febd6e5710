"""The manifest of a corpus: JSON lines, one for each transfer, beside the folders. `SCHEMA` is its JSON Schema."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tcptrace_lab.lab.corpus.drawn import CONGESTION_CONTROLS, PARTS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MANIFEST = "manifest.jsonl"
VERSION = 1

_TEXT, _COUNT = {"type": "string"}, {"type": "integer", "minimum": 0}
_PROPERTIES: dict[str, Any] = {
    "version": {"const": VERSION},
    "name": _TEXT | {"description": "the transfer's folder, beside this file"},
    "part": {"enum": list(PARTS)},
    "seed": {"type": "integer"},
    "number": _COUNT | {"description": "with the seed: what it was drawn from"},
    "program": _TEXT,
    "family": _TEXT | {"description": "the source that the program is of"},
    "server": _TEXT | {"description": "command, before its words are filled in"},
    "client": _TEXT,
    "path": _TEXT | {"description": "the family of paths"},
    "mtu_bytes": _COUNT,
    "forward": {"type": "object", "description": "the relay's settings from client to server, as `PathModel.describe`"},
    "backward": {"type": "object", "description": "and back"},
    "congestion_control": {"enum": list(CONGESTION_CONTROLS)},
    "held": {
        "type": ["object", "null"],
        "description": "an end whose processes are stopped for `stopped_s` of each `every_s`",
        "properties": {"end": {"enum": ["client", "server"]}, "every_s": {"type": "number"}, "stopped_s": {"type": "number"}},
    },
    "is_complete": {"type": "boolean", "description": "the client ended by itself; else after some seconds"},
    "lasted_s": {"type": "number", "description": "how long the client worked"},
    "frames": {"type": "object", "description": "capture point → frames", "additionalProperties": _COUNT},
    "records": _COUNT | {"description": "of the kernel's tracer"},
    "kernel": _TEXT | {"description": "its release"},
}
SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "One transfer of a corpus",
    "type": "object",
    "properties": _PROPERTIES,
    "required": list(_PROPERTIES),
    "additionalProperties": False,
}


def append(folder: Path, entry: dict[str, Any]) -> None:
    """Add a line; only one process may."""
    with (folder / MANIFEST).open("a") as lines:
        lines.write(json.dumps(entry) + "\n")


def entries(folder: Path) -> Iterator[dict[str, Any]]:
    """The lines of a folder's manifest, and none where there is none; of several with one name the last."""
    file = folder / MANIFEST
    found = {entry["name"]: entry for entry in map(json.loads, file.read_text().splitlines())} if file.exists() else {}
    yield from found.values()
