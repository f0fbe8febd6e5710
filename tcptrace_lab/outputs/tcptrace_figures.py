"""Maps tcptrace's names to our columns: the 70 figures per direction in its long listing (`tcptrace -lrW`).

The export of the listing uses the mapping, and so does the test that compares every figure with tcptrace. Our figures always follow
`schema`. If tcptrace 6.6.7 uses a name for something else, or computes a figure wrongly, `differs` describes what tcptrace does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tcptrace_lab.schema import SIDES
from tcptrace_lab.text.numbers import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Number = int | float | None
Value = Number | str


class Direction:
    """The figures of one direction of a connection, with access to the opposite direction."""

    def __init__(self, connection: Mapping[str, Any], side: str) -> None:
        """Take a row of `schema.CONNECTIONS`, and the sender (`client` or `server`)."""
        self.connection = connection
        self.side = side

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401  (the type depends on the column)
        """Return the column `name` of this direction."""
        return self.connection[f"{self.side}_{name}"]

    @property
    def other(self) -> Direction:
        """The opposite direction."""
        return Direction(self.connection, next(side for side in SIDES if side != self.side))

    @property
    def duration_ns(self) -> int | None:
        """The time from the connection's first segment to its last segment; None without timestamps."""
        first, last = self.connection["first_ts_ns"], self.connection["last_ts_ns"]
        return None if first is None or last is None else int(last - first)

    @property
    def data_ns(self) -> int | None:
        """The time from the first data segment to the last data segment; None without data."""
        first, last = self["first_data_ts_ns"], self["last_data_ts_ns"]
        return None if first is None or last is None else int(last - first)


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of the listing.

    Attributes:
        name: tcptrace's name in its comma-separated output, without `_a2b` and `_b2a`.
        label: its name in the long listing.
        value: the figure, in the unit that tcptrace prints; None if unknown.
        columns: the columns from which the figure is computed, without endpoint prefix.
        unit: the unit that the listing prints after the value.
        form: its format.
        differs: why the figure of tcptrace 6.6.7 can differ from ours, without the subject ("counts ..."); empty if it never differs.
    """

    name: str
    label: str
    value: Callable[[Direction], Value]
    columns: tuple[str, ...]
    unit: str = ""
    form: str = "8d"
    differs: str = ""

    def text(self, direction: Direction) -> str:
        """Return the figure as tcptrace's listing prints it, without blanks; `NA` if unknown."""
        value = self.value(direction)
        if value is None:
            return "NA"
        return value if isinstance(value, str) else format(value, self.form).strip()


def _column(label: str, column: str, unit: str = "", *, differs: str = "", name: str = "") -> Figure:
    """Return a figure of the listing whose value is one of our columns."""
    return Figure(name or label.replace(" ", "_"), label, lambda direction: direction[column], (column,), unit, differs=differs)


def _time(label: str, column: str, *, differs: str = "", name: str = "") -> Figure:
    """Return a figure of the listing whose value is one of our columns, converted from nanoseconds to milliseconds."""
    return Figure(name or label.replace(" ", "_"), label, lambda direction: _ms(direction[column]), (column,), "ms", "8.1f", differs)


def _ms(nanoseconds: int | None) -> float | None:
    return None if nanoseconds is None else nanoseconds / 1e6


def _yes(flag: bool | None) -> str:  # noqa: FBT001  (converts a bool to text)
    return "Y" if flag else "N"


def _throughput(direction: Direction) -> float | None:
    """Return the unique bytes per second over the life of the connection."""
    duration_ns = direction.duration_ns
    return direction["unique_bytes"] * NS_PER_S / duration_ns if duration_ns else None


def _copies(direction: Direction) -> int:
    return int(direction["capture_duplicates"] + direction["network_duplicates"])


def _data_time_s(direction: Direction) -> float | None:
    """Return the time from the first to the last data segment in seconds; None without data, or if the clock ran backwards."""
    data_ns = direction.data_ns
    return None if data_ns is None or data_ns < 0 else data_ns / NS_PER_S


