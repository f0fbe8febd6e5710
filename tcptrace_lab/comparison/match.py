"""Matches the services of several captures.

Services match by server port. If each capture has exactly one service without a match, these services are assumed to be the same. A service
that any group lacks is listed, but not compared.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcptrace_lab.comparison.run import Run, Service


@dataclass(frozen=True, slots=True)
class Lane:
    """One service in all captures.

    Attributes:
        services: `services[group][capture]`; None if this capture lacks the service. At least one capture of each group has the service.
        matched_by: `server_port`, or `only_one` if the ports differ.
    """

    services: tuple[tuple[Service | None, ...], ...]
    matched_by: str

    @property
    def server_ports(self) -> tuple[int, ...]:
        """Distinct server ports of the service, in capture order. There are several ports only if `matched_by` is `only_one`."""
        found = [service.server_port for group in self.services for service in group if service is not None]
        return tuple(dict.fromkeys(found))

    @property
    def payload_bytes(self) -> int:
        """Payload bytes of the service in all captures together."""
        return sum(service.payload_bytes for group in self.services for service in group if service is not None)

    @property
    def in_step(self) -> bool:
        """True if every capture lists the same number of connections, so that they can be shown side by side in order of time."""
        counts = {service and len(service.listed) for group in self.services for service in group}
        return len(counts) == 1 and not counts & {0, None}


@dataclass(frozen=True, slots=True)
class Unmatched:
    """A service that at least one group lacks. `group` and `capture` are the indices of a capture with this service."""

    group: int
    capture: int
    server_port: int
    connections: int


def match(groups: Sequence[Sequence[Run]]) -> tuple[tuple[Lane, ...], tuple[Unmatched, ...]]:
    """Return the services that all groups have, most payload first, and the unmatched services."""
    common = set.intersection(*({port for run in runs for port in run.services} for runs in groups))
    lanes = [Lane(tuple(tuple(run.services.get(port) for run in runs) for runs in groups), "server_port") for port in common]
    rest = [[[service for port, service in run.services.items() if port not in common] for run in runs] for runs in groups]
    if all(len(left) == 1 for group in rest for left in group):
        lanes.append(Lane(tuple(tuple(left[0] for left in group) for group in rest), "only_one"))
        rest = []
    unmatched = tuple(
        Unmatched(group, capture, service.server_port, service.connections)
        for group, captures in enumerate(rest)
        for capture, left in enumerate(captures)
        for service in left
    )
    return tuple(sorted(lanes, key=lambda lane: (-lane.payload_bytes, lane.server_ports))), unmatched
