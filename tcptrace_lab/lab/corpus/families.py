"""Families of transfers whose causes are easily mistaken, as a table. `family_report` makes the transfers and compares the ledgers.

A family is a situation, such as an application that writes at fixed intervals. Several programs produce the situation, each over a path on
which the situation occurs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from tcptrace_lab.lab.corpus.drawn import Drawn
from tcptrace_lab.lab.corpus.paths import ETHERNET, JUMBO
from tcptrace_lab.lab.kernel_ledger.agreement import POINTS, RECEIVER, SENDER
from tcptrace_lab.lab.networks.network import Medium
from tcptrace_lab.lab.networks.path import BITS_PER_BYTE, PathModel

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Made(NamedTuple):
    """A program, and how it is run. The fields are those of `Drawn`. `path` names the family in `paths.PATHS` that the medium resembles."""

    program: str
    path: str
    medium: Medium
    congestion_control: str = "cubic"
    competing: tuple[tuple[str, bool], ...] = ()


@dataclass(frozen=True, slots=True)
class Family:
    """A situation, and the transfers in which it occurs.

    Attributes:
        title: the situation, in a few words.
        made: transfers in which the situation occurs.
        points: capture points at which the situation is hard to recognize.
        has_gains: True if predicted gains are also compared with the free time of the bottleneck.
        never: ids of findings, or words in their titles, that would be wrong for these transfers.
    """

    title: str
    made: tuple[Made, ...]
    points: tuple[str, ...] = POINTS
    has_gains: bool = False
    never: frozenset[str] = frozenset()


def _path(
    round_trip_ms: float,
    mbps: float | None = None,
    queue_ms: float = 100,
    *,
    mtu_bytes: int = ETHERNET,
    up: Mapping[str, Any] | None = None,
    down: Mapping[str, Any] | None = None,
) -> Medium:
    """Return a path with equal delays and rates in both directions. `up` changes the way to the server, `down` the way back."""
    rate_bps = int(mbps * 1e6) if mbps else None
    one_way = PathModel(round_trip_ms / 2_000, rate_bps, rate_bps and int(rate_bps / BITS_PER_BYTE * queue_ms / 1_000))
    return Medium("tap", mtu_bytes, forward=replace(one_way, **up or {}), backward=replace(one_way, seed=1, **down or {}))


_DOWNLOADS = (("nginx-curl", True), ("iperf3-reverse", False))
_UPLOADS = (("socat-file", True), ("socat-file", True), ("socat-file", False))
_LOSS = {"loss_share": 0.15, "undisturbed_packets": 6}
_REORDERING = {"reorder_share": 0.03, "reorder_delay_s": (0.002, 0.008), "undisturbed_packets": 6}
_SPIKES = {"jitter_s": 0.015, "undisturbed_packets": 6}


def _late_syn(by_s: float) -> Mapping[str, Any]:
    """Return a change that delays the first SYN. Linux repeats a SYN after 1.00 to 1.03 s if no answer has arrived."""
    return {"extra_delay_s": {0: by_s}}


_FEW_LOSSES = {"lost": frozenset(range(50, 3_000, 150))}

FAMILIES: Mapping[int, Family] = {
    1: Family(
        "an application writes on a clock, with less than two RTTs between writes",
        (
            Made("iperf3-1mbps-blocks-of-8k", "no-bottleneck", _path(100)),
            Made("icecast-listener", "no-bottleneck", _path(60)),
            Made("ffmpeg-video", "no-bottleneck", _path(30)),
            Made("rsyslog-forward", "no-bottleneck", _path(40)),
            Made("sampler-60k-every-100ms", "no-bottleneck", _path(60)),
        ),
    ),
    2: Family(
        "requests over a full line, captured at the responder",
        (
            Made("nginx-wrk-pages", "long-queue", _path(20, 8, 300)),
            Made("apache-wrk", "long-queue", _path(20, 8, 300)),
            Made("nginx-ab-keep-alive", "long-queue", _path(10, 4, 300), "bbr"),
        ),
        (SENDER,),
    ),
    3: Family(
        "a busy line: a remedy saves at most the time in which the line is free",
        (
            Made("iperf3-parallel", "long-queue", _path(20, 10, 200)),
            Made("iperf3-window-64k", "long-queue", _path(30, 10, 200), competing=_UPLOADS),
            Made("nginx-parallel-curl", "long-queue", _path(20, 10, 200)),
            Made("socat-small-receive-buffer", "long-queue", _path(30, 10, 200), competing=_UPLOADS),
            Made("nginx-small-send-buffer", "long-queue", _path(30, 10, 200), competing=_DOWNLOADS),
        ),
        has_gains=True,
    ),
    4: Family(
        "RTT spikes without a draining queue: a remedy saves the time in which the line is free",
        (
            Made("iperf3-window-24k-reverse", "jitter", _path(30, 100, 200, down=_SPIKES)),
            Made("socat-small-receive-buffer", "jitter", _path(30, 100, 200, up=_SPIKES)),
            Made("apache-small-send-buffer", "jitter", _path(30, 100, 200, down=_SPIKES)),
        ),
        has_gains=True,
    ),
    5: Family(
        "stop and wait: each message follows the answer to the previous one",
        (
            Made("redis-set", "no-bottleneck", _path(20)),
            Made("memcached-set", "no-bottleneck", _path(12)),
            Made("pgbench-select", "no-bottleneck", _path(20)),
            Made("sampler-stop-and-wait", "no-bottleneck", _path(20)),
        ),
    ),
    6: Family(
        "a batch, a request or the tail of a transfer that is smaller than the send buffer",
        (
            Made("redis-pipeline", "no-bottleneck", _path(30)),
            Made("influxdb-write", "no-bottleneck", _path(30)),
            Made("memcached-copy-file", "no-bottleneck", _path(30)),
            Made("nginx-segments-one-connection", "no-bottleneck", _path(30)),
        ),
    ),
    7: Family(
        "more than a tenth of the segments is lost before the capture point",
        (
            Made("nginx-curl", "random-loss", _path(20, 20, 200, down=_LOSS)),
            Made("socat-file", "random-loss", _path(20, 20, 200, up=_LOSS)),
            Made("iperf3-bytes", "random-loss", _path(20, 20, 200, up=_LOSS), "bbr"),
        ),
        (RECEIVER,),
    ),
    8: Family(
        "a shared bottleneck, captured at the receiver",
        (
            Made("nginx-wget", "long-queue", _path(20, 10, 200), competing=_DOWNLOADS),
            Made("iperf3-reverse", "long-queue", _path(20, 10, 200), competing=_DOWNLOADS),
            Made("scp-upload", "long-queue", _path(20, 10, 200), competing=_UPLOADS),
        ),
        (RECEIVER,),
    ),
    9: Family(
        "Nagle's algorithm delays the tail of a write that is larger than the MSS",
        (
            Made("mosquitto-subscriber", "no-bottleneck", _path(60, mtu_bytes=JUMBO)),
            Made("ffmpeg-raw-video", "no-bottleneck", _path(150, mtu_bytes=JUMBO)),
            Made("sampler-9k-every-33ms", "no-bottleneck", _path(80, mtu_bytes=JUMBO)),
            Made("sampler-4k-every-5ms", "no-bottleneck", _path(40)),
            Made("ffmpeg-video", "no-bottleneck", _path(80)),
        ),
    ),
    10: Family(
        "a queue that looks like a delayed ACK; reordering that looks like loss; a nearly full receive window that limits the sender",
        (
            Made("mosquitto-lines-acknowledged", "long-queue", _path(20, 8, 150), competing=_UPLOADS),
            Made("pgbench-select", "long-queue", _path(20, 8, 150), competing=_DOWNLOADS),
            Made("iperf3-reverse", "reordering", _path(20, 30, 200, down=_REORDERING)),
            Made("nginx-curl", "reordering", _path(20, 30, 200, down=_REORDERING)),
            Made("iperf3-window-64k", "no-bottleneck", _path(30)),
            Made("nginx-put-small-receive-buffer", "no-bottleneck", _path(30)),
        ),
    ),
    11: Family(
        "single mistakes: a late SYN, a SYN that is answered twice, a loss on a short path, one-way writes",
        (
            Made("nginx-curl", "no-bottleneck", _path(60, up=_late_syn(0.98))),  # both SYNs are answered
            Made("socat-file", "no-bottleneck", _path(60, up=_late_syn(0.98))),
            Made("lighttpd-curl", "no-bottleneck", _path(60, up=_late_syn(1.03))),  # the second SYN arrives first
            Made("socat-file", "no-bottleneck", _path(60, up=_late_syn(1.03))),
            Made("apache-curl", "no-bottleneck", _path(40, up=_late_syn(0.6))),  # no second SYN
            Made("socat-file", "no-bottleneck", _path(40, up=_late_syn(0.6))),
            Made("nginx-curl", "random-loss", _path(2, 40, down=_FEW_LOSSES)),
            Made("socat-file", "random-loss", _path(2, 40, up=_FEW_LOSSES)),
            Made("logger-lines", "no-bottleneck", _path(80)),
            Made("sampler-200-every-20ms", "no-bottleneck", _path(16)),
        ),
        never=frozenset({"capture-duplicates", "reordering", "the SYN-ACK was sent"}),
    ),
}


def of_families(numbers: Sequence[int]) -> list[tuple[int, Drawn]]:
    """Return the transfers of these families, each with the number of its family."""
    made = [(number, index, one) for number in numbers for index, one in enumerate(FAMILIES[number].made)]
    return [
        (number, Drawn(f"{number:02}-{index}-{one.program}", number, index, *one[:4], None, one.competing)) for number, index, one in made
    ]
