"""The published JSON of a pair of captures (`pair.schema.json` in the package)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from tcptrace_lab.pair.figures import TIMES, directions

if TYPE_CHECKING:
    from tcptrace_lab.pair.clocks import Clock
    from tcptrace_lab.pair.pair import Pair

SCHEMA_VERSION = 2

MAX_FRAMES = 1_000
"""Maximum number of frames in each list. The counts include all frames."""

PPM = 1e6
NS_PER_S, NS_PER_MS = 1e9, 1e6
COUNTS = (
    *("sent", "received", "matched", "lost", "lost_bytes", "not_captured", "only_at_receiver"),
    *("duplicated", "outside_overlap", "reordered", "uncertain"),
)
FRAMES = {
    "lost": ("lost", "sent_frame"),
    "not_captured": ("not_captured", "sent_frame"),
    "only_at_receiver": ("only_at_receiver", "received_frame"),
    "duplicated": ("duplicated", "received_frame"),
}
"""Key of a list of frames → fate of the packets in the list, and column with their frame number."""


def document(pair: Pair) -> dict[str, Any]:
    """Return the document as JSON values."""
    return {
        "schema_version": SCHEMA_VERSION,
        "captures": list(pair.captures),
        "clock": None if pair.clock is None else _clock(pair.clock),
        "connections": _connections(pair),
    }


def _clock(clock: Clock) -> dict[str, Any]:
    return {
        "offset_s": clock.offset_ns / NS_PER_S,
        "reference_ts_ns": clock.reference_ns,
        "offset_error_s": clock.error_ns / NS_PER_S,
        "offset_error_if_symmetric_s": clock.symmetric_error_ns / NS_PER_S,
        "drift_ppm": clock.drift * PPM,
        "drift_error_ppm": clock.drift_error * PPM,
        "rtt_min_s": clock.rtt_min_ns / NS_PER_S,
        "packets": {"first_to_second": clock.packets[0], "second_to_first": clock.packets[1]},
        "is_stepped": clock.stepped,
    }


def _connections(pair: Pair) -> list[dict[str, Any]]:
    by_number = {row["direction"]: row for row in directions(pair.packets).iter_rows(named=True)}
    listed = _frames(pair.packets)
    first, second = (list(rows.iter_rows(named=True)) for rows in pair.endpoints)
    found = []
    for place, row in enumerate(pair.connections.iter_rows(named=True)):
        by_direction = {
            key: _direction(by_number.get(2 * place + side), listed, 2 * place + side) for side, key in enumerate(_DIRECTION_KEYS)
        }
        sides = {"client": "server", "server": "client"} if row["swapped"] else {"client": "client", "server": "server"}
        found.append(
            {
                "first_id": row["a"],
                "second_id": row["b"],
                "client": {"addr": first[place]["client_addr"], "port": first[place]["client_port"]},
                "server": {"addr": first[place]["server_addr"], "port": first[place]["server_port"]},
                "client_in_second": _endpoint(second[place], sides["client"]),
                "server_in_second": _endpoint(second[place], sides["server"]),
                "near_client": "first" if row["first_is_near_client"] else "second",
                "near_client_known_by": row["known_by"],
                "matching_packets": row["shared"],
                **by_direction,
            }
        )
    return found


_DIRECTION_KEYS = ("client_to_server", "server_to_client")


def _endpoint(row: dict[str, Any], side: str) -> dict[str, Any]:
    return {"addr": row[f"{side}_addr"], "port": row[f"{side}_port"]}


def _direction(row: dict[str, Any] | None, listed: dict[tuple[int, str], list[int]], number: int) -> dict[str, Any]:
    counts = {name: 0 if row is None else row[name] for name in COUNTS}
    times = {f"{name}_ms": _times(row, name) for name in TIMES}
    frames = {f"{key}_frames": listed.get((number, key), []) for key in (*FRAMES, "reordered")}
    return {**counts, **times, **frames}


def _times(row: dict[str, Any] | None, name: str) -> dict[str, Any]:
    if row is None:
        return {"samples": 0, "min": None, "p50": None, "p95": None, "max": None}
    values = {key: row[f"{name}_{key}_ns"] for key in ("min", "p50", "p95", "max")}
    return {"samples": row[f"{name}_samples"] or 0} | {key: None if value is None else value / NS_PER_MS for key, value in values.items()}


def _frames(packets: pl.DataFrame) -> dict[tuple[int, str], list[int]]:
    """Return the first `MAX_FRAMES` distinct frames of each kind, by (direction number, key)."""
    found = {}
    chosen = {key: (pl.col("fate") == fate, frame) for key, (fate, frame) in FRAMES.items()}
    chosen["reordered"] = (pl.col("reordered"), "received_frame")
    for key, (wanted, frame) in chosen.items():
        of_kind = packets.filter(wanted).select("direction", pl.col(frame).alias("frame")).unique().sort("direction", "frame")
        for (number,), rows in of_kind.group_by("direction", maintain_order=True):
            found[int(str(number)), key] = rows["frame"].head(MAX_FRAMES).to_list()
    return found
