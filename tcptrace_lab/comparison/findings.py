"""Determines which findings appeared, disappeared or stayed between groups of captures.

Two findings are of one kind if they have the same id, service and direction.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tcptrace_lab.comparison.match import Lane
    from tcptrace_lab.comparison.run import Found, Run
    from tcptrace_lab.findings.finding import Finding, Severity

APPEARED, DISAPPEARED, STAYED, ABSENT = "appeared", "disappeared", "stayed", "absent"


@dataclass(frozen=True, slots=True)
class InGroup:
    """How often one kind of finding occurs in one group, and how much time it costs there.

    Attributes:
        captures: number of the group's captures with this finding.
        severity: the worst severity; None if no capture has the finding.
        cost_ns: mean total cost in the captures that have the finding; None if the finding costs no time.
        finding: the most expensive finding of this kind; None if no capture has it.
    """

    captures: int
    severity: Severity | None
    cost_ns: float | None
    finding: Finding | None


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of finding, with its figures in each group.

    Attributes:
        id: one of `finding.FINDING_IDS`.
        server_ports: ports of the finding's service; empty if the finding concerns the whole capture.
        direction: the sender (`client` or `server`); None if the finding concerns both directions or none.
        groups: the figures of this kind in each group.
        states: `appeared`, `disappeared` or `stayed` for each group after the first; `absent` if the first group also lacks this kind.
    """

    id: str
    server_ports: tuple[int, ...]
    direction: str | None
    groups: tuple[InGroup, ...]
    states: tuple[str, ...]

    @property
    def severity(self) -> Severity:
        """The worst severity of this kind of finding in any group."""
        return max(group.severity for group in self.groups if group.severity is not None)


_Key = tuple[str, tuple[int, ...], str | None]


def kinds(groups: Sequence[Sequence[Run]], lanes: Sequence[Lane]) -> tuple[Kind, ...]:
    """Return all kinds of findings in these captures, sorted by severity, then by cost, largest first."""
    ports_of = {port: lane.server_ports for lane in lanes for port in lane.server_ports}
    found = [[_by_key(run.findings, ports_of) for run in runs] for runs in groups]
    keys = dict.fromkeys(key for runs in found for run in runs for key in run)
    made = [Kind(*key, tuple(_in_group(runs, key) for runs in found), ()) for key in keys]
    with_states = [Kind(kind.id, kind.server_ports, kind.direction, kind.groups, _states(kind.groups)) for kind in made]
    return tuple(sorted(with_states, key=lambda kind: (-kind.severity, -max(group.cost_ns or 0 for group in kind.groups))))


def _by_key(findings: Sequence[Found], ports_of: dict[int, tuple[int, ...]]) -> dict[_Key, list[Finding]]:
    by_key: dict[_Key, list[Finding]] = {}
    for one in findings:
        ports = () if one.server_port is None else ports_of.get(one.server_port, (one.server_port,))
        direction = None if one.finding.from_client is None else "client" if one.finding.from_client else "server"
        by_key.setdefault((one.finding.id, ports, direction), []).append(one.finding)
    return by_key


def _in_group(runs: Sequence[dict[_Key, list[Finding]]], key: _Key) -> InGroup:
    own = [run[key] for run in runs if key in run]
    every = [finding for findings in own for finding in findings]
    costs = [math.fsum(finding.cost_ns for finding in findings if finding.cost_ns is not None) for findings in own]
    timed = any(finding.cost_ns is not None for finding in every)
    return InGroup(
        captures=len(own),
        severity=max((finding.severity for finding in every), default=None),
        cost_ns=math.fsum(costs) / len(costs) if costs and timed else None,
        finding=max(every, key=lambda finding: finding.cost_ns or 0, default=None),
    )


def _states(groups: Sequence[InGroup]) -> tuple[str, ...]:
    first, *others = (bool(group.captures) for group in groups)
    names = {(False, True): APPEARED, (True, False): DISAPPEARED, (True, True): STAYED, (False, False): ABSENT}
    return tuple(names[first, other] for other in others)
