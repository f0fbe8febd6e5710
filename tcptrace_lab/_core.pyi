"""Types of the compiled engine (`rust/src/python.rs`)."""

from collections.abc import Sequence
from typing import Any, Final, Self, TypeAlias, TypedDict, final, type_check_only

__all__ = [
    "LINES",
    "MARKS",
    "MAX_NEIGHBOURS",
    "ArrowStream",
    "Engine",
    "EngineError",
    "Messages",
    "Series",
    "Tracker",
    "line_points",
    "unpack",
]

MAX_NEIGHBOURS: Final[int]
"""Number of connections up to which each is judged with what others between the same hosts show about their path."""

@type_check_only
class LinkInfo(TypedDict):
    id: int
    name: str
    packets: int
    supported: bool

@type_check_only
class CaptureInfo(TypedDict):
    format: str
    link_types: list[LinkInfo]
    packets: int
    tcp_segments: int
    udp_datagrams: int
    connections: int
    first_ts_ns: int | None
    last_ts_ns: int | None
    complete: bool
    snaplen_bytes: int
    truncated_packets: int
    backward_timestamps: int
    largest_step_back_ns: int
    resolution_ns: int
    kernel_drops: int | None
    bytes_read: int
    """Bytes read from the files so far; compressed bytes if a file is compressed."""
    bytes_total: int | None
    """Total size of the files when they were opened; None if one of them is not a regular file."""

@type_check_only
class Problem(TypedDict):
    what: str
    path: str
    frame: int | None
    offset: int | None
    count: int
    loses_data: bool

_KnownConnection: TypeAlias = tuple[int, tuple[str, int], tuple[str, int], tuple[int, int]]
"""A connection known from an earlier pass: number, address and port of both endpoints, first and last frame."""

_Worth: TypeAlias = tuple[int, int, float, bool, bool]
"""When a cause is worth a finding: its code, minimum time in nanoseconds, minimum share of the direction's active time, whether only the
client's direction counts, and whether only directions with data count."""

@final
class ArrowStream:
    """A stream of record batches, which can be read once through the Arrow C stream interface."""
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> Any: ...

