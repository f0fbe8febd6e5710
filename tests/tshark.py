"""Wireshark's tshark as the second opinion: a capture → a Polars frame of its TCP segments, in the engine's terms.

One row per TCP header that tshark shows outside of ICMP errors. Where a frame has several layers of the same protocol (tunnels), the
IP columns are those of the layer next above the TCP header, found by `frame.protocols`. A frame with several TCP headers gives one row,
the first header's, and says so in `tcp_headers`.

What tshark's numbers mean is told by its display filter reference (https://www.wireshark.org/docs/dfref/t/tcp.html).
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

PREFERENCES = (
    "tcp.desegment_tcp_streams:FALSE",  # a segment stays in its own frame
    "tcp.check_checksum:FALSE",  # offloaded checksums are wrong in the capture and right on the wire
    "ip.check_checksum:FALSE",
    "tcp.analyze_sequence_numbers:TRUE",
    "tcp.relative_sequence_numbers:TRUE",
)

SCALE_UNKNOWN = -1
"""tcp.window_size_scalefactor: the handshake was not seen."""

SCALE_UNUSED = -2
"""tcp.window_size_scalefactor: the handshake was seen and one side did not offer scaling."""

ANALYSIS = (
    "retransmission",
    "fast_retransmission",
    "spurious_retransmission",
    "out_of_order",
    "lost_segment",
    "ack_lost_segment",
    "duplicate_ack",
    "keep_alive",
    "keep_alive_ack",
    "window_update",
    "window_full",
    "zero_window",
    "zero_window_probe",
    "zero_window_probe_ack",
    "reused_ports",
)
"""The flags `tcp.analysis.*` that are read."""

TCP_FIELDS = {
    "tcp.stream": "conn",
    "tcp.srcport": "source_port",
    "tcp.dstport": "target_port",
    "tcp.seq": "seq",
    "tcp.ack": "ack",
    "tcp.len": "payload_bytes",
    "tcp.flags": "flags",
    "tcp.window_size": "window_bytes",
    "tcp.window_size_value": "window_field",
    "tcp.window_size_scalefactor": "scale",
}
"""Fields that each complete TCP header has → columns."""

OPTION_FIELDS = {
    "tcp.options.mss_val": "mss_bytes",
    "tcp.options.wscale.shift": "window_shift",
    "tcp.options.timestamp.tsval": "tsval",
    "tcp.options.timestamp.tsecr": "tsecr",
}
"""Fields of options → columns."""

IP_FIELDS = {
    "ip": {"ip.src": "source", "ip.dst": "target", "ip.id": "ip_id", "ip.ttl": "ttl", "ip.dsfield.ecn": "ecn"},
    "ipv6": {"ipv6.src": "source", "ipv6.dst": "target", "ipv6.hlim": "ttl", "ipv6.tclass.ecn": "ecn"},
}
"""Layer → its fields → columns."""

INT64_MAX = (1 << 63) - 1
SACK_FIELDS = ("tcp.options.sack_le", "tcp.options.sack_re")
TEXTS = ("source", "target", "protocols")
QUOTING_LAYERS = {"icmp", "icmpv6"}
"""Layers behind which a TCP or UDP header is the copy in an error report, not a segment or datagram."""

_FIELDS = (
    "frame.number",
    "frame.time_epoch",
    "frame.protocols",
    *TCP_FIELDS,
    *OPTION_FIELDS,
    *SACK_FIELDS,
    *(name for names in IP_FIELDS.values() for name in names),
    *(f"tcp.analysis.{name}" for name in ANALYSIS),
)

_SCHEMA: dict[str, Any] = {
    "frame": pl.UInt64,
    "ts_ns": pl.Int64,
    "protocols": pl.String,
    "tcp_headers": pl.Int64,
    **dict.fromkeys((*TCP_FIELDS.values(), *OPTION_FIELDS.values(), "ip_id", "ttl", "ecn"), pl.Int64),
    "source": pl.String,
    "target": pl.String,
    "sack_blocks": pl.List(pl.Int64),
    "analysis": pl.List(pl.String),
}


@dataclass(frozen=True, slots=True)
class Opinion:
    """What tshark says of one capture.

    Attributes:
        packets: frames, TCP or not.
        segments: one row per TCP segment with a complete fixed header.
        cut_headers: frames whose TCP header the capture cut before its flags.
    """

    packets: int
    segments: pl.DataFrame
    cut_headers: tuple[int, ...]

    @property
    def connections(self) -> int:
        """Number of distinct streams, as Wireshark counts them."""
        highest = self.segments["conn"].max()
        return 0 if highest is None else int(str(highest)) + 1


def needed() -> str:
    """The path of tshark. Without it the test is left out on a developer's machine and fails in CI (`CI=true`)."""
    path = shutil.which("tshark")
    if path is None:
        message = "tshark is not installed (Debian: apt-get install tshark)"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    return path


