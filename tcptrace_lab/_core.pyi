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

@final
class ArrowStream:
    """A stream of record batches, consumed once through the Arrow C stream interface."""
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> Any: ...

@final
class Engine:
    """One pass over one capture (one file, several merged by time, or stdin as "-").

    What nobody wants is not reckoned: without `summaries`, and without any of the columns from `held_ns` on, it takes half the time.
    """

    def __new__(
        cls,
        paths: Sequence[str],
        batch_rows: int = ...,
        columns: Sequence[str] | None = ...,
        only: Sequence[_KnownConnection] | None = ...,
        datagrams: bool = ...,
        summaries: bool = ...,
        departures: bool = ...,
        samples: bool = ...,
    ) -> Self:
        """With `departures`, of segments only those that ended a wait (`held_ns` is known); with `samples`, times come with `pull`."""
    def drain(self) -> int:
        """Run all segment batches through and drop them; the number of rows."""
    def segments(self, max_rows: int | None = None) -> ArrowStream:
        """The next segment rows: at least `max_rows` (rounded up to whole batches) or all that remain; empty at the end."""
    def pull(self, max_rows: int) -> tuple[ArrowStream, ArrowStream, ArrowStream, ArrowStream, ArrowStream]:
        """The next rows of segments, datagrams, connections and flows; and `conn from_client ack_lag ns`, the times in between.

        The rows together at least `max_rows` (a connection counts as 16) or all that remain; all empty at the end. Connections and flows
        come when they are over, behind their last segment or datagram, and the rest at the end; not in the order of their numbers.
        """
    def connections(self) -> ArrowStream:
        """All connections that were not pulled; in no order. Reads the rest of the capture first."""
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
