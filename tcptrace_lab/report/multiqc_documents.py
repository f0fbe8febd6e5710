"""Makes the rows for MultiQC from a document of `analyze --json`. The module `multiqc` makes the same rows from an analysis."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from tcptrace_lab.connections.host_names import endpoint
from tcptrace_lab.report.multiqc import CONNECTIONS, safe
from tcptrace_lab.schema import CAUSES

_DIRECTIONS = ("client_to_server", "server_to_client")

_SEVERITIES = ("high", "medium", "low")
"""All severities, the worst first. The column `Worst finding` contains one of them."""


class Rows(NamedTuple):
    """The rows of one capture.

    Attributes:
        general: its row of the general statistics.
        connections: number of a connection → its row.
        time: cause → seconds, over all directions that carried data.
    """

    general: dict[str, Any]
    connections: dict[int, dict[str, Any]]
    time: dict[str, float]


def rows(text: str) -> Rows | None:
    """Return the rows of a document; None if the text is not a document of `analyze` on one capture, in the present format."""
    try:
        document = json.loads(text)
        return Rows(_general(document), _connections(document), _time(document))
    except (ValueError, LookupError, TypeError, AttributeError):  # the document can be any JSON, with other keys or types
        return None


def _general(document: dict[str, Any]) -> dict[str, Any]:
    verdict, capture = document["verdict"], document["capture"]
    cost_s, active_s = verdict["cost_s"] or 0, verdict["active_s"]
    severities = {finding["severity"] for finding in document["findings"]}
    return _known(
        {
            "cost_share": 100 * cost_s / active_s if active_s else 0.0,
            "cost_s": cost_s,
            "severity": next((severity for severity in _SEVERITIES if severity in severities), "none"),
            "connections": capture["connections"],
            "duration_s": capture["duration_s"],
            "quality": capture["quality"]["rating"],
        }
    )


def _connections(document: dict[str, Any]) -> dict[int, dict[str, Any]]:
    def order(connection: dict[str, Any]) -> tuple[int, int]:
        return -sum(connection[direction]["payload_bytes"] for direction in _DIRECTIONS), connection["id"]

    return {one["id"]: _known(_connection(one)) for one in sorted(document["connections"], key=order)[:CONNECTIONS]}


def _connection(connection: dict[str, Any]) -> dict[str, Any]:
    sent, answered = (connection[direction] for direction in _DIRECTIONS)
    larger = sent if sent["payload_bytes"] >= answered["payload_bytes"] else answered
    halves = [connection["vantage_evidence"][f"rtt_to_{side}_ms"] for side in ("client", "server")]
    ends = {f"{side}_{name}": connection[side][name] for side in ("client", "server") for name in ("addr", "port")}
    ledger_s = larger["ledger_s"]
    return {
        "client": safe(endpoint(ends, "client")),
        "server": safe(endpoint(ends, "server")),
        "duration_s": connection["duration_s"],
        "client_bytes": sent["unique_bytes"],
        "server_bytes": answered["unique_bytes"],
        "throughput_bps": larger["throughput_bps"],
        "rtt_min_ms": None if None in halves else sum(halves),
        "retransmits": sent["retransmitted_segments"] + answered["retransmitted_segments"],
        "cause": max(CAUSES, key=lambda cause: ledger_s[cause]) if any(ledger_s.values()) else "unknown",
    }


def _time(document: dict[str, Any]) -> dict[str, float]:
    carried = [
        connection[direction]
        for connection in document["connections"]
        for direction in _DIRECTIONS
        if connection[direction]["payload_bytes"] > 0
    ]
    return {cause: sum(direction["ledger_s"][cause] for direction in carried) for cause in CAUSES}


def _known(row: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if value is not None}