@final
class Engine:
    """One pass over one capture (one file, several merged by time, or stdin as "-").

    The engine computes only what is requested: without `summaries`, `wait_ns`, `smss_bytes`, `ledger` and `worth`, a pass takes half the
    time.
    """

    def __new__(
        cls,
        paths: Sequence[str],
        batch_rows: int = ...,
        columns: Sequence[str] | None = ...,
        only: Sequence[_KnownConnection] | None = ...,
        datagrams: bool = ...,
        flows: bool = ...,
        summaries: bool = ...,
        ledger: Sequence[str] | None = ...,
        worth: Sequence[_Worth] | None = ...,
        most: int = ...,
        in_capture: int = ...,
        waits_memory_bytes: int = ...,
        threads: int | None = ...,
    ) -> Self:
        """Open the files and start to read.

        Args:
            paths: the files of one capture.
            batch_rows: rows per batch.
            columns: requested columns of `schema.SEGMENTS`; None: all; empty: no segment rows.
            only: connections of an earlier pass whose segments are requested; None: all.
            datagrams: whether to return UDP datagrams.
            flows: whether to return UDP flows (`schema.FLOWS`).
            summaries: whether to return connections.
            ledger: requested columns of `schema.WAITS`; None: no ledger.
            worth: which times are worth a finding (`tcptrace_lab.engine.reread.Worth`). With it, `pull` returns accounts and notes, and the
                evidence for findings is kept. None: waits are not classified for findings.
            most: number of costs, largest first, whose evidence is kept.
            in_capture: number of connections of the capture, if `only` leaves some out (0: unknown). If there are at most `MAX_NEIGHBOURS`,
                those between the same hosts are judged with what they show about the path; `only` needs all of these.
            waits_memory_bytes: memory for the waits of open connections (64 MB), and as much for those of ended ones that may be judged
                with others. More goes to an unnamed file in `TMPDIR`.
            threads: threads that share the connections if no segment columns are requested; default: one per processor. The result does not
                depend on it.
        """
    def drain(self) -> int:
        """Read and discard all batches. Return the number of segment and datagram rows."""
    def segments(self, max_rows: int | None = None) -> ArrowStream:
        """Return the next segment rows: at least `max_rows` (rounded up to whole batches) or all that remain; empty at the end."""
    def pull(
        self, max_rows: int
    ) -> (
        tuple[
            ArrowStream,
            ArrowStream,
            ArrowStream | None,
            ArrowStream | None,
            ArrowStream | None,
            ArrowStream | None,
            ArrowStream | None,
        ]
        | None
    ):
        """Return the next rows of segments, ledger, datagrams, connections, flows, accounts and notes; None at the end of the capture.

        Any of the last five is None if it has no rows. Together they have at least `max_rows` rows (a connection counts as 32). They have
        fewer if four times as many segments were read, or if no more remain. A connection or flow comes after its last segment or datagram,
        or at the end of the capture; they are not in the order of their numbers.

        Accounts (`schema.ACCOUNTS`), ledger (`schema.LEDGER`: grouped by connection, the client's direction first, in time order) and notes
        come after their connection. Notes are the facts about departures that messages need, by `conn frame`: `stall_cause` (null if TCP
        did not delay it that long), `caused_ns` (how long TCP delayed it), `short_nagle_delay` (Nagle's algorithm delayed it, for less than
        a stall), `paused` (the application paused before it) and `is_resent`. A departure without any of these has no row.

        Raises:
            OSError: no room for temporary files.
        """
    def connections(self) -> ArrowStream:
        """Return all connections that were not pulled, in no defined order. Reads the rest of the capture first."""
    def kinds(self) -> ArrowStream:
        """Return each cause of each direction that has a cost worth a finding (`schema.KINDS_OF_WAITS`). Reads to the end first."""
    def waits(self) -> ArrowStream:
        """Return the longest waits of the directions of `kinds` (`schema.LONGEST`). Reads the rest of the capture first."""
    def locks(self) -> ArrowStream:
        """Return throughput deadlocks in the directions of `kinds` (`schema.LOCKS`). Reads the rest of the capture first."""
    def directions(self) -> ArrowStream:
        """Return capture point and RTT of all directions of these connections (`schema.PLACES`). Reads the rest of the capture first."""
    def revisions(self) -> ArrowStream:
        """Return what later segments prove about earlier ones (`engine.revisions`), in that order. Reads to the end first."""
    def flows(self) -> ArrowStream:
        """Return all UDP flows that were not pulled. Reads the rest of the capture first."""
    def segments_seen(self) -> int:
        """Return the number of segments read so far, requested or not."""
    def info(self) -> CaptureInfo:
        """Return facts about the capture. Before the end of the capture: only those in the file headers, and how much was read."""
    def problems(self) -> list[Problem]:
        """Return the problems so far that did not stop the reading; final at the end of the capture."""

@final
class Messages:
    """Makes application messages from the segments of some connections, in capture order (`rust/src/messages.rs`).

    Tables come through the Arrow C stream interface. Their categories are codes, here and in what is returned.
    """

    def __new__(cls, notes: object) -> Self:
        """Start with rows of `schema.NOTES` of these connections. They are kept."""
    def add(self, segments: object) -> ArrowStream:
        """Add rows of `schema.SEGMENTS` and return the messages that are final, by connection, the server's first, in time order.

        The columns are `conn`, `from_client`, `frame`, `ts_ns`, `seq`, `ack`, `payload_bytes`, `flags`, `kind`, `acked_bytes`,
        `acked_unseen_bytes` and `smss_bytes`. A message is final when its direction has a later one and it is ACKed, or when its direction
        has 64 later ones.

        Raises:
            EngineError: a column is missing, or has another type.
        """
    def rest(self) -> ArrowStream:
        """Return the messages that `add` did not return, ordered as by `add`."""