_SEGMENTS = "also counts duplicates, segments that the link discarded, and segments with contradictory headers"
_HOLE = "counts as out of order all segments with new bytes below the highest byte seen, even retransmits; ours are out of order only if timestamps, IP IDs or the delay show it"
_RESENT = f"{_HOLE}; counts keepalives with a byte as retransmitted, but never segments sent into a zero window; counts one byte for a SYN or FIN"
_PROBES = "counts as a probe every segment with data or FIN after a zero window, even a full-sized segment that was already in flight"
_WINDOWS = (
    "ignores the windows of SYNs if both sides scale (ours counts them), and begins with the first nonzero window"
)
_MIN_WINDOW = "ignores zero windows; counts the windows of SYNs unless both sides scale"
_MEAN_WINDOW = "adds the windows of SYNs unless both sides scale; divides the sum by the number of all segments, even if some have no window"
_IN_FLIGHT = "treats the ACK number as the last byte received, and so counts one byte too many; ignores FINs; uses the last ACK even if it is old; wraps below 0 and above 2^32"
_RTT = "also takes samples from segments that were ACKed together with retransmitted ones, but not from data sent into a zero window; treats a minimum of 0 µs as unset; truncates to microseconds"
_STDEV = "prints 0 for two samples"
_FULL_SIZE = "counts a segment of one sequence number (a SYN) as 2^32 bytes, so that SYNs displace all samples of data"
_LAST = "ignores losses before the ACK"
_WAITS = "counts out-of-order bytes as retransmitted; treats a minimum of 0 µs as unset"
_INITIAL = "counts until the first ACK of data, even if the capture begins in mid-stream"
_DUPLICATES = "counts the ACKs that this side *received* (ours: those it sent), and any repeated ACK with an equal window and without data, even if no data is in flight"
_STREAM = "with a RST, treats the last sequence number as that of a FIN; wraps for data after the FIN, and for a FIN before the SYN"
_DUPS = "counts equal sequence numbers with equal IP IDs among the last segments; with a constant IP ID (RFC 6864), counts every repeated sequence number"


def _figures() -> tuple[Figure, ...]:
    return (*_counts(), *_sizes(), *_round_trips(), *_acks())


def _counts() -> tuple[Figure, ...]:
    return (
        _column("total packets", "segments", differs=_SEGMENTS),
        _column("resets sent", "rst_segments"),
        _column("ack pkts sent", "ack_segments", differs=_SEGMENTS),
        _column("pure acks sent", "pure_acks", differs="does not count segments without the ACK flag"),
        _column("sack pkts sent", "sack_segments", differs="counts only segments with the ACK flag"),
        _column(
            "dsack pkts sent",
            "dsack_segments",
            differs="compares sequence numbers as 64-bit numbers, which is wrong when they wrap; counts two overlapping blocks as a D-SACK",
        ),
        _column("max sack blks/ack", "max_sack_blocks", differs="uses only segments with the ACK flag"),
        _column(
            "unique bytes sent",
            "unique_bytes",
            differs="ignores bytes sent into a zero window, bytes after a wrap, and bytes before the first one seen",
        ),
        _column("actual data pkts", "data_segments", differs=_SEGMENTS),
        _column("actual data bytes", "payload_bytes", differs=_SEGMENTS),
        _column("rexmt data pkts", "retransmitted_segments", differs=_RESENT),
        _column("rexmt data bytes", "retransmitted_bytes", differs=_RESENT),
        _column("zwnd probe pkts", "zero_window_probes", differs=_PROBES),
        _column("zwnd probe bytes", "zero_window_probe_bytes", differs=_PROBES),
        _column("outoforder pkts", "out_of_order_segments", differs=_HOLE),
        _column("pushed data pkts", "pushed_data_segments"),
        Figure(
            "SYN/FIN_pkts_sent",
            "SYN/FIN pkts sent",
            lambda direction: f"{direction['syn_segments']}/{direction['fin_segments']}",
            ("syn_segments", "fin_segments"),
        ),
        Figure(
            "req_1323_ws/ts",
            "req 1323 ws/ts",
            lambda direction: f"{_yes(direction['window_scale_offered'] is not None)}/{_yes(direction['timestamps'])}",
            ("window_scale_offered", "timestamps"),
            differs="reads the options of any segment; ours are those of the SYN",
        ),
        Figure(
            "adv_wind_scale",
            "adv wind scale",
            lambda direction: direction["window_scale"],
            ("window_scale",),
            differs="shows the offered scale until a segment without SYN shows that the peer offered none; does not limit it to 14",
        ),
        Figure(
            "req_sack",
            "req sack",
            lambda direction: _yes(direction["sack_permitted"]),
            ("sack_permitted",),
            differs="reads the option of any segment; ours is that of the SYN",
        ),
        _column("sacks sent", "sack_segments"),
        _column("urgent data pkts", "urgent_segments", "pkts"),
        _column("urgent data bytes", "urgent_bytes", "bytes", differs="adds up urgent pointers, even those that point beyond the segment"),
    )


