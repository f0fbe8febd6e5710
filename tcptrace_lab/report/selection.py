"""Chooses the connections that a report shows, and the number of points per connection. The page states these rules in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from tcptrace_lab import schema
from tcptrace_lab.report.figures import downsampling
from tcptrace_lab.report.figures.collector import Request
from tcptrace_lab.report.largest import Ranking, largest

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

LISTED_CONNECTIONS = 2_000
"""Maximum number of rows in the connection table. A row after the first `connection_table.HTML_ROWS` takes about 60 bytes of the report."""

_BY_FINDINGS, _BY_PAYLOAD, _BY_RESENT, _BY_DURATION = 3, 4, 2, 2

LISTED_RULE = f"the {LISTED_CONNECTIONS:,} with most payload (then the longest), and those with findings"


class Room(NamedTuple):
    """Size limits of a report.

    Attributes:
        line_points, report_line_points: maximum number of points in one line, and in all lines together. Seven points, one in each of the
            seven lines of a direction, take at most 100 bytes together.
        drawn: maximum number of connections with figures.
        findings: maximum number of findings in full, the most expensive first. The JSON has all findings.
        mark_points, report_mark_points: maximum number of marks in one figure, and in all figures together. A mark takes about 15 bytes.
    """

    line_points: int
    report_line_points: int
    mark_points: int
    report_mark_points: int
    findings: int
    drawn: int


ALONE = Room(3_000, 24_000, 5_000, 24_000, 25, 8)
"""Limits of a single report, which has at most 6 MB."""

AMONG_MANY = Room(300, 400, 200, 300, 6, 3)
"""Limits of one report in an archive. Such a report has at most 300 kB, without the scripts that all reports share."""

PAYLOAD = pl.col("client_payload_bytes") + pl.col("server_payload_bytes")
RESENT = pl.col("client_retransmitted_segments") + pl.col("server_retransmitted_segments")
DURATION_NS = pl.col("last_ts_ns") - pl.col("first_ts_ns")

_OTHER_SIDE = {"client": "server", "server": "client"}
_MARK_COLUMNS = (
    "retransmitted_segments",
    "out_of_order_segments",
    "keepalives",
    "zero_window_probes",
    "syn_segments",
    "fin_segments",
    "rst_segments",
)
_OTHER_MARK_COLUMNS = (*["duplicate_acks"] * 4, "zero_window_advertisements", "rst_segments")
"""Columns that count segments of the peer for which the figures draw marks. The figures show at most four marks per duplicate ACK: the ACK
itself and its SACK blocks. With TCP timestamps, an ACK has at most three SACK blocks (RFC 2018, 3)."""


class Chosen(NamedTuple):
    """The connections that a page shows.

    Attributes:
        total: number of all connections.
        listed: rows of the connection table, in capture order (see `LISTED_RULE`).
        drawn: rows of the connections with figures, most payload first (see `drawn_rule`).
        found: rows of the connections with findings.
    """

    total: int
    listed: pl.DataFrame
    drawn: pl.DataFrame
    found: pl.DataFrame


def drawn_rule(room: Room) -> str:
    """Return a sentence that states which connections get figures."""
    return (
        f"Up to {room.drawn} of the connections with data are drawn, in this order: those of the {_BY_FINDINGS} most expensive findings, "
        f"the {_BY_PAYLOAD} with most payload, the {_BY_RESENT} with most retransmitted segments, the {_BY_DURATION} that lasted longest. "
        "The connections with most payload take the remaining places."
    )


def chosen(connections: pl.LazyFrame, found: Sequence[int] = (), room: Room = ALONE) -> Chosen:
    """Choose among rows of `schema.CONNECTIONS`.

    Args:
        connections: all rows.
        found: numbers of connections with findings, the most expensive first. Those with data get figures, too.
        room: limits of the report.
    """
    figures = {"payload": PAYLOAD, "resent": RESENT, "duration_ns": DURATION_NS}
    figures |= {f"{by}_drawable": (PAYLOAD > 0) & DURATION_NS.is_not_null() & (figures[by] > 0) for by in figures}
    wanted = (("payload", _BY_PAYLOAD), ("resent", _BY_RESENT), ("duration_ns", _BY_DURATION), ("payload", room.drawn))
    rankings = [Ranking((by, "payload"), most, f"{by}_drawable") for by, most in wanted]
    total, (listed, *ranked) = largest(connections, "conn", figures, [Ranking(("payload", "duration_ns"), LISTED_CONNECTIONS), *rankings])
    with_findings = list(dict.fromkeys(found))[:_BY_FINDINGS]
    drawn = list(dict.fromkeys([*with_findings, *(conn for ranking in ranked for conn in ranking)]))[: room.drawn]
    rows = connections.filter(pl.col("conn").is_in(sorted({*listed, *drawn, *found}))).collect()
    places = {conn: place for place, conn in enumerate(rows["conn"].to_list())}
    payloads, durations_ns = rows.select(PAYLOAD, DURATION_NS.alias("duration_ns"))
    with_figures = [conn for conn in drawn if conn in places and payloads[places[conn]] > 0 and durations_ns[places[conn]] is not None]
    with_figures.sort(key=lambda conn: (-payloads[places[conn]], conn))

    def of(conns: Iterable[int]) -> pl.DataFrame:
        asked = [places[conn] for conn in conns if conn in places]
        return rows if asked == list(range(rows.height)) else rows[asked]

    return Chosen(total, of(sorted({*listed, *found})), of(with_figures), of(sorted({*found})))


def requests(rows: pl.DataFrame, room: Room = ALONE) -> list[Request]:
    """Return the requests for the series of all connections with figures. All directions share the points that `room` allows."""
    sides = [(row, name) for row in rows.to_dicts() for name in schema.SIDES if row[f"{name}_data_segments"]]
    lines = downsampling.share([min(_line_need(row, name), room.line_points) for row, name in sides], room.report_line_points)
    marks = downsampling.share([min(_mark_need(row, name), room.mark_points) for row, name in sides], room.report_mark_points)
    found: dict[int, Request] = {}
    for (row, name), line_points, mark_points in zip(sides, lines, marks, strict=True):
        request = found.setdefault(row["conn"], _request(row))
        side = schema.SIDES[name]
        request.data_segments[side] = row[f"{name}_data_segments"]
        request.line_points[side] = line_points
        request.mark_points[side] = mark_points
    return list(found.values())


def _request(row: dict[str, int]) -> Request:
    duration_ns = max(row["last_ts_ns"] - row["first_ts_ns"], 0)
    return Request(row["conn"], row["first_frame"], row["last_frame"], row["first_ts_ns"], duration_ns, {}, {}, {})


def _line_need(row: dict[str, int], name: str) -> int:
    """Return the maximum number of steps in the direction's lines: one per segment of either host."""
    return row["client_segments"] + row["server_segments"] if row[f"{name}_segments"] else 0


def _mark_need(row: dict[str, int], name: str) -> int:
    """Return the estimated number of marks of the direction.

    Capture duplicates have no column, so the estimate does not include them. Their marks use spare points.
    """
    return _sum(row, name, _MARK_COLUMNS) + _sum(row, _OTHER_SIDE[name], _OTHER_MARK_COLUMNS) + row[f"{name}_segments"] // 8


def _sum(row: dict[str, int], side: str, columns: Sequence[str]) -> int:
    return sum(row[f"{side}_{column}"] for column in columns)
