"""The set: every capture, as data. The same seven questions are asked on four media; the rest shows what one medium is enough for."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from tcptrace_lab.lab.experiment import Experiment
from tcptrace_lab.lab.hosts.applications import (
    BoundedBulk,
    Bulk,
    Exchanges,
    IdleWithKeepalive,
    LostWrites,
    PeriodicWriter,
    ShortLives,
    SlowReader,
    TwoWay,
)
from tcptrace_lab.lab.hosts.sockets import SocketOptions
from tcptrace_lab.lab.networks.network import LOOPBACK_MTU_BYTES, Medium
from tcptrace_lab.lab.networks.path import PathModel

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tcptrace_lab.lab.hosts.applications import Program

# 14 bytes of Ethernet, 20 of IPv4 or 40 of IPv6, up to 60 of TCP.
SNAPLEN_BYTES = 96
SNAPLEN_IPV6_BYTES = 128
ETHERNET_MTU_BYTES = 1_500
# RFC 1626 (classical IP over ATM): 9180. Interfaces of the time also used 9188: MSS 9148 without timestamps.
ATM_RFC_MTU_BYTES, ATM_MTU_BYTES = 9_180, 9_188
NO_TIMESTAMPS = (("net.ipv4.tcp_timestamps", 0),)
ONE_WAY_DELAY_S = 0.010

Vantage = Literal["client", "server"]


@dataclass(frozen=True, slots=True)
class Scenario:
    """One run and the captures kept of it.

    Attributes:
        name: stem of the file.
        shows: one sentence for the JSON.
        medium, options, program: what talks over what.
        suffix: `.pcapng`, `.pcap`, and `.gz` or `.zst` behind either.
        vantages: where dumpcap listens; the first is the file `name`, a second one is `name-at-<vantage>`.
        interface: `any` for a cooked capture, None for the interface itself.
        link_type: dumpcap's name of the link type, where there is a choice.
    """

    name: str
    shows: str
    medium: Medium
    program: Program
    options: SocketOptions = field(default_factory=SocketOptions)
    suffix: str = ".pcapng"
    vantages: tuple[Vantage, ...] = ("client",)
    interface: str | None = None
    link_type: str | None = None
    snaplen_bytes: int = SNAPLEN_BYTES

    def experiment(self) -> Experiment:
        """What is run for it."""
        suffix = ".pcap" if self.suffix.split(".")[1] == "pcap" else ".pcapng"
        return Experiment(
            self.medium, self.program, self.options, self.vantages, suffix, self.snaplen_bytes, self.interface, self.link_type
        )

    def files(self) -> list[tuple[Vantage, str]]:
        """(vantage, stem) of each capture."""
        return [(vantage, self.name if vantage == self.vantages[0] else f"{self.name}-at-{vantage}") for vantage in self.vantages]


@dataclass(frozen=True, slots=True)
class _Family:
    """A medium, near and through the relay, and the sizes that make the same question fit it.

    `lost` are indexes of frames, the single one late enough that the repair of the pair is over.
    """

    prefix: str
    near: Medium
    bulk_bytes: int
    small_window_bytes: int
    send_bound_bytes: int
    slow_reader_buffer_bytes: int
    lost: frozenset[int]

    def relayed(self, delay_s: float, **forward: object) -> Medium:
        """This medium with a path of `delay_s` in each direction."""
        path = PathModel(delay_s=delay_s)
        return replace(self.near, kind="tap", forward=replace(path, **forward), backward=path)  # type: ignore[arg-type]


_ETHERNET = _Family(
    "ethernet",
    Medium("veth", ETHERNET_MTU_BYTES),
    bulk_bytes=400_000,
    small_window_bytes=8_192,
    send_bound_bytes=16_384,
    slow_reader_buffer_bytes=16_384,
    lost=frozenset({30, 31, 160}),
)
_ATM_RFC = _Family(
    "atm9180",
    Medium("veth", ATM_RFC_MTU_BYTES),
    bulk_bytes=800_000,
    small_window_bytes=16_384,
    send_bound_bytes=32_768,
    slow_reader_buffer_bytes=65_536,
    lost=frozenset({20, 21, 70}),
)
_ATM = replace(_ATM_RFC, prefix="atm9188", near=Medium("veth", ATM_MTU_BYTES, sysctls=NO_TIMESTAMPS))
_LOOPBACK = Medium("lo", LOOPBACK_MTU_BYTES)
_WRITE_WRITE_READ = Exchanges(writes_bytes=(100, 100), answer_bytes=100, count=12)


def _nagle(prefix: str, medium: Medium, vantages: tuple[Vantage, ...] = ("client",)) -> Iterator[Scenario]:
    yield Scenario(
        f"{prefix}-nagle-on",
        "two small writes, then a read: Nagle holds the second write until the delayed ACK of the first, 40 ms in most exchanges",
        medium,
        _WRITE_WRITE_READ,
        vantages=vantages,
    )
    yield Scenario(
        f"{prefix}-nagle-off",
        "the same schedule with TCP_NODELAY: nothing waits",
        medium,
        _WRITE_WRITE_READ,
        SocketOptions(nodelay=True),
    )


def _family(family: _Family, *, both_ends: bool = False) -> Iterator[Scenario]:
    """The seven questions on one medium."""
    name = family.prefix
    ends: tuple[Vantage, ...] = ("client", "server") if both_ends else ("client",)
    yield Scenario(f"{name}-bulk", "a bulk transfer that nothing holds back but the machine", family.near, Bulk(family.bulk_bytes))
    yield from _nagle(name, family.near, ends)
    yield Scenario(
        f"{name}-small-receive-window",
        "a bulk transfer limited by the receiver's small window: one window per RTT of 20 ms",
        family.relayed(ONE_WAY_DELAY_S),
        Bulk(family.bulk_bytes // 2),
        SocketOptions(receive_buffer_bytes=family.small_window_bytes),
        vantages=ends,
    )
    yield Scenario(
        f"{name}-small-send-buffer",
        "a bulk transfer whose program keeps few bytes unacknowledged: a plateau of bytes in flight far below window and cwnd",
        family.relayed(ONE_WAY_DELAY_S),
        BoundedBulk(family.bulk_bytes // 2, max_unacked_bytes=family.send_bound_bytes, write_bytes=family.send_bound_bytes // 8),
        SocketOptions(nodelay=True),
    )
    yield Scenario(
        f"{name}-slow-reader",
        "the reader sleeps 0.7 s before each read: zero windows, window probes, window updates",
        family.relayed(ONE_WAY_DELAY_S / 2),
        SlowReader(4 * family.slow_reader_buffer_bytes, family.slow_reader_buffer_bytes, pause_s=0.7),
        SocketOptions(receive_buffer_bytes=family.slow_reader_buffer_bytes),
    )
    yield Scenario(
        f"{name}-loss",
        "a bulk transfer in which a pair of segments and a single one are lost, and repaired by fast retransmission",
        family.relayed(ONE_WAY_DELAY_S, lost=family.lost),
        Bulk(family.bulk_bytes),
        vantages=ends,
    )


def _loopback() -> Iterator[Scenario]:
    """The seven questions where the wire is the machine's memory: no delay, and one segment is a whole write."""
    yield Scenario("loopback-bulk", "a bulk transfer with segments of up to 64 KB", _LOOPBACK, Bulk(2_000_000, write_bytes=65_536))
    yield from _nagle("loopback", _LOOPBACK)
    yield Scenario(
        "loopback-small-receive-window",
        "a bulk transfer into a receive buffer far below the MSS: every segment is cut to the window",
        _LOOPBACK,
        Bulk(200_000),
        SocketOptions(receive_buffer_bytes=8_192),
        suffix=".pcap",
    )
    yield Scenario(
        "loopback-small-send-buffer",
        "a program that keeps at most 16 KiB unacknowledged, on loopback",
        _LOOPBACK,
        BoundedBulk(400_000, max_unacked_bytes=16_384, write_bytes=4_096),
        SocketOptions(nodelay=True),
    )
    yield Scenario(
        "loopback-slow-reader",
        "the reader sleeps 0.7 s before each read: zero windows, window probes, window updates",
        _LOOPBACK,
        SlowReader(262_144, 65_536, pause_s=0.7),
        SocketOptions(receive_buffer_bytes=65_536),
    )
    yield Scenario(
        "loopback-loss",
        "segments dropped at the receiving socket: a pair (resent as one) and a single one repaired by SACK, the last by a probe",
        _LOOPBACK,
        LostWrites(write_bytes=4_000, count=32, lost_writes=(10, 11, 20, 31)),
        SocketOptions(nodelay=True, receive_buffer_bytes=200_000),
    )
    yield Scenario(
        "loopback-ipv6-nagle-on",
        "the write-write-read exchange over IPv6",
        replace(_LOOPBACK, ipv6=True),
        _WRITE_WRITE_READ,
        snaplen_bytes=SNAPLEN_IPV6_BYTES,
    )


