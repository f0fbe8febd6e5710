"""Captures of formats that the engine does not read (snoop, Network Monitor, …), read through Wireshark's `editcap`.

The engine is asked first. What it refuses for its format is given to editcap, which writes it as pcapng to a pipe; the engine reads
that while it is written, and frames have the numbers that Wireshark gives them. A stream (standard input, a FIFO) goes to a temporary
file first, and so does what is packed in a way that Wireshark does not open: most of these formats cannot be read from a pipe.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Protocol, TypeVar

from tcptrace_lab import editcap, streams
from tcptrace_lab._core import Engine, EngineError, unpack
from tcptrace_lab.errors import CaptureUnreadable, MissingTool, NotACapture, OutputUnwritable, from_engine, place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tcptrace_lab._core import CaptureInfo, Problem

KNOWN, UNKNOWN = "unsupported", "not_a_capture"
"""Kinds of the engine's errors with which editcap may help: a format that the engine knows by name, and one that it does not."""

PCAPNG_MAGIC = b"\n\r\r\n"
"""The type of the block that begins a pcapng file."""

FORMAT_WORDS = {
    "5views": "InfoVista 5View",
    "btsnoop": "Bluetooth btsnoop",
    "commview-ncf": "CommView",
    "commview-ncfx": "CommView",
    "erf": "Endace ERF",
    "iptrace_1": "AIX iptrace",
    "iptrace_2": "AIX iptrace",
    "lanalyzer": "Novell LANalyzer",
    "netmon1": "Microsoft Network Monitor 1",
    "netmon2": "Microsoft Network Monitor 2",
    "nettl": "HP-UX nettl",
    "ngsniffer": "Sniffer (DOS)",
    "ngwsniffer_1_1": "NetXRay",
    "ngwsniffer_2_0": "Sniffer (Windows)",
    "observer": "Network Instruments Observer",
    "rf5": "Tektronix K12",
    "snoop": "Sun snoop",
    "visual": "Visual Networks",
}
"""Wireshark's short names of formats → what people call them. Others are called by their short names."""


class Read(Protocol):
    """What was made of a capture."""

    @property
    def info(self) -> CaptureInfo:
        """What the engine said of it."""


Result = TypeVar("Result", bound=Read)


@dataclass(slots=True)
class Foreign:
    """A file that is converted: its name as the caller gave it, what the engine said of it, its format as Wireshark calls it."""

    path: str
    file: editcap.File
    refusal: EngineError
    format: str
    packing: str | None = None
    announced: bool = False
    as_ethernet: bool = False

    def start(self, running: contextlib.ExitStack) -> editcap.Conversion:
        """A conversion that gives something, to go on until `running` is closed. Raises CaptureUnreadable where there is none.

        Some formats tell the link type for each packet and not for the file, which editcap refuses to write unless it is told one.
        """
        conversion = running.enter_context(editcap.converted(self.file, as_ethernet=self.as_ethernet))
        something = conversion.gives_anything()
        if conversion.fails_at_once() and not self.as_ethernet and editcap.is_all_ethernet(self.file):
            self.as_ethernet = True
            return self.start(running)
        if not something:
            raise _refused(self.refusal, conversion.complaint() or "produced no output")
        return conversion

    def announce(self, say: Callable[[str], None] | None) -> None:
        """Tell once what is done with it."""
        if say is not None and not self.announced:
            say(f"{place(self.path, None, None)}: {FORMAT_WORDS.get(self.format, self.format)}, read through Wireshark's {editcap.EDITCAP}")
        self.announced = True


