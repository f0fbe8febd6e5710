"""The command `view` uses the right port and opens the right browser."""

from __future__ import annotations

import socket
import time
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tests.support import explorer
from tests.support.command import new_process, only_line
from tests.support.places import CAPTURES

if TYPE_CHECKING:
    from pathlib import Path

CAPTURE = CAPTURES / "atm9180-loss.pcap"

BROWSER = """#!/bin/sh
cd {folder} && echo "$*" > arguments && stat -c %a "${{1#file://}}" > mode && cp "${{1#file://}}" opened.part && mv opened.part opened
"""


def test_it_serves_on_the_port_that_was_asked_for_and_refuses_one_that_is_taken(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
        taken = new_process("view", CAPTURE, "--port", str(port), "--no-browser", "-q", environment={"XDG_CACHE_HOME": str(tmp_path)})
    assert taken.returncode == 2
    assert f"127.0.0.1:{port}" in only_line(taken.stderr)
    with explorer.exploring(CAPTURE, "--port", str(port), cache=tmp_path) as found:
        assert urlsplit(found.url).port == port
        assert found.get("api/capture")["packets"] == 167


def test_the_browser_opens_the_url_and_other_users_do_not_see_it(tmp_path: Path) -> None:
    """All users of a machine can see the arguments of a program.

    So the browser gets only the name of a file. Only its owner can read this file.
    """
    browser = tmp_path / "browser"
    browser.write_text(BROWSER.format(folder=tmp_path))
    browser.chmod(0o700)
    with explorer.exploring(CAPTURE, cache=tmp_path / "cache", browser=browser) as found:
        end_s = time.monotonic() + explorer.TIME_LIMIT_S
        while not (tmp_path / "opened").exists() and time.monotonic() < end_s:
            time.sleep(0.05)
        assert f"url={found.url}" in (tmp_path / "opened").read_text()
        token = urlsplit(found.url).path.strip("/")
        assert token not in (tmp_path / "arguments").read_text()
        assert (tmp_path / "mode").read_text().strip() == "600"
    assert list((tmp_path / "cache").rglob("open-*.html")) == []


def test_without_a_browser_none_is_opened(tmp_path: Path) -> None:
    browser = tmp_path / "browser"
    browser.write_text(BROWSER.format(folder=tmp_path))
    browser.chmod(0o700)
    with explorer.exploring(CAPTURE, "--no-browser", cache=tmp_path / "cache", browser=browser) as found:
        assert found.ask("").status == 200
    assert not (tmp_path / "arguments").exists()
