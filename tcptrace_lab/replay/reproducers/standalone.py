#!/usr/bin/env python3
# A minimal reproducer of a slow TCP transfer, made by `tcptrace-lab replay script`. It needs Python 3.8 or newer and nothing else.
# ---- what it is from ----
# An example: two writes, then a read, over loopback.
# ---- end ----
"""Reproduce a stall of a TCP transfer, and try remedies.

Both ends run over loopback. If the stall needs a path, they run in two private network namespaces, joined by a relay with the path's delay,
rate and losses (Linux; root, or user namespaces). --serve and --connect run one end each on two machines. --times sets the number of runs.
The fastest run decides, because a busy machine can only slow a run down.
"""

from __future__ import annotations

import argparse
import ctypes
import heapq
import os
import random
import select
import signal
import socket
import struct
import sys
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any, Callable, NoReturn

    Step = dict[str, Any]
    Told = tuple[str, str, float]
    Times = tuple[list[float], list[float], list[Told]]

try:
    import fcntl
except ImportError:  # not available on Windows, where steps that query the kernel's queue fail
    fcntl = None  # type: ignore[assignment]

# ---- facts ----
REMEDY: str = "--nodelay"
EXPECTED: dict[str, float] = {
    "stalled_s": 0.042,
    "with_s": 0.042,
    "without_s": 0.0001,
    "with_rounds": 1,
    "without_rounds": 1,
    "rtt_s": 0.00004,
}
PATH: dict[str, Any] = {
    "delay_s": [0, 0],
    "rate_bps": [None, None],
    "lost": [[], []],
    "loss_share": [0, 0],
    "mtu_bytes": None,
    "own": False,
}
PATH_OPTIONS: dict[str, bool] = {"timestamps": True, "sack": True}
CLIENT: dict[str, Any] = {"tasks": [[{"write_bytes": 1}, {"read_bytes": 1}, {"write_bytes": 1}, {"write_bytes": 1}, {"read_bytes": 1}]]}
SERVER: dict[str, Any] = {"tasks": [[{"read_bytes": 1}, {"write_bytes": 1}, {"read_bytes": 2}, {"write_bytes": 1}]]}
# ---- end ----

STALLED, NOT_STALLED, NOT_DONE = 1, 0, 3
TIME_LIMIT_S = 60 + 10 * EXPECTED["with_s"]
SIOCOUTQ, SIOCOUTQNSD = 0x5411, 0x894B  # linux/sockios.h: unacknowledged bytes; unsent bytes
SO_FORCED = {"SO_SNDBUF": 32, "SO_RCVBUF": 33}  # asm-generic/socket.h: root's SO_SNDBUFFORCE and SO_RCVBUFFORCE ignore limits
MAX_CALL_BYTES = 1 << 20
MAX_STEPS_TOLD = 40
POLL_S = 0.0002


def main() -> int:
    """Run the transfer. Exit status 1: the stall occurs, 0: it does not occur, 2: wrong options, 3: the transfer failed."""
    asked = options()
    ends = [changed(dict(end), asked) for end in (CLIENT, SERVER)]
    try:
        if asked.serve is not None:
            return serve(ends[1], asked)
        return judged(*runs(ends, asked), ends)
    except KeyboardInterrupt:
        return 130
    except (OSError, EOFError) as error:
        return failed(f"the transfer could not be made: {error}")