def _formats() -> Iterator[Scenario]:
    """Offload, IPv6 and other link types."""
    yield Scenario(
        "ethernet-offload-bulk",
        "segmentation left to the (virtual) card: segments longer than the MSS in the capture, and partial checksums",
        Medium("veth", ETHERNET_MTU_BYTES, offloads=True),
        Bulk(2_000_000, write_bytes=65_536),
        suffix=".pcapng.gz",
        vantages=("client", "server"),
    )
    yield Scenario(
        "ethernet-ipv6-bulk",
        "a bulk transfer over IPv6 with a round trip of 20 ms: slow start",
        replace(_ETHERNET.relayed(ONE_WAY_DELAY_S), ipv6=True),
        Bulk(400_000),
        snaplen_bytes=SNAPLEN_IPV6_BYTES,
    )
    yield Scenario(
        "raw-bulk",
        "a bulk transfer through a TUN interface: link type RAW, packets without a link header",
        Medium("tun", ETHERNET_MTU_BYTES, forward=PathModel(delay_s=ONE_WAY_DELAY_S), backward=PathModel(delay_s=ONE_WAY_DELAY_S)),
        Bulk(200_000),
    )
    for name, link_type in (("cooked-bulk", "LINUX_SLL"), ("cooked-v2-bulk", "LINUX_SLL2")):
        yield Scenario(
            name,
            f"a bulk transfer captured on the interface `any`: link type {link_type}",
            _ETHERNET.near,
            Bulk(200_000),
            interface="any",
            link_type=link_type,
        )


