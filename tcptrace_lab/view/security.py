"""Access control: only a browser on this machine that has the URL gets answers.

- Other machines get no answer, because the server listens only on loopback addresses (`server`).
- Other users and programs of this machine do not know the random token in the path. It is compared in constant time.
- Other web sites are refused. `Host` must name a loopback address and our port, so a name that an attacker points at 127.0.0.1 (DNS
  rebinding) does not work. If the browser sends `Origin` or `Sec-Fetch-Site`, the header must say that the request comes from our own
  pages.
- The captured data cannot run scripts: the content security policy forbids inline scripts, other servers and frames.
"""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response

from tcptrace_lab.view import pages

if TYPE_CHECKING:
    from collections.abc import Iterable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_QUERY_BYTES = 16_384
"""Length of the longest query string."""

HEADERS = {
    "Content-Security-Policy": pages.POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Frame-Options": "DENY",
}
"""Headers of every answer."""

METHODS = ("GET", "HEAD")


class Guard:
    """Rejects requests that are not allowed. Removes the token from the path of all other requests, and passes these requests on."""

    def __init__(self, app: ASGIApp, token: str, hosts: Iterable[str]) -> None:
        """Guard `app`. `hosts` are the accepted values of the header `Host`, such as `127.0.0.1:8080`."""
        self._app = app
        self._token = token.encode()
        self._hosts = frozenset(hosts)
        self._origins = frozenset(f"http://{host}" for host in self._hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # the explorer has no WebSockets

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        refusal = self._refusal(scope)
        if refusal is not None:
            await refusal(scope, receive, send_with_headers)
            return
        inner = scope["path"][len(self._token) + 1 :]
        await self._app({**scope, "path": inner, "raw_path": inner.encode(), "root_path": ""}, receive, send_with_headers)

    def _refusal(self, scope: Scope) -> Response | None:
        """Return the answer to a request that is not allowed; None if the request is allowed."""
        headers = Headers(scope=scope)
        if headers.get("host", "").lower() not in self._hosts:
            return PlainTextResponse("this server answers only to its own address\n", 421)
        if "origin" in headers and headers["origin"] not in self._origins:
            return PlainTextResponse("requests of other web sites are refused\n", 403)
        token, slash, inner = scope["path"][1:].partition("/")
        if not hmac.compare_digest(token.encode("utf-8", "replace"), self._token) or not slash:
            return error(404, "Wrong address: copy the whole URL that tcptrace-lab view has printed.", as_json=False)
        wrong = _wrong(scope, headers, inner)
        return None if wrong is None else error(*wrong, as_json=is_api(inner))


def _wrong(scope: Scope, headers: Headers, path: str) -> tuple[int, str] | None:
    """Return status and text for a request that is refused although its token is right; None if the request is allowed."""
    if is_api(path) and headers.get("sec-fetch-site", "same-origin") not in {"same-origin", "none"}:
        return 403, "requests of other web sites are refused"
    if scope["method"] not in METHODS:
        return 405, "only GET is allowed: nothing can be changed here"
    if len(scope["query_string"]) > MAX_QUERY_BYTES:
        return 414, "the query is too long"
    return None


def is_api(path: str) -> bool:
    """Return whether a path (below the token) asks for JSON."""
    return "/api/" in f"/{path}"


def error(status: int, message: str, *, as_json: bool) -> Response:
    """Return an error page or JSON document with one line that says why the request is not answered."""
    if as_json:
        return JSONResponse({"error": message}, status)
    return HTMLResponse(pages.page("error", {"status": status, "message": message}), status)
