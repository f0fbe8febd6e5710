"""Writes a pcapng copy of a capture with comments on the frames that are evidence.

`pcapng_copy` copies pcap and pcapng, after decompression if needed. Wireshark's `editcap` converts all other formats to pcapng; frames keep
their numbers.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import polars as pl

from tcptrace_lab import causes
from tcptrace_lab.capture import decompression, editcap, pcapng_copy, streams
from tcptrace_lab.capture.convert import PCAPNG_MAGIC
from tcptrace_lab.errors import CaptureUnreadable, MissingTool, place
from tcptrace_lab.ledger import stalls
from tcptrace_lab.process import temporary
from tcptrace_lab.text import numbers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tcptrace_lab.analysis import Analysis
    from tcptrace_lab.findings.finding import Finding

PLAIN_PCAP = frozenset({"pcap", "gzip pcap", "zstd pcap", "lz4 pcap", "xz pcap"})
"""The engine's names for pcap with standard records. Variants of pcap have other names."""

_DIRECTIONS = {None: "", True: ", from the client", False: ", from the server"}


def comments(analysis: Analysis) -> dict[int, list[str]]:
    """Return the comments by frame number. Each comment makes sense alone.

    The first frame of a connection with findings has a comment that lists them. The first evidence frame of a finding has the whole
    finding: cause, cost, share, remedies, limits, and what would disprove it. The other evidence frames refer to this frame. The frames
    before and after a stall have comments on the stall.
    """
    comments_by_frame: dict[int, list[str]] = {}
    for finding in analysis.findings:
        head = f"{finding.id} ({finding.severity}, {finding.confidence}): {finding.title}"
        for frame in finding.evidence_frames:
            words = (
                _in_full(finding, head) if frame == finding.evidence_frames[0] else f"{head} (in full: frame {finding.evidence_frames[0]})"
            )
            comments_by_frame.setdefault(frame, []).append(words)
    for frame, words in _connections(analysis):
        comments_by_frame.setdefault(frame, []).append(words)
    waits = analysis.stalls.filter(pl.col("frame_after").is_not_null()).sort("conn", "from_client", "start_ns")
    for (frame,), parts in waits.group_by("frame_after", maintain_order=True):
        comments_by_frame.setdefault(frame, []).append(_wait(parts, analysis.findings))
        before = parts.item(0, "frame_before")
        if before is not None:
            length = numbers.duration(int((parts["end_ns"] - parts["start_ns"]).sum()))
            named = ", then ".join(dict.fromkeys(parts["cause"]))
            comments_by_frame.setdefault(before, []).append(f"a wait of {length} follows, until frame {frame}: {named}")
    return comments_by_frame


def _in_full(finding: Finding, head: str) -> str:
    """Return the whole finding in sentences. The last sentence says what would disprove the finding."""
    where = [] if finding.conn is None else [f"Connection {finding.conn}{_DIRECTIONS[finding.from_client]}."]
    cost = [] if finding.cost_ns is None else [f"Cost: {_cost(finding)}."]
    remedy = [f"Remedy: {'; '.join(finding.remedy)}."] if finding.remedy else []
    return " ".join([f"{head}.", *where, f"Cause: {finding.mechanism}", *cost, *remedy, finding.limits]).strip()


def _cost(finding: Finding) -> str:
    """Return the cost of a finding: `477 ms (91% of the active time)`."""
    share = "" if finding.cost_share is None else f" ({numbers.share(finding.cost_share)} of the active time)"
    return f"{numbers.duration(finding.cost_ns or 0)}{share}"


def _connections(analysis: Analysis) -> Iterator[tuple[int, str]]:
    """Yield the first frame of each connection with findings, and a text that lists the findings with costs and frames."""
    found: dict[int, list[str]] = {}
    for finding in analysis.findings:
        if finding.conn is not None and finding.evidence_frames:
            cost = "" if finding.cost_ns is None else f", {_cost(finding)}"
            found.setdefault(finding.conn, []).append(
                f"{finding.id}{_DIRECTIONS[finding.from_client]}{cost}, frame {finding.evidence_frames[0]}"
            )
    wanted = analysis.connections.select("conn", "first_frame").filter(pl.col("conn").is_in(list(found)))
    for conn, frame in wanted.collect().iter_rows() if found else ():
        yield frame, f"findings of connection {conn}: {'; '.join(found[conn])}"