def _sizes() -> tuple[Figure, ...]:
    return (
        _column(
            "mss requested",
            "mss_bytes",
            "bytes",
            differs="prints an MSS above 32,767 as a number near 2^32; uses the last option of any segment; ours is the first",
        ),
        _column("max segm size", "max_segment_bytes", "bytes"),
        _column("min segm size", "min_segment_bytes", "bytes"),
        _column(
            "avg segm size",
            "mean_segment_bytes",
            "bytes",
            differs="divides by the count plus 0.001, and rounds down: a mean of 120 is 119",
        ),
        _column("max win adv", "max_window_bytes", "bytes", differs=_WINDOWS),
        _column("min win adv", "min_window_bytes", "bytes", differs=_MIN_WINDOW),
        _column("zero win adv", "zero_window_advertisements", "times", differs="counts only segments with the ACK flag"),
        _column("avg win adv", "mean_window_bytes", "bytes", differs=_MEAN_WINDOW),
        _column("max owin", "max_in_flight_bytes", "bytes", differs=_IN_FLIGHT),
        _column("min non-zero owin", "min_in_flight_bytes", "bytes", differs=_IN_FLIGHT),
        _column("avg owin", "mean_in_flight_bytes", "bytes", differs=_IN_FLIGHT),
        _column(
            "wavg owin",
            "time_mean_in_flight_bytes",
            "bytes",
            differs="keeps the value at one segment until the next one is sent, even if ACKs arrive in between; counts one byte too many; ignores the time after the last segment",
        ),
        _column("initial window", "initial_window_bytes", "bytes", name="initial_window_bytes", differs=_INITIAL),
        _column("initial window", "initial_window_segments", "pkts", name="initial_window_pkts", differs=_INITIAL),
        _column("ttl stream length", "stream_bytes", "bytes", differs=_STREAM),
        _column("missed data", "missing_bytes", "bytes", differs=_STREAM),
        _column("truncated data", "truncated_bytes", "bytes", differs=_SEGMENTS),
        _column("truncated packets", "truncated_segments", "pkts", differs=_SEGMENTS),
        Figure("data_xmit_time", "data xmit time", _data_time_s, ("first_data_ts_ns", "last_data_ts_ns"), "secs", "7.3f"),
        _time("idletime max", "max_gap_ns", differs="for open connections, includes the time to the end of the capture"),
        Figure("hardware_dups", "hardware dups", _copies, ("capture_duplicates", "network_duplicates"), "segs", differs=_DUPS),
        Figure("throughput", "throughput", _throughput, ("unique_bytes",), "Bps", "8.0f", differs="uses its own count of unique bytes"),
    )


def _round_trips() -> tuple[Figure, ...]:
    return (
        _column("RTT samples", "rtt_samples", differs=_RTT),
        _time("RTT min", "rtt_min_ns", differs=_RTT),
        _time("RTT max", "rtt_max_ns", differs=_RTT),
        _time("RTT avg", "rtt_mean_ns", differs=_RTT),
        _time("RTT stdev", "rtt_stdev_ns", differs=f"{_STDEV}; {_RTT}"),
        _time("RTT from 3WHS", "rtt_handshake_ns", differs="uses the last sample before each segment that acknowledges only the SYN"),
        _column("RTT full_sz smpls", "rtt_full_size_samples", differs=_FULL_SIZE),
        _time("RTT full_sz min", "rtt_full_size_min_ns", differs=_FULL_SIZE),
        _time("RTT full_sz max", "rtt_full_size_max_ns", differs=_FULL_SIZE),
        _time("RTT full_sz avg", "rtt_full_size_mean_ns", differs=_FULL_SIZE),
        _time("RTT full_sz stdev", "rtt_full_size_stdev_ns", name="RTT_full_sz_stdev", differs=_FULL_SIZE),
        _column("post-loss acks", "post_loss_acks", differs=_LAST),
        _column("ambiguous acks", "rtt_retransmitted_samples", differs=_LAST),
        _time("RTT min (last)", "rtt_retransmitted_min_ns", differs=_LAST),
        _time("RTT max (last)", "rtt_retransmitted_max_ns", differs=_LAST),
        _time("RTT avg (last)", "rtt_retransmitted_mean_ns", differs=_LAST),
        _time("RTT sdv (last)", "rtt_retransmitted_stdev_ns", differs=_LAST),
    )


def _acks() -> tuple[Figure, ...]:
    return (
        _column(
            "segs cum acked",
            "cumulatively_acked_segments",
            differs="treats a segment as ACKed if an ACK falls inside it; splits segments where retransmitted segments begin and end",
        ),
        Figure(
            "duplicate_acks",
            "duplicate acks",
            lambda direction: direction.other["duplicate_acks"],
            ("duplicate_acks",),
            differs=_DUPLICATES,
        ),
        _column("triple dupacks", "triple_duplicate_acks", differs=_DUPLICATES),
        _column("max # retrans", "max_retransmits", differs=_WAITS),
        _time("min retr time", "retransmit_interval_min_ns", differs=_WAITS),
        _time("max retr time", "retransmit_interval_max_ns", differs=_WAITS),
        _time("avg retr time", "retransmit_interval_mean_ns", differs=_WAITS),
        _time("sdv retr time", "retransmit_interval_stdev_ns", differs=f"{_STDEV}; {_WAITS}"),
    )


FIGURES = _figures()
"""All figures, in the order of the listing."""
