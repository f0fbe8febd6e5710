"""Every column of every table: its type, unit, one-line meaning and limits.

One declaration feeds the documentation, the tooltips, the axis labels and the exports. Nothing else in the package
repeats what a column means. Conventions, for all tables:

- times are integer nanoseconds (`*_ns`), sizes are bytes (`*_bytes`), both Int64 so that sums and differences of them
  neither wrap nor overflow;
- unknown is null, never 0;
- stream offsets (`seq`, `ack`, `sack_blocks`) are relative and unwrapped past 4 GiB: SYN = 0 and the first byte = 1, as
  in Wireshark. They are signed: in a capture that starts in mid-stream, bytes from before its first segment have
  offsets below 1, where Wireshark shows numbers near 2^32;
- `frame` is 1-based and equals Wireshark's frame number.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import polars as pl


class Unit(StrEnum):
    """What a number counts."""

    NONE = ""
    NS = "ns"
    BYTES = "bytes"
    SEGMENTS = "segments"
    DATAGRAMS = "datagrams"
    BITS_PER_SECOND = "b/s"
    FRAME = "frame number"
    OFFSET = "stream offset, bytes"


@dataclass(frozen=True, slots=True)
class Column:
    """One column of one table.

    Attributes:
        name: the column's name.
        dtype: name of a Polars type, `List(Int64)`, or `Enum` with `values`.
        unit: what the numbers count.
        meaning: one line, for people.
        limits: what the column cannot tell; empty where it has no limits worth a line.
        values: the categories of an `Enum`, in the order of their codes.
    """

    name: str
    dtype: str
    unit: Unit
    meaning: str
    limits: str = ""
    values: tuple[str, ...] = ()

    def polars_type(self) -> pl.DataType:
        """The Polars type of this column."""
        import polars as pl  # noqa: PLC0415  (Polars takes a tenth of a second to import; `--help` needs only the words)

        if self.dtype == "Enum":
            return pl.Enum(self.values)
        if self.dtype == "List(Int64)":
            return pl.List(pl.Int64)
        dtype: pl.DataType = getattr(pl, self.dtype)()
        return dtype


@dataclass(frozen=True, slots=True)
class Table:
    """A table: its name, what one row is, and its columns in order."""

    name: str
    row: str
    columns: tuple[Column, ...]

    def __iter__(self) -> Iterator[Column]:
        """The columns, in order."""
        return iter(self.columns)

    def __getitem__(self, name: str) -> Column:
        """The column called `name`; KeyError if there is none."""
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(name)

    @property
    def names(self) -> tuple[str, ...]:
        """The column names, in order."""
        return tuple(column.name for column in self.columns)

    def polars_schema(self) -> dict[str, pl.DataType]:
        """Column name → Polars type, in order."""
        return {column.name: column.polars_type() for column in self.columns}


KINDS = (
    "new",
    "ack",
    "retransmit",
    "fast_retransmit",
    "rto_retransmit",
    "tail_probe",
    "spurious",
    "out_of_order",
    "capture_duplicate",
    "keepalive",
    "keepalive_ack",
    "zero_window_probe",
    "window_update",
    "duplicate_ack",
    "reset",
    "link_damaged",
    "recovery_retransmit",
    "syn_retransmit",
    "network_duplicate",
    "zero_window_probe_ack",
    "partial_ack",
)
"""What a segment is. Codes are positions; the engine's `connection::Kind` has the same order (a test holds them together).

- `new`: bytes, a SYN or a FIN seen for the first time; `ack`: a pure ACK that is nothing more special.
- Sent again: `fast_retransmit` (the first after duplicate ACKs or SACK blocks: RFC 5681, 6675, 5827, 8985), `recovery_retransmit` (the
  rest of that recovery: RFC 6582, 6675), `rto_retransmit` (timer: RFC 6298), `tail_probe` (RFC 8985, 7), `syn_retransmit` (SYN or
  SYN-ACK), `spurious` (the first copy had arrived; `resent_by` tells why it was sent), `retransmit` (the capture does not tell why).
- Not sent again, but there behind later bytes or twice: `out_of_order` (overtaken on the path), `network_duplicate`, `capture_duplicate`
  (the capture holds the packet twice; counts nowhere but in `capture_duplicates`).
