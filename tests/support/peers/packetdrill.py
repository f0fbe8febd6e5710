"""A small parser and player of packetdrill scripts, for tests of `replay script`.

The parser follows the public grammar (google/packetdrill, gtests/net/packetdrill: parser.y, lexer.l) and README. No package contains
packetdrill itself. `python tests/support/peers/packetdrill.py FILE` plays a script against this machine's kernel over a tun interface. It
uses the network namespace where it is started (`unshare --net`). If the kernel does something else than the script says, the player prints
the difference and exits with 1.
"""

from __future__ import annotations

import fcntl
import os
import queue
import re
import socket
import struct
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

TIME = r"(?:\d*\.\d+|\d+)"
LINE = re.compile(rf"(?P<sign>\+?)(?P<at>{TIME})(?:\.\.\.(?P<until>{TIME}))? (?P<rest>.*)")
PACKET = re.compile(
    r"(?P<way>[<>]) (?P<flags>[FSRP]*\.?) (?P<seq>\d+):(?P<end>\d+)\((?P<size>\d+)\)"
    r"(?: ack (?P<ack>\d+))?(?: win (?P<win>\d+))?(?: <(?P<options>[^>]*)>)?"
)
CALL = re.compile(r"(?P<name>[a-z]+)\((?P<arguments>[^()]*)\) = (?P<result>-?\d+)")
OPTION = re.compile(r"--(?P<name>\w+)=(?P<value>\w+)")
COMMAND = re.compile(r"`(?P<command>[^`]*)`")


@dataclass(frozen=True)
class Packet:
    """A packet such as `> P. 1:101(100) ack 1`. The SYN has sequence number 0."""

    outbound: bool
    flags: str
    seq: int
    size: int
    ack: int | None
    window: int | None
    options: str | None


@dataclass(frozen=True)
class Call:
    """A system call such as `write(3, ..., 100) = 100`. A call that can block must return by `until_s`."""

    name: str
    arguments: tuple[str, ...]
    result: int
    until_s: float | None


@dataclass(frozen=True)
class Event:
    """An event of the script, and its time."""

    at_s: float
    what: Packet | Call | str
    line: str


@dataclass
class Script:
    """A packetdrill script."""

    options: dict[str, str] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)

    def calls(self, name: str) -> list[Call]:
        """Return the system calls with this name."""
        return [event.what for event in self.events if isinstance(event.what, Call) and event.what.name == name]


def read(text: str) -> Script:
    """Parse a script.

    Every line must be a comment, an option or an event with its time. Options must precede all events. Any other line is an error.
    """
    script = Script()
    now_s = 0.0
    for line in text.splitlines():
        if not line.strip():
            continue
        if line.startswith("//"):
            script.comments.append(line)
            continue
        option = OPTION.fullmatch(line)
        if option is not None:
            assert not script.events, f"an option behind events: {line}"
            script.options[option["name"]] = option["value"]
            continue
        timed = LINE.fullmatch(line)
        assert timed is not None, f"no event: {line}"
        at_s = float(timed["at"]) + (now_s if timed["sign"] else 0.0)
        assert script.events or at_s == 0, "the first event is at time 0"
        assert at_s >= now_s, f"time goes backwards: {line}"
        now_s = at_s
        until_s = None if timed["until"] is None else float(timed["until"])
        script.events.append(Event(at_s, _what(timed["rest"], until_s), line))
    return script


def _what(rest: str, until_s: float | None) -> Packet | Call | str:
    packet, call, command = PACKET.fullmatch(rest), CALL.fullmatch(rest), COMMAND.fullmatch(rest)
    if packet is not None:
        assert until_s is None, rest
        seq, end, size = int(packet["seq"]), int(packet["end"]), int(packet["size"])
        assert end == seq + size, f"inconsistent sequence numbers: {rest}"
        assert size < 1 << 16, rest
        outbound = packet["way"] == ">"
        window = None if packet["win"] is None else int(packet["win"])
        assert outbound or (window is not None and window < 1 << 16), f"an inbound packet has a window: {rest}"
        assert outbound or packet["options"] != "...", f"options of inbound packets are said: {rest}"
        ack = None if packet["ack"] is None else int(packet["ack"])
        assert (ack is not None) == packet["flags"].endswith("."), rest
        return Packet(outbound, packet["flags"], seq, size, ack, window, packet["options"])
    if call is not None:
        return Call(call["name"], tuple(part.strip() for part in call["arguments"].split(",")), int(call["result"]), until_s)
    assert command is not None, f"neither packet nor call nor command: {rest}"
    return command["command"]


