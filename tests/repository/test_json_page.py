"""`docs/json.md` is true: the JSON Schemas and tables have every new name and none of the old names."""

from __future__ import annotations

import json
import re
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tcptrace_lab import schema

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = (Path(__file__).parents[2] / "docs/json.md").read_text(encoding="utf-8")
DOCUMENTS = re.findall(r"^## From version \d+ to version (\d+): `([a-z -]+)`$", PAGE, re.MULTILINE)
FILES = {
    "analyze": "analysis",
    "analyze --pair": "pair",
    "replay whatif": "whatif",
    "replay transfer": "transfer",
    "replay transfer --schedule": "schedule",
    "replay packets": "packets",
    "predict": "prediction",
    "simulate --truth": "truth",
    "lab run": "experiment",
}
"""Maps the name of a document to the file name of its schema, if the names differ."""
PLACES = {
    "DIRECTION": ("connections[].client_to_server", "connections[].server_to_client"),
    "END": ("client", "server"),
    "HOST": ("client", "server"),
    "PATH": ("path.forward", "path.backward"),
}
"""The paths that each placeholder in the page stands for."""


def described(name: str) -> dict[str, Any]:
    text = resources.files("tcptrace_lab").joinpath(f"outputs/schemas/{FILES.get(name, name)}.schema.json").read_text(encoding="utf-8")
    parsed: dict[str, Any] = json.loads(text)
    return parsed


def rows(heading: str, cells: int) -> list[tuple[str, ...]]:
    """Return the rows of the table below a heading. Backticks are removed."""
    (section,) = (part for part in PAGE.split("\n## ") if part.startswith(heading))
    found = (tuple(cell.strip(" `") for cell in line.strip("|").split("|")) for line in section.splitlines() if line.startswith("|"))
    return [row for row in found if len(row) == cells][2:]


def resolved(whole: dict[str, Any], part: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a part of a JSON Schema, and all parts to which it refers."""
    yield part
    if "$ref" in part:
        target: Any = whole
        for key in part["$ref"].removeprefix("#/").split("/"):
            target = target[key]
        yield from resolved(whole, target)
    for other in (*part.get("anyOf", ()), *part.get("oneOf", ())):
        yield from resolved(whole, other)


def has(whole: dict[str, Any], path: str) -> bool:
    """Return whether a JSON Schema has a key at this path."""
    parts = [whole]
    for name in path.split("."):
        key, lists = name.removesuffix("[]" * name.count("[]")), name.count("[]")
        found = [one for part in parts for one in resolved(whole, part)]
        parts = [one["properties"][key] for one in found if key in one.get("properties", {})]
        parts += [one for one in found if key in one.get("required", ()) and key not in one.get("properties", {})]
        for _ in range(lists):
            parts = [one["items"] for part in parts for one in resolved(whole, part) if "items" in one]
    return bool(parts)


def paths(path: str) -> list[str]:
    for word, places in PLACES.items():
        if word in path:
            return [path.replace(word, place) for place in places]
    return [path]


@pytest.mark.parametrize(("version", "name"), DOCUMENTS)
def test_old_keys_are_gone_and_new_ones_exist(version: str, name: str) -> None:
    whole = described(name)
    assert whole["properties"]["schema_version"]["const"] == int(version)
    renamed = rows(f"From version {int(version) - 1} to version {version}: `{name}`", 2)
    assert renamed
    for old, new in renamed:
        assert all(has(whole, path) for path in paths(new)), new
        assert not any(has(whole, path) for path in paths(old)), old


def test_old_columns_are_gone_and_new_ones_exist() -> None:
    renamed = rows("Columns of tables", 3)
    assert renamed
    for where, old, new in renamed:
        archived = where.removeprefix("archive: `")
        table = schema.TABLES[where] if archived == where else schema.ARCHIVE_TABLES[archived]
        assert new in table.names, (where, new)
        assert old not in table.names, (where, old)