@dataclass(frozen=True, slots=True)
class Source:
    """A capture as the engine is given it.

    Attributes:
        names: what the engine opens: a file, or the pipe from its conversion.
        paths: the same files as the caller named them.
        conversions: index of a file → its conversion, which goes on while the source is read.
        streams: index of a file → the stream that it is.
    """

    names: list[str]
    paths: list[str]
    conversions: Mapping[int, tuple[Foreign, editcap.Conversion]] = field(default_factory=dict)
    streams: Mapping[int, streams.Stream] = field(default_factory=dict)

    def info(self, engine: Engine) -> CaptureInfo:
        """What the engine says of the capture, with the formats that the files had before they were converted."""
        info = engine.info()
        if self.conversions:
            own = [index for index in range(len(self.names)) if index not in self.conversions]
            formats = info["format"].split(", ") if own else []
            if not any(_may_be_pcapng(self.paths[index]) for index in own):
                formats = [name for name in formats if name != "pcapng"]  # that was what the conversions made
            formats += [foreign.format for _, (foreign, _) in sorted(self.conversions.items())]
            info["format"] = ", ".join(dict.fromkeys(formats))
        return info

    def problems(self, engine: Engine) -> tuple[Problem, ...]:
        """What engine and conversions survived, each with the caller's path; what is found in packets is not told by file."""
        places = {name: index for index, name in enumerate(self.names)}
        problems = engine.problems()
        for problem in problems:
            index = places.get(problem["path"])
            if index in self.conversions:
                problem["offset"] = None  # it counts the bytes of a conversion, which nobody has
            problem["path"] = ", ".join(self.paths) if index is None else self.paths[index]
        for index, stream in self.streams.items():
            if stream.fault is not None:
                problems.append(_lost(self.paths[index], f"{stream.fault}; everything before it was read"))
        for foreign, conversion in self.conversions.values():
            complaint = conversion.complaint()
            if foreign.packing is not None:
                problems.append(_lost(foreign.path, f"{foreign.packing}; everything before it was read"))
            if complaint:
                problems.append(_lost(foreign.path, f"Wireshark's {editcap.EDITCAP} {complaint}; everything that it converted was read"))
        return tuple(problems)


def _lost(path: str, what: str) -> Problem:
    return {"what": what, "path": path, "frame": None, "offset": None, "count": 1, "loses_data": True}


def read_through(paths: Sequence[str], say: Callable[[str], None] | None, read: Callable[[Source], Result]) -> Result:
    """Read a capture; where the engine refuses a file for its format, read that through editcap.

    Args:
        paths: the files, `-` for standard input.
        say: is told in a line which file is converted, from which format.
        read: reads a source to its end. It is called again if the engine refuses a file, which happens before the first row.

    Raises:
        CaptureUnreadable: nothing could be read (NotACapture where Wireshark does not help either).
        MissingTool: Wireshark knows the format and is not installed.
        OutputUnwritable: the temporary files have no room.
    """
    with contextlib.ExitStack() as kept:
        files = _Files(list(paths), kept)
        while True:
            with contextlib.ExitStack() as running:
                source = files.source(running, say)
                try:
                    result = read(source)
                except EngineError as error:
                    refusal = error
                else:
                    files.check(result.info, source, say)
                    return result
            files.give_away(refusal, source)


