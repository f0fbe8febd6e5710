"""Options that the commands of `replay` share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tcptrace_lab.errors import UsageError
from tcptrace_lab.process import output
from tcptrace_lab.text.quantities import duration_ns, rate_bps, size_bytes

if TYPE_CHECKING:
    from tcptrace_lab.replay.changes import Changes

Capture = Annotated[str, typer.Argument(metavar="[CAPTURE]", help="Capture in pcap, pcapng or ERF.", show_default=False)]
Connection = Annotated[
    int | None,
    typer.Option("--connection", metavar="N", min=0, help="Connection to use; default: the connection with most data.", show_default=False),
]
FromSchedule = Annotated[
    str, typer.Option("--from-schedule", metavar="FILE", help="Use a schedule instead of a capture.", show_default=False)
]
NoDelay = Annotated[bool, typer.Option("--nodelay", help="Try TCP_NODELAY.")]
Cork = Annotated[bool, typer.Option("--cork", help="Try TCP_CORK around the writes of each message.")]
QuickAck = Annotated[bool, typer.Option("--quickack", help="Try TCP_QUICKACK after every read.")]
SendBuffer = Annotated[str, typer.Option(metavar="SIZE", help="Try this send buffer, such as 64K.", show_default=False)]
ReceiveBuffer = Annotated[str, typer.Option(metavar="SIZE", help="Try this receive buffer.", show_default=False)]
Congestion = Annotated[str, typer.Option(metavar="NAME", help="Try this congestion control, such as reno.", show_default=False)]
EagerReader = Annotated[bool, typer.Option("--eager-reader", help="Try applications that read at once.")]
NoThinking = Annotated[bool, typer.Option("--no-thinking", help="Try applications that never pause.")]
Lossless = Annotated[bool, typer.Option("--lossless", help="Try a path without packet loss.")]
Delay = Annotated[str, typer.Option(metavar="TIME", help="Try this one-way delay of the path, such as 5ms.", show_default=False)]
Rate = Annotated[str, typer.Option(metavar="RATE", help="Try this rate of the path, such as 10M.", show_default=False)]
Loss = Annotated[float | None, typer.Option(metavar="SHARE", help="Try this loss rate, such as 0.01.", show_default=False)]
Mtu = Annotated[str, typer.Option(metavar="BYTES", help="Try this MTU of the path.", show_default=False)]
Json = Annotated[
    str | None, typer.Option("--json", metavar="PATH|-", help="Write the result as JSON; - is standard output.", show_default=False)
]


def changes(
    *,
    nodelay: bool = False,
    cork: bool = False,
    quickack: bool = False,
    send_buffer: str = "",
    receive_buffer: str = "",
    congestion: str = "",
    eager_reader: bool = False,
    no_thinking: bool = False,
    lossless: bool = False,
    delay: str = "",
    rate: str = "",
    loss: float | None = None,
    mtu: str = "",
) -> Changes:
    """Convert the options to `Changes`. Raises UsageError."""
    from tcptrace_lab.replay.changes import Changes  # noqa: PLC0415

    if congestion and not congestion.isidentifier():
        raise UsageError(f"--congestion: {congestion!r} is not a name", remedy="cat /proc/sys/net/ipv4/tcp_available_congestion_control")
    return Changes(
        nodelay=nodelay,
        cork=cork,
        quickack=quickack,
        send_buffer_bytes=size_bytes(send_buffer) if send_buffer else None,
        receive_buffer_bytes=size_bytes(receive_buffer) if receive_buffer else None,
        congestion=congestion or None,
        eager_reader=eager_reader,
        no_thinking=no_thinking,
        lossless=lossless,
        delay_ns=duration_ns(delay) if delay else None,
        rate_bps=_rate(rate) if rate else None,
        loss_share=loss,
        mtu_bytes=size_bytes(mtu) if mtu else None,
    )


def _rate(text: str) -> int:
    found = rate_bps(text)
    if not found:
        raise UsageError("--rate: the rate must be above 0 bit/s")
    return found


def check_capture(capture: str) -> None:
    """Check that the user has named a capture, and that it can be read twice. Raises UsageError."""
    if not capture:
        raise UsageError("name a capture")
    if capture == output.STDOUT:
        raise UsageError("standard input can be read only once", remedy="save it to a file first")


def address(text: str, option: str) -> tuple[str, int]:
    """Return the host and the port of `192.0.2.1:5001` or `[2001:db8::1]:5001`. Raises UsageError."""
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > 65_535:  # noqa: PLR2004
        raise UsageError(f"{option}: {text!r} is not an address with a port", remedy="write it as 192.0.2.1:5001 or [2001:db8::1]:5001")
    return host.removeprefix("[").removesuffix("]"), int(port)
