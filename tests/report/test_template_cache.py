"""Compiled templates are stored beside their templates, like Python's bytecode.

A compiled template is used only if it matches the text of its template.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest
from jinja2 import Environment, FileSystemLoader

from tcptrace_lab.report.template_cache import Compiled

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def _as_users_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", None)


def said(folder: Path, *, trim_blocks: bool = True) -> str:
    """Render the template in `folder` with a new environment, as a new process does."""
    environment = Environment(loader=FileSystemLoader(folder), autoescape=True, trim_blocks=trim_blocks)
    environment.bytecode_cache = Compiled(environment)
    return environment.get_template("page.j2").render(value="<b>")


def compiled(folder: Path) -> list[Path]:
    return sorted((folder / "__pycache__").iterdir())


def test_a_template_is_compiled_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "page.j2").write_text("one {{ value }}")
    assert said(tmp_path) == "one &lt;b&gt;"
    assert len(compiled(tmp_path)) == 1
    monkeypatch.setattr(Environment, "compile", None)
    assert said(tmp_path) == "one &lt;b&gt;"


def test_a_changed_template_is_compiled_again(tmp_path: Path) -> None:
    (tmp_path / "page.j2").write_text("one {{ value }}")
    said(tmp_path)
    (tmp_path / "page.j2").write_text("two {{ value }}")
    assert said(tmp_path) == "two &lt;b&gt;"
    assert len(compiled(tmp_path)) == 1


def test_other_options_have_bytecode_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "page.j2").write_text("{% if value %}\nyes{% endif %}")
    assert (said(tmp_path, trim_blocks=False), said(tmp_path)) == ("\nyes", "yes")
    assert len(compiled(tmp_path)) == 2


@pytest.mark.parametrize("length", [0, 1, 30, 100])
def test_bytecode_that_was_cut_off_is_made_again(tmp_path: Path, length: int) -> None:
    (tmp_path / "page.j2").write_text("one {{ value }}")
    said(tmp_path)
    (made,) = compiled(tmp_path)
    whole = made.read_bytes()
    made.write_bytes(whole[:length])
    assert said(tmp_path) == "one &lt;b&gt;"
    assert made.read_bytes() == whole


def test_without_a_place_for_bytecode_pages_are_made_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "page.j2").write_text("one {{ value }}")
    (tmp_path / "__pycache__").write_text("a file")
    assert said(tmp_path) == "one &lt;b&gt;"


def test_bytecode_goes_to_the_users_cache_where_python_writes_none_beside_the_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`PYTHONDONTWRITEBYTECODE` keeps source folders unchanged, for example in container images.

    Without the user's cache, every start would compile the templates and take twice as long.
    """
    package, cache = tmp_path / "package", tmp_path / "cache"
    package.mkdir()
    cache.mkdir()
    (package / "page.j2").write_text("one {{ value }}")
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert said(package) == "one &lt;b&gt;"
    assert not (package / "__pycache__").exists()
    monkeypatch.setattr(Environment, "compile", None)
    assert said(package) == "one &lt;b&gt;"


def test_nothing_is_written_where_python_writes_no_bytecode_and_the_user_has_no_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "page.j2").write_text("one {{ value }}")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "missing"))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert said(tmp_path) == "one &lt;b&gt;"
    assert not (tmp_path / "__pycache__").exists()
    assert not (tmp_path / "missing").exists()


def test_bytecode_goes_to_the_users_cache_where_the_package_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package, cache = tmp_path / "package", tmp_path / "cache"
    package.mkdir()
    cache.mkdir()
    (package / "page.j2").write_text("one {{ value }}")
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert said(package) == "one &lt;b&gt;"
    assert len(list(cache.glob("tcptrace-lab/*/page*"))) == 1
    monkeypatch.setattr(Environment, "compile", None)
    assert said(package) == "one &lt;b&gt;"


def test_a_cache_of_another_user_is_not_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "page.j2").write_text("one {{ value }}")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(os, "access", lambda *_: False)
    monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + 1)
    assert said(tmp_path) == "one &lt;b&gt;"
    assert not (tmp_path / "tcptrace-lab").exists()
