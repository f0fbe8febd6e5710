"""The figures that `compare` compares: their units, whether less is better, and how they are measured."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import polars as pl

from tcptrace_lab.schema import SIDES
from tcptrace_lab.text.numbers import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Mapping

DIRECTION_KEYS = {"client": "client_to_server", "server": "server_to_client"}
"""Sender of a direction → name of the direction in the JSON."""

BITS_PER_BYTE = 8


class Level(StrEnum):
    """What one value of a sample describes: a whole capture, a connection, or a message."""

    CAPTURES = "captures"
    CONNECTIONS = "connections"
    MESSAGES = "messages"


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure to compare.

    Attributes:
        name: key in the JSON.
        title: name in text.
        direction: the direction, named by its sender (`client` or `server`); None for a figure of the whole connection.
        kind: unit and format (`numbers.formatted`): `duration` (ns), `rate` (bits per second) or `share` (0 to 1).
        less_is_better: whether smaller values are better.
        within: what each value measures within one capture.
        note: how the figure is measured.
    """

    name: str
    title: str
    direction: str | None
    kind: str
    less_is_better: bool
    within: Level
    note: str


def _of_connections(side: str) -> list[Figure]:
    return [
        Figure("throughput", "throughput", side, "rate", False, Level.CONNECTIONS, "new data from the first data segment to the last"),  # noqa: FBT003
        Figure("rtt", "median RTT", side, "duration", True, Level.CONNECTIONS, "from the capture point to the receiver and back"),  # noqa: FBT003
        Figure("retransmits", "retransmits", side, "share", True, Level.CONNECTIONS, "share of data segments that are retransmits"),  # noqa: FBT003
    ]


MESSAGE_TIME, ANSWER_TIME = "message_time", "answer_time"

CONNECTION_TIME = Figure(
    "connection_time",
    "connection time",
    None,
    "duration",
    less_is_better=True,
    within=Level.CONNECTIONS,
    note="from its first segment to its last",
)

FIGURES = (
    CONNECTION_TIME,
    *(figure for side in SIDES for figure in _of_connections(side)),
    *(
        Figure(MESSAGE_TIME, "message time", side, "duration", True, Level.MESSAGES, "from its first segment to its last")  # noqa: FBT003
        for side in SIDES
    ),
    Figure(
        ANSWER_TIME,
        "time to answer",
        "client",
        "duration",
        less_is_better=True,
        within=Level.MESSAGES,
        note="from a message's first segment to the answer's first",
    ),
)
"""All figures, in the order in which they are shown."""


def of_connections() -> Mapping[str, pl.Expr]:
    """Return the expressions over `schema.CONNECTIONS` that compute the figures of connections, by index in `FIGURES` as text.

    Unknown values are null.
    """
    return {str(place): _expression(figure) for place, figure in enumerate(FIGURES) if figure.within is Level.CONNECTIONS}


def _expression(figure: Figure) -> pl.Expr:
    side = figure.direction
    if figure.name == "throughput":
        sent_ns = pl.col(f"{side}_last_data_ts_ns") - pl.col(f"{side}_first_data_ts_ns")
        return pl.when(sent_ns > 0).then(pl.col(f"{side}_unique_bytes") * float(BITS_PER_BYTE * NS_PER_S) / sent_ns)
    if figure.name == "rtt":
        return pl.col(f"{side}_rtt_p50_ns").cast(pl.Float64)
    if figure.name == "retransmits":
        sent = pl.col(f"{side}_data_segments")
        return pl.when(sent > 0).then(pl.col(f"{side}_retransmitted_segments") / sent)
    return (pl.col("last_ts_ns") - pl.col("first_ts_ns")).cast(pl.Float64)
