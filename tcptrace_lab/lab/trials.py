"""Experiments that test our verdicts on loss, reordering and duplication.

The first experiments have one impairment of the path each. The others combine several.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tcptrace_lab.lab.experiment import Experiment
from tcptrace_lab.lab.hosts.applications import Bulk, Exchanges, TwoWay
from tcptrace_lab.lab.hosts.sockets import SocketOptions
from tcptrace_lab.lab.networks.network import Medium
from tcptrace_lab.lab.networks.path import PathModel

if TYPE_CHECKING:
    from collections.abc import Mapping

ETHERNET_MTU_BYTES, ATM_MTU_BYTES = 1_500, 9_180
BULK_BYTES = 600_000
# Number of first packets that have no random fates. A lost SYN costs a second and shows nothing about data.
UNDISTURBED_PACKETS = 3

# A large receive buffer. With a small buffer, the receiver can discard out-of-order data, which the path's log would not show.
ROOM = (("net.ipv4.tcp_rmem", "4096 4194304 8388608"),)

_PLAIN = PathModel(delay_s=0.020, undisturbed_packets=UNDISTURBED_PACKETS)
_LOSS = replace(_PLAIN, loss_share=0.03)
_HOLD = replace(_PLAIN, reorder_share=0.03, reorder_delay_s=(0.0005, 0.015))
_COPY = replace(_PLAIN, duplicate_share=0.03)
_ALL = replace(_PLAIN, loss_share=0.015, reorder_share=0.015, reorder_delay_s=(0.0005, 0.030), duplicate_share=0.01)


def _trial(
    forward: PathModel,
    backward: PathModel = _PLAIN,
    *,
    size_bytes: int = BULK_BYTES,
    sysctls: tuple[tuple[str, int | str], ...] = (),
    **changes: object,
) -> Experiment:
    """Return a bulk transfer with the given paths. `changes` are further settings of the medium."""
    medium = Medium("tap", ETHERNET_MTU_BYTES, forward=forward, backward=backward, sysctls=(*ROOM, *sysctls))
    return Experiment(replace(medium, **changes), Bulk(size_bytes), SocketOptions(congestion_control="cubic"))  # type: ignore[arg-type]


def _far(path: PathModel, delay_s: float) -> PathModel:
    return replace(path, delay_s=delay_s)


TRIALS: Mapping[str, Experiment] = {
    "loss": _trial(_LOSS),
    "loss-short-path": _trial(_far(_LOSS, 0.002), _far(_PLAIN, 0.002)),
    "loss-long-path": _trial(_far(_LOSS, 0.060), _far(_PLAIN, 0.060), size_bytes=200_000),
    "loss-both-ways": _trial(_LOSS, _LOSS),
    "loss-heavy": _trial(replace(_LOSS, loss_share=0.08), size_bytes=200_000),
    "reordering": _trial(_HOLD),
    "reordering-short-path": _trial(_far(replace(_HOLD, reorder_delay_s=(0.0002, 0.004)), 0.002), _far(_PLAIN, 0.002)),
    "reordering-far-behind": _trial(replace(_HOLD, reorder_delay_s=(0.010, 0.080))),
    "duplication": _trial(_COPY),
    "everything": _trial(_ALL, _ALL),
    "everything-jumbo": _trial(_ALL, _ALL, mtu_bytes=ATM_MTU_BYTES),
    "everything-ipv6": _trial(_ALL, _ALL, ipv6=True),
    "everything-no-timestamps": _trial(_ALL, _ALL, sysctls=(("net.ipv4.tcp_timestamps", 0),)),
    "everything-no-sack": _trial(_ALL, _ALL, sysctls=(("net.ipv4.tcp_sack", 0),)),
    "everything-two-way": replace(_trial(_ALL, _ALL), program=TwoWay(150_000)),
    "everything-bbr": replace(_trial(_ALL, _ALL), options=SocketOptions(congestion_control="bbr")),
    "everything-bottleneck": _trial(replace(_ALL, rate_bps=8_000_000, queue_bytes=40_000), _ALL),
    "exchanges": replace(
        _trial(replace(_ALL, loss_share=0.02), _ALL), program=Exchanges(writes_bytes=(3_000,), answer_bytes=8_000, count=12)
    ),
}
"""All experiments by name. `score.seeded` sets the seed of their random draws."""