def _paths() -> Iterator[Scenario]:
    """What the network does: slow start, a bottleneck, loss of all kinds, reordering, duplication."""
    yield Scenario(
        "ethernet-slow-start",
        "a bulk transfer over a round trip of 80 ms that ends while flights still double",
        _ETHERNET.relayed(0.040),
        Bulk(400_000),
        SocketOptions(congestion_control="reno"),
    )
    bottleneck = {"rate_bps": 4_000_000, "queue_bytes": 96_000}
    yield Scenario(
        "ethernet-bottleneck",
        "a bulk transfer through 4 Mb/s with a queue of 96 KB: the queue grows and the round trip with it, to seven times its minimum",
        _ETHERNET.relayed(ONE_WAY_DELAY_S, **bottleneck),
        Bulk(700_000),
    )
    yield Scenario(
        "ethernet-bbr",
        "the same transfer and bottleneck with BBR: the sender spaces its segments and the queue grows half as long",
        _ETHERNET.relayed(ONE_WAY_DELAY_S, **bottleneck),
        Bulk(700_000),
        SocketOptions(congestion_control="bbr"),
    )
    yield Scenario(
        "ethernet-queue-overflow",
        "the same transfer and rate with a queue of 24 KB: the slow start overflows it, and segments are lost",
        _ETHERNET.relayed(ONE_WAY_DELAY_S, rate_bps=4_000_000, queue_bytes=24_000),
        Bulk(700_000),
    )
    yield Scenario(
        "ethernet-bbr-sndbuf",
        "SO_SNDBUF asked at 16,000 bytes under BBR, where the kernel counts time as limited by the send buffer",
        _ETHERNET.relayed(ONE_WAY_DELAY_S),
        Bulk(400_000, write_bytes=2_000),
        SocketOptions(congestion_control="bbr", send_buffer_bytes=16_000),
    )
    yield Scenario(
        "ethernet-random-loss",
        "2 % loss drawn from a seed",
        _ETHERNET.relayed(ONE_WAY_DELAY_S, loss_share=0.02, seed=7),
        Bulk(500_000),
        SocketOptions(congestion_control="reno"),
    )
    yield Scenario(
        "ethernet-tail-loss",
        "two requests lose their last segment: a tail-loss probe repairs one, a timeout the other, whose probe is lost too",
        _ETHERNET.relayed(ONE_WAY_DELAY_S, lost=frozenset({11, 18, 19})),
        Exchanges(writes_bytes=(4_000,), answer_bytes=500, count=6),
    )
    yield Scenario(
        "ethernet-syn-loss",
        "the SYN is lost: the handshake takes a second longer",
        _ETHERNET.relayed(ONE_WAY_DELAY_S, lost=frozenset({0})),
        Exchanges(writes_bytes=(500,), answer_bytes=2_000, count=3),
    )
    yield Scenario(
        "ethernet-reordering",
        "segments overtaken: resent for nothing (DSACK), tolerated once the sender has learnt, resent when two round trips late",
        _ETHERNET.relayed(ONE_WAY_DELAY_S, rate_bps=20_000_000, extra_delay_s={40: 0.002, 80: 0.003, 120: 0.045}),
        Bulk(400_000),
        vantages=("client", "server"),
    )
    yield Scenario(
        "ethernet-duplicates",
        "the network delivers some segments twice; seen at the receiver",
        _ETHERNET.relayed(ONE_WAY_DELAY_S, duplicated=frozenset({20, 40, 41, 90})),
        Bulk(200_000),
        vantages=("server",),
    )


