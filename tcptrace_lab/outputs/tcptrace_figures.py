"""tcptrace's names → our columns: the 70 figures per direction of its long listing (`tcptrace -lrW`).

This mapping is defined only here. The export of the listing uses it, and the test that compares every figure with tcptrace. Where tcptrace
6.6.7 means something else by a name, or computes it wrongly, our figure follows `schema`, and `differs` says what tcptrace does instead.
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
        """Take a row of `schema.CONNECTIONS` (`connection`) and the sender, `client` or `server` (`side`)."""
        self.connection = connection
        self.side = side

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401  (the type depends on the column)
        """The column `name` of this direction."""
        return self.connection[f"{self.side}_{name}"]

    @property
    def other(self) -> Direction:
        """The opposite direction."""
        return Direction(self.connection, next(side for side in SIDES if side != self.side))

    @property
    def duration_ns(self) -> int | None:
        """Time from the connection's first segment to its last; None without timestamps."""
        first, last = self.connection["first_ts_ns"], self.connection["last_ts_ns"]
        return None if first is None or last is None else int(last - first)

    @property
    def data_ns(self) -> int | None:
        """Time from the first data segment to the last; None without data."""
        first, last = self["first_data_ts_ns"], self["last_data_ts_ns"]
        return None if first is None or last is None else int(last - first)


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of the listing.

    Attributes:
        name: tcptrace's name in its comma-separated output, without `_a2b` and `_b2a`.
        label: its name in the long listing.
        value: the figure, in the unit that tcptrace prints; None if unknown.
        columns: the columns that it is computed from, without endpoint prefix.
        unit: the unit that the listing prints after it.
        form: its format.
        differs: what tcptrace 6.6.7 does where its figure is not ours; empty if there is no reason to differ.
    """

    name: str
    label: str
    value: Callable[[Direction], Value]
    columns: tuple[str, ...]
    unit: str = ""
    form: str = "8d"
    differs: str = ""

    def text(self, direction: Direction) -> str:
        """Return the figure as the listing prints it, without blanks; `NA` if unknown."""
        value = self.value(direction)
        if value is None:
            return "NA"
        return value if isinstance(value, str) else format(value, self.form).strip()


def _column(label: str, column: str, unit: str = "", *, differs: str = "", name: str = "") -> Figure:
    """Return a figure that is one column."""
    return Figure(name or label.replace(" ", "_"), label, lambda direction: direction[column], (column,), unit, differs=differs)


def _time(label: str, column: str, *, differs: str = "", name: str = "") -> Figure:
    """Return a figure that is one column in nanoseconds, printed in milliseconds."""
    return Figure(name or label.replace(" ", "_"), label, lambda direction: _ms(direction[column]), (column,), "ms", "8.1f", differs)


def _ms(nanoseconds: int | None) -> float | None:
    return None if nanoseconds is None else nanoseconds / 1e6


def _yes(flag: bool | None) -> str:  # noqa: FBT001  (converts a bool to text)
    return "Y" if flag else "N"


def _throughput(direction: Direction) -> float | None:
    """Unique bytes per second of the connection's life."""
    duration_ns = direction.duration_ns
    return direction["unique_bytes"] * NS_PER_S / duration_ns if duration_ns else None


def _copies(direction: Direction) -> int:
    return int(direction["capture_duplicates"] + direction["network_duplicates"])


def _data_time_s(direction: Direction) -> float | None:
    """Time from first to last data in seconds; None without data, and if the clock ran backwards."""
    data_ns = direction.data_ns
    return None if data_ns is None or data_ns < 0 else data_ns / NS_PER_S


