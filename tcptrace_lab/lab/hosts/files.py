"""File transfers by HTTP and FTP with real servers and clients, in the phases of Law's breakdown.

- connect (d1): the connection setup. For FTP, it includes the login.
- request (d2): from the request to the first byte of the file. For an upload, until the client is allowed to send the file.
- transfer (d3): from the end of the request phase to the last byte. For an upload, until the server confirms the file.
"""

from __future__ import annotations

import ftplib
import http.client
import http.server
import logging
import socket
import threading
import time
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcptrace_lab.errors import MissingTool
from tcptrace_lab.lab.hosts.sockets import SOCKET_TIMEOUT_S
from tcptrace_lab.process import temporary

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tcptrace_lab.lab.hosts.endpoints import Ends
    from tcptrace_lab.lab.studies.experiment_file import Point

HTTP_PORT, FTP_PORT = 80, 21
READ_BYTES = 65_536
_CREATED, _OK = 201, 200
_USER = "lab"
_FILE = "file.bin"
_POLL_S = 0.05
"""Interval at which the FTP server checks whether it has to stop."""

Times = dict[str, list[int]]


def require_ftp() -> None:
    """Raise MissingTool if no FTP server (pyftpdlib) is installed."""
    if find_spec("pyftpdlib") is None:
        raise MissingTool("not installed", where="pyftpdlib", remedy="pip install 'tcptrace-lab[ftp]'")


def fetch_by_http(point: Point, ends: Ends) -> Times:
    """Transfer `count` files over one connection between client and Python's standard HTTP server.

    Return the duration of each phase for each file.
    """
    size, put = int(point["transfer.file"]), point["transfer.method"] == "put"
    with _http_server(point, ends):
        begun_ns = time.monotonic_ns()
        client = http.client.HTTPConnection(ends.network.server_address, HTTP_PORT, timeout=SOCKET_TIMEOUT_S)
        with ends.dialled(HTTP_PORT) as end, ends.sampled(end, "client"):
            client.sock = end
            times: Times = {"connect_ns": [time.monotonic_ns() - begun_ns], "request_ns": [], "transfer_ns": []}
            for _ in range(int(point["transfer.count"])):
                request_ns, transfer_ns = _put_one(client, size) if put else _get_one(client, size)
                times["request_ns"].append(request_ns)
                times["transfer_ns"].append(transfer_ns)
            times["connect_ns"] += [0] * (len(times["request_ns"]) - 1)
        client.close()
    return times


def _get_one(client: http.client.HTTPConnection, size: int) -> tuple[int, int]:
    asked_ns = time.monotonic_ns()
    client.request("GET", f"/{_FILE}")
    answer = client.getresponse()
    left = size - len(answer.read1(1))
    first_ns = time.monotonic_ns()
    while left > 0 and (data := answer.read(min(left, READ_BYTES))):
        left -= len(data)
    answer.read()
    if answer.status != _OK or left:
        raise EOFError(f"HTTP {answer.status}, {left} bytes are missing")
    return first_ns - asked_ns, time.monotonic_ns() - first_ns


def _put_one(client: http.client.HTTPConnection, size: int) -> tuple[int, int]:
    asked_ns = time.monotonic_ns()
    client.putrequest("PUT", f"/{_FILE}")
    client.putheader("Content-Length", str(size))
    client.endheaders()
    first_ns = time.monotonic_ns()
    client.send(bytes(size))
    answer = client.getresponse()
    answer.read()
    if answer.status != _CREATED:
        raise EOFError(f"HTTP {answer.status}")
    return first_ns - asked_ns, time.monotonic_ns() - first_ns


