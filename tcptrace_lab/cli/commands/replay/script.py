"""`tcptrace-lab replay script`."""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from tcptrace_lab.cli.commands.replay import options
from tcptrace_lab.cli.options import Anonymize, AnonymizeKey, Debug, Quiet, anonymizer
from tcptrace_lab.cli.terminal import activity, say
from tcptrace_lab.errors import EXIT_DONE, CaptureInsufficient, LabFailed, UsageError
from tcptrace_lab.process import interrupts, output
from tcptrace_lab.text.numbers import duration_s

if TYPE_CHECKING:
    from tcptrace_lab.cli.terminal import Activity
    from tcptrace_lab.replay.reproducers.reproducer import Reproducer


class Kind(StrEnum):
    """Kinds of output."""

    PYTHON = "python"
    PACKETDRILL = "packetdrill"


SUFFIXES: Final = {Kind.PYTHON: ".py", Kind.PACKETDRILL: ".pkt"}

Out = Annotated[
    str,
    typer.Option(
        "-o", "--output", metavar="DIR|FILE", help="Output file, or a folder for both kinds. Default: standard output.", show_default=False
    ),
]
KindOption = Annotated[
    Kind | None, typer.Option(help="Kind of reproducer. Default: by the ending of the name given with -o, else python.", show_default=False)
]
ScheduleOut = Annotated[
    str | None, typer.Option("--schedule", metavar="PATH", help="Also write the shrunk schedule (for replay transfer --from-schedule).")
]
Whole = Annotated[bool, typer.Option("--whole", help="Do not shrink the schedule. This works without a model.")]
Prove = Annotated[
    bool,
    typer.Option(
        "--prove", help="Also run the reproducer on this machine, over real sockets: once without the remedy, once with it. Needs root."
    ),
]

_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._+-]")
"""Characters that are replaced in names of output files."""


def script(
    capture: options.Capture = "",
    connection: options.Connection = None,
    out: Out = "",
    kind: KindOption = None,
    schedule_path: ScheduleOut = None,
    whole: Whole = False,
    prove: Prove = False,
    anonymize: Anonymize = False,
    anonymize_key: AnonymizeKey = None,
    quiet: Quiet = False,
    _debug: Debug = False,
) -> int:
    """Write a minimal reproducer of the worst stall of a transfer: a Python program and a packetdrill script.

    A model of both TCP stacks must first reproduce the original. The model then shrinks the schedule of the applications to the smallest
    schedule that still stalls. The Python program needs only Python 3.8; its exit status shows whether the stall occurs, and its options
    try the remedy. In the packetdrill script, this machine's kernel plays the sender that stalled, and packetdrill plays its peer.

    Example: tcptrace-lab replay script slow.pcap -o reproduce.py
    """
    options.check_capture(capture)
    hidden = anonymizer(anonymize_key, wanted=anonymize)
    places = _places(capture, out, kind, anonymous=hidden is not None)
    output.check_all({**{f"-o ({one})": path for one, path in places.items()}, "--schedule": schedule_path}, [capture])
    with activity("reading", quiet=quiet) as shown, interrupts.raised():
        from tcptrace_lab.replay.evidence import gather  # noqa: PLC0415
        from tcptrace_lab.replay.reproducers.reproducer import reproduce  # noqa: PLC0415

        evidence = gather([capture], connection, anonymizer=hidden, progress=shown.segments, say=None if quiet else say)
        made = reproduce(evidence, whole=whole, doing=shown.doing)
        _write(made, places, optional=kind is None and len(places) > 1)
        if schedule_path is not None:
            with output.opened(schedule_path) as stream:
                stream.write(made.schedule.to_json())
        beside_result = output.STDOUT in {*places.values(), schedule_path}
        if not quiet:
            shown.end()
            _tell(made, places, beside_result=beside_result)
        return _proved(made, shown, quiet=quiet, beside_result=beside_result) if prove else EXIT_DONE


def _places(capture: str, out: str, kind: Kind | None, *, anonymous: bool) -> dict[Kind, str]:
    """Return the output path of each kind."""
    suffix = Path(out).suffix
    if not out or out == output.STDOUT:
        return {kind or Kind.PYTHON: output.STDOUT}
    if not Path(out).is_dir() and (suffix or kind is not None):
        from_suffix = next((one for one, own in SUFFIXES.items() if own == suffix), None)
        if kind is None and from_suffix is None:
            raise UsageError(f"-o: {suffix} does not name a kind", where=out, remedy="name a folder, a file.py, a file.pkt, or a --kind")
        if kind is not None and from_suffix not in {None, kind}:
            raise UsageError(f"-o: {suffix} does not fit {kind}", where=out, remedy="omit -o or --kind")
        return {kind or from_suffix or Kind.PYTHON: out}
    output.check_folder(out)
    output.make_folder(out)
    stem = "" if anonymous else _UNSAFE.sub("_", Path(capture).name.split(".pcap")[0]).strip("._-")
    return {one: str(Path(out, f"reproduce-{stem[:64] or 'capture'}{SUFFIXES[one]}")) for one in (list(Kind) if kind is None else [kind])}


def _write(made: Reproducer, places: dict[Kind, str], *, optional: bool) -> None:
    """Write each kind of output. If both are requested and no packetdrill script is possible, print the reason."""
    for kind, path in list(places.items()):
        try:
            text = made.program() if kind is Kind.PYTHON else made.packetdrill()
        except CaptureInsufficient as error:
            if not optional:
                raise
            del places[kind]
            say(f"no packetdrill script: {error.what}")
            continue
        with output.opened(path) as stream:
            stream.write(text.encode())


def _tell(made: Reproducer, places: dict[Kind, str], *, beside_result: bool) -> None:
    from rich.text import Text  # noqa: PLC0415

    from tcptrace_lab.cli.console import console  # noqa: PLC0415
    from tcptrace_lab.text.escape import printable  # noqa: PLC0415

    out, expected = console(beside_result=beside_result), made.expected
    stall_words = made.stall_words()
    out.print(Text(f"{stall_words[:1].upper()}{stall_words[1:]}."))
    out.print(Text(made.cut_words()))
    out.print(Text(f"Expected: {duration_s(expected.with_s)}; with {made.remedy.words()}: {duration_s(expected.without_s)}."))
    for kind, path in places.items():
        if path != output.STDOUT:
            out.print(Text(printable(f"{kind}: {path}")))


def _proved(made: Reproducer, shown: Activity, *, quiet: bool, beside_result: bool) -> int:
    from rich.text import Text  # noqa: PLC0415

    from tcptrace_lab.cli.console import console  # noqa: PLC0415
    from tcptrace_lab.replay.reproducers.reproducer import prove  # noqa: PLC0415

    shown.doing("testing it over real sockets")
    proof = prove(made)
    stall_words, fixed = (duration_s(spent_s) for spent_s in (proof.stalled_s, proof.fixed_stalled_s))
    words = f"over real sockets, {made.stall.family} took {stall_words}; with {made.remedy.words()}, {fixed}"
    if not proof.holds:
        raise LabFailed(f"not proved: {words}", remedy="a busy machine delays packets; try again")
    if not quiet:
        shown.end()
        console(beside_result=beside_result).print(Text(f"Proved: {words}."))
    return EXIT_DONE