def _wait(parts: pl.DataFrame, findings: Iterable[Finding]) -> str:
    """Return `waited 43.6 ms: nagle-delayed-ack (consistent; 64 bytes in flight, …), since frame 10. Would be disproved by: …`."""
    remarks = [
        f"{numbers.duration(row['end_ns'] - row['start_ns'])}: {row['cause']} ({row['confidence']}{_because(row)})"
        for row in parts.iter_rows(named=True)
    ]
    before = parts.item(0, "frame_before")
    since = f"frame {before}" if before is not None else "the first frame of the connection"
    words = [f"waited {', then '.join(remarks)}, since {since}."]
    for cause in dict.fromkeys(parts["cause"]):
        named = f" ({cause})" if parts["cause"].n_unique() > 1 else ""
        if refuted_by := causes.of_cause(cause).refuted_by:
            words.append(f"Would be disproved by{named}: {refuted_by}.")
    own = {(row["conn"], row["from_client"], row["cause"]) for row in parts.iter_rows(named=True)}
    cures = [finding for finding in findings if finding.remedy and any(_covers(finding, *one) for one in own)]
    return " ".join([*words, *(f"Remedy ({finding.id}): {finding.remedy[0]}." for finding in cures)])


def _covers(finding: Finding, conn: int, from_client: bool, cause: str) -> bool:  # noqa: FBT001  (the column `from_client` of the tables)
    return finding.conn == conn and finding.from_client in {None, from_client} and cause in finding.causes


def _because(row: Mapping[str, Any]) -> str:
    proof = stalls.proof(row)
    return f"; {proof}" if proof else ""


@dataclass(frozen=True, slots=True)
class Spooled:
    """A capture that can be read twice.

    Attributes:
        path: the path to open.
        name: the path that the caller gave.
    """

    path: str
    name: str

    def remarks(self, words: str) -> str:
        """Replace the opened path in a message by the name that the caller gave."""
        return words if self.path == self.name else words.replace(self.path, place(self.name, None, None))


@contextlib.contextmanager
def readable_twice(path: str) -> Iterator[Spooled]:
    """Provide the capture `path` as a file that can be read twice.

    A stream (standard input, a FIFO) is copied to a temporary file that exists until the block ends.

    Raises:
        OutputUnwritable: no room for the temporary file.
        CaptureUnreadable: the stream cannot be opened.
    """
    try:
        stream = streams.opened(path)
    except OSError as error:
        raise CaptureUnreadable(error.strerror or str(error), where=path, remedy="give a file that exists and is readable") from error
    if stream is None:
        yield Spooled(path, path)
        return
    with contextlib.closing(stream), temporary.folder() as folder:
        spooled = Path(folder, "capture")
        with temporary.room(), spooled.open("wb") as file:
            stream.rest_into(file)
        yield Spooled(str(spooled), path)


def write(capture: Spooled, analysis: Analysis, target: IO[bytes]) -> int:
    """Write the annotated copy.

    Args:
        capture: the file that was analyzed.
        analysis: its analysis.
        target: receives the pcapng file.

    Returns:
        Number of frames whose comments could not be written (see `pcapng_copy.copy_pcapng`).

    Raises:
        CaptureUnreadable: the file has changed since it was analyzed.
        MissingTool: the format needs Wireshark's editcap, which is not installed.
        OutputUnwritable: no room for temporary files.
        OSError: `target` cannot be written.
    """
    comments_by_frame, packets = comments(analysis), analysis.capture["packets"]
    with decompression.plain(capture.path) as path:
        with open(path, "rb") as source:  # noqa: PTH123  (opens the path exactly as the user gave it)
            head = source.read(pcapng_copy.PCAP_HEADER_BYTES)
            source.seek(0)
            if head.startswith(PCAPNG_MAGIC):
                return pcapng_copy.copy_pcapng(source, target, comments_by_frame, packets)
            if pcapng_copy.is_plain_pcap(head) and analysis.capture["format"] in PLAIN_PCAP:
                return pcapng_copy.copy_pcap(source, target, comments_by_frame, packets)
        return _converted(editcap.File(path), capture, target, comments_by_frame, packets)


def _converted(
    file: editcap.File,
    capture: Spooled,
    target: IO[bytes],
    comments_by_frame: Mapping[int, list[str]],
    packets: int,
    method: editcap.Method = editcap.Method.PLAIN,
) -> int:
    if not editcap.is_installed():
        remedy = (
            f"Wireshark's {editcap.EDITCAP} is needed to convert it to pcapng, but is not installed "
            "(Debian: apt-get install wireshark-common)"
        )
        raise MissingTool("not a pcap or pcapng file", where=place(capture.name, None, None), remedy=remedy)
    with editcap.converted(file, method) as conversion:
        if conversion.gives_anything() and not conversion.fails_at_once():
            with open(conversion.name, "rb") as source:  # noqa: PTH123
                return pcapng_copy.copy_pcapng(source, target, comments_by_frame, packets)
        complaint = conversion.complaint() or "gives nothing"
    following = editcap.next_method(file, method)
    if following is not None:
        return _converted(file, capture, target, comments_by_frame, packets, following)
    raise CaptureUnreadable(
        "cannot be converted to pcapng", where=place(capture.name, None, None), remedy=f"Wireshark's {method.tool} {complaint}"
    )