_SEGMENTS = "counts copies of packets, too, and segments that the link threw away or whose header contradicts itself as its own way of reading them has it"
_HOLE = "whatever lies below the highest byte seen and is not seen before is out of order for it, resent or not; ours is out of order only if timestamps, IP identifications or the time say so"
_RESENT = f"{_HOLE}; what is sent into a closed window is never resent for it, keepalives with a byte are, and it counts one byte for a SYN or FIN"
_PROBES = "every segment with data or FIN that comes after a window of 0 is a probe, be it full-sized and on its way already"
_WINDOWS = (
    "once both sides scale, it forgets the windows of the SYNs (ours counts them as advertised) and begins with the first that is not 0"
)
_MIN_WINDOW = "passes windows of 0 over, and takes those of SYNs unless both sides scale"
_MEAN_WINDOW = "divides the sum, with the windows of SYNs unless both sides scale, by all segments, with those that carry no window"
_IN_FLIGHT = "takes the acknowledgment for the last byte received, so it counts one too many; no FIN; the last ACK even if it is an old one; beyond 2^32 or below 0 it wraps"
_RTT = "takes samples of segments with which resent ones were acknowledged, and none of data in closed windows; a smallest sample of 0 µs counts as none; cuts to microseconds"
_STDEV = "0 for two samples"
_FULL_SIZE = "takes a segment of one sequence number (a SYN) for one of 2^32 bytes, so that SYNs push all samples of data out"
_LAST = "takes no account of what was lost with it"
_WAITS = "counts bytes that came late as resent; a shortest time of 0 µs counts as none"
_INITIAL = "0 data has been acknowledged until an ACK of something else than the SYN + 1, so it counts in mid-stream, too"
_DUPLICATES = "the ACKs that this side *received* (ours are counted where they are sent); takes any repeated ACK with the same window and no data for a duplicate, with nothing outstanding, too"
_STREAM = "with a RST it takes the last number seen for the FIN's; numbers of data behind the FIN, or of a FIN before the SYN, wrap"
_DUPS = "same sequence number and IP identification among the last segments: a constant identification (RFC 6864) makes every repeated number a duplicate"


def _figures() -> tuple[Figure, ...]:
    return (*_counts(), *_sizes(), *_round_trips(), *_acks())


def _counts() -> tuple[Figure, ...]:
    return (
        _column("total packets", "segments", differs=_SEGMENTS),
        _column("resets sent", "rst_segments"),
        _column("ack pkts sent", "ack_segments", differs=_SEGMENTS),
        _column("pure acks sent", "pure_acks", differs="none of the segments without the ACK flag"),
        _column("sack pkts sent", "sack_segments", differs="only segments with the ACK flag"),
        _column(
            "dsack pkts sent",
            "dsack_segments",
            differs="compares sequence numbers as 64-bit numbers, so that it is wrong about the wrap; two overlapping blocks count as a D-SACK",
        ),
        _column("max sack blks/ack", "max_sack_blocks", differs="only of segments with the ACK flag"),
        _column(
            "unique bytes sent",
            "unique_bytes",
            differs="nothing of what is sent into a closed window; what wraps or comes before the first byte seen is lost to it",
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
            differs="takes the options of any segment, ours those of the SYN",
        ),
        Figure(
            "adv_wind_scale",
            "adv wind scale",
            lambda direction: direction["window_scale"],
            ("window_scale",),
            differs="the scale that was asked for, until a segment without SYN shows that both did not agree; shifts above 14 as they are",
        ),
        Figure(
            "req_sack",
            "req sack",
            lambda direction: _yes(direction["sack_permitted"]),
            ("sack_permitted",),
            differs="takes the option of any segment, ours that of the SYN",
        ),
        _column("sacks sent", "sack_segments"),
        _column("urgent data pkts", "urgent_segments", "pkts"),
        _column("urgent data bytes", "urgent_bytes", "bytes", differs="adds up urgent pointers, even where they point behind the segment"),
    )