def options() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        description="Reproduce a stall of a TCP transfer, and try its fix.",
        epilog=f"Exit status: 1 the stall occurs, 0 it does not, 2 wrong options, 3 the transfer failed. Known fix: {REMEDY}",
    )
    parser.add_argument("--serve", nargs="?", const="", metavar="ADDRESS", help="run only the server, on this host")
    parser.add_argument("--connect", metavar="HOST", help="run only the client; the server runs on HOST")
    parser.add_argument("--port", type=int, default=5001)
    parser.add_argument("--times", type=int, default=3, help="number of transfers (3)")
    for name, words in (
        ("--nodelay", "set TCP_NODELAY"),
        ("--cork", "TCP_CORK around the writes of a message"),
        ("--quickack", "TCP_QUICKACK after every read"),
        ("--eager-reader", "read at once, without pauses"),
        ("--no-thinking", "no pauses at all"),
        ("--lossless", "a path without packet loss"),
    ):
        parser.add_argument(name, action="store_true", help=words)
    parser.add_argument("--send-buffer", type=size, metavar="SIZE", help="SO_SNDBUF, as 64K")
    parser.add_argument("--receive-buffer", type=size, metavar="SIZE", help="SO_RCVBUF")
    parser.add_argument("--congestion", metavar="NAME", help="TCP_CONGESTION")
    asked = parser.parse_args()
    if asked.times < 1 or not 0 < asked.port < 65536 or (asked.serve is not None and asked.connect):
        parser.error("--times is at least 1, --port is 1 to 65535, and --serve excludes --connect")
    return asked


def size(text: str) -> int:
    """Parse a size in bytes: `64K` → 65536."""
    unit = {"K": 1 << 10, "M": 1 << 20}.get(text[-1:].upper(), 1)
    return int(text[:-1] if unit > 1 else text) * unit


def changed(end: dict[str, Any], asked: argparse.Namespace) -> dict[str, Any]:
    """Return one end with the changes of the command line."""
    for name in ("nodelay", "cork", "quickack"):
        end[name] = bool(end.get(name)) or getattr(asked, name)
    if asked.send_buffer:
        end["send_buffer_bytes"] = asked.send_buffer
        end["max_unacked_bytes"] = asked.send_buffer if end.get("max_unacked_bytes") else None
    if asked.receive_buffer:
        end["receive_buffer_bytes"], end["window_clamp_bytes"] = asked.receive_buffer, None
    if asked.congestion:
        end["congestion_control"] = asked.congestion
    if asked.eager_reader or asked.no_thinking:
        end["tasks"] = [without_pauses(task, everywhere=asked.no_thinking) for task in end["tasks"]]
    return end


def without_pauses(task: list[Step], *, everywhere: bool) -> list[Step]:
    """Return a task without its pauses before reads; with `everywhere`, without any pauses."""
    following = [*task[1:], {}]
    return [step for step, then in zip(task, following) if not ("think_s" in step and (everywhere or "read_bytes" in then))]


# Sockets


def prepared(end: dict[str, Any], host: str, *, near: bool) -> socket.socket:
    """Create a socket with the options of one end; it is neither bound nor connected."""
    made = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    made.settimeout(TIME_LIMIT_S)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if near and PATH["mtu_bytes"]:
        made.setsockopt(socket.IPPROTO_TCP, known("TCP_MAXSEG"), PATH["mtu_bytes"] - 40)
    if end.get("congestion_control"):
        made.setsockopt(socket.IPPROTO_TCP, known("TCP_CONGESTION"), end["congestion_control"].encode())
    if end["nodelay"]:
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if end.get("window_clamp_bytes"):
        made.setsockopt(socket.IPPROTO_TCP, known("TCP_WINDOW_CLAMP"), end["window_clamp_bytes"])
    for name, key in (("SO_SNDBUF", "send_buffer_bytes"), ("SO_RCVBUF", "receive_buffer_bytes")):
        if end.get(key):
            try:
                made.setsockopt(socket.SOL_SOCKET, SO_FORCED[name], end[key])
            except OSError:
                made.setsockopt(socket.SOL_SOCKET, getattr(socket, name), end[key])
    return made


def known(name: str) -> int:
    """Return the number of a socket option. Raises OSError on systems that lack the option."""
    if not hasattr(socket, name):
        raise OSError(f"this system has no {name}")
    return int(getattr(socket, name))


def queued(connection: socket.socket, request: int) -> int:
    """Return the unsent bytes (SIOCOUTQNSD) or the unacknowledged bytes (SIOCOUTQ) of a connection."""
    if fcntl is None:
        raise OSError("only Linux reports how many bytes are queued")
    return int(struct.unpack("i", fcntl.ioctl(connection, request, bytes(4)))[0])