- `keepalive`, `zero_window_probe` and their answers `keepalive_ack`, `zero_window_probe_ack` (RFC 9293, 3.8.4 and 3.8.6.1).
- ACKs: `duplicate_ack` (RFC 5681, 2), `partial_ack` (RFC 6582), `window_update`.
- `reset`; `link_damaged` (thrown away by the receiver's link).
"""

EVIDENCE = (
    "sequence",
    "syn",
    "duplicate_acks",
    "sack",
    "dsack",
    "reneging",
    "acknowledged",
    "partial_ack",
    "timestamp",
    "ip_id",
    "silence",
    "probe_time",
    "rtt",
    "window",
    "time",
    "reset",
    "path",
    "link",
    "none",
)
"""What a kind is known by. Codes are positions; the engine's `connection::Evidence` has the same order.

`sequence` (the place in the stream and what was sent and acknowledged before), `syn` (the flags), `duplicate_acks`, `sack`, `dsack` (RFC 2883),
`reneging` (bytes that SACK blocks reported were given up: RFC 2018, 8), `acknowledged` (an earlier ACK covers it), `partial_ack` (RFC 6582),
`timestamp` (TCP timestamps; RFC 3522), `ip_id`, `silence` (as long as a retransmission timeout), `probe_time` (as long as a probe timeout),
`rtt` (sooner than a round trip allows), `window`, `time` (nothing but the gap between two segments), `reset` (a RST came before), `path`
(the same packet with another TTL or other layers), `link` (the link says so).
"""

CONFIDENCES = ("proved", "consistent", "possible")
"""How sure a verdict is: it follows from the protocol's rules and what was captured; all fits, and what else would fit is rare; other
explanations fit as well. The engine's `connection::Confidence` has the same order."""

RESENT_BY = ("fast", "recovery", "timeout", "tail_probe", "handshake", "unknown")
"""What made the sender send bytes again. The engine's `connection::ResentBy` has the same order."""

RESET_KINDS = ("refused", "exact", "in_window", "out_of_window", "after_close", "unknown")
"""What a RST is to the side that it is sent to (RFC 9293, 3.10.7; RFC 5961, 3.2): the answer to its SYN; with the number that it expects;
only inside its window (it answers with a challenge ACK); outside (ignored: perhaps forged); after the end of the connection; or the
capture does not tell. The engine's `connection::ResetKind` has the same order."""

TFO = ("cookie_request", "cookie_grant", "cookie", "data", "data_accepted", "data_refused")
"""Steps of TCP Fast Open (RFC 7413): a SYN that asks for a cookie, the SYN-ACK that gives one, a SYN with a cookie and no data, a SYN with
data, and the SYN-ACK that acknowledges them or the SYN alone. The engine's `connection::Tfo` has the same order."""

ECN_SIGNALS = ("setup", "accepted", "echo", "reduced", "echo_reduced", "accurate")
"""What the ECN flags say (RFC 3168, 6.1): a SYN that offers ECN, the SYN-ACK that accepts it, ECE (a mark was received), CWR (the sender has
slowed down), both; or a counter of accurate ECN (RFC 9768). The engine's `connection::EcnSignal` has the same order."""

RELEASED_BY = ("ack", "write", "timer", "burst", "unknown")
"""What let a segment leave. Codes are positions; the engine's `connection::ReleasedBy` has the same order."""

RESENT = ("retransmit", "fast_retransmit", "rto_retransmit", "tail_probe", "spurious", "recovery_retransmit", "syn_retransmit")
"""The kinds that carry bytes which had been sent before."""

CLIENT_KNOWN_BY = ("syn", "syn_ack", "data", "port", "first")
"""How the client was told from the server: its SYN, the server's SYN-ACK, a request or answer in the first data, the higher port,
or only who was seen first. The last three are guesses."""

CLOSED_BY = ("fin", "reset", "reuse", "end", "room", "idle")
"""What ended a connection: FINs of both sides, a RST, its ports used again, the end of the capture, the engine's need for room
(more than 131,072 connections at a time), or a silence of more than 2 hours and 4 minutes (where there are more than 16,384 at a time)."""

BOUND_BY = ("send", "receive", "line")
"""What bounds the rate of a direction: λ, μ, or what framing leaves of the line."""

LINES = ("atm", "ethernet")
"""Kinds of line whose cost is known. Codes are positions; the engine's `connection::Line` has the same order."""

LOSS_KNOWN_BY = ("ip_id",)
"""What tells how many datagrams are missing. UDP itself numbers nothing."""


def _table(name: str, row: str, columns: Iterable[Column]) -> Table:
    return Table(name, row, tuple(columns))


SEGMENTS = _table(
    "segments",
    "one TCP segment as captured",
    [
        Column("frame", "UInt64", Unit.FRAME, "Number of the frame that carried the segment, as in Wireshark"),
        Column("ts_ns", "Int64", Unit.NS, "Capture time since 1970-01-01 UTC", "null where the capture format stores no time"),
        Column("conn", "UInt32", Unit.NONE, "Connection, numbered from 0 by first appearance (Wireshark's tcp.stream)"),
        Column("from_client", "Boolean", Unit.NONE, "True if the client of the connection sent it"),
        Column(
            "seq",
            "Int64",
            Unit.OFFSET,
            "Offset of the first byte; SYN = 0, first data byte = 1",
            "relative to the first segment seen where the SYN was not captured",
        ),
        Column(
            "ack",
            "Int64",
            Unit.OFFSET,
            "Next offset that the sender of this segment expects from the other side",
            "null without the ACK flag",
        ),
        Column("payload_bytes", "Int64", Unit.BYTES, "Bytes of data in the segment, by the lengths in its headers"),
        Column("captured_payload_bytes", "Int64", Unit.BYTES, "Bytes of data that the capture holds (snaplen may cut them)"),
        Column(
            "flags", "UInt16", Unit.NONE, "TCP flags as in the header: FIN 1, SYN 2, RST 4, PSH 8, ACK 16, URG 32, ECE 64, CWR 128, AE 256"
        ),
        Column(
            "window_bytes", "Int64", Unit.BYTES, "Window that this segment advertises, scaled", "null while the window scale is unknown, unless it is 0"
        ),
        Column(
            "sack_blocks",
            "List(Int64)",
            Unit.OFFSET,
            "SACK blocks as left, right, left, right, …",
            "null without the option; offsets of the other side's stream",
        ),
        Column("tsval", "UInt32", Unit.NONE, "Timestamp value of the TCP timestamps option", "null without the option"),
        Column("tsecr", "UInt32", Unit.NONE, "Timestamp echo reply of the TCP timestamps option", "null without the option"),
        Column("ip_id", "UInt16", Unit.NONE, "IPv4 identification", "null for IPv6"),
        Column("ttl", "UInt8", Unit.NONE, "IPv4 time to live or IPv6 hop limit"),
        Column("ect", "UInt8", Unit.NONE, "ECN field of the IP header: 0 Not-ECT, 1 ECT(1), 2 ECT(0), 3 CE"),
        Column("ce", "Boolean", Unit.NONE, "True if the path marked the packet: congestion experienced"),
        Column("kind", "Enum", Unit.NONE, "What the segment is, judged from what came before it, and revised where later segments prove it to be something else", values=KINDS),
        Column("evidence", "Enum", Unit.NONE, "What the kind is known by", values=EVIDENCE),
        Column("evidence_frame", "UInt64", Unit.FRAME, "The other frame of the proof: the ACK, the earlier transmission, the segment that jumped ahead, the D-SACK", "null where one frame is enough"),
        Column("confidence", "Enum", Unit.NONE, "How sure the kind is", values=CONFIDENCES),
        Column("resent_by", "Enum", Unit.NONE, "What made the sender send these bytes again, be it needless or not", "null unless resent", RESENT_BY),
        Column("transmission", "UInt8", Unit.NONE, "How often these bytes were sent by now: 1 at first", "counts what was captured, and at least 2 where the first was lost before the capture point; 255 is 255 or more; null without sequence numbers"),
        Column("dsack", "Boolean", Unit.NONE, "True if its first SACK block reports a duplicate (RFC 2883)"),
        Column("reset_kind", "Enum", Unit.NONE, "What a RST is to the side that it is sent to", "seen from the capture point, which may have seen more or less than that side; null unless RST", RESET_KINDS),
        Column("tfo", "Enum", Unit.NONE, "Step of TCP Fast Open (RFC 7413)", "null for most", TFO),
        Column("ecn_signal", "Enum", Unit.NONE, "What the ECN flags of the TCP header say", "null without them; refusals have none", ECN_SIGNALS),
        Column(
            "in_flight_bytes",
            "Int64",
            Unit.BYTES,
            "Sent and not yet acknowledged in this direction, just before this segment",
            "null until the other side's first ACK",
        ),
        Column(
            "usable_window_bytes",
            "Int64",
            Unit.BYTES,
            "Room left in the window this side was last offered, just before this segment; negative if it shrank",
            "null while the window scale is unknown",
        ),
        Column("since_previous_ns", "Int64", Unit.NS, "Time since the previous segment of this direction", "null for its first"),
        Column("since_last_ack_ns", "Int64", Unit.NS, "Time since the other side's last segment with an ACK", "null before the first"),
        Column("since_last_data_ns", "Int64", Unit.NS, "Time since the other side's last segment with data", "null before the first"),
        Column(
            "released_by",
            "Enum",
            Unit.NONE,
            "What let this data segment leave: an ACK that arrived, the program's write, a timer, or the burst it belongs to",
            "seen from the capture point: certain only near the sender; null without data",
            RELEASED_BY,
        ),
        Column(
            "released_by_frame",
            "UInt64",
            Unit.FRAME,
            "The frame that released it: the ACK, or the first segment of the burst",
            "null for write, timer and unknown",
        ),
        Column("acked_bytes", "Int64", Unit.BYTES, "Sequence numbers that this segment acknowledges for the first time: bytes, and 1 each for SYN and FIN", "null without the ACK flag"),
        Column("acked_unseen_bytes", "Int64", Unit.BYTES, "Bytes that this segment acknowledges for the first time although the capture never showed them: not captured, and not lost", "taken back in the connection's figures, not here, if they show up behind the ACK; null where that side was never seen"),
        Column(
            "ack_lag_ns",
            "Int64",
            Unit.NS,
            "Time since the oldest byte that this segment acknowledges for the first time was last seen",
            "null if it acknowledges nothing new",
        ),
        Column(
            "rtt_ns",
            "Int64",
            Unit.NS,
            "Round-trip sample: time since the newest segment that this one acknowledges",
            "null if any byte it acknowledges was ever resent (Karn), or nothing new is acknowledged",
        ),
        Column("layers", "Categorical", Unit.NONE, "Headers on the way to the segment, outermost first: eth/vlan/ip/gre/ip/tcp"),
        Column("vpi", "UInt16", Unit.NONE, "Virtual path of the ATM channel it came over", "null but on ATM, and where the capture does not say"),
        Column("vci", "UInt16", Unit.NONE, "Virtual channel in that path", "null but on ATM, and where the capture does not say"),
        Column("cells", "UInt16", Unit.NONE, "ATM cells that carried it", "null but on ATM; reckoned from the length where only the PDU was captured; of a packet in IP fragments, those of the last"),
        Column("held_ns", "Int64", Unit.NS, "How long its sender had not sent data, SYN or FIN before", "null for the first, and for segments that occupy no sequence space; so all columns from here on"),
        Column("held_since_frame", "Int64", Unit.FRAME, "The departure before it"),
        Column("sent_ticks", "Int64", Unit.NONE, "Ticks of the sender's timestamp clock from the departure before to this one"),
        Column("idle_ns", "Int64", Unit.NS, "Time since everything sent was acknowledged, at the sender", "null with bytes in flight"),
        Column("acked_ago_ns", "Int64", Unit.NS, "Time since the last ACK reached the sender", "null if none came since the departure before"),
        Column("acked_by_frame", "Int64", Unit.FRAME, "That ACK"),
        Column("acked_lag_ns", "Int64", Unit.NS, "Lag of the last ACK that acknowledged something since the departure before"),
        Column("round_trip_ns", "Int64", Unit.NS, "The last round-trip sample that had reached the sender"),
        Column("echo_ns", "Int64", Unit.NS, "Time since the segment whose timestamp it echoes was captured"),
        Column("window_opened_ns", "Int64", Unit.NS, "Time since the window opened for a full segment, at the sender", "null if it did not, since the departure before"),
        Column("peer_first_ns", "Int64", Unit.NS, "Time since the first data of the other side after the departure before reached the sender"),
        Column("peer_last_ns", "Int64", Unit.NS, "Time since the last of them"),
        Column("unacked_before_bytes", "Int64", Unit.BYTES, "Bytes in flight just after the departure before, at the sender"),
        Column("unacked_bytes", "Int64", Unit.BYTES, "Bytes in flight just before this departure, at the sender"),
        Column("usable_before_bytes", "Int64", Unit.BYTES, "Room in the window just after the departure before, at the sender"),
        Column("flight_bytes", "Int64", Unit.BYTES, "Largest flight of the round trip before"),
        Column("full_bytes", "Int64", Unit.BYTES, "Largest payload that may leave: MSS less options"),
        Column("window_closed", "Boolean", Unit.NONE, "A window of 0 was offered since the departure before"),
        Column("small", "Boolean", Unit.NONE, "Less data than a full segment holds"),
        Column("small_before", "Boolean", Unit.NONE, "The departure before was smaller than a full segment"),
        Column("small_unacked", "Boolean", Unit.NONE, "A small segment was in flight after the departure before (Minshall)"),
        Column("small_passes", "Boolean", Unit.NONE, "Small segments pass a small one in flight: one did, and fewer than three in a row waited for the ACK of all since"),
        Column("recovering", "Boolean", Unit.NONE, "What was sent before the last resend is not all acknowledged"),
        Column("after_loss", "Boolean", Unit.NONE, "Something was resent in this direction before"),
    ],
)

_DIRECTION = (
    Column("segments", "Int64", Unit.SEGMENTS, "Segments sent; duplicates of the capture or the network are not among them"),
    Column("data_segments", "Int64", Unit.SEGMENTS, "Segments sent with data"),
    Column("payload_bytes", "Int64", Unit.BYTES, "Bytes of data sent, resent ones included"),
    Column("unique_bytes", "Int64", Unit.BYTES, "Bytes of the stream that were seen, each counted once"),
    Column("retransmitted_segments", "Int64", Unit.SEGMENTS, "Segments that carry bytes (or a SYN or FIN) sent before"),
    Column("retransmitted_bytes", "Int64", Unit.BYTES, "Bytes of data in them"),
    Column("spurious_retransmissions", "Int64", Unit.SEGMENTS, "Of the retransmitted segments, those proved to be needless: the first copy had arrived", "a lower bound: without D-SACK and timestamps much remains unknown"),
    Column("out_of_order_segments", "Int64", Unit.SEGMENTS, "Segments that arrived behind later ones and are not resent"),
    Column("capture_duplicates", "Int64", Unit.SEGMENTS, "Packets that the capture holds once more; they count nowhere else"),
    Column("network_duplicates", "Int64", Unit.SEGMENTS, "Packets that the network delivered once more, as far as that is seen; they count nowhere else"),
    Column("not_captured_bytes", "Int64", Unit.BYTES, "Sequence numbers that the other side acknowledged although the capture never showed them", "lost by the capture, not by the network"),
    Column("not_captured_holes", "Int64", Unit.NONE, "Runs of them"),
    Column("duplicate_acks", "Int64", Unit.SEGMENTS, "Duplicate ACKs sent (RFC 5681)"),
    Column("pure_acks", "Int64", Unit.SEGMENTS, "Segments without data, SYN, FIN or RST"),
    Column("keepalives", "Int64", Unit.SEGMENTS, "Keepalive probes sent"),
    Column("zero_window_probes", "Int64", Unit.SEGMENTS, "Probes sent into a closed window"),
    Column("window_updates", "Int64", Unit.SEGMENTS, "ACKs sent only to move the window"),
    Column("zero_window_advertisements", "Int64", Unit.SEGMENTS, "Segments sent that advertise a window of 0 (RST excepted)"),
    Column("pushed_segments", "Int64", Unit.SEGMENTS, "Segments sent with PSH"),
    Column("cut_segments", "Int64", Unit.SEGMENTS, "Segments whose data the capture cut short (snaplen)"),
    Column("syn_segments", "Int64", Unit.SEGMENTS, "Segments sent with SYN"),
    Column("fin_segments", "Int64", Unit.SEGMENTS, "Segments sent with FIN"),
    Column("rst_segments", "Int64", Unit.SEGMENTS, "Segments sent with RST"),
    Column(
        "isn",
        "UInt32",
        Unit.NONE,
        "Sequence number that has offset 0",
        "the SYN's, or one below the first byte known where no SYN was captured",
    ),
    Column(
        "mss_bytes",
        "Int64",
        Unit.BYTES,
        "MSS option of this side's SYN: the largest segment it wants to receive",
        "null without SYN or option",
    ),
    Column(
        "window_scale",
        "UInt8",
        Unit.NONE,
        "Shift applied to the windows this side advertises",
        "null while unknown; 0 also when the two SYNs did not agree on scaling",
    ),
    Column("sack_permitted", "Boolean", Unit.NONE, "SACK-permitted option in this side's SYN", "null without SYN"),
    Column("timestamps", "Boolean", Unit.NONE, "TCP timestamps option in this side's SYN", "null without SYN"),
    Column("max_window_bytes", "Int64", Unit.BYTES, "Largest window this side advertised, scaled", "null while the scale is unknown"),
    Column(
        "min_window_bytes",
        "Int64",
        Unit.BYTES,
        "Smallest window this side advertised, scaled, SYN and RST excepted",
        "null while the scale is unknown",
    ),
    Column("max_in_flight_bytes", "Int64", Unit.BYTES, "Most bytes sent and not yet acknowledged", "null until the other side's first ACK"),
    Column(
        "max_segment_bytes", "Int64", Unit.BYTES, "Largest payload of one captured segment", "may exceed the MSS under offload (TSO, GRO)"
    ),
    Column("full_segment_bytes", "Int64", Unit.BYTES, "Data of a full segment: the smaller MSS of the two SYNs, less 12 for timestamps if both had the option", "null unless both SYNs were captured, with their MSS"),
    Column("header_bytes", "Int64", Unit.BYTES, "Headers of the largest segment, as far out as the line's own: of the Ethernet frame (tags, tunnels, IP, TCP with its options), or of the AAL5 PDU (LLC/SNAP, …)", "null without data, on other links, and where it came in IP fragments"),
    Column("cells", "Int64", Unit.NONE, "ATM cells that carried its segments", "null but on ATM; of packets in IP fragments, those of the last; cells that were lost before the capture point are not in it"),
    Column("cell_payload_share", "Float64", Unit.NONE, "Share of these cells' bytes on the line, headers included, that was data (resent data, too)", "null but on ATM, and where the cells counted cannot have held the data; at most 48 of 53"),
    Column("best_payload_share", "Float64", Unit.NONE, "Share of the line that is data if every segment is full: full_segment_bytes of all that a segment of this size takes (ATM: whole cells of 53 bytes, AAL5's trailer and padding in them; Ethernet: frame, FCS, preamble and gap)", "a bound by headers alone; ACKs go the other way and cost it nothing; virtual links (loopback, veth) that look like Ethernet have no such cost"),
    Column("rtt_samples", "Int64", Unit.SEGMENTS, "Round-trip samples: ACKs of this direction's data that Karn's rule admits"),
    Column(
        "rtt_min_ns",
        "Int64",
        Unit.NS,
        "Smallest round-trip sample",
        "from the capture point to the receiver and back; null without samples",
    ),
    Column("rtt_mean_ns", "Int64", Unit.NS, "Mean of the round-trip samples", "null without samples"),
    Column("rtt_max_ns", "Int64", Unit.NS, "Largest round-trip sample", "null without samples"),
    Column("first_data_ts_ns", "Int64", Unit.NS, "Time of the first segment with data", "null without data"),
    Column("last_data_ts_ns", "Int64", Unit.NS, "Time of the last segment with data", "null without data"),
)
"""The figures of one direction, named by its sender."""

_KARN = "null without samples"
_ECHOED = "an ACK of new data that echoes the TCP timestamp of a segment it acknowledges (RFC 7323, 4); that segment may have waited for a delayed ACK"
_FULL_SIZE = "of segments as large as any before; the samples begin anew when a larger one comes"
_RESENT_RTT = "from the last transmission to an ACK that ends on it; the ACK may be that of an earlier one; null without samples"
_WAIT = "null if nothing was resent before it was acknowledged"

_STATISTICS = (
    Column("frame_bytes", "Int64", Unit.BYTES, "Bytes of the frames that carried the segments, on the link", "of a fragmented packet only the frame that completed it; as Wireshark's conversations"),
    Column("ack_segments", "Int64", Unit.SEGMENTS, "Segments sent with the ACK flag"),
    Column("sack_segments", "Int64", Unit.SEGMENTS, "Segments sent with SACK blocks"),
    Column("dsack_segments", "Int64", Unit.SEGMENTS, "Segments sent whose first SACK block reports bytes that came twice (RFC 2883)"),
    Column("max_sack_blocks", "Int64", Unit.NONE, "Most SACK blocks in one segment"),
    Column("pushed_data_segments", "Int64", Unit.SEGMENTS, "Segments sent with data and PSH"),
    Column("urgent_segments", "Int64", Unit.SEGMENTS, "Segments sent with data and URG"),
    Column("urgent_bytes", "Int64", Unit.BYTES, "Bytes of data in them before the urgent pointer"),
    Column("zero_window_probe_bytes", "Int64", Unit.BYTES, "Bytes of data in zero-window probes"),
    Column("window_scale_offered", "UInt8", Unit.NONE, "Window scale option in this side's SYN, at most 14", "null without SYN or option; in force only if both sides offer one"),
    Column("min_segment_bytes", "Int64", Unit.BYTES, "Smallest payload of one captured segment with data", "null without data"),
    Column("mean_segment_bytes", "Int64", Unit.BYTES, "Mean payload of the segments with data", "null without data"),
    Column("cut_bytes", "Int64", Unit.BYTES, "Bytes of data that the capture does not hold (snaplen)"),
    Column("mean_window_bytes", "Int64", Unit.BYTES, "Mean window this side advertised, scaled, SYN and RST excepted", "null while the scale is unknown"),
    Column("min_in_flight_bytes", "Int64", Unit.BYTES, "Fewest bytes in flight, but not 0, just behind a segment of this side", "SYN, RST, resent and late segments excepted; null if there are none"),
    Column("mean_in_flight_bytes", "Int64", Unit.BYTES, "Mean of the bytes in flight just behind each segment of this side", "SYN, RST, resent and late segments excepted; null until the other side's first ACK"),
    Column("time_mean_in_flight_bytes", "Int64", Unit.BYTES, "Mean of the bytes in flight over the time of the connection", "null until the other side's first ACK, and without times"),
    Column("initial_window_bytes", "Int64", Unit.BYTES, "Bytes of data sent before the first ACK of data", "null without SYN"),
    Column("initial_window_segments", "Int64", Unit.SEGMENTS, "Segments with data sent before the first ACK of data", "null without SYN"),
    Column("stream_bytes", "Int64", Unit.BYTES, "Length of the stream by the numbers of SYN and FIN", "null unless both were captured"),
    Column("missing_bytes", "Int64", Unit.BYTES, "Bytes of the stream that were never seen", "null unless SYN and FIN were captured; negative if there is data behind the FIN"),
    Column("advancing_acks", "Int64", Unit.SEGMENTS, "Segments sent that acknowledge captured data for the first time"),
    Column("bytes_per_ack", "Float64", Unit.BYTES, "Mean of the bytes of data that they acknowledge", "null without them"),
    Column("max_bytes_per_ack", "Int64", Unit.BYTES, "Most bytes of data that one of them acknowledges", "null without them"),
    Column("segments_per_ack", "Float64", Unit.SEGMENTS, "Mean of the segments that they acknowledge", "captured ones: under offload several of the wire are one; null without them"),
    Column("max_segments_per_ack", "Int64", Unit.SEGMENTS, "Most segments that one of them acknowledges", "null without them"),
    Column("cumulatively_acked_segments", "Int64", Unit.SEGMENTS, "Segments sent that were acknowledged together with a later one"),
    Column("triple_duplicate_acks", "Int64", Unit.SEGMENTS, "Times that a third duplicate ACK in a row arrived"),
    Column("post_loss_acks", "Int64", Unit.SEGMENTS, "ACKs received that end on a segment behind which an earlier one was seen, as after a loss", "no round-trip samples: the earlier one let them go"),
    Column("max_resends", "Int64", Unit.NONE, "Most times that one segment was resent before it was acknowledged"),
    Column("max_idle_ns", "Int64", Unit.NS, "Longest time between two segments of this side", "null below two segments"),
    Column("rtt_stdev_ns", "Int64", Unit.NS, "Standard deviation of the round-trip samples (n - 1)", "null below two samples"),
    Column("rtt_handshake_samples", "Int64", Unit.NONE, "1 if the handshake gives a round trip of this side's SYN, 0 if not", "not if the SYN was resent (Karn), was not answered, or its ACK acknowledges more than the SYN's segment"),
    Column("rtt_handshake_ns", "Int64", Unit.NS, "Time from this side's SYN to the other side's ACK of it", "null without sample"),
    Column("rtt_full_size_bytes", "Int64", Unit.BYTES, "Payload of the largest segment with a round-trip sample", _KARN),
    Column("rtt_timestamp_samples", "Int64", Unit.NONE, "Round-trip samples by TCP timestamps, of resent segments too", _ECHOED),
    Column("rtt_timestamp_min_ns", "Int64", Unit.NS, "Smallest round trip by TCP timestamps", _KARN),
    Column("rtt_timestamp_mean_ns", "Int64", Unit.NS, "Mean round trip by TCP timestamps", _KARN),
    Column("rtt_timestamp_max_ns", "Int64", Unit.NS, "Largest round trip by TCP timestamps", _KARN),
    Column("rtt_timestamp_stdev_ns", "Int64", Unit.NS, "Standard deviation of the round trips by TCP timestamps", "null below two samples"),
    Column("rtt_full_size_samples", "Int64", Unit.NONE, "Round-trip samples of full-sized segments", _FULL_SIZE),
    Column("rtt_full_size_min_ns", "Int64", Unit.NS, "Smallest round trip of a full-sized segment", _KARN),
    Column("rtt_full_size_mean_ns", "Int64", Unit.NS, "Mean round trip of full-sized segments", _KARN),
    Column("rtt_full_size_max_ns", "Int64", Unit.NS, "Largest round trip of a full-sized segment", _KARN),
    Column("rtt_full_size_stdev_ns", "Int64", Unit.NS, "Standard deviation of the round trips of full-sized segments", "null below two samples"),
    Column("rtt_resent_samples", "Int64", Unit.NONE, "ACKs received that end on a resent segment: of which transmission is unknown"),
    Column("rtt_resent_min_ns", "Int64", Unit.NS, "Shortest time to the ACK of a resent segment", _RESENT_RTT),
    Column("rtt_resent_mean_ns", "Int64", Unit.NS, "Mean time to the ACK of a resent segment", _RESENT_RTT),
    Column("rtt_resent_max_ns", "Int64", Unit.NS, "Longest time to the ACK of a resent segment", _RESENT_RTT),
    Column("rtt_resent_stdev_ns", "Int64", Unit.NS, "Standard deviation of the times to ACKs of resent segments", "null below two samples"),
    Column("resend_wait_samples", "Int64", Unit.NONE, "Times that a segment was resent before it was acknowledged", "its last transmission was captured, too"),
    Column("resend_wait_min_ns", "Int64", Unit.NS, "Shortest time from a segment's last transmission to the next", _WAIT),
    Column("resend_wait_mean_ns", "Int64", Unit.NS, "Mean time from a segment's last transmission to the next", _WAIT),
    Column("resend_wait_max_ns", "Int64", Unit.NS, "Longest time from a segment's last transmission to the next", _WAIT),
    Column("resend_wait_stdev_ns", "Int64", Unit.NS, "Standard deviation of the times from a segment's last transmission to the next", "null below two"),
)
"""More of them: with those above all that tcptrace's long listing has, Wireshark's conversations, and round trips three ways."""

_PURE_ACKS = "only of ACKs without data that cover data: the others answer when the program does"
_DELAYED = "ACKs without data that were let go by no segment: over 2 ms later than the soonest for the newest segment that they cover, after silence, with nothing left unacknowledged: a timer's, or the program's reading"
_HOLD = "within 1 ms, and a sixteenth of the wait, of the soonest reaction to that ACK; after at least 2 ms of waiting"

_BEHAVIOUR = (
    Column("reaction_min_ns", "Int64", Unit.NS, "Shortest time from a segment to this side until one from it proves its arrival, by an echoed timestamp or by data beyond the window offered before", "an upper bound of the way from the capture point to this side and back; null without such proof; see also the other side's rtt_min_ns"),
    Column("virtual_data_segments", "Int64", Unit.SEGMENTS, "Segments with data as they are on the wire: super-segments of offload counted as the segments that they become", "equal to data_segments while full_segment_bytes is unknown"),
    Column("missing_segments", "Int64", Unit.SEGMENTS, "Segments that this side sent and the capture does not hold, as on the wire: lost before the capture point, or missed by it", "by IPv4 identifications: null unless they count this side's segments one by one, and at most one in ten is missing; null for IPv6, where nothing counts segments (the flow label is one for all, timestamps are shared by the segments of a tick): there retransmitted_segments, among them those that filled a hole, are the least"),
    Column("super_segments", "Int64", Unit.SEGMENTS, "Segments with more data than a full one: offload (TSO, GSO, GRO, LRO) joined or has yet to split them", "0 while full_segment_bytes is unknown"),
    Column("late_segments", "Int64", Unit.SEGMENTS, "Segments with data that were captured after their acknowledgment", "the capture mixed up the order, or the segment came another way"),
    Column("initial_flight_bytes", "Int64", Unit.BYTES, "Data that left before the first ACK of data can have arrived at this side", "a lower bound of the initial window: the program may have had no more; null without SYN or data"),
    Column("initial_flight_segments", "Int64", Unit.SEGMENTS, "The same in segments, as on the wire", "a lower bound; null without SYN or data"),
    Column("small_in_flight", "Int64", Unit.SEGMENTS, "Segments below the MSS that left while an earlier one below the MSS was not acknowledged", "Nagle's algorithm in any form forbids that; those with FIN or URG, over half of the largest window, or with more than 4,096 bytes in flight do not count"),
    Column("small_in_flight_frame", "UInt64", Unit.FRAME, "The first of them", "null without any"),
    Column("small_over_full", "Int64", Unit.SEGMENTS, "Segments below the MSS, not the end of a burst, that left while only full ones were not acknowledged", "Nagle's algorithm forbids that in BSD's form, and not in Linux's; the same exceptions"),
    Column("small_over_full_frame", "UInt64", Unit.FRAME, "The first of them", "null without any"),
    Column("nagle_holds", "Int64", Unit.SEGMENTS, "Segments below the MSS that left as soon as an ACK had emptied the flight, which had ended in one below the MSS", _HOLD),
    Column("nagle_holds_frame", "UInt64", Unit.FRAME, "The first of them", "null without any"),
    Column("nagle_holds_over_full", "Int64", Unit.SEGMENTS, "The same behind a flight that had ended in a full segment: held by BSD's form only", _HOLD),
    Column("nagle_holds_over_full_frame", "UInt64", Unit.FRAME, "The first of them", "null without any"),
    Column("nagle_releases", "Int64", Unit.SEGMENTS, "Segments below the MSS that left at any time after such an ACK, before anything else came: the chances of coincidence"),
    Column("acks_by_segments", "List(Int64)", Unit.SEGMENTS, "ACKs sent for new data by the segments that each covers: 1, 2, 3, 4, 5 to 8, more; super-segments counted as on the wire", f"{_PURE_ACKS}; null without any"),
    Column("stretch_acks", "Int64", Unit.SEGMENTS, "They that cover more than two segments and more than twice the MSS (RFC 2525, 2.13)", "ACKs lost or merged (GRO) before the capture point show as such, too"),
    Column("ack_lag_samples", "Int64", Unit.SEGMENTS, "They with a time since the oldest data that they cover", "those over data sent twice have none (Karn)"),
    Column("ack_lag_min_ns", "Int64", Unit.NS, "Shortest time from the oldest data that one of them covers to it", "the way from the capture point to this side and back is in it; null without samples"),
    Column("ack_lag_mean_ns", "Int64", Unit.NS, "Mean of these times", "null without samples"),
    Column("ack_lag_max_ns", "Int64", Unit.NS, "Longest of these times", "null without samples"),
    Column("prompt_acks", "Int64", Unit.SEGMENTS, "They that came at most 2 ms later than the soonest for the newest segment that they cover: the segment let them go"),
    Column("prompt_ack_min_bytes", "Int64", Unit.BYTES, "Fewest new bytes that a prompt one covers", "null without any"),
    Column("prompt_small_pairs", "Int64", Unit.SEGMENTS, "Prompt ones that cover two segments of together no more than the longest seen, or 536: a second segment lets the ACK go, whatever its size"),
    Column("delayed_acks", "Int64", Unit.SEGMENTS, "Delayed ACKs", _DELAYED),
    Column("delayed_acks_of_several", "Int64", Unit.SEGMENTS, "Delayed ACKs that cover more than one segment: a second one did not let them go"),
    Column("delayed_ack_max_bytes", "Int64", Unit.BYTES, "Most new bytes that a delayed one covers: so much does not let an ACK go", "null without any"),
    Column("ack_delays", "List(Int64)", Unit.SEGMENTS, "Delayed ACKs by their delay in classes of 2 ms, from 0 on: the lag less the shortest round trip until then; the 128th class holds all longer ones", "ends with the last class that is not empty; counts stop at 65,535; null without any"),
    Column("heartbeat_concentration", "Float64", Unit.NONE, "How closely the times of delayed ACKs keep to one phase of 200 ms: 1 all at one phase, about 1/√n without a heartbeat (mean resultant length)", "null without delayed ACKs"),
    Column("syn_options", "String", Unit.NONE, "Kinds of the options in this side's first SYN, in order, as tcpdump names them", "null without SYN, or where the capture cut its options"),
    Column("syn_window_bytes", "Int64", Unit.BYTES, "Window in that SYN", "null as before"),
    Column("syn_ttl", "UInt8", Unit.NONE, "Time to live or hop limit with which that SYN came", "null as before"),
    Column("window_scale_at_least", "UInt8", Unit.NONE, "Least shift with which the windows this side advertises allow what the other side had in flight", "a window that shrank misleads; null where the scale is known, or the windows allow it unshifted"),
)
"""What the whole connection shows of how one side behaves, named by that side."""

SIDES: Mapping[str, bool] = {"client": True, "server": False}
"""Prefix of a direction's columns → `from_client`."""


_WAITS = (
    Column("first_departure_ts_ns", "Int64", Unit.NS, "Time of the first segment with data, SYN or FIN", "null without one"),
    Column("first_departure_frame", "Int64", Unit.FRAME, "Its frame", "null without one"),
    Column("first_departure_is_syn", "Boolean", Unit.NONE, "True if it is a SYN", "null without one"),
    Column("ending_held_ns", "Int64", Unit.NS, "Time from the last segment with data, SYN or FIN to the end of the connection", "null without one"),
    Column("ending_held_since_frame", "Int64", Unit.FRAME, "Frame of that last segment", "null without one"),
    Column("ending_idle_ns", "Int64", Unit.NS, "Time from when everything sent was acknowledged to the end", "null with bytes in flight at the end"),
    Column("ending_peer_first_ns", "Int64", Unit.NS, "Time from the first data of the other side after it to the end", "null without any"),
    Column("ending_peer_last_ns", "Int64", Unit.NS, "Time from the last data of the other side after it to the end", "null without any"),
    Column("level_flight_bytes", "Int64", Unit.BYTES, "Level at which the flights stood for most round trips, before any loss", "two full segments or more, to within a twentieth; null below one whole round trip"),
    Column("level_rounds", "Int64", Unit.NONE, "For how many round trips they stood there"),
    Column("other_level_flight_bytes", "Int64", Unit.BYTES, "Another level, at which the flights stood next longest", "null without one"),
    Column("other_level_rounds", "Int64", Unit.NONE, "For how many round trips they stood there"),
    Column("clocked_departures", "Int64", Unit.SEGMENTS, "Segments that left at once when an ACK came, with bytes in flight"),
    Column("unclocked_departures", "Int64", Unit.SEGMENTS, "Segments that left some time after the last ACK, with bytes in flight"),
    Column("small_behind_small", "Int64", Unit.SEGMENTS, "Segments below the MSS that left while an earlier one below it was in flight, at the sender: Nagle's algorithm is off"),
    Column("small_held_run", "Int64", Unit.SEGMENTS, "Most of them in a row, none passing, that waited for the ACK of a small one before and left at once when it came"),
    Column("small_past_full", "Int64", Unit.SEGMENTS, "Segments below the MSS that passed full ones in flight, and were not the tail of one write with them"),
    Column("small_held_over_full", "Int64", Unit.SEGMENTS, "Those that waited until full ones were acknowledged and left at once when they were"),
    Column("tick_ns", "Int64", Unit.NS, "Length of a tick of the sender's timestamp clock, by its departures", "null without timestamps, and below 50 ticks"),
)
"""What held back the departures of one direction: its first and last, and what only all of them tell."""


_FREE = "one whose window had room, behind which no ACK let it go and no data of the other side came: nothing but the sender's host and program can have spaced it; of a direction with four segments of data or more; away from the sender the path spaces them, too"
_BACKLOG = "each of which ends on a segment that had waited since the ACK before, so that something was queued all the time: at a bottleneck of the path, or in the receiver's host; not seen at the receiver, whose ACKs wait for nothing"
_UNREAD = "while the window was below half of the largest, so that unread bytes filled the buffer: the window's right edge moves as the program reads"
_CUT = "a segment that is not full ends at a multiple of 1,024 bytes from the message's begin, and the rest follows at once or with the next ACK; one write that a buffer cut looks like two writes"

_RATES = (
    Column("burst_bytes", "Int64", Unit.BYTES, "Data of segments that left without having been held, no pause before them", _FREE),
    Column("burst_ns", "Int64", Unit.NS, "Time from the departure before to each of them", "pauses, of more than 10 ms and of two round trips, are not in it; null as before"),
    Column("burst_departures", "Int64", Unit.SEGMENTS, "How many they are", "null as before"),
    Column("paused_bytes", "Int64", Unit.BYTES, "Data of segments that left without having been held, after a pause", _FREE),
    Column("paused_ns", "Int64", Unit.NS, "Time of these pauses", "null as before"),
    Column("paused_departures", "Int64", Unit.SEGMENTS, "How many they are", "null as before"),
    Column("drained_bytes", "Int64", Unit.BYTES, "Bytes that were acknowledged while more was queued", f"of ACKs {_BACKLOG}; null as before"),
    Column("drained_ns", "Int64", Unit.NS, "Time in which they were", "stretches of 1 ms and half a round trip, or more; null as before"),
    Column("drained_acks", "Int64", Unit.SEGMENTS, "ACKs that tell of them", "null as before"),
    Column("read_bytes", "Int64", Unit.BYTES, "Bytes by which the receiving program made room", f"{_UNREAD}; null as before"),
    Column("read_ns", "Int64", Unit.NS, "Time in which it did", "null as before"),
    Column("read_windows", "Int64", Unit.SEGMENTS, "Advertised windows that tell of them", "null as before"),
    Column("cut_messages", "Int64", Unit.NONE, "Messages that left in pieces of a buffer", f"{_CUT}; null as before"),
    Column("cut_pieces", "Int64", Unit.SEGMENTS, "Segments in them that end where a buffer did, and not the message", "null as before"),
    Column("cut_waited_ns", "Int64", Unit.NS, "Time that what was cut off waited for the ACK of what came before", "waits of 10 ms or less are not in it; null as before"),
    Column("cut_at_bytes", "Int64", Unit.BYTES, "Where these messages are cut first, from their begin", "null unless all are cut at the same place"),
    Column("cut_frame", "Int64", Unit.FRAME, "Last segment of the first of them", "null without any"),
)
"""How fast one side sends in bursts and its receiver drains, as sums of bytes and time (`rates` divides them), and what its buffers cut."""


def _sided(side: str, direction: tuple[Column, ...] = (*_DIRECTION, *_STATISTICS, *_BEHAVIOUR, *_WAITS, *_RATES)) -> Iterator[Column]:
    for column in direction:
        yield Column(f"{side}_{column.name}", column.dtype, column.unit, f"{column.meaning} (by the {side})", column.limits, column.values)


STATISTICS = (*_DIRECTION, *_STATISTICS)
"""The columns of one direction that count and measure, without the side before their names; the others judge."""

MORE_STATISTICS_NAMES = tuple(column.name for column in _STATISTICS)
"""Those of them that the JSON has in an object of their own."""

DIRECTION_NAMES = tuple(column.name for column in (*_DIRECTION, *_STATISTICS, *_BEHAVIOUR, *_WAITS, *_RATES))

_QUANTILES = (
    Column("rtt_p50_ns", "Int64", Unit.NS, "Median of the round-trip samples", "nearest rank, to within 0.1 % (see `rtt`); null without samples"),
    Column("rtt_p95_ns", "Int64", Unit.NS, "95th percentile of the round-trip samples", "nearest rank, to within 0.1 % (see `rtt`); null without samples"),
    Column("ack_lag_p50_ns", "Int64", Unit.NS, "Median of the times from the oldest data that an ACK without data covers to it", "of the samples of ack_lag_min_ns; nearest rank, to within 0.1 % (see `rtt`); null without samples"),
    Column("ack_lag_p95_ns", "Int64", Unit.NS, "95th percentile of these times", "as ack_lag_p50_ns"),
)
"""Figures of one direction that are not made by the engine but from its segments, as they go by."""

SPREADS = (*_QUANTILES, *(column for column in _BEHAVIOUR if column.name.startswith("ack_lag_")))
"""How round trips and the lags of ACKs are spread: in the report's table of figures beside `STATISTICS`."""

ENGINE_CONNECTIONS = _table(
    "connections",
    "one TCP connection",
    [
        Column("conn", "UInt32", Unit.NONE, "Connection, numbered from 0 by first appearance (Wireshark's tcp.stream)"),
        Column("client_addr", "String", Unit.NONE, "Address of the side that opened the connection"),
        Column("client_port", "UInt16", Unit.NONE, "Its port"),
        Column("server_addr", "String", Unit.NONE, "Address of the side that was connected to"),
        Column("server_port", "UInt16", Unit.NONE, "Its port"),
        Column(
            "client_known_by",
            "Enum",
            Unit.NONE,
            "How client and server were told apart",
            "data, port and first are guesses",
            CLIENT_KNOWN_BY,
        ),
        Column("closed_by", "Enum", Unit.NONE, "What ended it in this capture", values=CLOSED_BY),
        Column("first_frame", "UInt64", Unit.FRAME, "First frame"),
        Column("last_frame", "UInt64", Unit.FRAME, "Last frame"),
        Column("first_ts_ns", "Int64", Unit.NS, "Earliest time of a segment", "null where the capture stores no time"),
        Column("last_ts_ns", "Int64", Unit.NS, "Latest time of a segment", "null where the capture stores no time"),
        Column("syn_to_synack_ns", "Int64", Unit.NS, "Handshake: last SYN before the SYN-ACK → SYN-ACK", "null unless both were captured"),
        Column("synack_to_ack_ns", "Int64", Unit.NS, "Handshake: SYN-ACK → the client's first ACK of it", "null unless both were captured"),
        Column("line", "Enum", Unit.NONE, "The line it came over, if what segments cost on it is known", "null on other links, and where no data tells; Ethernet may be a virtual one", LINES),
        Column("vpi", "UInt16", Unit.NONE, "Virtual path of its ATM channel", "null but on ATM, where the capture does not say, and where there were several (the segments tell each)"),
        Column("vci", "UInt16", Unit.NONE, "Virtual channel in that path", "null as vpi is"),
        *_sided("client"),
        *_sided("server"),
    ],
)
"""The connections as the engine gives them."""

CONNECTIONS = _table(
    "connections",
    ENGINE_CONNECTIONS.row,
    [*ENGINE_CONNECTIONS, *_sided("client", _QUANTILES), *_sided("server", _QUANTILES)],
)

CAUSES = {
    "handshake": "opening the connection",
    "application": "the sender's program had nothing to send",
    "peer": "waiting for the other side's message",
    "nagle": "held by Nagle's algorithm, although nothing was delayed",
    "nagle-delayed-ack": "held by Nagle's algorithm until a delayed ACK",
    "delayed-ack": "other waits for a delayed ACK",
    "send-buffer": "the send buffer was full of unacknowledged bytes",
    "receiver-window": "the receiver's window had no room",
    "zero-window": "the receiver's window was closed",
    "slow-start": "flights still growing towards what the path can carry",
    "congestion-window": "the congestion window, small after a loss",
    "pacing": "spaced by the sender",
    "loss-recovery": "repairing losses",
    "timeout": "waiting for the retransmission timer",
    "network": "bytes in transit, or draining through the bottleneck",
    "close": "after the FIN",
    "unknown": "the capture does not tell",
}
"""Every answer to "why is the next byte of this direction not leaving now?", and what it means."""

CONFIDENCES = ("proved", "consistent", "possible")
"""How sure a verdict is."""

LEDGER = _table(
    "ledger",
    "one interval of one direction's life; those of a direction touch and never overlap",
    [
        Column("conn", "UInt32", Unit.NONE, "Connection"),
        Column("from_client", "Boolean", Unit.NONE, "True for the client's direction"),
        Column("start_ns", "Int64", Unit.NS, "Its begin, since 1970-01-01 UTC"),
        Column("end_ns", "Int64", Unit.NS, "Its end"),
        Column("cause", "Enum", Unit.NONE, "Why the next byte of this direction did not leave", values=tuple(CAUSES)),
        Column("frame_before", "Int64", Unit.FRAME, "The last departure before it", "null before the first"),
        Column("frame_after", "Int64", Unit.FRAME, "The departure that ended the wait it belongs to", "null after the last"),
        Column("confidence", "Enum", Unit.NONE, "How sure the cause is", values=CONFIDENCES),
    ],
)

ACCOUNTS = _table(
    "accounts",
    "where the time of one connection's directions went",
    [
        Column("conn", "UInt32", Unit.NONE, "Connection"),
        *(
            Column(f"{side}_{cause.replace('-', '_')}_ns", "Int64", Unit.NS, f"Time of the {side}'s direction: {meaning}", "null without times")
            for side in SIDES
            for cause, meaning in CAUSES.items()
        ),
    ],
)

STALL_TIMERS = {
    "ack-40ms": "delayed ACK of 40 ms",
    "ack-50ms": "delayed ACK of 50 ms",
    "ack-100ms": "delayed ACK of 100 ms",
    "ack-200ms": "delayed ACK of 200 ms",
    "ack-heartbeat": "the receiver's heartbeat of 200 ms",
    "retransmission": "the sender's retransmission timer",
    "tail-probe": "the sender's tail-loss probe",
    "persist": "the sender's window probe",
}
"""Timers that end stalls, and what they are."""

STALLS = _table(
    "stalls",
    "one stall: an interval of the ledger that is longer than two round trips (at least 10 ms, at most the least timeout), with its proof",
    [
        *LEDGER,
        Column("threshold_ns", "Int64", Unit.NS, "From this length on it is a stall", "by the shortest round trip, which delayed ACKs do not lengthen"),
        Column("round_trip_ns", "Int64", Unit.NS, "That round trip, from end to end", "0 where it is not known"),
        Column("timer", "Enum", Unit.NONE, "The timer that ended it", "of ACKs by how late this one was, or by the receiver's habit where that is a heartbeat; null if none shows", tuple(STALL_TIMERS)),
        Column("acked_by_frame", "Int64", Unit.FRAME, "The last ACK that reached the sender in it", "null without one; this column and those after it are null before the first departure and after the last"),
        Column("acked_lag_ns", "Int64", Unit.NS, "Time from the oldest data which that ACK acknowledges to it", "null if it acknowledges nothing new"),
        Column("ack_late_ns", "Int64", Unit.NS, "What of that is more than the shortest round trip", "null as before"),
        Column("unacked_before_bytes", "Int64", Unit.BYTES, "Bytes in flight when it began"),
        Column("unacked_bytes", "Int64", Unit.BYTES, "Bytes in flight when it ended"),
        Column("usable_before_bytes", "Int64", Unit.BYTES, "Room in the window when it began", "null while the window scale is unknown"),
        Column("full_bytes", "Int64", Unit.BYTES, "Payload of a full segment"),
        Column("payload_bytes", "Int64", Unit.BYTES, "Payload of the segment that ended it"),
    ],
)

MESSAGE_STATES = ("whole", "overlapping", "start_missing", "bytes_missing")
"""What is known of a message: all; or the other side's bytes were on their way meanwhile (pipelined or full duplex), so that where it ends
is not known; its direction begins before the capture does; or the capture does not hold all of its bytes."""

MESSAGES = _table(
    "messages",
    "one application message: a run of bytes one way, ended by a turn of direction or by a pause of the program",
    [
        Column("conn", "UInt32", Unit.NONE, "Connection"),
        Column("from_client", "Boolean", Unit.NONE, "True for the client's message"),
        Column("index", "Int64", Unit.NONE, "Its number in its direction, from 0"),
        Column("start_offset", "Int64", Unit.OFFSET, "Its first byte"),
        Column("payload_bytes", "Int64", Unit.BYTES, "Its size", "too small where its begin or end was not captured"),
        Column("segments", "Int64", Unit.SEGMENTS, "Segments with its bytes as captured, those sent again included"),
        Column("first_frame", "Int64", Unit.FRAME, "The first of them"),
        Column("last_frame", "Int64", Unit.FRAME, "The last of them"),
        Column("stall_frame", "Int64", Unit.FRAME, "The segment that ended its first stall", "null without any"),
        Column("first_ts_ns", "Int64", Unit.NS, "Time of the first of its segments"),
        Column("last_ts_ns", "Int64", Unit.NS, "Time of the last of them"),
        Column("acked_ts_ns", "Int64", Unit.NS, "Time of the first ACK of its last byte", "null without one"),
        Column("answer_ts_ns", "Int64", Unit.NS, "Time of the first byte of the other side's answer", "null without one, and where both sides sent at once"),
        Column("transfer_ns", "Int64", Unit.NS, "From its first segment to its last", "the transit of the last one is not in it"),
        Column("stalled_ns", "Int64", Unit.NS, "Of that, waits of more than two round trips (10 ms on a LAN, at most the least timeout) in which TCP held back its bytes"),
        Column("stall_cause", "Enum", Unit.NONE, "Cause of the longest of them", "null without any", tuple(CAUSES)),
        Column("writes_inferred", "List(Int64)", Unit.BYTES, "Sizes of the writes that made it, as far as segments below the MSS show where one ended: the first 64 and the rest", "writes of full segments, and those that TCP joined while it held them, do not show; null where bytes were sent again or are missing"),
        Column("writes_confidence", "Enum", Unit.NONE, "How sure they are", "null without writes", CONFIDENCES),
        Column("state", "Enum", Unit.NONE, "Whether it is known as a whole", values=MESSAGE_STATES),
    ],
)

RATES = _table(
    "rates",
    "how fast both ends of one direction with data are, and what that bounds",
    [
        Column("conn", "UInt32", Unit.NONE, "Connection"),
        Column("from_client", "Boolean", Unit.NONE, "True for the client's direction"),
        Column("send_bps", "Float64", Unit.BITS_PER_SECOND, "λ: rate of the sender in bursts that nothing holds; at least what it sent on average", "null away from the sender, where the path spaces its segments, and below 10 samples; departures at the time of an ACK are left out where it may have let them go; of a sender that paces itself, that pace"),
        Column("send_samples", "Int64", Unit.SEGMENTS, "Segments that tell of it", "null where little was sent"),
        Column("drain_bps", "Float64", Unit.BITS_PER_SECOND, "Rate at which a queue drained: of the receiving host, or of the path's narrowest place", "by ACKs while more was waiting; null at the receiver's end, and below 10 samples"),
        Column("drain_samples", "Int64", Unit.SEGMENTS, "ACKs that tell of it", "null where little was sent"),
        Column("read_bps", "Float64", Unit.BITS_PER_SECOND, "Rate at which the receiving program read while its buffer was at least half full", "by the window; null if it never was, and below 10 samples"),
        Column("read_samples", "Int64", Unit.SEGMENTS, "Windows that tell of it", "null where little was sent"),
        Column("receive_bps", "Float64", Unit.BITS_PER_SECOND, "μ: the lower of both", "null without either"),
        Column("ratio", "Float64", Unit.NONE, "λ / μ", "null unless both are known"),
        Column("line_bps", "Float64", Unit.BITS_PER_SECOND, "Rate of the line, where one of these rates is one of a standard's to 1 %", "null in most captures"),
        Column("line_bound_bps", "Float64", Unit.BITS_PER_SECOND, "What framing (best_payload_share) leaves of it", "null without"),
        Column("bound_bps", "Float64", Unit.BITS_PER_SECOND, "The lowest of λ, μ and the line's bound", "of those that are known: with λ alone, no more than that; null without any"),
        Column("bound_by", "Enum", Unit.NONE, "Which of them it is", "null without any", BOUND_BY),
        Column("sent_bps", "Float64", Unit.BITS_PER_SECOND, "New data over the time from the first data segment to the last", "null if both are at one instant"),
        Column("reached_share", "Float64", Unit.NONE, "How much of the bound that is", "at most 1: what was queued when the last segment left would make it more"),
        Column("idle_share", "Float64", Unit.NONE, "Share of that time in which the sender stood still: all but its bursts", "pauses of its program are in it; departures at the time of an ACK count as let go by it; null away from the sender"),
        Column("round_trip_ns", "Int64", Unit.NS, "Shortest round trip from end to end", "null unless both ends' answers were captured"),
        Column("send_buffer_needed_bytes", "Int64", Unit.BYTES, "Send buffer with which the sending program never waits: λ times the round trip", "null without either"),
        Column("receive_buffer_needed_bytes", "Int64", Unit.BYTES, "Receive buffer, and send buffer, that let the bound be reached: bound times round trip", "null without either"),
        Column("window_segments", "Int64", Unit.SEGMENTS, "Full segments that the largest window has room for", "null while the scale is unknown"),
        Column("window_full_share", "Float64", Unit.NONE, "How often a segment would find that window full, were it a queue M/M/1/K: (1-r) r^K / (1-r^(K+1)) with r = λ/μ", "a model of random arrivals; null without λ/μ"),
        Column("send_buffer_estimate_bytes", "Int64", Unit.BYTES, "Level of the largest flights, where it is the sender's: its send buffer, or a congestion window that something clamps", "which of them, a capture does not tell; a program that writes large pieces never fills the buffer wholly; null without a plateau of five round trips, below the window by two segments, in step with the ACKs"),
    ],
)

DATAGRAMS = _table(
    "datagrams",
    "one UDP datagram as captured",
    [
        Column("frame", "UInt64", Unit.FRAME, "Number of the frame that carried the datagram, as in Wireshark", "of its last fragment to arrive"),
        Column("ts_ns", "Int64", Unit.NS, "Capture time since 1970-01-01 UTC", "null where the capture format stores no time"),
        Column("flow", "UInt32", Unit.NONE, "Flow, numbered from 0 by first appearance: two addresses with their ports", "datagrams that only carry a tunnel have no flow of their own"),
        Column("from_client", "Boolean", Unit.NONE, "True if the side that sent the flow's first captured datagram sent it"),
        Column("payload_bytes", "Int64", Unit.BYTES, "Bytes of data in the datagram, by the lengths in its headers"),
        Column("captured_payload_bytes", "Int64", Unit.BYTES, "Bytes of data that the capture holds (snaplen may cut them)"),
        Column("fragments", "UInt16", Unit.NONE, "IP packets that it came in; 1 if whole"),
        Column("since_previous_ns", "Int64", Unit.NS, "Time since the previous datagram of this side in the flow", "null for its first"),
        Column("since_other_ns", "Int64", Unit.NS, "Time since the other side's last datagram in the flow", "null before the first"),
        Column("ip_id", "UInt16", Unit.NONE, "IPv4 identification", "null for IPv6"),
        Column("ttl", "UInt8", Unit.NONE, "IPv4 time to live or IPv6 hop limit"),
        Column("layers", "Categorical", Unit.NONE, "Headers on the way to the datagram, outermost first: eth/ip/udp"),
    ],
)

_BY_IP_ID = "known only where the sender's IPv4 identifications count this flow's datagrams one by one, and lose at most one in ten"

_FLOW_DIRECTION = (
    Column("datagrams", "Int64", Unit.DATAGRAMS, "Datagrams sent"),
    Column("payload_bytes", "Int64", Unit.BYTES, "Bytes of data sent"),
    Column("fragmented_datagrams", "Int64", Unit.DATAGRAMS, "Datagrams that came in several IP fragments"),
    Column("min_payload_bytes", "Int64", Unit.BYTES, "Smallest datagram", "null without datagrams"),
    Column("mean_payload_bytes", "Int64", Unit.BYTES, "Mean size of the datagrams, rounded", "null without datagrams"),
    Column("max_payload_bytes", "Int64", Unit.BYTES, "Largest datagram", "null without datagrams"),
    Column("distinct_sizes", "Int64", Unit.NONE, "Different sizes of datagrams", "null where the capture has more than 8 million pairs of direction and size"),
    Column("first_ts_ns", "Int64", Unit.NS, "Earliest time of a datagram", "null where the capture stores no time"),
    Column("last_ts_ns", "Int64", Unit.NS, "Latest time of a datagram", "null where the capture stores no time"),
    Column("rate_bps", "Float64", Unit.BITS_PER_SECOND, "Bits of data per second from the first datagram to the last", "too high with few datagrams: the last one's time is not in it; null if all are at one instant"),
    Column("gap_p50_ns", "Int64", Unit.NS, "Median gap between two datagrams", "nearest rank, to within 0.1 %; gaps over which the clock went back are left out; null without gaps"),
    Column("gap_p95_ns", "Int64", Unit.NS, "95th percentile of the gaps between two datagrams", "nearest rank, to within 0.1 %; null without gaps"),
    Column("gap_max_ns", "Int64", Unit.NS, "Longest gap between two datagrams", "null without gaps"),
    Column("gap_variation", "Float64", Unit.NONE, "Coefficient of variation of the gaps: 0 is an even pace, 1 is random as by a Poisson process, more is bursts", "null below two gaps, or if all are 0"),
    Column("missing_datagrams", "Int64", Unit.DATAGRAMS, "Datagrams that were sent and are not in the capture", f"lost before the capture point, or by the capture; losses behind it do not show; {_BY_IP_ID}; sequence numbers in the payload (as of RTP) are not looked at"),
    Column("reordered_datagrams", "Int64", Unit.DATAGRAMS, "Datagrams captured behind later ones (RFC 4737, 3.3)", "known only where the sender's IPv4 identifications advance as a counter, be it one for all its traffic; a datagram that the capture holds twice (mirror port, Linux \"any\") is counted twice in all figures, and a copy that comes behind a later datagram as reordered"),
    Column("loss_known_by", "Enum", Unit.NONE, "What tells how many datagrams are missing", "null: not known; IPv6 has no identification, and Linux sends 0 on unconnected sockets", LOSS_KNOWN_BY),
)
"""The figures of one direction of a flow, named by its sender."""

FLOW_DIRECTION_NAMES = tuple(column.name for column in _FLOW_DIRECTION)

_ECHO = "the server's first datagram after a client's counts as its answer; no round trip where either side also sends unasked, several questions are on the way, or an answer is lost"

FLOWS = _table(
    "flows",
    "one UDP flow: all datagrams between two addresses with their ports",
    [
        Column("flow", "UInt32", Unit.NONE, "Flow, numbered from 0 by first appearance"),
        Column("client_addr", "String", Unit.NONE, "Address of the side that sent the first captured datagram"),
        Column("client_port", "UInt16", Unit.NONE, "Its port"),
        Column("server_addr", "String", Unit.NONE, "Address of the other side"),
        Column("server_port", "UInt16", Unit.NONE, "Its port"),
        Column("echo_samples", "Int64", Unit.DATAGRAMS, "Answers of the server", _ECHO),
        Column("echo_min_ns", "Int64", Unit.NS, "Shortest time from a client's datagram to the server's answer", f"from the capture point to the server and back, with the server's own time; {_ECHO}; null without answers"),
        Column("echo_p50_ns", "Int64", Unit.NS, "Median time from a client's datagram to the server's answer", f"nearest rank, to within 0.1 %; {_ECHO}; null without answers"),
        Column("echo_p95_ns", "Int64", Unit.NS, "95th percentile of the time from a client's datagram to the server's answer", f"nearest rank, to within 0.1 %; {_ECHO}; null without answers"),
        Column("echo_max_ns", "Int64", Unit.NS, "Longest time from a client's datagram to the server's answer", f"{_ECHO}; null without answers"),
        *_sided("client", _FLOW_DIRECTION),
        *_sided("server", _FLOW_DIRECTION),
    ],
)

TABLES: Mapping[str, Table] = {table.name: table for table in (SEGMENTS, CONNECTIONS, LEDGER, STALLS, ACCOUNTS, MESSAGES, RATES, DATAGRAMS, FLOWS)}
"""All tables, by name."""
