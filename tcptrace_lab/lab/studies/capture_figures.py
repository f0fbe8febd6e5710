"""Analyzes each transfer in the captures. The client's port identifies the transfer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcptrace_lab.analysis import analyze
from tcptrace_lab.schema import CAUSES, SIDES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from tcptrace_lab.lab.studies.study import Run

CAUSE, CAUSE_AT_RECEIVER = "cause", "cause_at_receiver"
"""Column prefixes for the ledger of the sender's direction. The second one is for the receiver's capture."""

FIGURES = ("segments", "retransmitted_segments", "capture_bytes", "capture_throughput_bps", "findings")
"""Columns without a cause. They describe the sender's direction in the capture at the sender."""


def figures_by_run(captures: Mapping[str, Path], runs: Sequence[Run]) -> dict[int, dict[str, Any]]:
    """Return our results by run number. They describe the direction with more data, in the capture at the sender of this data.

    Args:
        captures: the capture files of `client` and `server`.
        runs: the runs in these captures.
    """
    ports = {run.measured.port: run.number for run in runs if run.measured is not None}
    by_vantage = {vantage: dict(_figures_of_capture(path, ports)) for vantage, path in captures.items()}
    found: dict[int, dict[str, Any]] = {}
    for number in ports.values():
        by_client, by_server = by_vantage["client"].get(number), by_vantage["server"].get(number)
        if by_client is None or by_server is None:
            continue
        here, there = (by_client, by_server) if by_client["sender_at"] == "client" else (by_server, by_client)
        ledgers = {CAUSE: here["ledger"], CAUSE_AT_RECEIVER: there["ledger"]}
        causes = {column(what, cause): ns for what, ledger in ledgers.items() for cause, ns in ledger.items()}
        found[number] = {name: here[name] for name in FIGURES} | causes
    return found


def column(what: str, cause: str) -> str:
    """Return the column name of a cause. `what` is the prefix of the name."""
    return f"{what}_{cause.replace('-', '_')}_ns"


def _figures_of_capture(path: Path, ports: Mapping[int, int]) -> Iterable[tuple[int, dict[str, Any]]]:
    analysis = analyze([path])
    findings: dict[int | None, list[str]] = {}
    for finding in analysis.findings:
        findings.setdefault(finding.conn, []).append(finding.id)
    accounts = {row["conn"]: row for row in analysis.accounts.collect().iter_rows(named=True)}
    for row in analysis.connections.collect().iter_rows(named=True):
        number = next((ports[row[f"{side}_port"]] for side in SIDES if row[f"{side}_port"] in ports), None)
        if number is not None:
            yield number, _connection(row, accounts[row["conn"]]) | {"findings": sorted(set(findings.get(row["conn"], [])))}
    for row in analysis.flows.collect().iter_rows(named=True):
        if row["client_port"] in ports:
            yield ports[row["client_port"]], _flow(row)


def _connection(row: Mapping[str, Any], account: Mapping[str, Any]) -> dict[str, Any]:
    """Return the results for one TCP connection. The server can have opened it, as it does for FTP data connections without PASV."""
    sender = max(SIDES, key=lambda side: row[f"{side}_unique_bytes"] or 0)
    first_ns, last_ns = row[f"{sender}_first_data_ts_ns"], row[f"{sender}_last_data_ts_ns"]
    data_duration_ns = None if first_ns is None or last_ns is None else last_ns - first_ns
    return {
        "sender_at": sender,
        "segments": row[f"{sender}_data_segments"],
        "retransmitted_segments": row[f"{sender}_retransmitted_segments"],
        "capture_bytes": row[f"{sender}_unique_bytes"],
        "capture_throughput_bps": row[f"{sender}_unique_bytes"] * 8e9 / data_duration_ns if data_duration_ns else None,
        "ledger": {cause: account[f"{sender}_{cause.replace('-', '_')}_ns"] for cause in CAUSES},
    }


def _flow(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the results for one UDP flow. It has no ledger, because UDP has neither flow control nor congestion control."""
    return {
        "sender_at": "client",
        "segments": row["client_datagrams"],
        "retransmitted_segments": 0,
        "capture_bytes": row["client_payload_bytes"],
        "capture_throughput_bps": row["client_rate_bps"],
        "ledger": {},
        "findings": [],
    }