class Playing:
    """Runs one end. `steps` collects its steps: (end, description, seconds)."""

    def __init__(self, who: str, end: dict[str, Any], connection: socket.socket) -> None:
        self.who, self.end, self.connection = who, end, connection
        self.deadline_s = time.monotonic() + TIME_LIMIT_S
        self.steps: list[Told] = []
        self.have_read, self.ended = 0, False
        self.news = threading.Condition()
        self.failures: list[BaseException] = []

    def play(self) -> None:
        """Run all tasks concurrently, then shut down writing, read until the other end closes, and close."""
        others = [threading.Thread(target=self.guarded, args=(task,), daemon=True) for task in self.end["tasks"][1:]]
        for other in others:
            other.start()
        self.guarded(self.end["tasks"][0])
        for other in others:
            other.join()
        if not self.failures:
            self.guarded([{"close": True}, {"read_bytes": 0}])
        self.connection.close()
        if self.failures:
            raise self.failures[0]

    def guarded(self, task: list[Step]) -> None:
        """Run a task. An error also ends the other tasks."""
        try:
            for number, step in enumerate(task):
                start_s = time.monotonic()
                words = self.do(step, last="write_bytes" not in (task[number + 1] if number + 1 < len(task) else {}))
                if words:
                    self.steps.append((self.who, words, time.monotonic() - start_s))
        except BaseException as error:
            self.failures.append(error)
            with suppress(OSError):
                self.connection.shutdown(socket.SHUT_RDWR)
            with self.news:
                self.ended = True
                self.news.notify_all()

    def do(self, step: Step, *, last: bool) -> str:
        """Run one step. Return its description."""
        if "write_bytes" in step:
            self.write(step["write_bytes"], step.get("call_bytes") or step["write_bytes"], last=last)
            return "writes {} B".format(format(step["write_bytes"], ","))
        if "read_bytes" in step:
            self.read(step["read_bytes"])
            return "reads {} B".format(format(step["read_bytes"], ",")) if step["read_bytes"] else "reads until the other end closes"
        if "think_s" in step:
            time.sleep(step["think_s"])
            return "thinks"
        if "await" in step:
            while queued(self.connection, SIOCOUTQ if step["await"] == "acknowledged" else SIOCOUTQNSD):
                self.poll()
            return "waits until all is {}".format(step["await"])
        if "await_read_bytes" in step:
            self.await_received(step["await_read_bytes"])
            return "waits until {} B are read".format(format(step["await_read_bytes"], ","))
        with suppress(OSError):  # the peer has already closed the connection
            self.connection.shutdown(socket.SHUT_WR)
        return ""

    def write(self, left: int, call_bytes: int, *, last: bool) -> None:
        """Write `left` bytes in calls of `call_bytes`.

        If the end has a bound, wait until the unacknowledged bytes plus the call fit the bound.
        """
        if self.end["cork"]:
            self.connection.setsockopt(socket.IPPROTO_TCP, known("TCP_CORK"), 1)
        while left:
            call = min(left, call_bytes)
            bound = self.end.get("max_unacked_bytes")
            while bound and 0 < queued(self.connection, SIOCOUTQ) > bound - call:
                self.poll()
            left -= call
            while call:
                piece = min(call, MAX_CALL_BYTES)
                self.connection.sendall(bytes(piece))
                call -= piece
        if self.end["cork"] and last:
            self.connection.setsockopt(socket.IPPROTO_TCP, known("TCP_CORK"), 0)

    def read(self, count: int) -> None:
        """Read `count` bytes. If `count` is 0, read until the other end closes."""
        left = count or MAX_CALL_BYTES
        while left:
            data = self.connection.recv(min(left, MAX_CALL_BYTES))
            if self.end["quickack"]:
                self.connection.setsockopt(socket.IPPROTO_TCP, known("TCP_QUICKACK"), 1)
            with self.news:
                self.have_read += len(data)
                self.ended = self.ended or not data
                self.news.notify_all()
            if not data:
                if count:
                    raise EOFError(f"the other end closed {left} bytes too soon")
                return
            left -= len(data) if count else 0

    def await_received(self, total: int) -> None:
        """Wait until the other task of this end has read `total` bytes."""
        with self.news:
            there = self.news.wait_for(lambda: self.have_read >= total or self.ended, max(0.0, self.deadline_s - time.monotonic()))
        if not there or self.have_read < total:
            raise EOFError(f"the other end closed, or was silent, before {total} bytes were read")

    def poll(self) -> None:
        """Sleep until the next query. Polling is needed because the kernel has no event for the size of a queue."""
        if time.monotonic() > self.deadline_s:
            raise OSError(f"it takes longer than {TIME_LIMIT_S:.0f} s")
        time.sleep(POLL_S)


