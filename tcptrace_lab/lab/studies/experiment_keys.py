"""The keys of an experiment file: type, bounds, default and meaning of each. `experiment_file` validates files against them.

A file has the tables `path`, `hosts`, `transfer`, `sockets` and `run`. The table `sweep` lists several values for some keys, and every
combination of these values is a point. The table `short` overrides keys for the short form. `figure` tables define the report's figures.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from tcptrace_lab.errors import UsageError
from tcptrace_lab.text.quantities import duration_ns, rate_bps, size_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Setting = int | float | str | bool | tuple[int, ...]

TCP_KINDS = ("bulk", "exchange", "echo", "http", "ftp")
OWN_TCP_KINDS = ("bulk", "exchange", "echo")
"""TCP kinds of transfer in which the lab itself makes all writes and reads, without a library."""
KINDS = (*TCP_KINDS, "udp", "udp-echo")
"""Kinds of transfer. `transfer_kinds` performs them."""

MEDIA = ("loopback", "veth", "tap", "tun")
SHAPED_MEDIA = ("tap", "tun")
"""Media with the relay, which delays, limits, drops and reorders packets."""


class Type(StrEnum):
    """The type of a value. The type also determines how a file writes the value."""

    SIZE = "a size such as 1460 or 16K"
    SIZES = "a list of sizes"
    COUNT = "a whole number"
    TIME = 'a time such as "10ms"'
    RATE = 'a rate such as "10M"'
    SHARE = "a share from 0 to 1"
    FLAG = "true or false"
    WORD = "a word"


@dataclass(frozen=True, slots=True)
class Key:
    """One key of an experiment file.

    Attributes:
        name: `table.key`.
        type: type of its value.
        meaning: one line of explanation.
        default: value if the file has none. None: the key is not set, or the kind of transfer requires it.
        least, most: bounds of numbers, in bytes, ns, bits per second, or without unit.
        choices: allowed words.
        kinds: kinds of transfers to which the key applies; empty: all kinds.
    """

    name: str
    type: Type
    meaning: str
    default: Setting | None = None
    least: float = 0
    most: float = 1 << 40
    choices: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()

    @property
    def default_words(self) -> str:
        """Return the default as a file would write it."""
        if self.type is Type.TIME and isinstance(self.default, int):
            return f'"{self.default / _NS_PER_MS:g}ms"'
        return str(self.default).lower() if isinstance(self.default, bool) else str(self.default)

    def parsed(self, raw: Any) -> Setting:  # noqa: ANN401  (whatever TOML holds)
        """Return the value in base units: bytes, ns, bits per second. Raise ValueError with a message for the user."""
        try:
            value: Setting | None = _PARSERS[self.type](raw)
        except UsageError as error:
            raise ValueError(str(error)) from None
        if value is None:
            raise ValueError(f"it must be {self.type}, not {raw!r}")
        if self.choices and value not in self.choices:
            raise ValueError(f"it must be one of {', '.join(self.choices)}, not {raw!r}")
        for number in value if isinstance(value, tuple) else (value,):
            if isinstance(number, (int, float)) and not isinstance(number, bool) and not self.least <= number <= self.most:
                bound = f"at least {self.least:,.10g}" if number < self.least else f"at most {self.most:,.10g}"
                raise ValueError(f"it must be {bound}, not {raw!r}")
        return value


def _whole(raw: Any) -> int | None:  # noqa: ANN401
    return raw if isinstance(raw, int) and not isinstance(raw, bool) else None


def _quantity(read: Callable[[str], int]) -> Callable[[Any], int | None]:
    return lambda raw: read(raw) if isinstance(raw, str) else _whole(raw)


def _sizes(raw: Any) -> tuple[int, ...] | None:  # noqa: ANN401
    read = _quantity(size_bytes)
    found = [read(one) for one in raw] if isinstance(raw, list) and raw else [None]
    return None if None in found else tuple(one for one in found if one is not None)


def _share(raw: Any) -> float | None:  # noqa: ANN401
    return float(raw) if isinstance(raw, (int, float)) and not isinstance(raw, bool) else None


_PARSERS: Mapping[Type, Callable[[Any], Any]] = {
    Type.SIZE: _quantity(size_bytes),
    Type.SIZES: _sizes,
    Type.COUNT: _whole,
    Type.TIME: lambda raw: duration_ns(raw) if isinstance(raw, str) else None,
    Type.RATE: _quantity(rate_bps),
    Type.SHARE: _share,
    Type.FLAG: lambda raw: raw if isinstance(raw, bool) else None,
    Type.WORD: lambda raw: raw if isinstance(raw, str) else None,
}

_WRITERS = ("bulk", "echo", "http", "udp")
_NS_PER_MS = 1_000_000
_MINUTE_NS = 60_000 * _NS_PER_MS
_LARGEST_TRANSFER = 1 << 30
LARGEST_DATAGRAM = 65_507  # RFC 791, 768: 65,535 bytes minus the IPv4 and UDP headers

KEYS: Mapping[str, Key] = {
    key.name: key
    for key in (
        Key(
            "path.medium",
            Type.WORD,
            "loopback; veth: two Ethernet interfaces; tap or tun: Ethernet or raw IP through the relay",
            "veth",
            choices=MEDIA,
        ),
        Key("path.mtu", Type.SIZE, "largest IP packet: 1500 for Ethernet, 9180 for IP over ATM (RFC 2225)", 1_500, least=576, most=65_535),
        Key("path.delay", Type.TIME, "one-way delay; only for tap and tun, like the following keys", 0, most=_MINUTE_NS),
        Key("path.rate", Type.RATE, "rate of the bottleneck in each direction, headers included; default: no bottleneck", least=1_000),
        Key("path.queue", Type.SIZE, "size of the queue before the bottleneck; default: no limit", least=576),
        Key("path.loss", Type.SHARE, "share of lost packets from client to server", 0.0, most=1),
        Key("path.loss_back", Type.SHARE, "share of lost packets from server to client", 0.0, most=1),
        Key("path.duplicate", Type.SHARE, "share of duplicated packets from client to server", 0.0, most=1),
        Key("path.reorder", Type.SHARE, "share of delayed packets from client to server", 0.0, most=1),
        Key("path.reorder_by", Type.TIME, "extra delay of the delayed packets", 5_000_000, most=_MINUTE_NS),
        Key("path.seed", Type.COUNT, "random seed", 1),
        Key("path.ipv6", Type.FLAG, "use IPv6 instead of IPv4", default=False),
        Key("hosts.load", Type.COUNT, "compute-bound processes for each processor", 0, most=64),
        Key("transfer.kind", Type.WORD, "kind of transfer", "bulk", choices=KINDS),
        Key("transfer.total", Type.SIZE, "bytes to transfer", least=1, most=_LARGEST_TRANSFER, kinds=("bulk", "udp")),
        Key("transfer.writes", Type.COUNT, "number of writes, instead of total", least=1, most=1_000_000, kinds=("bulk", "udp")),
        Key(
            "transfer.write",
            Type.SIZE,
            "size of each write; for datagrams, their size",
            32_768,
            least=1,
            most=_LARGEST_TRANSFER,
            kinds=_WRITERS,
        ),
        Key(
            "transfer.pace",
            Type.TIME,
            "time from the start of one datagram to the next; 0: as fast as possible",
            0,
            most=_MINUTE_NS,
            kinds=("udp",),
        ),
        Key(
            "transfer.message",
            Type.SIZE,
            "size of the message that is echoed",
            1_024,
            least=1,
            most=_LARGEST_TRANSFER,
            kinds=("echo", "udp-echo"),
        ),
        Key("transfer.request", Type.SIZES, "sizes of the writes of a request", (100,), least=1, most=1 << 20, kinds=("exchange",)),
        Key("transfer.answer", Type.SIZE, "size of the answer", 1_024, least=1, most=_LARGEST_TRANSFER, kinds=("exchange",)),
        Key("transfer.think", Type.TIME, "pause of the server before it answers", 0, most=_MINUTE_NS, kinds=("exchange",)),
        Key(
            "transfer.count",
            Type.COUNT,
            "number of exchanges, or of files over one connection",
            1,
            least=1,
            most=100_000,
            kinds=("exchange", "echo", "udp-echo", "http"),
        ),
        Key("transfer.file", Type.SIZE, "size of the file", 65_536, least=1, most=_LARGEST_TRANSFER, kinds=("http", "ftp")),
        Key(
            "transfer.method",
            Type.WORD,
            "host that sends the file: the server (get) or the client (put)",
            "get",
            choices=("get", "put"),
            kinds=("http", "ftp"),
        ),
        Key("transfer.passive", Type.FLAG, "the client opens the data connection (PASV, EPSV)", default=True, kinds=("ftp",)),
        Key("sockets.nodelay", Type.FLAG, "TCP_NODELAY at both ends", default=False, kinds=TCP_KINDS),
        Key(
            "sockets.cork",
            Type.FLAG,
            "TCP_CORK at both ends around the writes of each message",
            default=False,
            kinds=OWN_TCP_KINDS,
        ),
        Key("sockets.quickack", Type.FLAG, "TCP_QUICKACK at both ends, set again after every read", default=False, kinds=OWN_TCP_KINDS),
        Key("sockets.congestion", Type.WORD, "TCP_CONGESTION at both ends", "cubic", kinds=TCP_KINDS),
        Key("sockets.send_buffer", Type.SIZE, "SO_SNDBUF at both ends; the kernel doubles and limits it", least=1),
        Key("sockets.receive_buffer", Type.SIZE, "SO_RCVBUF at both ends; the kernel doubles and limits it", least=1),
        Key("sockets.buffers", Type.SIZE, "both buffers at both ends, unless given separately", least=1),
        Key("run.repetitions", Type.COUNT, "repetitions of each point, interleaved", 10, least=1, most=10_000),
        Key("run.sample", Type.TIME, "interval between readings of TCP_INFO at both ends", 10_000_000, least=1_000_000, most=_MINUTE_NS),
        Key("run.snaplen", Type.SIZE, "bytes of each packet that dumpcap keeps", 128, least=96, most=262_144),
    )
}
"""All keys by name, in the order of the documentation."""

SHAPING = ("path.delay", "path.rate", "path.queue", "path.loss", "path.loss_back", "path.duplicate", "path.reorder")
"""Keys that need a medium with the relay."""

LARGEST_MTU = {"tap": 65_521}
"""Largest MTU of a medium. The frame of a TAP interface also contains an Ethernet header (Linux, drivers/net/tun.c)."""

MEASURES: Mapping[str, tuple[str, str, str]] = {
    "throughput": ("throughput_bps", "rate", "payload received, per time from the first write to the last read"),
    "latency": ("latency_ns", "duration", "time of one operation: transfer, exchange or file"),
    "connect": ("connect_ns", "duration", "time until the connection is open; for FTP, including the login"),
    "request": ("request_ns", "duration", "time from the request to the first byte of the file"),
    "transfer": ("transfer_ns", "duration", "time from the first to the last byte of the file"),
    "lost": ("lost_share", "share", "share of lost datagrams"),
    "cpu": ("cpu_ns", "duration", "processor time of the thread that writes"),
    "segments": ("segments", "ratio", "segments or datagrams with data in the capture at the sender"),
}
"""Measures by their names in a file. The values are: column of the results, kind of number (`numbers.formatted`), and meaning."""
