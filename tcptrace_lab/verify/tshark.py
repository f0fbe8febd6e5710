"""Reads the TCP segments of a capture with tshark, as Polars frames with the engine's column names, in batches.

Each frame with a TCP header is one row. TCP headers in quotations of ICMP errors do not count. In a tunnel, a frame has several IP layers.
Then the IP columns describe the layer directly above the TCP header, according to `frame.protocols`. If a frame has several TCP headers,
the row describes the first header, and `tcp_headers` is their number.

Wireshark's display filter reference defines tshark's fields (https://www.wireshark.org/docs/dfref/t/tcp.html).
"""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import polars as pl

from tcptrace_lab.verify import analyzers

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PREFERENCES = (
    "tcp.desegment_tcp_streams:FALSE",  # no reassembly, so that tshark reports each segment in its own frame
    "tcp.check_checksum:TRUE",  # used only for the report on checksums (`checksums`)
    "ip.check_checksum:FALSE",
    "tcp.analyze_sequence_numbers:TRUE",
    "tcp.relative_sequence_numbers:TRUE",
)

SCALE_UNKNOWN = -1
"""Value of tcp.window_size_scalefactor if the handshake was not captured."""

SCALE_UNUSED = -2
"""Value of tcp.window_size_scalefactor if one host did not offer window scaling in the handshake."""

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
"""Flags `tcp.analysis.*` that are read."""

TCP_FIELDS = {
    "tcp.stream": "conn",
    "tcp.srcport": "source_port",
    "tcp.dstport": "target_port",
    "tcp.seq": "seq",
    "tcp.ack": "ack",
    "tcp.seq_raw": "raw_seq",
    "tcp.ack_raw": "raw_ack",
    "tcp.len": "payload_bytes",
    "tcp.flags": "flags",
    "tcp.window_size": "window_bytes",
    "tcp.window_size_value": "window_field",
    "tcp.window_size_scalefactor": "scale",
    "tcp.completeness": "completeness",
    "tcp.checksum.status": "checksum",
}
"""Columns for the fields that every complete TCP header has."""

OPTION_FIELDS = {
    "tcp.options.mss_val": "mss_bytes",
    "tcp.options.wscale.shift": "window_shift",
    "tcp.options.timestamp.tsval": "tsval",
    "tcp.options.timestamp.tsecr": "tsecr",
}
"""Columns for the fields of TCP options."""

COUNT_FIELDS = {
    "tcp.analysis.duplicate_ack_num": "duplicate_ack_num",
    "tcp.analysis.duplicate_ack_frame": "duplicate_ack_frame",
    "tcp.analysis.acks_frame": "acks_frame",
    "tcp.analysis.bytes_in_flight": "bytes_in_flight",
    "tcp.analysis.rto_frame": "rto_frame",
}
"""Columns for the numeric fields of the TCP analysis."""

SPAN_FIELDS = {
    "tcp.analysis.ack_rtt": "ack_rtt_ns",
    "tcp.analysis.initial_rtt": "initial_rtt_ns",
    "tcp.analysis.rto": "rto_ns",
}
"""Columns, in ns, for the time fields of the TCP analysis."""

IP_FIELDS = {
    "ip": {"ip.src": "source", "ip.dst": "target", "ip.id": "ip_id", "ip.ttl": "ttl", "ip.dsfield.ecn": "ecn"},
    "ipv6": {"ipv6.src": "source", "ipv6.dst": "target", "ipv6.hlim": "ttl", "ipv6.tclass.ecn": "ecn"},
}
"""Columns for the fields of each IP layer."""

SACK_FIELDS = ("tcp.options.sack_le", "tcp.options.sack_re")
TEXTS = ("source", "target")
QUOTING_LAYERS = ("icmp", "icmpv6")
"""Layers of error messages. A TCP or UDP header behind such a layer is a quotation, not a segment or datagram."""

FIELDS = (
    "frame.number",
    "frame.time_epoch",
    "frame.protocols",
    "frame.len",
    "frame.cap_len",
    *TCP_FIELDS,
    *OPTION_FIELDS,
    *COUNT_FIELDS,
    *SPAN_FIELDS,
    *SACK_FIELDS,
    *(name for names in IP_FIELDS.values() for name in names),
    *(f"tcp.analysis.{name}" for name in ANALYSIS),
)

