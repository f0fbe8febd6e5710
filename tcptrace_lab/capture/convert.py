"""Converts captures in formats that the engine does not read (snoop, Network Monitor, …), with Wireshark's `editcap` or `tshark`.

The engine tries to read each file first. If the engine refuses a file because of its format, editcap converts the file to pcapng. The
engine reads the output of editcap from a pipe while editcap is still writing. If pcapng has no number for a link type of the file, tshark
extracts the IP packets instead. Frames keep the numbers that Wireshark gives them.

A stream (standard input, a FIFO) is first copied to a temporary file, because Wireshark cannot read most of these formats from a pipe. A
file with a compression that Wireshark does not support is first decompressed to a temporary file.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Protocol, TypeVar

from tcptrace_lab._core import Engine, EngineError, unpack
from tcptrace_lab.capture import editcap, streams
from tcptrace_lab.errors import CaptureUnreadable, MissingTool, NotACapture, OutputUnwritable, from_engine, place

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tcptrace_lab._core import CaptureInfo, Problem

KNOWN, UNKNOWN = "unsupported", "not_a_capture"
"""Kinds of engine errors for which editcap can help: the format is unsupported or unknown."""

PCAPNG_MAGIC = b"\n\r\r\n"
"""Block type of the first block of a pcapng file."""

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
"""Wireshark's short format name → common name. A format without an entry is shown by its short name."""


class Read(Protocol):
    """What the function that reads a capture must return (`read_through`)."""

    @property
    def info(self) -> CaptureInfo:
        """The engine's facts about the capture."""


Result = TypeVar("Result", bound=Read)


@dataclass(slots=True)
class Foreign:
    """A file to convert.

    Attributes:
        path: the file's name as the caller gave it.
        file: the file that editcap reads.
        refusal: the engine's error.
        format: Wireshark's name of the format.
        packing: why the decompression of the file ended early; None if it did not.
        announced: whether the conversion was announced.
        method: how the file is converted.
    """

    path: str
    file: editcap.File
    refusal: EngineError
    format: str
    packing: str | None = None
    announced: bool = False
    method: editcap.Method = editcap.Method.PLAIN

    def start(self, running: contextlib.ExitStack) -> editcap.Conversion:
        """Start the conversion of the file. It ends when `running` is closed.

        Raises:
            CaptureUnreadable: the conversion has no output.
            MissingTool: only tshark can convert the file, but tshark is not installed.
        """
        conversion = running.enter_context(editcap.converted(self.file, self.method))
        something = conversion.gives_anything()
        following = editcap.next_method(self.file, self.method) if conversion.fails_at_once() else None
        if following is not None:
            self.method = following
            if not following.is_installed():
                raise _without_tshark(self.refusal)
            return self.start(running)
        if not something:
            raise _refused(self.refusal, conversion.complaint() or "produced no output", self.method.tool)
        return conversion

    def announce(self, say: Callable[[str], None] | None) -> None:
        """Announce the conversion, unless it was announced before."""
        if say is not None and not self.announced:
            part = " (its IP packets)" if self.method is editcap.Method.IP_PACKETS else ""
            form = FORMAT_WORDS.get(self.format, self.format)
            say(f"{place(self.path, None, None)}: {form}, read through Wireshark's {self.method.tool}{part}")
        self.announced = True