# The player

LOCAL, REMOTE = "192.0.2.2", "192.0.2.1"
OWN_PORT, OTHER_PORT, OTHER_START = 8080, 5001, 1_000_000
BITS = {"F": 1, "S": 2, "R": 4, "P": 8, ".": 16}
GIVEN_UP_S = 3.0
EARLY_S, LATE_S = 0.025, 0.5
"""How early and how late an event is allowed to happen (s).

On a busy machine, the player and the kernel are late. Nothing should happen early.
"""


class Differs(Exception):
    """The kernel did not do what the script expects."""


class Player:
    """Plays one script against this machine's kernel."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.device = _tun(int(script.options.get("mtu", "1500")))
        self.left: queue.Queue[tuple[float, bytes]] = queue.Queue()
        self.sockets: dict[int, socket.socket] = {}
        self.own_port, self.own_start = OWN_PORT, 0
        self.late: list[str] = []
        self.threads: list[threading.Thread] = []
        self.begin_s = time.monotonic()
        threading.Thread(target=self._sniff, daemon=True).start()

    def play(self) -> None:
        """Play all events, each at its time. Raises Differs."""
        for event in self.script.events:
            if not (isinstance(event.what, Packet) and event.what.outbound):
                time.sleep(max(0.0, self.begin_s + event.at_s - time.monotonic()))
            if isinstance(event.what, Packet):
                self._leaves(event, event.what) if event.what.outbound else self._comes(event.what)
            elif isinstance(event.what, Call):
                self._call(event, event.what)
            else:
                subprocess.run(event.what.split(), check=True)
        for thread in self.threads:
            thread.join(GIVEN_UP_S)
        if self.late:
            raise Differs(self.late[0])

    def _sniff(self) -> None:
        while True:
            packet = os.read(self.device, 1 << 16)
            if packet[0] >> 4 == 4 and packet[9] == socket.IPPROTO_TCP:
                self.left.put((time.monotonic() - self.begin_s, packet))

    def _leaves(self, event: Event, wanted: Packet) -> None:
        try:
            left_s, packet = self.left.get(timeout=max(0.0, self.begin_s + event.at_s - time.monotonic()) + GIVEN_UP_S)
        except queue.Empty:
            raise Differs(f"{event.line}: nothing left") from None
        header = (packet[0] & 15) * 4
        own_port, _, seq, ack, offset, flags = struct.unpack("!HHIIBB", packet[header : header + 14])
        if flags & BITS["S"]:
            self.own_port, self.own_start = own_port, seq
        size = len(packet) - header - (offset >> 4) * 4
        letters = "".join(letter for letter, bit in BITS.items() if flags & bit)
        reported = (set(letters), (seq - self.own_start) % 2**32, size, (ack - OTHER_START) % 2**32 if flags & BITS["."] else None)
        if reported != (set(wanted.flags), wanted.seq, wanted.size, wanted.ack):
            raise Differs(f"{event.line}: left {letters} {reported[1:]} at {left_s:.6f}")
        if not _in_time(left_s, event.at_s):
            raise Differs(f"{event.line}: left at {left_s:.6f}")

    def _comes(self, packet: Packet) -> None:
        from scapy.layers.inet import IP, TCP  # noqa: PLC0415 (slow to import, and only the player needs it)

        flags = sum(BITS[letter] for letter in packet.flags)
        ack = 0 if packet.ack is None else (packet.ack + self.own_start) % 2**32
        head = TCP(
            sport=OTHER_PORT, dport=self.own_port, seq=OTHER_START + packet.seq, ack=ack, flags=flags, window=packet.window,
            options=_options(packet.options or ""),
        )  # fmt: skip
        os.write(self.device, bytes(IP(src=REMOTE, dst=LOCAL) / head / bytes(packet.size)))

    def _call(self, event: Event, call: Call) -> None:
        if call.until_s is None:
            self._done(event, call)
            return
        thread = threading.Thread(target=self._blocking, args=(event, call), daemon=True)
        self.threads.append(thread)
        thread.start()

    def _blocking(self, event: Event, call: Call) -> None:
        try:
            self._done(event, call)
        except (OSError, Differs) as error:
            self.late.append(f"{event.line}: {error}")
            return
        done_s = time.monotonic() - self.begin_s
        assert call.until_s is not None
        if not _in_time(done_s, call.until_s):
            self.late.append(f"{event.line}: done at {done_s:.6f}")

    def _done(self, event: Event, call: Call) -> None:
        result = int(getattr(self, f"_{call.name}")(call.arguments))
        if result != call.result:
            raise Differs(f"{event.line}: returned {result}")

    # System calls

    def _socket(self, _: tuple[str, ...]) -> int:
        made = socket.socket()
        made.settimeout(GIVEN_UP_S)
        return self._kept(3, made)

    def _kept(self, number: int, made: socket.socket) -> int:
        self.sockets[number] = made
        return number

    def _setsockopt(self, said: tuple[str, ...]) -> int:
        level = {"SOL_TCP": socket.IPPROTO_TCP, "SOL_SOCKET": socket.SOL_SOCKET}[said[1]]
        self.sockets[int(said[0])].setsockopt(level, getattr(socket, said[2]), int(said[3].strip("[]")))
        return 0

    def _connect(self, _: tuple[str, ...]) -> int:
        self.sockets[3].connect((REMOTE, OTHER_PORT))
        return 0

    def _bind(self, _: tuple[str, ...]) -> int:
        self.sockets[3].bind((LOCAL, OWN_PORT))
        return 0

    def _listen(self, _: tuple[str, ...]) -> int:
        self.sockets[3].listen(1)
        return 0

    def _accept(self, _: tuple[str, ...]) -> int:
        made = self.sockets[3].accept()[0]
        made.settimeout(GIVEN_UP_S)
        return self._kept(4, made)

    def _write(self, said: tuple[str, ...]) -> int:
        return self.sockets[int(said[0])].send(bytes(int(said[2])))

    def _read(self, said: tuple[str, ...]) -> int:
        return len(self.sockets[int(said[0])].recv(int(said[2])))

    def _close(self, said: tuple[str, ...]) -> int:
        self.sockets[int(said[0])].close()
        return 0


def _in_time(at_s: float, wanted_s: float) -> bool:
    return wanted_s - EARLY_S <= at_s <= wanted_s + LATE_S


def _options(text: str) -> list[tuple[str, Any]]:
    def each() -> Iterator[tuple[str, Any]]:
        for part in filter(None, text.split(",")):
            name, _, value = part.partition(" ")
            yield {"mss": "MSS", "wscale": "WScale", "nop": "NOP"}[name], int(value) if value else None

    return list(each())


def _tun(mtu: int) -> int:
    """Create the interface tun0 with its address, as packetdrill does."""
    made = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(made, 0x400454CA, struct.pack("16sH22x", b"tun0", 0x1001))  # TUNSETIFF: IFF_TUN, IFF_NO_PI
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        for request, value in (
            (0x8916, struct.pack("=HH4s", socket.AF_INET, 0, socket.inet_aton(LOCAL))),  # SIOCSIFADDR
            (0x891C, struct.pack("=HH4s", socket.AF_INET, 0, socket.inet_aton("255.255.255.0"))),  # SIOCSIFNETMASK
            (0x8922, struct.pack("i", mtu)),  # SIOCSIFMTU
            (0x8914, struct.pack("H", 0x41)),  # SIOCSIFFLAGS: up, running
        ):
            fcntl.ioctl(control, request, struct.pack("16s24s", b"tun0", value))
    return made


if __name__ == "__main__":
    import scapy.layers.inet  # noqa: F401  (before the clock runs)

    try:
        Player(read(Path(sys.argv[1]).read_text(encoding="utf-8"))).play()
    except Differs as difference:
        sys.exit(str(difference))
