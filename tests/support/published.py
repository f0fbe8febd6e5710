"""The published JSON Schemas, `tcptrace_lab/outputs/schemas/`."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

import jsonschema

FOLDER = resources.files("tcptrace_lab").joinpath("outputs/schemas")


def schema(name: str) -> dict[str, Any]:
    """Return a JSON Schema by its file name without `.schema.json`."""
    parsed: dict[str, Any] = json.loads(FOLDER.joinpath(f"{name}.schema.json").read_text(encoding="utf-8"))
    return parsed


def check(name: str, document: object) -> None:
    """Fail if a document does not match its schema."""
    jsonschema.Draft202012Validator(schema(name)).validate(document)