@dataclass(frozen=True, slots=True)
class Source:
    """The files of a capture as the engine reads them: unchanged, or converted.

    Attributes:
        names: what the engine opens: a file, or the pipe of its conversion.
        paths: the names of the files as the caller gave them.
        conversions: index of a file → its conversion, which runs while the source is read.
        streams: index of a file → its stream.
    """

    names: list[str]
    paths: list[str]
    conversions: Mapping[int, tuple[Foreign, editcap.Conversion]] = field(default_factory=dict)
    streams: Mapping[int, streams.Stream] = field(default_factory=dict)

    def info(self, engine: Engine) -> CaptureInfo:
        """Return the engine's facts about the capture, with the formats that the files had before conversion."""
        info = engine.info()
        if self.conversions:
            own = [index for index in range(len(self.names)) if index not in self.conversions]
            formats = info["format"].split(", ") if own else []
            if not any(_may_be_pcapng(self.paths[index]) for index in own):
                formats = [name for name in formats if name != "pcapng"]  # the engine reports a conversion as pcapng
            formats += [foreign.format for _, (foreign, _) in sorted(self.conversions.items())]
            info["format"] = ", ".join(dict.fromkeys(formats))
        return info

    def problems(self, engine: Engine) -> tuple[Problem, ...]:
        """Return the problems that did not stop the engine or a conversion.

        If a problem does not belong to one file, its `path` lists all files, as the caller named them.
        """
        places = {name: index for index, name in enumerate(self.names)}
        problems = engine.problems()
        for problem in problems:
            index = places.get(problem["path"])
            if index in self.conversions:
                problem["offset"] = None  # an offset in the converted file is useless to the user, who does not have this file
            problem["path"] = ", ".join(self.paths) if index is None else self.paths[index]
        for index, stream in self.streams.items():
            if stream.fault is not None:
                problems.append(_lost(self.paths[index], f"{stream.fault}; everything before it was read"))
        for foreign, conversion in self.conversions.values():
            complaint = conversion.complaint()
            if foreign.packing is not None:
                problems.append(_lost(foreign.path, f"{foreign.packing}; everything before it was read"))
            if complaint:
                problems.append(
                    _lost(foreign.path, f"Wireshark's {foreign.method.tool} {complaint}; everything that it converted was read")
                )
        return tuple(problems)


def _lost(path: str, what: str) -> Problem:
    return {"what": what, "path": path, "frame": None, "offset": None, "count": 1, "loses_data": True}


