"""The table of all statistics of a connection, both directions side by side, explained by `schema`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcptrace_lab import schema

if TYPE_CHECKING:
    from tcptrace_lab.report.data_types import Statistic

_KINDS = {schema.Unit.NS: "duration", schema.Unit.BYTES: "bytes", schema.Unit.SEGMENTS: "count"}
_UNIT_ENDINGS = ("_bytes", "_ns")
_TIME_ENDING = "_ts_ns"


def table(connection: dict[str, Any]) -> list[Statistic]:
    """Return one row per statistic, with the values of both directions.

    Args:
        connection: a row of `schema.CONNECTIONS`.
    """
    return [_line(connection, column) for column in (*schema.STATISTICS, *schema.SPREADS)]


def _line(connection: dict[str, Any], column: schema.Column) -> Statistic:
    return {
        "label": label(column),
        "kind": _kind(column),
        "client": _plain(connection[f"client_{column.name}"]),
        "server": _plain(connection[f"server_{column.name}"]),
    }


def _plain(value: object) -> object:
    """Return a Boolean as yes or no, and any other value unchanged."""
    return ("yes" if value else "no") if isinstance(value, bool) else value


def _kind(column: schema.Column) -> str:
    if column.name.endswith(_TIME_ENDING):
        return "utc"
    if column.dtype == "Float64":
        return "ratio"
    return _KINDS.get(column.unit, "integer")


def label(column: schema.Column) -> str:
    """Return the label of a column: `rtt_timestamp_min_ns` → `RTT timestamp min`."""
    name = column.name
    for ending in _UNIT_ENDINGS:
        name = name.removesuffix(ending)
    capitals = {"rtt", "mss", "isn", "syn", "fin", "rst", "ack", "sack"}
    return " ".join(word.upper() if word in capitals else "ACKs" if word == "acks" else word for word in name.split("_"))
