"""`tcptrace-lab simulate`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tcptrace_lab.cli.options import Debug, Quiet
from tcptrace_lab.cli.terminal import activity, say
from tcptrace_lab.errors import EXIT_DONE, UsageError
from tcptrace_lab.process import output

if TYPE_CHECKING:
    from tcptrace_lab.simulation import At, Medium
    from tcptrace_lab.stacks import Run

File = Annotated[
    str, typer.Argument(metavar="[SETTING.toml]", help="File with all settings of the run; options override it.", show_default=False)
]
Client = Annotated[
    str,
    typer.Option(
        metavar="PROGRAM",
        help='What the client does, such as "10 * (write 8K/4K; read 1; think 20ms)"; default: writes 1M.',
        show_default=False,
    ),
]
Server = Annotated[
    str, typer.Option(metavar="PROGRAM", help="What the server does; default: reads until the client closes.", show_default=False)
]
StackName = Annotated[
    str, typer.Option("--stack", metavar="NAME", help="Stack of both hosts, as in predict; default: linux.", show_default=False)
]
ClientStack = Annotated[str, typer.Option(metavar="NAME", help="Stack of the client.", show_default=False)]
ServerStack = Annotated[str, typer.Option(metavar="NAME", help="Stack of the server.", show_default=False)]
HostName = Annotated[
    str,
    typer.Option(
        "--host", metavar="NAME", help="Processing times of both hosts: sparc-ipc, vax-750 or pc-386; default: none.", show_default=False
    ),
]
Mss = Annotated[str, typer.Option(metavar="BYTES", help="Largest payload of a segment; default: 1460.", show_default=False)]
SendBuffer = Annotated[str, typer.Option(metavar="SIZE", help="Send buffer of both hosts; default: the stack's.", show_default=False)]
ReceiveBuffer = Annotated[str, typer.Option(metavar="SIZE", help="Receive buffer of both hosts.", show_default=False)]
NoDelay = Annotated[bool, typer.Option("--nodelay", help="Both applications switch Nagle's algorithm off.")]
Phase = Annotated[str, typer.Option(metavar="TIME", help="Time of the first tick of periodic timers.", show_default=False)]
NoSlowStart = Annotated[
    bool,
    typer.Option("--no-slow-start", help="Until the first loss, the congestion window does not limit the sender, as in a long connection."),
]
Rate = Annotated[
    str, typer.Option(metavar="RATE", help="Line rate in both directions, such as 10M; default: no limit.", show_default=False)
]
Delay = Annotated[str, typer.Option(metavar="TIME", help="One-way delay from end to end; default: 0.", show_default=False)]
Framing = Annotated[str, typer.Option(metavar="NAME", help="Framing on the line: ethernet, atm or bare.", show_default=False)]
Loss = Annotated[float, typer.Option(metavar="SHARE", help="Loss probability of packets from the client.", show_default=False)]
Drop = Annotated[
    str, typer.Option(metavar="N,N", help="Packets from the client that are lost, such as 5,6,9 (the first is 0).", show_default=False)
]
Seed = Annotated[int, typer.Option(metavar="N", help="Random seed of the losses.", show_default=False)]
Until = Annotated[str, typer.Option(metavar="TIME", help="Latest end of the run; default: 3600s.", show_default=False)]
Place = Annotated[str, typer.Option("--at", metavar="client|server", help="Capture point.")]
Link = Annotated[
    str,
    typer.Option(
        "--link",
        metavar="NAME",
        help="Frames of the capture: ethernet, loopback, raw, or a form of ATM such as rfc1483-llc, sunatm, erf-cells.",
    ),
]
Output = Annotated[
    str, typer.Option("-o", "--output", metavar="PATH|-", help="File for the capture; - is standard output.", show_default=False)
]
Truth = Annotated[str, typer.Option("--truth", metavar="PATH|-", help="Also write the ledger of the model as JSON.", show_default=False)]


def simulate(
    path: Output,
    file: File = "",
    client: Client = "",
    server: Server = "",
    stack: StackName = "",
    client_stack: ClientStack = "",
    server_stack: ServerStack = "",
    host: HostName = "",
    mss: Mss = "",
    send_buffer: SendBuffer = "",
    receive_buffer: ReceiveBuffer = "",
    nodelay: NoDelay = False,
    phase: Phase = "",
    no_slow_start: NoSlowStart = False,
    rate: Rate = "",
    delay: Delay = "",
    framing: Framing = "",
    loss: Loss = 0.0,
    drop: Drop = "",
    seed: Seed = 0,
    until: Until = "",
    at: Place = "client",
    link: Link = "ethernet",
    truth: Truth = "",
    quiet: Quiet = False,
    _debug: Debug = False,
) -> int:
    """Simulate two TCP stacks and write the packets that a capture at one of them would contain."""
    hosts = {
        "send_buffer": send_buffer,
        "receive_buffer": receive_buffer,
        "nodelay": nodelay,
        "phase": phase,
        "host": host,
    }
    path_options = {"rate": rate, "delay": delay, "framing": framing}
    asked = {
        "client": hosts | {"program": client, "stack": client_stack or stack},
        "server": hosts | {"program": server, "stack": server_stack or stack},
        "forward": path_options | {"loss": loss, "drop": _numbers(drop), "seed": seed},
        "backward": path_options,
        "mss_bytes": mss,
        "no_slow_start": no_slow_start,
        "until": until,
    }
    for place in (path, truth or path):
        output.check(place, [file] if file else [])
    with activity("reading the setting", quiet=quiet) as shown:
        from tcptrace_lab.simulation import declared, truth_document, write_capture  # noqa: PLC0415
        from tcptrace_lab.simulation.settings import merged, read  # noqa: PLC0415
        from tcptrace_lab.stacks import simulate as run_model  # noqa: PLC0415
        from tcptrace_lab.stacks.events import TooManyEvents  # noqa: PLC0415
        from tcptrace_lab.text.numbers import counted  # noqa: PLC0415

        setting = declared(merged(read(file) if file else {}, asked))
        where, medium = _choices(at, link)
        shown.doing("simulating")
        try:
            run = run_model(setting, truth=bool(truth))
        except TooManyEvents as error:
            raise UsageError(f"too much for the model: {error}", remedy="let the applications do less, or end earlier (--until)") from error
        shown.doing("writing the capture")
        with output.opened(path) as stream:
            count = write_capture(run, setting, stream, at=where, medium=medium)
        if truth:
            output.write_json(truth, truth_document(run, setting))
    if not quiet:
        place = "standard output" if path == output.STDOUT else path
        say(f"capture written: {place} ({counted(count, 'packet')}){_unfinished(run)}")
    return EXIT_DONE


def _unfinished(run: Run) -> str:
    waiting = [name for name, side in (("the client's", run.client), ("the server's", run.server)) if not side.done]
    return f"; {' and '.join(waiting)} application had not ended" if waiting else ""


def _numbers(text: str) -> list[int]:
    if not text:
        return []
    try:
        return [int(word) for word in text.split(",")]
    except ValueError:
        raise UsageError(f"--drop: {text!r} is not a list of packets", remedy="write it as 5,6,9") from None


def _choices(at: str, link: str) -> tuple[At, Medium]:
    from tcptrace_lab.simulation import At, Medium  # noqa: PLC0415

    for value, kind in ((at, At), (link, Medium)):
        if value not in list(kind):
            raise UsageError(f"{value!r} is not allowed", remedy=f"use {', '.join(kind)}")
    return At(at), Medium(link)
