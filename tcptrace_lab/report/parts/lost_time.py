"""The report's data on lost time: the findings, the time by cause of each direction, and the longest waits."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from tcptrace_lab.causes.texts import silence
from tcptrace_lab.findings.finding import Severity
from tcptrace_lab.ledger import snd_lim, stalls
from tcptrace_lab.schema import CAUSES, SIDES
from tcptrace_lab.text import numbers

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import polars as pl

    from tcptrace_lab.findings.finding import Finding
    from tcptrace_lab.report.data_types import Bar, Found, Part, Reproduce, Stall, Zoom

LISTED_STALLS = 20
"""Maximum number of stalls that are listed per connection. The longest stalls are chosen."""

NOT_LISTED = ("handshake", "idle", "application", "peer", "network", "close", "unknown")
"""Causes whose waits are not listed as stalls, because TCP does not delay any data."""

_KEYS = {from_client: side for side, from_client in SIDES.items()}
_ARROWS = {True: "client → server", False: "server → client"}


MODELLED = ("nagle-delayed-ack", "delayed-ack", "throughput-deadlock", "receiver-window-limited", "zero-window", "send-buffer-limited")
"""Ids of the findings whose remedy a model can simulate (`replay.gains`)."""


def found(
    findings: Iterable[Finding], zooms: Iterable[Zoom | None], ends: Mapping[int, str], summaries: Iterable[str], path: str
) -> list[Found]:
    """Return the findings, each with endpoints, figures of its direction, a Wireshark display filter and, if available, its plot.

    `path` is the path of the capture in commands.
    """
    return [
        {
            "place": place,
            "id": finding.id,
            "severity": str(finding.severity),
            "confidence": str(finding.confidence),
            "conn": finding.conn,
            "ends": "" if finding.conn is None else ends.get(finding.conn, ""),
            "way": "" if finding.from_client is None else _ARROWS[finding.from_client],
            "share": finding.cost_share,
            "cost_ns": finding.cost_ns,
            "active_ns": finding.active_ns,
            "title": finding.title,
            "mechanism": finding.mechanism,
            "limits": finding.limits,
            "remedy": list(finding.remedy),
            "kind": "; ".join((finding.id, *finding.remedy)),
            "gain": finding.predicted_gain or "",
            "source": finding.source,
            "filter": finding.wireshark_filter,
            "zoom": zoom,
            "summary": summary,
            "reproduce": _reproduce(finding, shlex.quote(path)),
        }
        for place, (finding, zoom, summary) in enumerate(zip(findings, zooms, summaries, strict=True), start=1)
    ]


def _reproduce(finding: Finding, path: str) -> Reproduce | None:
    """Return how to try the remedy of a finding; None if no model can simulate the remedy."""
    if finding.conn is None or finding.id not in MODELLED or finding.severity == Severity.INFO:
        return None
    of = f"{path} --connection {finding.conn}"
    if finding.modelled is None:
        return {"command": f"tcptrace-lab analyze {of} --whatif", "script": "", "file": ""}
    command = f"tcptrace-lab replay whatif {of} {finding.modelled.changes}"
    return {"command": command, "script": finding.modelled.script, "file": f"reproduce-{finding.id}-{finding.conn}.py"}


def bars(account: Mapping[str, Any] | None) -> list[Bar]:
    """Return each direction's time by cause, the largest first.

    A direction without time is left out. `account` is a row of `schema.ACCOUNTS`.
    """
    if not account:
        return []
    bars_made: list[Bar] = []
    for side, from_client in SIDES.items():
        parts = {cause: account[f"{side}_{cause.replace('-', '_')}_ns"] or 0 for cause in CAUSES}
        life_ns = sum(parts.values())
        shares: list[Part] = [
            {
                "cause": cause,
                "name": silence.name(cause, account, side),
                "means": CAUSES[cause],
                "ns": ns,
                "share": ns / life_ns,
                "of_active": "" if cause == "idle" else numbers.share(ns / (life_ns - parts["idle"])),
            }
            for cause, ns in sorted(parts.items(), key=lambda part: -part[1])
            if ns > 0
        ]
        if shares:
            bars_made.append(
                {
                    "key": side,
                    "label": _ARROWS[from_client],
                    "time": _time(life_ns, parts["idle"]),
                    "parts": shares,
                    "terms": _terms(account, side),
                }
            )
    return bars_made


def _terms(account: Mapping[str, Any], side: str) -> str:
    """Return the time in the states of RFC 4898: `SndLimTimeSnd 1.2 s, SndLimTimeRwin 0 s, SndLimTimeCwnd 2.8 s`."""
    return ", ".join(f"{term} {numbers.duration(ns)}" for term, ns in snd_lim.times_ns(account, side).items())


def _time(life_ns: int, idle_ns: int) -> str:
    """Return the time of a direction: `49.6 s`, or `34.6 s active (14.9 s idle)`. Percentages are shares of the active time."""
    active = numbers.duration(life_ns - idle_ns)
    return f"{active} active ({numbers.duration(idle_ns)} idle)" if idle_ns else active


def listed_stalls(stalled: pl.DataFrame, conn: int, begin_ns: int) -> list[Stall]:
    """Return the longest stalls of a connection in which TCP delayed data, in order of time (`stalled`: rows of `schema.STALLS`)."""
    own = stalled.filter(stalled["conn"] == conn).to_dicts()
    held = [row | {"ns": row["end_ns"] - row["start_ns"]} for row in own if row["cause"] not in NOT_LISTED]
    most = sorted(held, key=lambda row: -row["ns"])[:LISTED_STALLS]
    return [
        {
            "way": _ARROWS[row["from_client"]],
            "side": _KEYS[row["from_client"]],
            "at_ns": row["start_ns"] - begin_ns,
            "ns": row["ns"],
            "cause": row["cause"],
            "means": CAUSES[row["cause"]],
            "confidence": row["confidence"],
            "frames": " to ".join(str(frame) for frame in (row["frame_before"], row["frame_after"]) if frame is not None),
            "filter": _filter(row["frame_before"], row["frame_after"]),
            "proof": stalls.proof(row),
        }
        for row in sorted(most, key=lambda row: row["start_ns"])
    ]


def _filter(before: int | None, after: int | None) -> str:
    """Return a Wireshark display filter for all frames from the start to the end of a wait."""
    ends = [frame for frame in (before, after) if frame is not None]
    return f"frame.number in {{{ends[0]}..{ends[-1]}}}" if ends else ""


def joined(waits: Iterable[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    """Merge adjacent intervals (start, end, cause) with equal causes. `waits` is in order of time."""
    runs: list[tuple[int, int, str]] = []
    for start, end, cause in waits:
        if runs and runs[-1][1:] == (start, cause):
            runs[-1] = (runs[-1][0], end, cause)
        else:
            runs.append((start, end, cause))
    return runs
