"""The modelled stacks with their parameters, by name."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from tcptrace_lab.stacks import rounding
from tcptrace_lab.stacks.events import NS_PER_MS, NS_PER_S
from tcptrace_lab.stacks.families import bsd, linux, mddos, modern
from tcptrace_lab.stacks.stack import Stack

SUNOS4 = Stack(
    name="sunos4",
    follows="SunOS 4.1.3 sys/os/uipc_socket.c, sys/netinet/tcp_output.c, tcp_input.c, tcp_timer.c (4.3BSD-Tahoe)",
    socket=bsd.SunOsSocket,
    sender=bsd.BsdSender,
    receiver=bsd.BsdReceiver,
    default_buffer_bytes=4096,
)

BSD42 = Stack(
    name="bsd4.2",
    follows="4.2BSD sys/uipc_socket.c, netinet/tcp_output.c, tcp_input.c",
    socket=bsd.Bsd42Socket,
    sender=bsd.Bsd42Sender,
    receiver=bsd.Bsd42Receiver,
    default_buffer_bytes=2048,
    initial_segments=0,
    recovery="none",
    output_on_ack=False,
    holds_small=False,
)

BSD44 = Stack(
    name="bsd4.4",
    follows="4.4BSD-Lite sys/kern/uipc_socket.c, sys/netinet/tcp_output.c, tcp_input.c",
    socket=bsd.Bsd44Socket,
    sender=bsd.BsdSender,
    receiver=bsd.Bsd44Receiver,
    default_buffer_bytes=8192,
    recovery="reno",
    round_mss=rounding.clusters,
    round_buffer=rounding.segments_up,
    idle_restart=True,
)

IRIX62 = replace(
    BSD44,
    name="irix6.2",
    follows="4.4BSD; buffers as Law (1998) observed them",
    default_buffer_bytes=61_440,
    round_buffer=rounding.segments_down,
)

SOLARIS25 = Stack(
    name="solaris2.5",
    follows="Sun's tunable parameters; Law (1998), section 4.2",
    socket=modern.SolarisSocket,
    sender=bsd.BsdSender,
    receiver=modern.SolarisReceiver,
    default_buffer_bytes=8192,
    recovery="reno",
    round_buffer=rounding.segments_up,
    tick_ns=0,
    min_rto_ns=200 * NS_PER_MS,
    first_rto_ns=3 * NS_PER_S,
    min_persist_ns=NS_PER_S,
)

MD_DOS = Stack(
    name="md-dos",
    follows="Abrams & Chen, TR 91-23, sections 2.2 and 3; Chen's thesis (1992)",
    socket=mddos.Socket,
    sender=mddos.Sender,
    receiver=mddos.Receiver,
    default_buffer_bytes=2048,
    initial_segments=0,
    recovery="none",
    tick_ns=0,
    first_rto_ns=3 * NS_PER_S,
)

LINUX = Stack(
    name="linux",
    follows="Linux 6.x net/ipv4/tcp_output.c, tcp_input.c, tcp.c, tcp_timer.c",
    socket=linux.Socket,
    sender=linux.Sender,
    receiver=linux.Receiver,
    default_buffer_bytes=131_072,
    initial_segments=10,
    counts_segments=True,
    recovery="reno",
    partial=True,
    tick_ns=0,
    min_rto_ns=200 * NS_PER_MS,
    first_rto_ns=NS_PER_S,
    max_rto_ns=120 * NS_PER_S,
    min_persist_ns=200 * NS_PER_MS,
    max_persist_ns=120 * NS_PER_S,
    probe_bytes=0,
    takes_beyond_window=False,
    option_bytes=12,
    window_scale=7,
    idle_restart=True,
)

FREEBSD = Stack(
    name="freebsd",
    follows="FreeBSD 13 sys/netinet/tcp_output.c, tcp_input.c, sys/kern/uipc_socket.c",
    socket=modern.FreeBsdSocket,
    sender=modern.FreeBsdSender,
    receiver=modern.FreeBsdReceiver,
    default_buffer_bytes=65_536,
    initial_segments=10,
    recovery="reno",
    partial=True,
    tick_ns=0,
    min_rto_ns=230 * NS_PER_MS,
    first_rto_ns=NS_PER_S,
    min_persist_ns=5 * NS_PER_S,
    option_bytes=12,
    window_scale=6,
    idle_restart=True,
)

STACKS: Final[dict[str, Stack]] = {stack.name: stack for stack in (BSD42, SUNOS4, BSD44, IRIX62, SOLARIS25, MD_DOS, LINUX, FREEBSD)}
"""Name on the command line → stack."""
