"""`tcptrace-lab replay transfer`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tcptrace_lab.cli.commands.replay import options
from tcptrace_lab.cli.options import Anonymize, AnonymizeKey, Debug, Quiet, anonymizer
from tcptrace_lab.cli.terminal import activity, say
from tcptrace_lab.errors import EXIT_DONE, UsageError
from tcptrace_lab.process import interrupts, output

if TYPE_CHECKING:
    from collections.abc import Callable

    from tcptrace_lab.cli.terminal import Activity
    from tcptrace_lab.connections.anonymizer import Anonymizer
    from tcptrace_lab.replay.changes import Changes
    from tcptrace_lab.replay.evidence import Evidence
    from tcptrace_lab.replay.schedule import End, Schedule
    from tcptrace_lab.replay.side_by_side import Figures
    from tcptrace_lab.replay.socket_replay import Done

ScheduleOut = Annotated[
    str | None, typer.Option("--schedule", metavar="PATH|-", help="Write the schedule, without a replay.", show_default=False)
]
Serve = Annotated[str, typer.Option(metavar="ADDRESS:PORT", help="Play only the server, and listen at this address.", show_default=False)]
Connect = Annotated[
    str, typer.Option(metavar="ADDRESS:PORT", help="Play only the client, and connect to this address.", show_default=False)
]
Remedies = Annotated[bool, typer.Option("--remedies", help="Also try the remedies that the findings name.")]
OnlyChanged = Annotated[bool, typer.Option("--only-changed", help="Do not replay the unchanged transfer.")]
Folder = Annotated[
    str,
    typer.Option(
        "-o", "--output", metavar="DIR", help="Keep the captures in this folder, with a page that compares them.", show_default=False
    ),
]
At = Annotated[str, typer.Option(metavar="client|server", help="Capture point.")]
Timeout = Annotated[float | None, typer.Option(metavar="SECONDS", min=0.001, help="Abort a transfer after this time.", show_default=False)]

PAGE = "compared.html"
"""File name of the page that compares the replays, in the folder with their captures."""


def transfer(
    capture: options.Capture = "",
    connection: options.Connection = None,
    from_schedule: options.FromSchedule = "",
    schedule_path: ScheduleOut = None,
    serve: Serve = "",
    connect: Connect = "",
    remedies: Remedies = False,
    only_changed: OnlyChanged = False,
    nodelay: options.NoDelay = False,
    cork: options.Cork = False,
    quickack: options.QuickAck = False,
    send_buffer: options.SendBuffer = "",
    receive_buffer: options.ReceiveBuffer = "",
    congestion: options.Congestion = "",
    eager_reader: options.EagerReader = False,
    no_thinking: options.NoThinking = False,
    lossless: options.Lossless = False,
    delay: options.Delay = "",
    rate: options.Rate = "",
    loss: options.Loss = None,
    mtu: options.Mtu = "",
    folder: Folder = "",
    at: At = "client",
    json_path: options.Json = None,
    timeout: Timeout = None,
    anonymize: Anonymize = False,
    anonymize_key: AnonymizeKey = None,
    quiet: Quiet = False,
    _debug: Debug = False,
) -> int:
    """Replay a transfer over real sockets: the writes, reads and pauses of its applications, over a similar path.

    Both ends run in private network namespaces, which needs root. With --serve or --connect, only one end runs, on this machine. The replay
    is captured, analyzed and compared with the original: did the stall come back, and did the changes fix it?
    """
    changed = options.changes(
        nodelay=nodelay, cork=cork, quickack=quickack, send_buffer=send_buffer, receive_buffer=receive_buffer, congestion=congestion,
        eager_reader=eager_reader, no_thinking=no_thinking, lossless=lossless, delay=delay, rate=rate, loss=loss, mtu=mtu,
    )  # fmt: skip
    _check(capture, from_schedule, serve, connect, at, timeout, alone=[remedies, bool(folder), json_path, only_changed])
    hidden = anonymizer(anonymize_key, wanted=anonymize)
    if hidden is not None and from_schedule:
        raise UsageError("a schedule holds no address", remedy="use --anonymize when you write the schedule from the capture")
    for path in (schedule_path, json_path):
        if path is not None:
            output.check(path, [name for name in (capture, from_schedule) if name])
    if folder:
        output.check_folder(folder)
    with activity("reading", quiet=quiet) as shown, interrupts.raised():
        evidence, schedule = _schedule(capture, connection, from_schedule, hidden, shown, quiet=quiet)
        if schedule_path is not None:
            with output.opened(schedule_path) as stream:
                stream.write(changed.applied(schedule).to_json())
            if not quiet and schedule_path != output.STDOUT:
                say(f"schedule written: {schedule_path}")
            return EXIT_DONE
        if serve or connect:
            shown.doing("playing one end")
            return _one_end(changed.applied(schedule), serve, connect, timeout, quiet=quiet)
        return _both_ends(
            evidence, schedule, changed, shown, remedies=remedies, plain=not only_changed, folder=folder, at=at, json_path=json_path,
            timeout=timeout, quiet=quiet,
        )  # fmt: skip


def _check(capture: str, from_schedule: str, serve: str, connect: str, at: str, timeout: float | None, alone: list[object]) -> None:
    if bool(capture) == bool(from_schedule):
        raise UsageError("name a capture, or a schedule with --from-schedule", remedy="give exactly one of them")
    if capture:
        options.check_capture(capture)
    if serve and connect:
        raise UsageError("--serve and --connect exclude each other", remedy="give one of them, or neither to run both ends here")
    if at not in {"client", "server"}:
        raise UsageError(f"--at: {at!r} is not an end", remedy="use client or server")
    if (serve or connect) and any(alone):
        raise UsageError("with --serve or --connect, nothing is captured or compared", remedy="omit --remedies, --json and -o")
    if timeout is not None and timeout > 1e6:  # noqa: PLR2004  (11 days; `select` rejects longer timeouts)
        raise UsageError(f"--timeout: {timeout:g} s is too long")


def _schedule(
    capture: str, connection: int | None, from_schedule: str, hidden: Anonymizer | None, shown: Activity, *, quiet: bool
) -> tuple[Evidence | None, Schedule]:
    if from_schedule:
        from tcptrace_lab.replay.schedule import read_schedule  # noqa: PLC0415

        return None, read_schedule(from_schedule)
    from tcptrace_lab.replay.evidence import gather  # noqa: PLC0415
    from tcptrace_lab.replay.reconstruct import reconstruct  # noqa: PLC0415

    evidence = gather([capture], connection, anonymizer=hidden, progress=shown.segments, say=None if quiet else say)
    schedule = reconstruct(evidence)
    if not quiet:
        for unknown in schedule.unknowns:
            say(unknown)
    return evidence, schedule


def _one_end(schedule: Schedule, serve: str, connect: str, timeout: float | None, *, quiet: bool) -> int:
    from tcptrace_lab.replay import socket_replay  # noqa: PLC0415
    from tcptrace_lab.replay.namespace_replay import patience_s  # noqa: PLC0415

    limit_s = timeout or patience_s(schedule)
    if serve:
        done = socket_replay.serve(schedule.server, options.address(serve, "--serve"), limit_s, _telling(quiet=quiet), timeout)
    else:
        done = socket_replay.connect(schedule.client, options.address(connect, "--connect"), limit_s)
    if not quiet:
        say(_summary_line(done, schedule.server if serve else schedule.client))
    return EXIT_DONE


def _telling(*, quiet: bool) -> Callable[[tuple[str, int]], None]:
    def tell(address: tuple[str, int]) -> None:
        if not quiet:
            say(f"listening at {address[0]} port {address[1]}")

    return tell


def _summary_line(done: Done, end: End) -> str:
    return f"{done.written_bytes:,} of {end.written_bytes:,} bytes written, {done.read_bytes:,} read, in {done.took_ns / 1e9:.3f} s"


def _both_ends(
    evidence: Evidence | None,
    schedule: Schedule,
    changed: Changes,
    shown: Activity,
    *,
    remedies: bool,
    plain: bool,
    folder: str,
    at: str,
    json_path: str | None,
    timeout: float | None,
    quiet: bool,
) -> int:
    from pathlib import Path  # noqa: PLC0415

    from tcptrace_lab.replay.changes import remedy  # noqa: PLC0415
    from tcptrace_lab.replay.side_by_side import original_figures, stall  # noqa: PLC0415
    from tcptrace_lab.replay.transfer import Order, transfer  # noqa: PLC0415

    original: Figures | None = None
    if evidence is not None:
        original = original_figures(evidence)
    if remedies:
        captured_stall = stall(original) if original is not None else None
        if captured_stall is None:
            raise UsageError("no fixable cause in this transfer", remedy="give the changes to try, such as --nodelay")
        changed = remedy(schedule, captured_stall.family)
    if folder:
        Path(folder).mkdir(exist_ok=True)
    order = Order(schedule, changed, plain, Path(folder) if folder else None, timeout, at)
    compared = transfer(order, original, shown.doing)
    if json_path is not None:
        output.write_json(json_path, compared.to_dict())
    written = None
    if folder and compared.replays:
        from tcptrace_lab.cli.tables.replays import verdict  # noqa: PLC0415
        from tcptrace_lab.replay.page import write_page  # noqa: PLC0415

        shown.doing("comparing")
        written = Path(folder) / PAGE
        write_page(compared, evidence, verdict(compared), str(written))
    if not quiet and json_path != output.STDOUT:
        from tcptrace_lab.cli.tables.replays import show  # noqa: PLC0415

        shown.end()
        show(compared)
    if not quiet and written is not None:
        say(f"report written: {written}")
    return EXIT_DONE
