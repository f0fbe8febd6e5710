"""The connection table of the report: its columns, explained by `schema`, and its rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcptrace_lab import schema
from tcptrace_lab.connections import behaviour, loss_before_capture
from tcptrace_lab.connections.host_names import endpoint
from tcptrace_lab.schema import SIDES
from tcptrace_lab.text import numbers

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from tcptrace_lab.report.data_types import Column

_ENDS = {"fin": "FIN", "reset": "RST", "reuse": "ports reused", "end": "still open", "room": "evicted", "idle": "long silence"}
"""Value of `schema.CLOSED_BY` → short text for a cell."""

HTML_ROWS = 50
"""Number of rows that are HTML, which is visible without JavaScript. All other rows are packed, to a tenth of the size."""

LONGEST_PATH_NS = 1_500_000_000
"""An answer shows the RTT of the path only if it arrives within this time (docs/how-it-decides.md, 2.1)."""

_GUESSES = {"data": "its first data is a request", "port": "it has the higher port", "first": "it was seen first"}
"""Value of `schema.CLIENT_KNOWN_BY` that is a guess → the reason for the guess."""

ASKED = (
    *(
        "conn",
        "client_known_by",
        "closed_by",
        "first_ts_ns",
        "last_ts_ns",
        "server_syn_segments",
        "client_syn_segments",
        "server_rst_segments",
    ),
    *("syn_to_synack_ns", "synack_to_ack_ns", "clock_tick_ns"),
    *(
        f"{side}_{name}"
        for side in schema.SIDES
        for name in (
            *("addr", "port", "payload_bytes", "unique_bytes", "retransmitted_segments", "rtt_min_ns", "reaction_min_ns"),
            *("first_data_ts_ns", "last_data_ts_ns"),
        )
    ),
)
"""The columns of `schema.CONNECTIONS` that a row needs."""


def columns() -> list[Column]:
    """Return the columns in order."""
    meaning = {column.name: column.meaning for column in schema.CONNECTIONS}
    resent = meaning["client_retransmitted_segments"].removesuffix(" (host: client)")
    return [
        _column("conn", "#", "integer", meaning["conn"]),
        _column("client", "client", "text", f"{meaning['client_addr']}, and its port"),
        _column("server", "server", "text", f"{meaning['server_addr']}, and its port"),
        _column("start_ns", "start", "offset", f"{meaning['first_ts_ns']}, after the first packet of the capture"),
        _column("duration_ns", "duration", "duration", "Time from the first segment to the last"),
        _column("client_bytes", "bytes →", "size", meaning["client_unique_bytes"]),
        _column("server_bytes", "← bytes", "size", meaning["server_unique_bytes"]),
        _column("resent", "retransmits", "count", f"{resent}, both directions"),
        _column("initial_rtt_ns", "RTT initial", "duration", "RTT of the path by the handshake: from the SYN to the ACK of the SYN-ACK"),
        _column(
            "rtt_min_ns",
            "RTT min",
            "duration",
            "Smallest RTT of the path: RTT to the server plus RTT to the client from the capture point; unknown if one of them is unknown",
        ),
        _column(
            "throughput_bps",
            "throughput",
            "rate",
            "New payload of the direction with most data, divided by the time from its first to its last data segment",
        ),
        _column("closed_by", "ended by", "text", meaning["closed_by"]),
        _column(
            "findings",
            "findings",
            "text",
            "Findings on this connection, the most expensive first; only the 50 most expensive findings of the capture are listed",
        ),
    ]


def row(connection: dict[str, Any], origin_ns: int | None, findings: Sequence[str] = ()) -> dict[str, Any]:
    """Convert a row of `schema.CONNECTIONS` to a row of this table.

    The result has the keys of the columns. It also has `client_guessed`, the reason for a guess which host is the client; empty if it is
    not a guess.

    Args:
        connection: the row, with at least the columns of `ASKED`.
        origin_ns: time of the capture's first packet.
        findings: the ids of the connection's findings.
    """
    main = main_side(connection)
    return {
        "conn": connection["conn"],
        "client": endpoint(connection, "client"),
        "client_guessed": _GUESSES.get(connection["client_known_by"], ""),
        "server": endpoint(connection, "server"),
        "start_ns": difference(connection["first_ts_ns"], origin_ns),
        "duration_ns": difference(connection["last_ts_ns"], connection["first_ts_ns"]),
        "client_bytes": connection["client_unique_bytes"],
        "server_bytes": connection["server_unique_bytes"],
        "resent": connection["client_retransmitted_segments"] + connection["server_retransmitted_segments"],
        "initial_rtt_ns": _measured(connection, initial_rtt_ns(connection)),
        "rtt_min_ns": _measured(connection, path_rtt_ns(connection)),
        "throughput_bps": _throughput_bps(connection, main),
        "closed_by": "refused" if behaviour.refused(connection.__getitem__) else _ENDS[connection["closed_by"]],
        "findings": ", ".join(findings),
    }


def initial_rtt_ns(connection: Mapping[str, Any]) -> int | None:
    """Return the RTT of the handshake, as Wireshark's `tcp.analysis.initial_rtt`; None if one of the three segments is missing."""
    halves = connection["syn_to_synack_ns"], connection["synack_to_ack_ns"]
    return None if halves[0] is None or halves[1] is None else halves[0] + halves[1]