class _Files:
    """The files of a capture: those that are converted, and the streams, of which the beginning is kept for the case that one is."""

    def __init__(self, paths: list[str], kept: contextlib.ExitStack) -> None:
        self._paths = paths
        self._kept = kept
        self._foreign: dict[int, Foreign] = {}
        self._streams: dict[int, streams.Stream] = {}
        for index, path in enumerate(paths):
            if path == streams.STDIN and path in paths[:index]:
                continue  # the engine refuses that
            stream = streams.opened(path)
            if stream is not None:
                kept.callback(stream.close)
                self._streams[index] = stream

    def source(self, running: contextlib.ExitStack, say: Callable[[str], None] | None) -> Source:
        """What the engine is to read. Conversions go on until `running` is closed."""
        names, conversions = list(self._paths), {}
        for index, stream in self._streams.items():
            if index not in self._foreign:
                names[index] = stream.begin()
        for index, foreign in self._foreign.items():
            conversion = foreign.start(running)
            if conversion.is_running():  # a short one may turn out to hold nothing
                foreign.announce(say)
            names[index], conversions[index] = conversion.name, (foreign, conversion)
        return Source(names, self._paths, conversions, self._streams)

    def check(self, info: CaptureInfo, source: Source, say: Callable[[str], None] | None) -> None:
        """Without a single frame, a file is a capture only if its first bytes say so, and if editcap has nothing to complain of."""
        for foreign, conversion in source.conversions.values():
            complaint = conversion.complaint()
            if info["packets"] == 0 and (complaint or foreign.refusal.kind == UNKNOWN):
                raise _refused(foreign.refusal, complaint or "finds no packets in it")
            foreign.announce(say)

    def give_away(self, refusal: EngineError, source: Source) -> None:
        """Have the file that the engine refused converted, and others like it. Raises what the user is told where that cannot be."""
        index = source.names.index(refusal.path) if refusal.path in source.names else None
        if index is not None:
            refusal.path = self._paths[index]
        if index is None or index in self._foreign:
            raise from_engine(refusal) from refusal  # no question of format
        self._convert(index, refusal)
        for other, path in enumerate(self._paths):
            if other not in self._foreign and other not in self._streams:
                self._probe(other, path)

    def _probe(self, index: int, path: str) -> None:
        """Ask the engine for one file alone: of several, only the first that it refuses is told."""
        try:
            Engine([path])
        except EngineError as refusal:
            self._convert(index, refusal)

    def _convert(self, index: int, refusal: EngineError) -> None:
        error = from_engine(refusal)
        if refusal.kind not in {KNOWN, UNKNOWN}:
            raise error from refusal
        if not editcap.is_installed():
            if refusal.kind == UNKNOWN:
                raise error from refusal
            remedy = f"Wireshark's {editcap.EDITCAP} can convert it, but is not installed (Debian: apt-get install wireshark-common)"
            raise MissingTool(error.what, where=error.where, remedy=remedy) from refusal
        path = self._paths[index]
        stream = self._streams.get(index)
        file = editcap.File(path) if stream is None else self._spooled(stream)
        if _is_empty(file):  # for Wireshark that is ERF without records
            raise error from refusal
        form, packing = editcap.format_of(file), None
        if form == editcap.UNKNOWN and refusal.kind == KNOWN and streams.is_compressed(file.argument):
            file, packing = self._unpacked(file)
            form = editcap.format_of(file)
        if form == editcap.UNKNOWN:
            raise _refused(refusal, "does not know its format either")
        self._foreign[index] = Foreign(path, file, refusal, form or "a format without a name", packing)

    def _spooled(self, stream: streams.Stream) -> editcap.File:
        """A stream in a temporary file without a name."""
        with self._temporary() as file:
            stream.rest_into(file)
        return editcap.File(descriptor=file.fileno())

    def _unpacked(self, packed: editcap.File) -> tuple[editcap.File, str | None]:
        """A packed file, unpacked in a temporary one; and what ended that early, if anything did."""
        with self._temporary() as file:
            try:
                fault = unpack(packed.argument, f"/dev/fd/{file.fileno()}")
            except EngineError as error:
                raise from_engine(error) from error
        return editcap.File(descriptor=file.fileno()), fault

    @contextlib.contextmanager
    def _temporary(self) -> Iterator[IO[bytes]]:
        """A temporary file without a name to be written in the block, kept until all is read. Raises OutputUnwritable."""
        try:
            file: IO[bytes] = tempfile.TemporaryFile(prefix="tcptrace-lab-")  # noqa: SIM115  (closed with the rest of `kept`)
            self._kept.callback(file.close)
            yield file
            file.flush()
            file.seek(0)
        except OSError as error:
            raise OutputUnwritable.from_os(error, "temporary files", "set TMPDIR to a directory with room") from error


def _may_be_pcapng(path: str) -> bool:
    """Whether the file begins like pcapng, or is a stream of which nobody knows it any more."""
    if path == streams.STDIN or not os.path.isfile(path):  # noqa: PTH113  (names as the user gave them)
        return True
    with open(path, "rb") as file:  # noqa: PTH123
        return file.read(len(PCAPNG_MAGIC)) == PCAPNG_MAGIC


def _is_empty(file: editcap.File) -> bool:
    with contextlib.suppress(OSError):
        return os.stat(file.argument).st_size == 0  # noqa: PTH116
    return True


def _refused(refusal: EngineError, why: str) -> CaptureUnreadable:
    """What the engine says of a file, and why Wireshark does not help."""
    error = from_engine(refusal)
    if refusal.kind == UNKNOWN:
        return NotACapture(error.what, where=error.where, remedy=f"{error.remedy} (Wireshark {why})")
    return CaptureUnreadable(error.what, where=error.where, remedy=f"Wireshark's {editcap.EDITCAP} {why}")