@contextmanager
def _http_server(point: Point, ends: Ends) -> Iterator[None]:
    size, write = int(point["transfer.file"]), int(point["transfer.write"])

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = SOCKET_TIMEOUT_S

        def setup(self) -> None:
            super().setup()
            ends.samples.add(self.connection, "server")

        def finish(self) -> None:
            ends.samples.remove(self.connection)
            super().finish()

        def do_GET(self) -> None:
            self.send_response(_OK)
            self.send_header("Content-Length", str(size))
            self.end_headers()
            data = memoryview(bytes(min(size, write)))
            for start in range(0, size, write):
                self.wfile.write(data[: size - start])

        def do_PUT(self) -> None:
            left = int(self.headers["Content-Length"])
            while left > 0 and (data := self.rfile.read(min(left, READ_BYTES))):
                left -= len(data)
            self.send_response(_CREATED)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Log nothing, because the capture contains all requests."""

    server = http.server.ThreadingHTTPServer((ends.network.server_address, HTTP_PORT), Handler, bind_and_activate=False)
    server.socket.close()
    server.socket = ends.listener(HTTP_PORT)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": _POLL_S}, name="http", daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def fetch_by_ftp(point: Point, ends: Ends) -> Times:
    """Transfer one file by FTP after a login. `ends.port` is set to the client's port of the data connection."""
    size, put = int(point["transfer.file"]), point["transfer.method"] == "put"
    with _ftp_server(point, ends), ends.network.client.entered(), ftplib.FTP(timeout=SOCKET_TIMEOUT_S) as client:  # noqa: S321  (a laboratory's)
        begun_ns = time.monotonic_ns()
        client.connect(ends.network.server_address, FTP_PORT)
        client.login(_USER, _USER)
        client.set_pasv(bool(point["transfer.passive"]))
        client.voidcmd("TYPE I")
        asked_ns = time.monotonic_ns()
        with client.transfercmd(f"STOR put-{_FILE}" if put else f"RETR {_FILE}") as data:
            ends.port = data.getsockname()[1]
            with ends.sampled(data, "client"):
                first_ns = _send_file(data, size) if put else _receive_file(data, size)
        client.voidresp()
        done_ns = time.monotonic_ns()
    return {"connect_ns": [asked_ns - begun_ns], "request_ns": [first_ns - asked_ns], "transfer_ns": [done_ns - first_ns]}


def _send_file(data: socket.socket, size: int) -> int:
    first_ns = time.monotonic_ns()
    data.sendall(bytes(size))
    data.shutdown(socket.SHUT_WR)
    return first_ns


def _receive_file(data: socket.socket, size: int) -> int:
    left = size - len(data.recv(1))
    first_ns = time.monotonic_ns()
    while left > 0 and (got := data.recv(min(left, READ_BYTES))):
        left -= len(got)
    if left:
        raise EOFError(f"{left} bytes are missing")
    return first_ns


@contextmanager
def _ftp_server(point: Point, ends: Ends) -> Iterator[None]:
    require_ftp()
    from pyftpdlib.authorizers import DummyAuthorizer  # noqa: PLC0415  (optional)
    from pyftpdlib.handlers import DTPHandler, FTPHandler  # noqa: PLC0415
    from pyftpdlib.ioloop import IOLoop  # noqa: PLC0415
    from pyftpdlib.servers import FTPServer  # noqa: PLC0415

    logging.getLogger("pyftpdlib").disabled = True  # pyftpdlib would log every session to stderr

    class Data(DTPHandler):  # type: ignore[misc]
        def __init__(self, sock: socket.socket, channel: Any) -> None:  # noqa: ANN401
            ends.options.apply(sock, is_server=True)
            sock.settimeout(0)
            ends.samples.add(sock, "server")
            super().__init__(sock, channel)

        def close(self) -> None:
            if self.socket is not None:
                ends.samples.remove(self.socket)
            super().close()

    with ExitStack() as stack:
        folder = Path(stack.enter_context(temporary.folder()))
        (folder / _FILE).write_bytes(bytes(int(point["transfer.file"])))
        users = DummyAuthorizer()
        users.add_user(_USER, _USER, str(folder), perm="elrw")
        handler = type("Handler", (FTPHandler,), {"authorizer": users, "dtp_handler": Data, "tcp_no_delay": bool(point["sockets.nodelay"])})
        loop = IOLoop()
        stack.callback(loop.close)
        server = FTPServer(ends.listener(FTP_PORT), handler, ioloop=loop)
        stop = threading.Event()

        def serve() -> None:
            with ends.network.server.entered():
                while not stop.is_set():
                    loop.loop(timeout=_POLL_S, blocking=False)
            server.close_all()

        thread = threading.Thread(target=serve, name="ftp", daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()