# Both ends


def runs(ends: list[dict[str, Any]], asked: argparse.Namespace) -> Times:
    """Run the transfer several times. Return the duration and the connect time of each run, and the steps of the fastest run."""
    if asked.connect:
        return repeated(lambda: once(ends, asked.connect, asked.port, None, near=False), asked.times)
    close: Callable[[], object] = int  # does nothing
    if PATH["own"]:
        listener, close = own_path(ends[1], asked)
    else:
        listener = listening(ends[1], "127.0.0.1", 0, near=True)
    host, port = listener.getsockname()[:2]
    try:
        return repeated(lambda: once(ends, host, port, listener, near=not PATH["own"]), asked.times)
    finally:
        listener.close()
        close()


def repeated(make: Callable[[], tuple[float, float, list[Told]]], times: int) -> Times:
    """Run `make` several times. Return the durations, the connect times, and the steps of the fastest run."""
    took: list[float] = []
    connecting: list[float] = []
    steps: list[Told] = []
    for number in range(times):
        spent_s, connect_s, server_steps = make()
        print(f"transfer {number + 1}: {milliseconds(spent_s)}")
        if not took or spent_s < min(took):
            steps = server_steps
        took.append(spent_s)
        connecting.append(connect_s)
    return took, connecting, steps


def once(
    ends: list[dict[str, Any]], host: str, port: int, listener: socket.socket | None, *, near: bool
) -> tuple[float, float, list[Told]]:
    """Run one transfer: the client in this thread, and the server in another thread if there is a listener."""
    server_steps: list[Told] = []
    failures: list[BaseException] = []

    def server() -> None:
        try:
            assert listener is not None
            playing = Playing("server", ends[1], listener.accept()[0])
            playing.connection.settimeout(TIME_LIMIT_S)
            playing.play()
            server_steps.extend(playing.steps)
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=server, daemon=True)
    if listener is not None:
        thread.start()
    client = prepared(ends[0], host, near=near)
    start_s = time.monotonic()
    client.connect((host, port))
    connect_s = time.monotonic() - start_s
    playing = Playing("client", ends[0], client)
    try:
        playing.play()
    except (OSError, EOFError):
        if listener is None:
            raise
        thread.join(1.0)
        if failures:
            raise failures[0] from None  # the server's error occurred first
        raise
    took_s = time.monotonic() - start_s
    if listener is not None:
        thread.join(TIME_LIMIT_S)
        if failures:
            raise failures[0]
    return took_s, connect_s, playing.steps + server_steps


def listening(end: dict[str, Any], host: str, port: int, *, near: bool) -> socket.socket:
    """Create the server's listening socket."""
    made = prepared(end, host, near=near)
    made.bind((host, port))
    made.listen(8)
    return made


def serve(end: dict[str, Any], asked: argparse.Namespace) -> int:
    """Run only the server, for one client after another, until Ctrl-C."""
    with listening(end, asked.serve, asked.port, near=False) as listener:
        print(f"listening at {listener.getsockname()[0]} port {asked.port}; Ctrl-C ends", flush=True)
        listener.settimeout(None)
        while True:
            connection, client = listener.accept()
            connection.settimeout(TIME_LIMIT_S)
            playing = Playing("server", end, connection)
            try:
                playing.play()
            except (OSError, EOFError) as error:
                print(f"{client[0]}: {error}", file=sys.stderr)
                continue
            tell(playing.steps)


