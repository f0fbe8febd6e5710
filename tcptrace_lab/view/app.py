"""The web application: its paths, and the functions that answer them. Answers are computed in threads, a few at a time."""

from __future__ import annotations

import tempfile
import threading
from functools import partial
from typing import IO, TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from tcptrace_lab.errors import TcptraceLabError
from tcptrace_lab.outputs.export import text_of_lists
from tcptrace_lab.view import pages
from tcptrace_lab.view.cached.cache import Changed, Vanished
from tcptrace_lab.view.problem import NotFound, Problem
from tcptrace_lab.view.security import error, is_api

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import polars as pl
    from starlette.requests import Request

    from tcptrace_lab.view.archive_api import ArchiveApi
    from tcptrace_lab.view.capture_api import CaptureApi

AT_ONCE = 4
"""Maximum number of answers computed at the same time, which limits memory. Further requests wait."""

_BLOCK_BYTES = 262_144

_TYPES = {"csv": "text/csv; charset=utf-8", "parquet": "application/vnd.apache.parquet"}

_room = threading.BoundedSemaphore(AT_ONCE)


def capture_routes(find: Callable[[Request], CaptureApi], prefix: str = "", above: str = "") -> list[Route]:
    """Return the routes of a capture's explorer.

    Args:
        find: returns the capture that a request is about.
        prefix: path before the routes, such as `/capture/{capture}`.
        above: name of the page from which the capture was opened (two folders up); empty if there is none.
    """

    def json(path: str, answer: Callable[[CaptureApi, Request], Mapping[str, Any]]) -> Route:
        return Route(prefix + path, made(lambda request: JSONResponse(answer(find(request).checked(), request))))

    def page(path: str, kind: pages.Kind, answer: Callable[[CaptureApi, Request], dict[str, Any]]) -> Route:
        return Route(prefix + path, made(lambda request: HTMLResponse(pages.page(kind, answer(find(request).checked(), request), above))))

    def rows(path: str, form: str, answer: Callable[[CaptureApi, Request], pl.LazyFrame]) -> Route:
        return Route(f"{prefix}{path}.{form}", made(lambda request: download(answer(find(request).checked(), request), form, request)))

    number = "{number:int}"
    tables = f"/api/connection/{number}/{{table}}"
    return [
        page("/", "capture", lambda api, _: api.overview()),
        page(f"/connection/{number}", "connection", lambda api, request: api.connection(request.path_params["number"])),
        Route(prefix + "/static/{name}", static),
        json("/api/capture", lambda api, _: api.overview()),
        json("/api/timeline", lambda api, request: api.timeline(request.query_params)),
        json("/api/connections", lambda api, request: api.connections.page(request.query_params)),
        *(rows("/api/connections", form, lambda api, request: api.connections.all(request.query_params)) for form in _TYPES),
        json(f"/api/frame/{number}", lambda api, request: api.frame(request.path_params["number"], request.query_params)),
        json(f"/api/connection/{number}", lambda api, request: api.connection(request.path_params["number"])),
        json(f"/api/connection/{number}/figures", lambda api, request: api.figures(request.path_params["number"], request.query_params)),
        *(
            rows(tables, form, lambda api, request: api.rows(request.path_params["number"], request.path_params["table"]))
            for form in _TYPES
        ),
        json(tables, lambda api, request: api.table(request.path_params["number"], request.path_params["table"], request.query_params)),
    ]


def archive_routes(archive: ArchiveApi) -> list[Route]:
    """Return the routes of an archive, and of the captures that it lists."""

    def json(path: str, answer: Callable[[Request], dict[str, Any]]) -> Route:
        return Route(path, made(lambda request: JSONResponse(answer(request))))

    return [
        Route("/", made(lambda _: HTMLResponse(pages.page("archive", archive.overview())))),
        Route("/static/{name}", static),
        json("/api/archive", lambda _: archive.overview()),
        json("/api/archive/captures", lambda request: archive.captures(request.query_params)),
        json("/api/archive/query", lambda request: archive.query(request.query_params)),
        Route("/api/archive/query.csv", made(lambda request: Response(archive.query_csv(request.query_params), headers=_QUERY_CSV))),
        *capture_routes(lambda request: archive.capture(request.path_params["capture"]), "/capture/{capture}", "Archive"),
    ]