SCHEMA: dict[str, Any] = {
    "frame": pl.UInt64,
    "ts_ns": pl.Int64,
    "protocols": pl.String,
    "wire_bytes": pl.Int64,
    "captured_bytes": pl.Int64,
    "tcp_headers": pl.Int64,
    **dict.fromkeys((*TCP_FIELDS.values(), *OPTION_FIELDS.values(), *COUNT_FIELDS.values(), *SPAN_FIELDS.values()), pl.Int64),
    **dict.fromkeys(("ip_id", "ttl", "ecn"), pl.Int64),
    "source": pl.String,
    "target": pl.String,
    "sack_blocks": pl.List(pl.Int64),
    "analysis": pl.List(pl.String),
}

BATCH_LINES = 8_192
"""Number of frames that are parsed together."""

LINES_OF_WORDS = 1_000
"""Maximum number of frames with truncated TCP headers whose numbers are stored."""


@dataclass(slots=True)
class Tally:
    """Counts of the frames that tshark has read. The counts are updated while the rows are read.

    Attributes:
        packets: number of frames of any protocol.
        cut_headers: the first frames whose TCP header is truncated before its flags, at most `LINES_OF_WORDS`.
    """

    packets: int = 0
    cut_headers: list[int] = field(default_factory=list)


def segments(path: str, tally: Tally | None = None) -> Iterator[pl.DataFrame]:
    """Yield the segments of the capture `path` as tshark reports them, in capture order.

    The Polars frames have the columns of `SCHEMA`.

    Raises:
        MissingTool: tshark is not installed.
        Refused: tshark rejects the file. For a truncated file, Refused is raised after the rows that tshark could read.
    """
    counted = Tally() if tally is None else tally
    for block in _blocks(fields(path, FIELDS)):
        text = pl.read_csv(io.BytesIO(block), separator="\t", has_header=False, quote_char=None, schema=dict.fromkeys(FIELDS, pl.String))
        counted.packets += text.height
        rows = _rows(text)
        cut = rows.filter(pl.col("flags").is_null())["frame"].to_list()
        counted.cut_headers += cut[: LINES_OF_WORDS - len(counted.cut_headers)]
        yield rows.filter(pl.col("flags").is_not_null())


def fields(path: str, names: Sequence[str]) -> Iterator[str]:
    """Yield the fields `names` of each frame, as tshark prints them.

    A line describes one frame. Tabs separate fields, and commas separate values.
    """
    options = ["-n", "-r", analyzers.argument(path), "-T", "fields", "-E", "separator=/t", "-E", "occurrence=a", "-E", "aggregator=,"]
    for preference in PREFERENCES:
        options += ["-o", preference]
    for name in names:
        options += ["-e", name]
    return analyzers.lines("tshark", options)


def _blocks(lines: Iterator[str]) -> Iterator[bytes]:
    """Join lines to blocks of `BATCH_LINES`. If Refused is raised, the lines before this error are yielded first."""
    block: list[str] = []
    refusal: analyzers.Refused | None = None
    try:
        for line in lines:
            block.append(line)
            if len(block) == BATCH_LINES:
                yield "\n".join(block).encode()
                block.clear()
    except analyzers.Refused as refused:
        refusal = refused
    if block:
        yield "\n".join(block).encode()
    if refusal is not None:
        raise refusal


