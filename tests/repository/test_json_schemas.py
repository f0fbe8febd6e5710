"""The published JSON Schemas are valid and all have one version. Each schema allows only the keys that it names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from tests.support import published

if TYPE_CHECKING:
    from collections.abc import Iterator

NAMES = sorted(path.name.removesuffix(".schema.json") for path in published.FOLDER.iterdir())
VERSION = 2


def objects(part: Any, place: str) -> Iterator[tuple[str, dict[str, Any]]]:  # noqa: ANN401  (JSON)
    """Yield the path of each object that a JSON Schema describes, and its part of the schema."""
    if isinstance(part, dict):
        if "properties" in part:
            yield place, part
        for key, value in part.items():
            yield from objects(value, f"{place}/{key}")
    elif isinstance(part, list):
        for number, value in enumerate(part):
            yield from objects(value, f"{place}/{number}")


@pytest.mark.parametrize("name", NAMES)
def test_the_schema_is_valid_and_says_its_version(name: str) -> None:
    whole = published.schema(name)
    jsonschema.Draft202012Validator.check_schema(whole)
    assert whole["properties"]["schema_version"] == {"const": VERSION}
    assert whole["$id"] == f"urn:tcptrace-lab:{name}:{VERSION}"


@pytest.mark.parametrize("name", NAMES)
def test_an_object_has_no_key_that_its_schema_does_not_name(name: str) -> None:
    for place, part in objects(published.schema(name), ""):
        if name == "verify" and place in {"/$defs/counts", "/properties/items/items"}:
            continue  # `items` names the keys of `counts` and two others (`unevaluatedProperties`)
        if name == "packets" and not place:
            continue  # this object is a choice of two objects, which are checked themselves
        assert part.get("additionalProperties") is False, place
        assert set(part.get("required", ())) <= set(part["properties"]), place