# Results


def judged(took: list[float], connecting: list[float], steps: list[Told], ends: list[dict[str, Any]]) -> int:
    """Print the steps and the result. The stall occurs if the fastest run is closer to the expected duration with the stall."""
    tell(steps)
    rtt_s = min(connecting)
    longer_s = rtt_s - EXPECTED["rtt_s"]
    with_s = EXPECTED["with_s"] + EXPECTED["with_rounds"] * longer_s
    without_s = EXPECTED["without_s"] + EXPECTED["without_rounds"] * longer_s
    is_there = min(took) > (with_s + without_s) / 2
    print(f"RTT {milliseconds(rtt_s)}; {written(ends)} bytes written in each of {len(took)} transfers")
    print(f"expected: {milliseconds(with_s)} with the stall, {milliseconds(max(without_s, 0.0))} without it")
    print(f"{'STALLED' if is_there else 'not stalled'}: the fastest took {milliseconds(min(took))}")
    if is_there:
        print(f"try it with {REMEDY}")
    return STALLED if is_there else NOT_STALLED


def written(ends: list[dict[str, Any]]) -> int:
    """Return the number of bytes that both ends write in one transfer."""
    return sum(step.get("write_bytes", 0) for end in ends for task in end["tasks"] for step in task)


def tell(steps: list[Told]) -> None:
    """Print the duration of each step. If there are more than `MAX_STEPS_TOLD` steps, print only the longest ones."""
    shown = steps
    if len(steps) > MAX_STEPS_TOLD:
        print(f"the longest {MAX_STEPS_TOLD} of {len(steps)} steps:")
        min_s = sorted(spent_s for _, _, spent_s in steps)[-MAX_STEPS_TOLD]
        shown = [step for step in steps if step[2] >= min_s][:MAX_STEPS_TOLD]
    for who, words, spent_s in shown:
        mark = "  <- here" if spent_s >= EXPECTED["stalled_s"] / 2 else ""
        print(f"  {who:8}{words:36}{milliseconds(spent_s):>12}{mark}")
    sys.stdout.flush()


def milliseconds(spent_s: float) -> str:
    """Seconds as text in milliseconds."""
    return "%.2f ms" % (spent_s * 1000)


def failed(words: str) -> int:
    """Print an error in one line. Return the exit status."""
    print(f"{os.path.basename(sys.argv[0])}: {words}", file=sys.stderr)
    return NOT_DONE


# A private path: two network namespaces, a tun interface in each, and a relay between them

CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000  # linux/sched.h
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000  # linux/if_tun.h
SIOCSIFADDR, SIOCSIFNETMASK, SIOCSIFMTU, SIOCSIFTXQLEN, SIOCSIFFLAGS = 0x8916, 0x891C, 0x8922, 0x8943, 0x8914  # linux/sockios.h
IFF_UP, IFF_RUNNING = 0x01, 0x40  # linux/if.h
CLIENT_ADDRESS, SERVER_ADDRESS = "192.0.2.1", "192.0.2.2"  # RFC 5737: for documentation
FRAME_BYTES = 14  # bytes that an Ethernet header adds to a packet
QUEUE_PACKETS = 10_000


