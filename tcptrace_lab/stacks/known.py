"""The stacks that are modelled, by name."""

from __future__ import annotations

from typing import Final

from tcptrace_lab.stacks import bsd
from tcptrace_lab.stacks.events import NS_PER_S
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
    receiver=bsd.BsdReceiver,
    default_buffer_bytes=2048,
    initial_segments=0,
    recovery="none",
    output_on_ack=False,
)

BSD44 = Stack(
    name="bsd4.4",
    follows="4.4BSD-Lite sys/kern/uipc_socket.c, sys/netinet/tcp_output.c, tcp_input.c",
    socket=bsd.Bsd44Socket,
    sender=bsd.BsdSender,
    receiver=bsd.Bsd44Receiver,
    default_buffer_bytes=8192,
    recovery="reno",
    round_mss=bsd.clusters,
    round_buffer=bsd.segments_up,
    first_rto_ns=3 * NS_PER_S,
    idle_restart=True,
)

IRIX62 = Stack(
    name="irix6.2",
    follows="4.4BSD; buffers as Law (1998) observed them",
    socket=bsd.Bsd44Socket,
    sender=bsd.BsdSender,
    receiver=bsd.Bsd44Receiver,
    default_buffer_bytes=61_440,
    recovery="reno",
    round_mss=bsd.clusters,
    round_buffer=bsd.segments_down,
    first_rto_ns=3 * NS_PER_S,
    idle_restart=True,
)

STACKS: Final[dict[str, Stack]] = {stack.name: stack for stack in (BSD42, SUNOS4, BSD44, IRIX62)}
"""Name → stack."""
