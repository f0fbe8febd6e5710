"""Addresses of the server, start of the browser, and shutdown of the server."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import socket
import tempfile
import threading
import time
import webbrowser
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import uvicorn

from tcptrace_lab.errors import UsageError
from tcptrace_lab.process import interrupts
from tcptrace_lab.view.security import Guard

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from starlette.types import ASGIApp, Receive, Scope, Send

TOKEN_BYTES = 32

MAX_CONNECTIONS = 256
"""Maximum number of connections served at the same time. Further connections get status 503."""

_MAX_HEADER_BYTES = 32_768

_LOOK_S = 1.0
"""Seconds between two checks whether the server is idle."""

_HANDED_OVER_S = 30
"""Seconds after which the file that passes the URL to the browser is removed."""


def serve(
    app: ASGIApp,
    *,
    port: int = 0,
    browser: bool = True,
    idle_s: float | None = None,
    ready: Callable[[str], None],
    hand_over: Path | None = None,
) -> None:
    """Serve until an interrupt, or until no request has arrived for `idle_s` seconds.

    Args:
        app: the application, below the token.
        port: the port; 0 for any free one.
        browser: open the browser.
        idle_s: None for no limit.
        ready: called with the URL when the server listens.
        hand_over: a folder that only its owner can read. A file in it passes the URL to the browser, because every user of the machine can
            see the arguments of programs.

    Raises:
        UsageError: the port is taken.
    """
    token = secrets.token_urlsafe(TOKEN_BYTES)
    sockets = listening(port)
    port = sockets[0].getsockname()[1]
    hosts = [f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]")]
    url = f"http://127.0.0.1:{port}/{token}/"
    clock = _Clock(Guard(app, token, hosts))
    server = uvicorn.Server(
        uvicorn.Config(
            clock,
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            proxy_headers=False,
            lifespan="off",
            ws="none",
            http="h11",
            loop="asyncio",
            limit_concurrency=MAX_CONNECTIONS,
            timeout_keep_alive=5,
            timeout_graceful_shutdown=1,
            h11_max_incomplete_event_size=_MAX_HEADER_BYTES,
        )
    )
    server.capture_signals = contextlib.nullcontext  # type: ignore[assignment, method-assign]  # `interrupts` ends the program

    async def run() -> None:
        watch = asyncio.create_task(_end_when_idle(server, clock, idle_s))
        await server.serve(sockets=sockets)
        watch.cancel()

    ready(url)
    with _in_browser(url, hand_over) if browser else contextlib.nullcontext():
        asyncio.run(run())


def listening(port: int) -> list[socket.socket]:
    """Return sockets that listen on 127.0.0.1 and, if the host has IPv6, on ::1. Raises UsageError if the port is taken."""
    made: list[socket.socket] = []
    for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        try:
            one = socket.socket(family, socket.SOCK_STREAM)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            one.bind((address, made[0].getsockname()[1] if made else port))
            one.listen(MAX_CONNECTIONS)
        except OSError as error:
            if family == socket.AF_INET:
                raise UsageError(
                    f"cannot listen: {error.strerror}", where=f"{address}:{port}", remedy="leave --port out to take a free one"
                ) from error
        else:
            made.append(one)
    return made


class _Clock:
    """Records when the last request ended."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._asking = 0
        self._last_s = time.monotonic()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._asking += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._asking -= 1
            self._last_s = time.monotonic()

    @property
    def idle_s(self) -> float:
        """Seconds since the last request ended; 0 during a request."""
        return 0.0 if self._asking else time.monotonic() - self._last_s


async def _end_when_idle(server: uvicorn.Server, clock: _Clock, idle_s: float | None) -> None:
    while idle_s is not None and not server.should_exit:
        await asyncio.sleep(min(_LOOK_S, idle_s))
        server.should_exit = clock.idle_s >= idle_s


@contextlib.contextmanager
def _in_browser(url: str, folder: Path | None) -> Iterator[None]:
    """Open the browser on a local page that redirects to the URL."""
    handle, name = tempfile.mkstemp(prefix="open-", suffix=".html", dir=folder)  # mode 0600
    page = Path(name)
    with os.fdopen(handle, "w") as file:
        file.write(f'<!doctype html><meta http-equiv="refresh" content="0;url={escape(url)}"><a href="{escape(url)}">tcptrace-lab</a>\n')

    def remove() -> None:
        page.unlink(missing_ok=True)

    with interrupts.undoing(remove):
        threading.Thread(target=webbrowser.open, args=(page.as_uri(),), daemon=True).start()
        timer = threading.Timer(_HANDED_OVER_S, remove)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            remove()