def _rows(text: pl.DataFrame) -> pl.DataFrame:
    """Convert printed fields to the columns of `SCHEMA`. Frames without a segment of their own are left out."""
    above = text.with_columns(above=pl.col("frame.protocols").str.extract(r"^((?:[^:]+:)*?)tcp(?::|$)"))
    layers = pl.col("above").str.split(":")
    quoted = pl.any_horizontal(layers.list.contains(layer) for layer in QUOTING_LAYERS)
    own = above.filter(pl.col("above").is_not_null() & ~quoted & pl.col("tcp.srcport").is_not_null())
    numbers = {**TCP_FIELDS, **OPTION_FIELDS, **COUNT_FIELDS}
    first = pl.lit(0)
    return own.select(
        pl.col("frame.number").cast(pl.UInt64).alias("frame"),
        nanoseconds("frame.time_epoch").alias("ts_ns"),
        pl.col("frame.protocols").alias("protocols"),
        pl.col("frame.len").cast(pl.Int64).alias("wire_bytes"),
        pl.col("frame.cap_len").cast(pl.Int64).alias("captured_bytes"),
        pl.col("tcp.srcport").str.split(",").list.len().cast(pl.Int64).alias("tcp_headers"),
        *(number(name, first).alias(column) for name, column in numbers.items()),
        *(nanoseconds(name).alias(column) for name, column in SPAN_FIELDS.items()),
        *_ip_columns(layers),
        _sack_blocks(),
        pl.concat_list(
            pl.when(pl.col(f"tcp.analysis.{name}").is_not_null()).then(pl.lit([name])).otherwise(pl.lit([], pl.List(pl.String)))
            for name in ANALYSIS
        ).alias("analysis"),
    ).select(pl.col(column).cast(dtype) for column, dtype in SCHEMA.items())


def _ip_columns(layers: pl.Expr) -> Iterator[pl.Expr]:
    """Yield the columns of the IP layer directly above the segment. `layers` are all layers above the segment."""
    innermost = pl.col("above").str.extract(r"^(?:.*:)?(ip|ipv6):")
    by_column: dict[str, dict[str, str]] = {}
    for layer, names in IP_FIELDS.items():
        for name, column in names.items():
            by_column.setdefault(column, {})[layer] = name
    for column, names in by_column.items():
        value = pl.lit(None)
        for layer, name in names.items():
            ordinal = layers.list.count_matches(layer).cast(pl.Int64) - 1
            found = _text(name, ordinal) if column in TEXTS else number(name, ordinal)
            value = pl.when(innermost == layer).then(found).otherwise(value)
        yield value.alias(column)


def _sack_blocks() -> pl.Expr:
    """Return the edges of SACK blocks as `left, right, left, right, …`; null without blocks."""
    left, right = (pl.col(name).str.split(",").list.eval(pl.element().cast(pl.Int64)) for name in SACK_FIELDS)
    width = 4  # maximum number of blocks in the options of one header (RFC 2018, 3)
    edges = [edges.list.get(index, null_on_oob=True) for index in range(width) for edges in (left, right)]
    blocks = pl.concat_list(edges).list.drop_nulls()
    return pl.when(blocks.list.len() > 0).then(blocks).alias("sack_blocks")


def _text(name: str, ordinal: pl.Expr) -> pl.Expr:
    """Return the `ordinal`th value of a field as text; null if the value is missing."""
    value = pl.col(name).str.split(",").list.get(ordinal.clip(0), null_on_oob=True)
    return pl.when(value != "").then(value)


def number(name: str, ordinal: pl.Expr) -> pl.Expr:
    """Return the `ordinal`th value of a field as a number, from decimal or hexadecimal text; null if the value is missing."""
    text = _text(name, ordinal)
    hexadecimal = text.str.strip_prefix("0x").str.to_integer(base=16, strict=False)
    return pl.when(text.str.starts_with("0x")).then(hexadecimal).otherwise(text.cast(pl.Int64, strict=False))


def nanoseconds(name: str) -> pl.Expr:
    """Return a time in ns; null if the time is missing or needs more than 64 bits.

    tshark prints the nanoseconds after the point as an integer. If the file contains more than 999,999,999 ns there, the integer has more
    than nine digits.
    """
    text = pl.col(name).str.split(",").list.first()
    sign = pl.when(text.str.starts_with("-")).then(-1).otherwise(1)
    whole = text.str.extract(r"^-?(\d+)").cast(pl.Int128, strict=False)
    part = text.str.extract(r"\.(\d+)").cast(pl.Int128, strict=False).fill_null(0)
    return (sign * (whole * 10**9 + part)).cast(pl.Int64, strict=False)
