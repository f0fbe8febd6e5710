"""Types of the compiled engine (`rust/src/python.rs`)."""

from collections.abc import Sequence
from typing import Any, Self, TypeAlias, TypedDict, final, type_check_only

__all__ = ["ArrowStream", "Engine", "EngineError", "unpack"]

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
    snaplen_cut: int
    clock_steps: int
    resolution_ns: int
    kernel_drops: int | None
    bytes_read: int
    """Bytes taken from the files so far, as they stand there: packed where they are."""
    bytes_total: int | None
    """What the files held when they were opened; None if one of them is no regular file."""

@type_check_only
class Problem(TypedDict):
    what: str
    path: str
    frame: int | None
    offset: int | None
    count: int
    loses_data: bool

_KnownConnection: TypeAlias = tuple[int, tuple[str, int], tuple[str, int], tuple[int, int]]
"""A connection known from a pass before: number, one end, the other end, first and last frame."""

_Worth: TypeAlias = tuple[int, int, float, bool, bool]
"""From when on a cause is worth a finding: its code, nanoseconds, share of the direction's life; whether only in the client's direction,
and only in directions with data."""

@final
class ArrowStream:
    """A stream of record batches, consumed once through the Arrow C stream interface."""
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> Any: ...

@final
class Engine:
    """One pass over one capture (one file, several merged by time, or stdin as "-").

    Nothing is computed that nobody wants: without `summaries`, `wait_ns`, `smss_bytes`, `ledger` and `worth`, a pass takes half the time.
    """

    def __new__(
        cls,
        paths: Sequence[str],
        batch_rows: int = ...,
        columns: Sequence[str] | None = ...,
        only: Sequence[_KnownConnection] | None = ...,
        datagrams: bool = ...,
        summaries: bool = ...,
        ledger: Sequence[str] | None = ...,
        worth: Sequence[_Worth] | None = ...,
        most: int = ...,
        waits_memory_bytes: int = ...,
        threads: int | None = ...,
    ) -> Self:
        """Open the files, and start to read.

        `ledger` are the columns of `schema.WAITS` that every interval is wanted with. With `worth`, which says what time is worth a finding
        (`tcptrace_lab.reread.Worth`), accounts and notes come with `pull`, and what findings are made of is kept of the `most` largest
        costs. What waits of live connections take beyond `waits_memory_bytes` (64 MB) of memory goes to a nameless file in `TMPDIR`.
        Where no columns of segments are wanted, connections are divided over so many `threads` (as many as there are processors); what
        comes does not depend on it.
        """
    def drain(self) -> int:
        """Run all segment batches through and drop them; the number of rows."""
    def segments(self, max_rows: int | None = None) -> ArrowStream:
        """The next segment rows: at least `max_rows` (rounded up to whole batches) or all that remain; empty at the end."""
    def pull(self, max_rows: int) -> tuple[ArrowStream, ArrowStream, ArrowStream, ArrowStream, ArrowStream, ArrowStream, ArrowStream]:
        """The next rows of segments, datagrams, connections, flows, accounts, ledger and notes.

        The rows together at least `max_rows` (a connection counts as 16), or fewer when four times as many segments went by, or all that
        remain; all empty, and `segments_seen` as before, at the end. Connections and flows come when they are over, behind their last
        segment or datagram, and the rest at the end; not in the order of their numbers.

        Accounts (`schema.ACCOUNTS`), ledger (`schema.LEDGER`: all rows of one connection before those of another, the client's direction
        first, in order of time) and notes come behind their connection. Notes are what messages have to know of departures, by
        `conn frame`: `stall_cause` (null if TCP did not hold it so long), `caused_ns` (for how long TCP held it), `brief` (Nagle's
        algorithm held it, for less than a stall), `paused` (the application paused before it) and `is_resent`. A departure without
        any of these has no row.

        Raises:
            OSError: there is no room for temporary files.
        """
    def connections(self) -> ArrowStream:
        """All connections that were not pulled; in no order. Reads the rest of the capture first."""
    def kinds(self) -> ArrowStream:
        """Each cause of each direction that has a cost worth a finding (`schema.KINDS_OF_WAITS`); the capture was read to its end."""
    def waits(self) -> ArrowStream:
        """The longest waits of these directions (`schema.LONGEST`), likewise."""
    def locks(self) -> ArrowStream:
        """Throughput deadlocks among them (`schema.LOCKS`), likewise."""
    def directions(self) -> ArrowStream:
        """Where these directions were captured (`schema.PLACES`), likewise."""
    def revisions(self) -> ArrowStream:
        """What later segments showed of earlier ones (`tcptrace_lab.revisions`), in that order. Reads the rest of the capture first."""
    def flows(self) -> ArrowStream:
        """All UDP flows that were not pulled, with `datagrams=True`: who they are between. Reads the rest of the capture first."""
    def segments_seen(self) -> int:
        """How many segments there were so far, wanted or not."""
    def info(self) -> CaptureInfo:
        """What was read. Until the segments are exhausted only what the files' headers told, and how much of the files was read."""
    def problems(self) -> list[Problem]:
        """What was survived so far; final once the segments are exhausted."""

class EngineError(Exception):
    """Nothing could be read. `kind` is one of io, not_a_capture, unsupported, cut, damaged."""

    kind: str
    what: str
    path: str
    offset: int | None
    frame: int | None

def unpack(source: str, target: str) -> str | None:
    """Write what the compressed file `source` holds into `target`; what ended that early, if anything did.

    Raises:
        EngineError: `source` cannot be opened, or is not compressed in a way that is known.
        OSError: `target` cannot be written.
    """