def own_path(server: dict[str, Any], asked: argparse.Namespace) -> tuple[socket.socket, Callable[[], None]]:
    """Build the path. Return the listening socket in the server's namespace, and a function that ends the relay."""
    if fcntl is None or not os.path.exists("/dev/net/tun"):
        raise OSError("the stall needs a path of tun interfaces, which need Linux; or run it between two hosts: --serve and --connect")
    unshare = ctypes.CDLL(None, use_errno=True).unshare
    refused = "the stall needs a path, and this user may not build one (%s): run it as root, or use --serve and --connect"
    if unshare(CLONE_NEWNET) and unshare(CLONE_NEWUSER | CLONE_NEWNET):
        raise OSError(refused % os.strerror(ctypes.get_errno()))
    try:
        far = tun(SERVER_ADDRESS)
    except PermissionError as error:  # on some systems only root may open /dev/net/tun
        raise OSError(refused % error.strerror) from error
    listener = listening(server, SERVER_ADDRESS, asked.port, near=False)
    if unshare(CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    near = tun(CLIENT_ADDRESS)
    alive, end = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the relay ends with the parent process
        os.close(end)
        listener.close()
        relay(near, far, alive, lossless=asked.lossless)

    def close() -> None:
        os.close(end)
        os.waitpid(child, 0)

    return listener, close


def tun(address: str) -> int:
    """Create a tun interface with an address in the current network namespace. Return its file descriptor."""
    made = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    name = b"repro0"
    fcntl.ioctl(made, TUNSETIFF, struct.pack("16sH22x", name, IFF_TUN | IFF_NO_PI))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        for request, value in (
            (SIOCSIFADDR, struct.pack("=HH4s", socket.AF_INET, 0, socket.inet_aton(address))),
            (SIOCSIFNETMASK, struct.pack("=HH4s", socket.AF_INET, 0, socket.inet_aton("255.255.255.0"))),
            (SIOCSIFMTU, struct.pack("i", min(PATH["mtu_bytes"], 65_535))),
            (SIOCSIFFLAGS, struct.pack("H", IFF_UP | IFF_RUNNING)),
        ):
            fcntl.ioctl(control, request, struct.pack("16s24s", name, value))
        with suppress(OSError):  # needs root; otherwise the queue has room for 500 packets
            fcntl.ioctl(control, SIOCSIFTXQLEN, struct.pack("16si20x", name, QUEUE_PACKETS))
    for key, on in (("tcp_no_metrics_save", 1), ("tcp_timestamps", PATH_OPTIONS["timestamps"]), ("tcp_sack", PATH_OPTIONS["sack"])):
        with suppress(OSError), open(f"/proc/sys/net/ipv4/{key}", "w", encoding="ascii") as file:
            file.write(f"{int(on)}\n")
    return made


def relay(near: int, far: int, alive: int, *, lossless: bool) -> NoReturn:
    """Forward packets in a separate process until the parent ends, each direction with its delay, rate and losses."""
    draw = random.Random(1)
    waiting: list[tuple[float, int, int, bytes]] = []
    free_s = [0.0, 0.0]
    counts: dict[tuple[int, bytes], int] = {}
    number = 0
    while True:
        now_s = time.monotonic()
        while waiting and waiting[0][0] <= now_s:
            _, _, out, packet = heapq.heappop(waiting)
            with suppress(OSError):
                os.write(out, packet)
        ready, _, _ = select.select([near, far, alive], [], [], max(0.0, waiting[0][0] - time.monotonic()) if waiting else None)
        if alive in ready:
            os._exit(0)
        for source in ready:
            way = 0 if source == near else 1
            packet = os.read(source, 1 << 16)
            header = (packet[0] & 15) * 4
            if packet[0] >> 4 != 4 or packet[9] != socket.IPPROTO_TCP:
                continue
            port = packet[header + 2 * way : header + 2 * way + 2]  # the client's port, because lost packets are numbered per connection
            index = counts[way, port] = counts.get((way, port), -1) + 1
            if not lossless and (index in PATH["lost"][way] or draw.random() < PATH["loss_share"][way]):
                continue
            free_s[way] = max(time.monotonic(), free_s[way])
            if PATH["rate_bps"][way]:
                free_s[way] += (len(packet) + FRAME_BYTES) * 8 / PATH["rate_bps"][way]
            number += 1
            heapq.heappush(waiting, (free_s[way] + PATH["delay_s"][way], number, far if way == 0 else near, packet))


if __name__ == "__main__":
    sys.exit(main())