def read_through(paths: Sequence[str], say: Callable[[str], None] | None, read: Callable[[Source], Result]) -> Result:
    """Read a capture, and convert the files that the engine refuses because of their format.

    Args:
        paths: the files, `-` for standard input.
        say: called for each converted file, with a line that names the format.
        read: reads a source to its end. The engine can refuse a file only before its first row; then `read` is called again.

    Raises:
        CaptureUnreadable: nothing could be read (NotACapture if Wireshark does not know the format either).
        MissingTool: the format needs Wireshark, which is not installed.
        OutputUnwritable: no room for the temporary files.
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
    """The files of a capture. Some are streams, and some have to be converted.

    The first bytes of each stream are kept in case the stream has to be converted.
    """

    def __init__(self, paths: list[str], kept: contextlib.ExitStack) -> None:
        self._paths = paths
        self._kept = kept
        self._foreign: dict[int, Foreign] = {}
        self._streams: dict[int, streams.Stream] = {}
        for index, path in enumerate(paths):
            if path == streams.STDIN and path in paths[:index]:
                continue  # the engine reports a repeated standard input as an error
            stream = streams.opened(path)
            if stream is not None:
                kept.callback(stream.close)
                self._streams[index] = stream

    def source(self, running: contextlib.ExitStack, say: Callable[[str], None] | None) -> Source:
        """Return the source that the engine reads next. The conversions end when `running` is closed."""
        names, conversions = list(self._paths), {}
        for index, stream in self._streams.items():
            if index not in self._foreign:
                names[index] = stream.begin()
        for index, foreign in self._foreign.items():
            conversion = foreign.start(running)
            if conversion.is_running():  # a conversion that has already ended may have no packets; `check` announces or rejects it
                foreign.announce(say)
            names[index], conversions[index] = conversion.name, (foreign, conversion)
        return Source(names, self._paths, conversions, self._streams)

    def check(self, info: CaptureInfo, source: Source, say: Callable[[str], None] | None) -> None:
        """Reject a converted file without frames if the engine did not know its format, or if editcap reported an error."""
        for foreign, conversion in source.conversions.values():
            complaint = conversion.complaint()
            if info["packets"] == 0 and (complaint or foreign.refusal.kind == UNKNOWN):
                raise _refused(foreign.refusal, complaint or "finds no packets in it")
            foreign.announce(say)

    def give_away(self, refusal: EngineError, source: Source) -> None:
        """Convert the file that the engine refused, and all other files that it would refuse.

        If no conversion is possible, raise the error for the user.
        """
        index = source.names.index(refusal.path) if refusal.path in source.names else None
        if index is not None:
            refusal.path = self._paths[index]
        if index is None or index in self._foreign:
            raise from_engine(refusal) from refusal  # the format is not the reason why the engine refused the file
        self._convert(index, refusal)
        for other, path in enumerate(self._paths):
            if other not in self._foreign and other not in self._streams:
                self._probe(other, path)

    def _probe(self, index: int, path: str) -> None:
        """Open one file with the engine, and convert it if the engine refuses it.

        Each file is opened alone, because the engine reports only the first file that it refuses.
        """
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
        if _is_empty(file):  # Wireshark reports the format of an empty file as ERF
            raise error from refusal
        form, packing = editcap.format_of(file), None
        if form == editcap.UNKNOWN and refusal.kind == KNOWN and streams.is_compressed(file.argument):
            file, packing = self._unpacked(file)
            form = editcap.format_of(file)
        if form == editcap.UNKNOWN:
            raise _refused(refusal, "does not know its format either")
        self._foreign[index] = Foreign(path, file, refusal, form or "a format without a name", packing)

    def _spooled(self, stream: streams.Stream) -> editcap.File:
        """Copy a stream to an unnamed temporary file."""
        with self._temporary() as file:
            stream.rest_into(file)
        return editcap.File(descriptor=file.fileno())

    def _unpacked(self, packed: editcap.File) -> tuple[editcap.File, str | None]:
        """Decompress a file to a temporary file. Also return why the decompression ended early; None if it did not."""
        with self._temporary() as file:
            try:
                fault = unpack(packed.argument, f"/dev/fd/{file.fileno()}")
            except EngineError as error:
                raise from_engine(error) from error
        return editcap.File(descriptor=file.fileno()), fault

    @contextlib.contextmanager
    def _temporary(self) -> Iterator[IO[bytes]]:
        """Provide an unnamed temporary file for writing. It exists until the capture has been read.

        Raises OutputUnwritable.
        """
        try:
            file: IO[bytes] = tempfile.TemporaryFile(prefix="tcptrace-lab-")  # noqa: SIM115  (`kept` closes it)
            self._kept.callback(file.close)
            yield file
            file.flush()
            file.seek(0)
        except OSError as error:
            raise OutputUnwritable.from_os(error, "temporary files", "set TMPDIR to a directory with room") from error


def _may_be_pcapng(path: str) -> bool:
    """Return whether the file starts like pcapng. The start of a stream is no longer available, so a stream counts as pcapng."""
    if path == streams.STDIN or not os.path.isfile(path):  # noqa: PTH113  (file names stay as the user gave them)
        return True
    with open(path, "rb") as file:  # noqa: PTH123
        return file.read(len(PCAPNG_MAGIC)) == PCAPNG_MAGIC


def _is_empty(file: editcap.File) -> bool:
    with contextlib.suppress(OSError):
        return os.stat(file.argument).st_size == 0  # noqa: PTH116
    return True


def _without_tshark(refusal: EngineError) -> MissingTool:
    """Return the error for a file that only tshark can convert."""
    error = from_engine(refusal)
    return MissingTool(error.what, where=error.where, remedy=editcap.WITHOUT_TSHARK)


def _refused(refusal: EngineError, why: str, tool: str = editcap.EDITCAP) -> CaptureUnreadable:
    """Combine the engine's error with the reason why Wireshark does not help."""
    error = from_engine(refusal)
    if refusal.kind == UNKNOWN:
        return NotACapture(error.what, where=error.where, remedy=f"{error.remedy} (Wireshark {why})")
    return CaptureUnreadable(error.what, where=error.where, remedy=f"Wireshark's {tool} {why}")
