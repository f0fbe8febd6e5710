"""Starts `tcptrace-lab view` as a user does, and sends requests to it."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import subprocess
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlencode, urlsplit

from tests.support.command import PROGRAM

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

TIME_LIMIT_S = 30


class Answer(NamedTuple):
    """A response: status, headers (names in lower case) and body."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:  # noqa: ANN401  (any JSON)
        """Return the body, parsed as JSON."""
        return json.loads(self.body)


class Explorer(NamedTuple):
    """A running explorer."""

    url: str
    process: subprocess.Popen[bytes]

    def ask(
        self,
        path: str,
        query: Mapping[str, Any] | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        method: str = "GET",
        raw: str = "",
    ) -> Answer:
        """Send one request for a path. The URL has the token before the path.

        `raw` replaces the whole path, including the token.
        """
        parts = urlsplit(self.url)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=TIME_LIMIT_S)
        target = raw or parts.path + path + (f"?{urlencode(query)}" if query else "")
        with contextlib.closing(connection):
            connection.putrequest(method, target, skip_host=bool(headers and "Host" in headers))
            for name, value in (headers or {}).items():
                connection.putheader(name, value)
            connection.endheaders()
            got = connection.getresponse()
            return Answer(got.status, {name.lower(): value for name, value in got.getheaders()}, got.read())

    def get(self, path: str, query: Mapping[str, Any] | None = None) -> Any:  # noqa: ANN401  (any JSON)
        """Return the JSON document at a path. The URL has the token before the path.

        Fail if there is no document.
        """
        answer = self.ask(path, query)
        assert answer.status == 200, answer.body
        return answer.json()


@contextlib.contextmanager
def exploring(*arguments: str | Path, cache: Path, folder: Path | None = None, browser: Path | None = None) -> Iterator[Explorer]:
    """Run `tcptrace-lab view` with these arguments and the cache folder `cache`.

    `browser` is the program that opens the page. If it is None, no browser is opened.
    """
    command = [str(PROGRAM), "view", *map(str, arguments), *(["--no-browser"] if browser is None else [])]
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache), "TERM": "dumb", "BROWSER": f"{browser} %s"}
    with subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            url = process.stdout.readline().decode().strip()
            assert url, process.stderr.read().decode()
            yield Explorer(url, process)
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=TIME_LIMIT_S)