def path_rtt_ns(connection: Mapping[str, Any]) -> int | None:
    """Return the smallest RTT between both hosts: the sum of the smallest RTTs from the capture point to each host.

    The result is None if the capture shows only one of these RTTs.
    """
    halves = [_half_ns(connection, side, other) for side, other in (("client", "server"), ("server", "client"))]
    return None if halves[0] is None or halves[1] is None else halves[0] + halves[1]


def median_rtt_ns(connection: Mapping[str, Any]) -> int | None:
    """Return the median RTT between both hosts, from the direction with more data; None if only one half of the path is visible."""
    side, other = ("client", "server") if main_side(connection) == "client" else ("server", "client")
    median, rest = connection[f"{side}_rtt_p50_ns"], _half_ns(connection, other, side)
    return None if median is None or rest is None else _measured(connection, median + rest)


def retransmitted(connection: Mapping[str, Any], side: str) -> str:
    """Return `retransmitted 1.1% (3 of 281 segments, 1 spurious, at least 2 without their original in the capture)`, or empty text.

    The percentage is a share of all segments of `side` with data, SYN or FIN. Each retransmit of a segment counts, so the percentage does
    not show how many segments were lost. An original that is not in the capture was lost before the capture point, or not captured.
    """
    resent, spurious = connection[f"{side}_retransmitted_segments"], connection[f"{side}_spurious_retransmissions"]
    if not resent:
        return ""
    sent = sum(connection[f"{side}_{kind}_segments"] for kind in ("data", "syn", "fin"))
    words = [f"{resent:,} of {numbers.counted(sent, 'segment')}"]
    if spurious:
        words.append(f"{spurious:,} spurious")
    if unseen := loss_before_capture.without_original(connection, side):
        words.append(f"at least {unseen:,} without {'its' if unseen == 1 else 'their'} original in the capture")
    elif loss_before_capture.place(connection, side) == loss_before_capture.AFTER:
        words.append(f"{'its original' if resent == 1 else 'all originals'} in the capture")
    if resent > (spurious or 0) and any(connection[f"{end}_sack_permitted"] is False for end in SIDES):
        words.append("no SACK")
    return f"retransmitted {numbers.share(resent / sent)} ({', '.join(words)})"