@functools.cache
def opinion(path: Path) -> Opinion:
    """What tshark says of the capture `path`; asked once in a session.

    Raises:
        subprocess.CalledProcessError: tshark refuses the file. A cut file is no refusal: what was read is returned.
    """
    rows: list[dict[str, Any]] = []
    cut_headers: list[int] = []
    packets = 0
    for fields in frames(path, _FIELDS):
        packets += 1
        row = _row(fields)
        if row is None:
            continue
        if row["flags"] is None:
            cut_headers.append(row["frame"])
        else:
            rows.append(row)
    return Opinion(packets, pl.DataFrame(rows, schema=_SCHEMA, orient="row"), tuple(cut_headers))


def frames(path: Path, names: Sequence[str]) -> Iterator[Mapping[str, str]]:
    """The fields `names` of each frame as tshark prints them: several values with commas between them."""
    command = [needed(), "-n", "-r", str(path), "-T", "fields", "-E", "separator=/t", "-E", "occurrence=a", "-E", "aggregator=,"]
    for preference in PREFERENCES:
        command += ["-o", preference]
    for name in names:
        command += ["-e", name]
    with tempfile.TemporaryDirectory() as no_settings:
        environment = os.environ | {"WIRESHARK_CONFIG_DIR": no_settings}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode and not done.stdout:
        raise subprocess.CalledProcessError(done.returncode, command, done.stdout, done.stderr)
    for line in done.stdout.splitlines():
        yield dict(zip(names, line.split("\t"), strict=True))


def _row(fields: Mapping[str, str]) -> dict[str, Any] | None:
    """The segment of one frame; None where the frame has none of its own."""
    layers = fields["frame.protocols"].split(":")
    position = _segment_position(layers)
    if position is None or not fields["tcp.srcport"]:
        return None
    ordinal = layers[:position].count("tcp")
    headers = len(fields["tcp.srcport"].split(","))
    row: dict[str, Any] = {
        "frame": int(fields["frame.number"]),
        "ts_ns": time_ns(fields["frame.time_epoch"]),
        "protocols": fields["frame.protocols"],
        "tcp_headers": headers,
        "analysis": [name for name in ANALYSIS if fields[f"tcp.analysis.{name}"]],
    }
    for name, column in TCP_FIELDS.items():
        row[column] = _number(fields[name], ordinal)
    for name, column in OPTION_FIELDS.items():
        row[column] = _number(fields[name], 0)
    edges = [[int(edge) for edge in fields[name].split(",") if edge] for name in SACK_FIELDS]
    row["sack_blocks"] = [edge for block in zip(*edges, strict=True) for edge in block] or None
    return row | _ip_columns(fields, layers[:position])


def _segment_position(layers: Sequence[str]) -> int | None:
    """Where in `frame.protocols` the first TCP header stands that is not quoted by an error report."""
    for position, layer in enumerate(layers):
        if layer in QUOTING_LAYERS:
            return None
        if layer == "tcp":
            return position
    return None


def _ip_columns(fields: Mapping[str, str], above: Sequence[str]) -> dict[str, Any]:
    """The columns of the IP layer next above the segment, of `above` the layers before it."""
    columns: dict[str, Any] = {"ip_id": None, "source": None, "target": None, "ttl": None, "ecn": None}
    innermost = next((layer for layer in reversed(above) if layer in IP_FIELDS), None)
    if innermost is None:
        return columns
    ordinal = above.count(innermost) - 1
    for name, column in IP_FIELDS[innermost].items():
        columns[column] = _text(fields[name], ordinal) if column in TEXTS else _number(fields[name], ordinal)
    return columns


def _text(values: str, ordinal: int) -> str | None:
    """The `ordinal`th of several values of a field; None where it is missing."""
    parts = values.split(",")
    return parts[ordinal] or None if ordinal < len(parts) else None


def _number(values: str, ordinal: int) -> int | None:
    """The same as a number, decimal or hexadecimal."""
    text = _text(values, ordinal)
    return None if text is None else int(text, 0)


def time_ns(text: str) -> int | None:
    """`frame.time_epoch` as nanoseconds; None without a time, or with one that 64 bits cannot hold.

    tshark prints whole nanoseconds after the point, and more than 999,999,999 of them where a file has more.
    """
    if not text:
        return None
    seconds, _, nanoseconds = text.partition(".")
    sign = -1 if seconds.startswith("-") else 1
    total = sign * (abs(int(seconds)) * 10**9 + int(nanoseconds or 0))
    return total if abs(total) <= INT64_MAX else None