def two_routes(document: dict[str, Any], both: Sequence[CaptureApi]) -> list[Route]:
    """Return the routes of two captures, and of the explorer of each."""

    def found(request: Request) -> CaptureApi:
        place: int = request.path_params["place"]
        if place >= len(both):
            raise NotFound("there is no such capture")
        return both[place]

    return [
        Route("/", made(lambda _: HTMLResponse(pages.page("pair", document)))),
        Route("/static/{name}", static),
        Route("/api/pair", made(lambda _: JSONResponse(document))),
        *capture_routes(found, "/capture/{place:int}", "Two captures"),
    ]


_QUERY_CSV = {"Content-Type": _TYPES["csv"], "Content-Disposition": 'attachment; filename="query.csv"'}


def application(routes: list[Route]) -> Starlette:
    """Return the web application with these routes. The paths of the routes begin below the token."""
    app = Starlette(routes=routes, exception_handlers={HTTPException: _no_such_page})
    app.router.redirect_slashes = False
    return app


def made(answer: Callable[[Request], Response]) -> Callable[[Request], Any]:
    """Return an endpoint that computes its answer in a thread. The answer to an error is one line of text."""

    def locked(request: Request) -> Response:
        with _room:
            try:
                return answer(request)
            except (Problem, TcptraceLabError) as problem:
                status = _STATUS.get(type(problem), getattr(problem, "status", 500))
                return error(status, str(problem), as_json=is_api(request.url.path))
            except Exception as defect:  # noqa: BLE001  (an error in one request must not end the others; its answer reports the error)
                words = f"internal error: {type(defect).__name__}: {defect}; please report it"
                return error(500, words, as_json=is_api(request.url.path))

    async def endpoint(request: Request) -> Response:
        return await run_in_threadpool(locked, request)

    return endpoint


_STATUS: dict[type[Exception], int] = {Changed: 409, Vanished: 410}


async def static(request: Request) -> Response:
    """Answer with one of the static files that pages need. No other file is ever read."""
    found = pages.static(request.path_params["name"])
    if found is None:
        return error(404, "no such file", as_json=False)
    data, media_type = found
    return Response(data, media_type=media_type)


def download(rows: pl.LazyFrame, form: str, request: Request) -> Response:
    """Return rows as a file. They are first written to an unnamed temporary file, so that an error can still become an error page."""
    file: IO[bytes] = tempfile.TemporaryFile(prefix="tcptrace-lab-")  # noqa: SIM115  (closed when the answer is sent)
    if form == "csv":
        text_of_lists(rows).sink_csv(file)
    else:
        rows.sink_parquet(file)
    size_bytes = file.seek(0, 2)
    file.seek(0)
    name = "-".join(part for part in request.url.path.removesuffix(f".{form}").split("/api/")[-1].split("/") if part.isalnum())
    headers = {"Content-Disposition": f'attachment; filename="{name}.{form}"', "Content-Length": str(size_bytes)}
    return StreamingResponse(_blocks(file), media_type=_TYPES[form], headers=headers)


def _blocks(file: IO[bytes]) -> Iterator[bytes]:
    with file:
        yield from iter(partial(file.read, _BLOCK_BYTES), b"")


async def _no_such_page(request: Request, problem: Exception) -> Response:
    status = problem.status_code if isinstance(problem, HTTPException) else 500
    return error(status, "there is no such page" if status == 404 else "this request cannot be answered", as_json=is_api(request.url.path))  # noqa: PLR2004