def _applications() -> Iterator[Scenario]:
    """What programs do: think, pause, stay silent, talk in both directions, refuse and reset."""
    near = _ETHERNET.relayed(0.005)
    yield Scenario(
        "ethernet-server-thinks",
        "an exchange in which the server thinks 60 ms and the client 30 ms: the time is the programs'",
        near,
        Exchanges(writes_bytes=(400,), answer_bytes=6_000, count=10, server_think_s=0.060, client_think_s=0.030),
    )
    yield Scenario(
        "ethernet-application-limited",
        "a writer that gives 20 KB every 50 ms: the network idles between",
        near,
        PeriodicWriter(20_000, count=16, pause_s=0.050),
    )
    yield Scenario(
        "ethernet-two-way",
        "bulk data both ways at once: ACKs ride on data",
        near,
        TwoWay(200_000),
    )
    yield Scenario(
        "ethernet-keepalive",
        "silence with a keepalive every second between two exchanges",
        near,
        IdleWithKeepalive(300, idle_s=3.5, keepalive_s=1),
    )
    yield Scenario(
        "ethernet-short-connections",
        "four short connections: refused, reset with data unread, and two that use the same ports",
        near,
        ShortLives(3_000),
        SocketOptions(nodelay=True),
    )


def _all() -> Iterator[Scenario]:
    yield from _loopback()
    yield from _family(_ETHERNET, both_ends=True)
    yield from (replace(scenario, suffix=".pcap") if scenario.name == "atm9180-loss" else scenario for scenario in _family(_ATM_RFC))
    yield from (replace(scenario, suffix=".pcapng.zst") if scenario.name == "atm9188-bulk" else scenario for scenario in _family(_ATM))
    yield from _formats()
    yield from _paths()
    yield from _applications()


SCENARIOS: dict[str, Scenario] = {scenario.name: scenario for scenario in _all()}
