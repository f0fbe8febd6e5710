"""One transaction: its fields during parsing, and its row of `schema.TRANSACTIONS`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tcptrace_lab.schema import SIDES

MAX_TARGET = 256
"""Maximum length of a stored request target, in characters."""


_SAME = (
    *("conn", "protocol", "method", "target", "status", "state", "data_conn", "request_bytes", "answer_bytes", "body_bytes"),
    *("request_frame", "answer_frame", "last_frame", "request_ts_ns", "answer_ts_ns", "last_ts_ns", "connect_ns"),
)
"""Columns that copy the attribute with their name."""


@dataclass(slots=True)
class Transaction:
    """A transaction, with the facts that have been parsed so far. Times are capture timestamps in nanoseconds; None means unknown."""

    conn: int
    protocol: str
    state: str = "unanswered"
    method: str | None = None
    target: str | None = None
    status: int | None = None
    data_conn: int | None = None
    request_bytes: int | None = None
    answer_bytes: int | None = None
    body_bytes: int | None = None
    request_frame: int | None = None
    answer_frame: int | None = None
    last_frame: int | None = None
    request_ts_ns: int | None = None
    requested_ts_ns: int | None = None
    answer_ts_ns: int | None = None
    last_ts_ns: int | None = None
    connect_ns: int | None = None
    data_last_ts_ns: int | None = None

    def row(self, index: int, ready_ts_ns: int | None) -> dict[str, Any]:
        """Return row number `index` of the connection.

        Args:
            index: number of the transaction in its connection.
            ready_ts_ns: earliest time at which the client could send the request.
        """
        waited = _between(ready_ts_ns, self.request_ts_ns)
        thought = _between(self.requested_ts_ns, self.answer_ts_ns)
        is_whole = self.protocol == "ftp" or self.last_ts_ns is not None
        return {name: getattr(self, name) for name in _SAME} | {
            "body_bytes": self.body_bytes if is_whole else None,
            "index": index,
            "client_think_ns": waited if waited is not None and waited >= 0 else None,
            "request_ns": _between(self.request_ts_ns, self.requested_ts_ns),
            "server_think_ns": None if thought is None else max(thought, 0),
            "transfer_ns": _between(self.answer_ts_ns, self.last_ts_ns if self.data_last_ts_ns is None else self.data_last_ts_ns),
            "total_ns": _between(self.request_ts_ns, self.last_ts_ns),
        }


def _between(from_ns: int | None, to_ns: int | None) -> int | None:
    return None if from_ns is None or to_ns is None else to_ns - from_ns


def text(data: bytes) -> str:
    """Decode captured bytes to at most `MAX_TARGET` characters. Latin-1 maps every byte to a character."""
    return data[:MAX_TARGET].decode("latin-1")


COLUMNS = (
    "conn",
    *(f"{side}_{name}" for side in SIDES for name in ("addr", "port", "unique_bytes", "first_data_ts_ns", "last_data_ts_ns")),
    *("first_ts_ns", "last_ts_ns", "syn_to_synack_ns", "synack_to_ack_ns", "closed_by"),
)
"""The columns of a connection that transactions need."""