def _sizes() -> tuple[Figure, ...]:
    return (
        _column(
            "mss requested",
            "mss_bytes",
            "bytes",
            differs="above 32767 its number is negative and printed as one near 2^32; the last option, ours the first; in any segment",
        ),
        _column("max segm size", "max_segment_bytes", "bytes"),
        _column("min segm size", "min_segment_bytes", "bytes"),
        _column(
            "avg segm size",
            "mean_segment_bytes",
            "bytes",
            differs="rounds down, and divides by the count and a thousandth: a mean of 120 is 119",
        ),
        _column("max win adv", "max_window_bytes", "bytes", differs=_WINDOWS),
        _column("min win adv", "min_window_bytes", "bytes", differs=_MIN_WINDOW),
        _column("zero win adv", "zero_window_advertisements", "times", differs="only segments with ACK"),
        _column("avg win adv", "mean_window_bytes", "bytes", differs=_MEAN_WINDOW),
        _column("max owin", "max_in_flight_bytes", "bytes", differs=_IN_FLIGHT),
        _column("min non-zero owin", "min_in_flight_bytes", "bytes", differs=_IN_FLIGHT),
        _column("avg owin", "mean_in_flight_bytes", "bytes", differs=_IN_FLIGHT),
        _column(
            "wavg owin",
            "time_mean_in_flight_bytes",
            "bytes",
            differs="what was in flight at one segment lasts for it until the next one is sent, whatever is acknowledged in between; one too many as above; nothing behind the last segment",
        ),
        _column("initial window", "initial_window_bytes", "bytes", name="initial_window_bytes", differs=_INITIAL),
        _column("initial window", "initial_window_segments", "pkts", name="initial_window_pkts", differs=_INITIAL),
        _column("ttl stream length", "stream_bytes", "bytes", differs=_STREAM),
        _column("missed data", "missing_bytes", "bytes", differs=_STREAM),
        _column("truncated data", "cut_bytes", "bytes", differs=_SEGMENTS),
        _column("truncated packets", "cut_segments", "pkts", differs=_SEGMENTS),
        Figure("data_xmit_time", "data xmit time", _data_time_s, ("first_data_ts_ns", "last_data_ts_ns"), "secs", "7.3f"),
        _time("idletime max", "max_idle_ns", differs="of connections that were not closed, also the time to the end of the capture"),
        Figure("hardware_dups", "hardware dups", _copies, ("capture_duplicates", "network_duplicates"), "segs", differs=_DUPS),
        Figure("throughput", "throughput", _throughput, ("unique_bytes",), "Bps", "8.0f", differs="by its unique bytes"),
    )


def _round_trips() -> tuple[Figure, ...]:
    return (
        _column("RTT samples", "rtt_samples", differs=_RTT),
        _time("RTT min", "rtt_min_ns", differs=_RTT),
        _time("RTT max", "rtt_max_ns", differs=_RTT),
        _time("RTT avg", "rtt_mean_ns", differs=_RTT),
        _time("RTT stdev", "rtt_stdev_ns", differs=f"{_STDEV}; {_RTT}"),
        _time("RTT from 3WHS", "rtt_handshake_ns", differs="the last sample before each segment that acknowledges the SYN and no more"),
        _column("RTT full_sz smpls", "rtt_full_size_samples", differs=_FULL_SIZE),
        _time("RTT full_sz min", "rtt_full_size_min_ns", differs=_FULL_SIZE),
        _time("RTT full_sz max", "rtt_full_size_max_ns", differs=_FULL_SIZE),
        _time("RTT full_sz avg", "rtt_full_size_mean_ns", differs=_FULL_SIZE),
        _time("RTT full_sz stdev", "rtt_full_size_stdev_ns", name="RTT_full_sz_stdev", differs=_FULL_SIZE),
        _column("post-loss acks", "post_loss_acks", differs=_LAST),
        _column("ambiguous acks", "rtt_resent_samples", differs=_LAST),
        _time("RTT min (last)", "rtt_resent_min_ns", differs=_LAST),
        _time("RTT max (last)", "rtt_resent_max_ns", differs=_LAST),
        _time("RTT avg (last)", "rtt_resent_mean_ns", differs=_LAST),
        _time("RTT sdv (last)", "rtt_resent_stdev_ns", differs=_LAST),
    )


def _acks() -> tuple[Figure, ...]:
    return (
        _column(
            "segs cum acked",
            "cumulatively_acked_segments",
            differs="an ACK inside a segment acknowledges it as a whole; splits segments where resent ones begin and end",
        ),
        Figure(
            "duplicate_acks",
            "duplicate acks",
            lambda direction: direction.other["duplicate_acks"],
            ("duplicate_acks",),
            differs=_DUPLICATES,
        ),
        _column("triple dupacks", "triple_duplicate_acks", differs=_DUPLICATES),
        _column("max # retrans", "max_resends", differs=_WAITS),
        _time("min retr time", "resend_wait_min_ns", differs=_WAITS),
        _time("max retr time", "resend_wait_max_ns", differs=_WAITS),
        _time("avg retr time", "resend_wait_mean_ns", differs=_WAITS),
        _time("sdv retr time", "resend_wait_stdev_ns", differs=f"{_STDEV}; {_WAITS}"),
    )


FIGURES = _figures()
"""All figures, in the order of the listing."""
