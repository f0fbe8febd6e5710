"""`tcptrace-lab annotate`."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tcptrace_lab.cli.options import Anonymize, AnonymizeKey, Debug, Quiet, anonymizer
from tcptrace_lab.cli.terminal import activity, say
from tcptrace_lab.errors import EXIT_DONE, CaptureUnreadable, ReadInPart, UsageError
from tcptrace_lab.process import output

if TYPE_CHECKING:
    from tcptrace_lab.analysis import Analysis

File = Annotated[str, typer.Argument(metavar="FILE", help="A capture, as for analyze; - is standard input.", show_default=False)]
Output = Annotated[
    str | None,
    typer.Option(
        "-o", "--output", metavar="OUT.pcapng|-", help="File for the copy.", show_default="reports/<capture's name>-annotated.pcapng"
    ),
]

Profile = Annotated[
    str | None,
    typer.Option(
        "--profile",
        metavar="FOLDER",
        help="Also write a Wireshark profile: columns, colours, filter buttons and graphs by cause, and a Lua script that adds fields. "
        "Wireshark looks for profiles in ~/.config/wireshark/profiles.",
        show_default=False,
    ),
]

PROFILES = '"$HOME"/.config/wireshark/profiles'
"""Folder in which Wireshark looks for profiles on Linux and macOS, in shell syntax."""


def annotate(
    file: File,
    path: Output = None,
    profile: Profile = None,
    anonymize: Anonymize = False,
    anonymize_key: AnonymizeKey = None,
    quiet: Quiet = False,
    _debug: Debug = False,
) -> int:
    """Write a pcapng copy of a capture for Wireshark, with the findings as packet comments.

    The main comment of a finding is on the first frame that proves it: cause, cost, remedies, and what would disprove the finding. Comments
    on the finding's other frames refer to that frame. The frames before and after a long wait have a comment with its duration and cause. A
    display filter for the frames of each finding is printed to stderr. With --anonymize, the copy has only IP and TCP headers, with
    pseudonyms for addresses.
    """
    if path is not None:
        output.check(path, [file])
    if profile is not None:
        from tcptrace_lab.outputs.wireshark import profile as profiles  # noqa: PLC0415  (Polars)

        profiles.check(profile)
    if path == output.STDOUT and sys.stdout.isatty():
        raise UsageError("cannot write pcapng to a terminal", remedy="name a file with -o")
    with activity("reading", quiet=quiet) as shown:
        from tcptrace_lab.analysis import analyze, capture_name  # noqa: PLC0415
        from tcptrace_lab.outputs import annotate as copies  # noqa: PLC0415  (importing Polars takes 0.1 s, which `--help` saves)
        from tcptrace_lab.outputs import anonymous_copy  # noqa: PLC0415

        hidden = anonymizer(anonymize_key, wanted=anonymize)
        with copies.readable_twice(file) as capture:
            try:
                analysis = analyze(capture.path, anonymizer=hidden, progress=shown.segments, say=None if quiet else say)
            except CaptureUnreadable as error:
                error.where = capture.remarks(error.where)
                raise
            name = capture_name([file]) if hidden is None else analysis.name
            target = path or str(output.reports() / f"{name}-annotated.pcapng")
            output.check(target, [file])
            shown.doing("writing the copy")
            with output.opened(target) as stream:
                if hidden is None:
                    without = copies.write(capture, analysis, stream)
                else:
                    anonymous_copy.write(capture.path, analysis, copies.comments(analysis), stream)
                    without = 0
            if profile is not None:
                shown.doing("writing the profile")
                profiles.write(analysis, profile)
    if not quiet:
        _tell(analysis, target, without)
        if profile is not None:
            _tell_profile(Path(profile), target)
    if analysis.loss is not None:
        raise ReadInPart(analysis.loss.what, where=capture.remarks(analysis.loss.where), remedy=analysis.loss.remedy)
    return EXIT_DONE


def _tell(analysis: Analysis, target: str, without: int) -> None:
    for finding in analysis.findings:
        where = "" if finding.conn is None else f", connection {finding.conn}"
        say(f"{finding.severity}, {finding.id}{where}: {finding.wireshark_filter}")
    if not analysis.findings:
        say("nothing to comment on")
    if without:
        say(f"note: {without:,} frame{'s' if without > 1 else ''} without comments, because simple packet blocks cannot hold comments")
    if target != output.STDOUT:
        say(f"copy written: {Path(target)}")


def _tell_profile(profile: Path, target: str) -> None:
    """Print how to open the copy with the profile. Wireshark looks for profiles in one folder only."""
    whole = profile.resolve()
    name = shlex.quote(whole.name)
    capture = "COPY" if target == output.STDOUT else shlex.quote(target)
    say(f"profile written: {profile}")
    if whole.parent.name == "profiles":
        move, folder = "", shlex.quote(str(whole))
    else:
        move = f"mkdir -p {PROFILES} && mv {shlex.quote(str(profile))} {PROFILES}/ && "
        folder = f"{PROFILES}/{name}"
    say(f"{move}wireshark -C {name} -X lua_script:{folder}/tcptrace_lab.lua {capture}")