LINES: Final[list[str]]
"""Names of the lines of a direction's figures."""

MARKS: Final[list[str]]
"""Names of the marks in its time-sequence figure: kinds of the sender's segments, then other signs of both hosts. `zero_window`,
`peer_reset` and `duplicate_ack` are segments of the receiver; `sack` is one per block of its SACK options."""

@final
class Tracker:
    """Tracks the state of one direction through the segments of its connection, in capture order (`rust/src/figures/state.rs`)."""

    def __new__(cls, first_ts_ns: int, from_client: bool, state: tuple[int | None, int | None, int | None] = ...) -> Self:
        """Start with the `state` before the first segment to follow."""
    def follow(self, rows: object) -> ArrowStream:
        """Take the next rows of `schema.SEGMENTS`, of both directions and with times, and return what tracking adds to each.

        The columns read are `frame`, `ts_ns`, `from_client`, `seq`, `ack`, `payload_bytes`, `flags`, `window_bytes`, `sack_blocks`,
        `kind` (code), `ack_lag_ns` and `rtt_ns`. Those returned are `t_ns` since `first_ts_ns`; `mine` (sent in this direction); the stream
        offsets `sent`, `acked` and `edge` (of the window) after the segment, and `sent_before`; `flight` and `offered` in bytes.

        Raises:
            EngineError: a column is missing, or has another type.
        """
    @property
    def state(self) -> tuple[int | None, int | None, int | None]:
        """Highest offset sent, highest offset ACKed, and right edge of the window after the rows so far; None while unknown."""

@final
class Series:
    """Collects the series of one direction's figures with a bounded number of points (`rust/src/figures/`).

    Tables come through the Arrow C stream interface. Their categories are codes.
    """

    def __new__(cls, bin_ns: int, run: int, silence_ns: int, pixel_ns: int) -> Self:
        """Start without points.

        Args:
            bin_ns: length of a throughput bin.
            run: number of data segments that may share a stroke.
            silence_ns: a pause longer than this ends a stroke.
            pixel_ns: shortest band of causes.
        """
    def add(self, rows: object) -> None:
        """Add the next rows of the connection, with the columns that `Tracker.follow` read and returned. Raises EngineError as it does."""
    def skip(self, rows: object) -> None:
        """Take rows before those that are drawn: they may open holes that later rows fill. Raises EngineError as `add` does."""
    def add_waits(self, waits: object) -> None:
        """Add the next intervals of the direction: `start_ns end_ns cause`. Raises EngineError as `add` does."""
    def mark_counts(self) -> list[int]:
        """Return the number of marks of each name in `MARKS`."""
    def finish(
        self, keep: int, granted: Sequence[int]
    ) -> tuple[ArrowStream, list[tuple[int, ArrowStream]], list[tuple[int, ArrowStream]], ArrowStream, list[tuple[int, int, str]]]:
        """Return the series and start anew.

        Args:
            keep: number of points of a line.
            granted: number of marks of each name in `MARKS`.

        Returns:
            Bursts (`t_ns t_end_ns low high segments payload_bytes frame frame_end`); lines (`t_ns y frame`) and marks (`t_ns low
            payload_bytes frame`), each with the number of points before they were reduced; throughput (`t_ns unique_bytes`); bands of
            causes (start, end, cause).
        """

def line_points(points: object, keep: int) -> ArrowStream:
    """Return about `keep` of the points (`t_ns y frame`) that draw the same line.

    Raises:
        EngineError: a column is missing, or has another type.
    """

class EngineError(Exception):
    """Nothing could be read. `kind` is one of io, not_a_capture, unsupported, cut, damaged."""

    kind: str
    what: str
    path: str
    offset: int | None
    frame: int | None

def unpack(source: str, target: str) -> str | None:
    """Decompress the file `source` into `target`. Return what ended the decompression early, or None.

    Raises:
        EngineError: `source` cannot be opened, or its compression is unknown.
        OSError: `target` cannot be written.
    """