def traffic(connection: Mapping[str, Any], side: str) -> str:
    """Return the traffic of a direction: `281 data segments, retransmitted 1.1% (3 of 283 segments), 12 out of order; 10.2 Mb/s`."""
    words = [numbers.counted(connection[f"{side}_data_segments"], "data segment")]
    words.append(retransmitted(connection, side) or "nothing retransmitted")
    for name, label in (("out_of_order_segments", "out of order"), ("zero_window_probes", "zero-window probes")):
        if connection[f"{side}_{name}"]:
            words.append(f"{connection[f'{side}_{name}']:,} {label}")
    rate = _throughput_bps(connection, side)
    return ", ".join(words) + ("" if rate is None else f"; {numbers.rate(rate)}")


def direction_summary(connection: Mapping[str, Any], side: str) -> str:
    """Return figures of the direction from `side`: `RTT 20.3 ms, retransmitted 1.1% (3 of 283 segments), 12.9 Mb/s`."""
    if not connection[f"{side}_payload_bytes"]:
        return ""
    smallest_ns = path_rtt_ns(connection)
    rtt_ns = _measured(connection, initial_rtt_ns(connection) if smallest_ns is None else smallest_ns)
    words = [] if rtt_ns is None else [f"RTT {numbers.duration(rtt_ns)}"]
    if again := retransmitted(connection, side):
        words.append(again)
    sent_ns = difference(connection[f"{side}_last_data_ts_ns"], connection[f"{side}_first_data_ts_ns"])
    # Data that was sent within less than an RTT is one burst, and the rate of a burst is not the rate of the transfer.
    rate = _throughput_bps(connection, side) if sent_ns is not None and sent_ns >= (rtt_ns or 0) else None
    return ", ".join([*words, *([] if rate is None else [numbers.rate(rate)])])


def _half_ns(connection: Mapping[str, Any], side: str, other: str) -> int | None:
    """Return the smallest RTT from the capture point to `other`, as the ACKs and other reactions of `other` show it.

    A reaction that a timer delayed, such as a window probe, does not show the RTT of the path.
    """
    acked_ns, answered_ns = connection[f"{side}_rtt_min_ns"], connection[f"{other}_reaction_min_ns"]
    known = acked_ns, None if answered_ns is None or answered_ns > LONGEST_PATH_NS else answered_ns
    return min((ns for ns in known if ns is not None), default=None)


def _measured(connection: Mapping[str, Any], rtt_ns: int | None) -> int | None:
    """Return the RTT; None if the RTT is shorter than a tick of the capture's clock."""
    return None if rtt_ns is None or rtt_ns < (connection["clock_tick_ns"] or 0) else rtt_ns


def cells(rows: Iterable[Mapping[str, Any]], columns: Sequence[Column], drawn: Collection[int]) -> list[list[Any]]:
    """Return the rows in the form in which the page's script inserts them into the table.

    Returns:
        Per row: the texts of its cells, their exact values ("" if the text is exact), whether the connection has figures, and why its
        client is a guess.
    """
    formatted = [([numbers.formatted(row[column["key"]], column["kind"]) for column in columns], row) for row in rows]
    return [[[text for text, _ in of], [exact for _, exact in of], row["conn"] in drawn, row["client_guessed"]] for of, row in formatted]


def main_side(connection: Mapping[str, Any]) -> str:
    """Return the host that sent more data: `client` or `server`."""
    return "client" if connection["client_payload_bytes"] >= connection["server_payload_bytes"] else "server"


def difference(later_ns: int | None, earlier_ns: int | None) -> int | None:
    """Return `later_ns - earlier_ns`; None if one of these times is unknown."""
    return None if later_ns is None or earlier_ns is None else later_ns - earlier_ns


def _column(key: str, label: str, kind: str, tooltip: str) -> Column:
    return {"key": key, "label": label, "kind": kind, "tooltip": tooltip}


def _throughput_bps(connection: Mapping[str, Any], side: str) -> float | None:
    """Return the throughput as in the JSON: new payload divided by the time from the first data segment to the last."""
    sent_ns = difference(connection[f"{side}_last_data_ts_ns"], connection[f"{side}_first_data_ts_ns"])
    return connection[f"{side}_unique_bytes"] * 8 * numbers.NS_PER_S / sent_ns if sent_ns and sent_ns > 0 else None
