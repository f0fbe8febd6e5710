"""Writes a folder that Wireshark can use as a profile: columns, colours, filter buttons, I/O graphs, and the post-dissector."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tcptrace_lab import causes
from tcptrace_lab.errors import OutputUnwritable, UsageError
from tcptrace_lab.outputs.wireshark import frames
from tcptrace_lab.process import output
from tcptrace_lab.schema import CAUSES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tcptrace_lab.analysis import Analysis

SCRIPT: Final = "tcptrace_lab.lua"
TABLE: Final = "tcptrace_lab.frames"
COLUMNS: Final = {
    "No.": "%m",
    "Time": "%t",
    "Source": "%s",
    "Destination": "%d",
    "Protocol": "%p",
    "Length": "%L",
    "Cause": "%Cus:tcptrace_lab.cause:0:R",
    "Wait": "%Cus:tcptrace_lab.wait:0:R",
    "Verdict": "%Cus:tcptrace_lab.finding:0:R",
    "Info": "%i",
}
"""Title of a column → its content (Wireshark's `gui.column.format`)."""

LIGHT: Final = 0.6
"""Share of white in the colour of a row, so that black text is easy to read on it."""

PRINTABLE: Final = range(0x20, 0x7F)


def check(folder: str) -> None:
    """Reject a folder that contains other files, because the folder could be a profile of the user.

    Raises:
        UsageError: the folder has files, but not the script of an earlier profile of this program.
        OutputUnwritable: the folder cannot be written.
    """
    output.check_folder(folder)
    place = Path(folder)
    if place.is_dir() and any(place.iterdir()) and not (place / SCRIPT).is_file():
        raise UsageError("the folder for the profile is not empty", where=folder, remedy="name a new folder")


def write(analysis: Analysis, folder: str) -> None:
    """Write the profile.

    Args:
        analysis: the analysis of a capture. If the analysis has pseudonyms, the profile has them as well.
        folder: see `check`; created if needed.

    Raises:
        OutputUnwritable: the folder cannot be written.
    """
    output.make_folder(folder)
    place = Path(folder)
    try:
        sets = frames.write(analysis, place / TABLE)
        (place / SCRIPT).write_text("".join(_script(analysis, sets)))
        (place / "preferences").write_text(_preferences())
        (place / "colorfilters").write_text("".join(_colours()))
        (place / "dfilter_buttons").write_text("".join(_buttons(analysis)))
        (place / "io_graphs").write_text("".join(_graphs()))
    except OSError as error:
        raise OutputUnwritable(error.strerror or str(error), where=folder, remedy="choose another place") from error


def is_cause(cause: str) -> str:
    """Return the display filter for the frames that waited because of a cause."""
    return f'tcptrace_lab.cause == "{cause}"'


def _script(analysis: Analysis, sets: frames.Sets) -> Iterator[str]:
    """Yield the script: the tables, then the post-dissector that uses them."""
    start_s, start_ns = divmod(analysis.capture["first_ts_ns"] or 0, 1_000_000_000)
    yield f"local START_S, START_US, FORMAT = {start_s}, {start_ns // frames.NS_PER_US}, {_lua(frames.FORMAT)}\n"
    yield f"local CAUSES = {{ {', '.join(map(_lua, CAUSES))} }}\n"
    yield "local FINDINGS = {\n"
    for finding in analysis.findings:
        yield f"    {{ {_lua(finding.id)}, {_lua(finding.title)}, {_lua('; '.join(finding.remedy))} }},\n"
    yield "}\nlocal SETS = {\n"
    for positions in itertools.islice(sets.all, 1, None):
        yield f"    {{ {', '.join(str(position + 1) for position in positions)} }},\n"
    yield "}\n"
    yield Path(__file__).with_name("postdissector.lua").read_text()


def _lua(text: str) -> str:
    r"""Return a Lua string literal. `"`, `\` and all bytes that are not plain ASCII become `\ddd`, so that no text ends the literal."""
    return '"' + "".join(chr(byte) if byte in PRINTABLE and chr(byte) not in '"\\' else f"\\{byte:03}" for byte in text.encode()) + '"'


def _preferences() -> str:
    columns = ", ".join(f'"{title}", "{content}"' for title, content in COLUMNS.items())
    return f"gui.column.format: {columns}\n"


def _colours() -> Iterator[str]:
    """Yield one colouring rule per cause: a lighter shade of the cause's colour in the report, behind black text.

    Wireshark's colour channels have 16 bits.
    """
    for cause in CAUSES:
        channels = bytes.fromhex(causes.of_cause(cause).colour.removeprefix("#"))
        light = ",".join(str(round((channel + (255 - channel) * LIGHT) * 257)) for channel in channels)
        yield f"@{cause}@{is_cause(cause)}@[{light}][0,0,0]\n"


def _buttons(analysis: Analysis) -> Iterator[str]:
    """Yield one filter button per finding. `//` in a button's name makes a menu of the findings with one id."""
    for finding in analysis.findings:
        if not finding.evidence_frames and not finding.causes:
            continue
        stream, where = "", "capture"
        if finding.conn is not None:
            where = f"connection {finding.conn}"
            stream = f" && tcp.stream == {finding.conn}" if finding.connections == 1 else ""
            if finding.from_client is not None:
                where += ", from the client" if finding.from_client else ", from the server"
        yield _line("TRUE", f"{finding.id} // {where}", f'tcptrace_lab.finding == "{finding.id}"{stream}', finding.title)


def _graphs() -> Iterator[str]:
    """Yield an I/O graph: seconds of waiting per interval, with one stacked bar per cause."""
    for cause in CAUSES:
        shown = "Disabled" if cause == "idle" else "Enabled"
        yield _line(
            shown, cause, is_cause(cause), causes.of_cause(cause).colour, "Stacked Bar", "SUM(Y Field)", "tcptrace_lab.wait", "None", "1"
        )


def _line(*values: str) -> str:
    r"""Return one line of a Wireshark table: quoted values, in which `"`, `\` and bytes that are not plain ASCII become `\xhh`."""
    return ",".join(f'"{_quoted(value)}"' for value in values) + "\n"


def _quoted(text: str) -> str:
    return "".join(chr(byte) if byte in PRINTABLE and chr(byte) not in '"\\' else f"\\x{byte:02x}" for byte in text.encode())
