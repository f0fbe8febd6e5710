"""`tcptrace-lab replay packets`."""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tcptrace_lab.cli.commands.replay import options
from tcptrace_lab.cli.options import Debug, Quiet
from tcptrace_lab.cli.terminal import activity, say
from tcptrace_lab.errors import EXIT_DONE, CaptureUnreadable, UsageError
from tcptrace_lab.process import interrupts, output
from tcptrace_lab.text.numbers import NS_PER_S, counted, times

if TYPE_CHECKING:
    from tcptrace_lab.replay.packets.send import Sent

File = Annotated[str, typer.Argument(metavar="CAPTURE", help="pcap or pcapng, plain or compressed.", show_default=False)]
Interface = Annotated[str, typer.Option("-i", "--interface", metavar="NAME", help="Interface to send to.", show_default=False)]
Speed = Annotated[str, typer.Option(metavar="FACTOR", help="Speed-up factor, such as 2x.", show_default=False)]
Rate = Annotated[str, typer.Option(metavar="RATE", help="Send at a constant rate, such as 10Mbit/s or 1000pps.", show_default=False)]
TopSpeed = Annotated[bool, typer.Option("--topspeed", help="Send as fast as possible.")]
Loop = Annotated[int, typer.Option(metavar="N", min=1, help="Number of repetitions.")]
Range = Annotated[str, typer.Option("--range", metavar="FIRST-LAST", help="Send only these frames, such as 10-200.", show_default=False)]
Filter = Annotated[
    str, typer.Option("--filter", metavar="EXPR", help="Send only frames that match this tshark display filter.", show_default=False)
]
Address = Annotated[list[str] | None, typer.Option(metavar="OLD=NEW", help="Rewrite an IP address.", show_default=False)]
Port = Annotated[list[str] | None, typer.Option(metavar="OLD=NEW", help="Rewrite a TCP or UDP port.", show_default=False)]
SourceMac = Annotated[str, typer.Option(metavar="MAC", help="Rewrite the source MAC address.", show_default=False)]
DestinationMac = Annotated[str, typer.Option(metavar="MAC", help="Rewrite the destination MAC address.", show_default=False)]
Checksums = Annotated[bool, typer.Option("--checksums", help="Recompute all checksums.")]
Mtu = Annotated[int, typer.Option(metavar="BYTES", min=0, help="Truncate longer packets.", show_default=False)]
Allow = Annotated[list[str] | None, typer.Option(metavar="CIDR", help="Also allow this destination network.", show_default=False)]
AnyInterface = Annotated[bool, typer.Option("--any-interface", help="Also allow interfaces whose packets can leave this machine.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be sent, but send nothing.")]


MIN_MTU_BYTES = 68
"""Smallest MTU: hosts and routers must forward IPv4 datagrams of this size without fragmentation (RFC 791, section 3.2)."""


def packets(
    capture: File,
    interface: Interface = "",
    speed: Speed = "",
    rate: Rate = "",
    topspeed: TopSpeed = False,
    loop: Loop = 1,
    frame_range: Range = "",
    display_filter: Filter = "",
    address: Address = None,
    port: Port = None,
    source_mac: SourceMac = "",
    destination_mac: DestinationMac = "",
    checksums: Checksums = False,
    mtu: Mtu = 0,
    allow: Allow = None,
    any_interface: AnyInterface = False,
    dry_run: DryRun = False,
    json_path: options.Json = None,
    quiet: Quiet = False,
    _debug: Debug = False,
) -> int:
    """Send the frames of a capture to an interface, with original or changed timing, unchanged or rewritten.

    Packets go only to lo, veth, tun, tap and dummy interfaces, and only to addresses of this machine, documentation addresses, and networks
    given with --allow.
    """
    from tcptrace_lab.replay.packets.allowed_destinations import networks, own_networks  # noqa: PLC0415
    from tcptrace_lab.replay.packets.frames import Rewrite  # noqa: PLC0415
    from tcptrace_lab.replay.packets.pace import pace  # noqa: PLC0415
    from tcptrace_lab.replay.packets.send import Plan, check, planned, send  # noqa: PLC0415

    if not interface:
        raise UsageError("name an interface with -i", remedy="ip link lists them")
    options.check_capture(capture)
    if json_path is not None:
        output.check(json_path, [capture])
    ports = tuple((_port(old), _port(new)) for old, new in map(_pair, port or []))
    addresses = tuple((_address(old), _address(new)) for old, new in map(_pair, address or []))
    rewrite = Rewrite(_mac(source_mac), _mac(destination_mac), addresses, ports, checksums, _mtu(mtu))
    allowed = (*own_networks(), *networks(allow or []))
    plan = Plan(
        capture, interface, pace(speed, rate, topspeed=topspeed), rewrite, _range(frame_range), display_filter, loop, allowed, any_interface
    )
    try:
        with activity("sending", quiet=quiet), interrupts.raised():
            if dry_run:
                count, octets, lasts_ns = check(plan)
            else:
                done = send(plan)
    except OSError as error:
        raise CaptureUnreadable(f"cannot be read: {error.strerror}", where=capture) from error
    if dry_run:
        result: dict[str, Any] = planned(count, octets, lasts_ns, loop)
        often = "" if loop == 1 else f" {times(loop)}"
        words = [f"would send {counted(count, 'frame')}, {octets:,} bytes, in {lasts_ns / NS_PER_S:.3f} s{often}, into {interface}"]
    else:
        result, words = done.to_dict(), _words(done, interface)
    if json_path is not None:
        output.write_json(json_path, result)
    if not quiet:
        for line in words:
            say(line)
    return EXIT_DONE


def _words(done: Sent, interface: str) -> list[str]:
    """Return two sentences on the packets that were sent."""
    result = done.to_dict()
    middle, high = result["lateness_p50_s"], result["lateness_p99_s"]
    late = "" if middle is None else f"late by {middle * 1e6:.0f} µs (p50), {high * 1e6:.0f} µs (p99); "
    return [
        f"{counted(done.frames, 'frame')}, {done.octets:,} bytes sent in {done.took_ns / NS_PER_S:.3f} s",
        f"{late}kernel rejected {done.refused:,}, {interface} dropped {done.counted[1]:,}",
    ]


def _pair(text: str) -> tuple[str, str]:
    old, sign, new = text.partition("=")
    if not sign or not old or not new:
        raise UsageError(f"{text!r} is not OLD=NEW", remedy="write it as OLD=NEW")
    return old, new


def _port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > 65_535:  # noqa: PLR2004
        raise UsageError(f"--port: {text!r} is not a port")
    return int(text)


def _address(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text))
    except ValueError as error:
        raise UsageError(f"--address: {text!r} is not an IP address") from error


def _mtu(size: int) -> int:
    if 0 < size < MIN_MTU_BYTES:
        raise UsageError(f"--mtu: {size} is below {MIN_MTU_BYTES}, the minimum of IPv4")
    return size


def _mac(text: str) -> str:
    if text and not re.fullmatch(r"([0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}", text):
        raise UsageError(f"{text!r} is not a MAC address", remedy="write it as 02:00:00:00:00:01")
    return text


def _range(text: str) -> tuple[int, int] | None:
    if not text:
        return None
    match = re.fullmatch(r"(\d{1,15})-(\d{1,15})", text)
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise UsageError(f"--range: {text!r} is not a range of frames", remedy="write it as 10-200")
    return int(match[1]), int(match[2])
