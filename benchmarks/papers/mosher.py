"""Mosher 1985: calls of the kernel's routines for 10,000 writes of six sizes, 4.2BSD on a VAX 11/750 over the 3 Mb/s Ethernet.

1,025 bytes show a silly window at the socket: 1,023 of its 2,048 bytes are free, so nearly every write is cut in ten small buffers
instead of 1,024 + 1. The number of ACKs for the small sizes is the heartbeat's and the 35 % rule's: an ACK for 717 bytes and more, or
every 200 ms. With 1 byte a write she counted 323 segments, which at her own 5.5 ms for the smallest packet is more than one heartbeat
each; not explained.
"""

from __future__ import annotations

from tcptrace_lab.stacks import STACKS, Host, Link, Read, Repeat, Setting, Write, hosts, simulate

SIZES = (1, 112, 113, 1023, 1024, 1025)
WRITES = 10_000
BUFFER_BYTES = 2048
MSS_BYTES = 1024
LINE = Link(rate_bps=2_940_000, propagation_ns=5_000, framing="ethernet")
"""The experimental Ethernet; its frames are taken to be as long as the later one's."""


def calls(size: int, *, writes: int = WRITES) -> dict[str, int]:
    """Calls by routine, as gprof would count them on the sender."""
    stack = STACKS["bsd4.2"]
    client = Host(stack, BUFFER_BYTES, BUFFER_BYTES, costs=hosts.VAX_750, program=(Repeat((Write(size),), writes),))
    server = Host(stack, BUFFER_BYTES, BUFFER_BYTES, costs=hosts.VAX_750, program=(Read(0, 4096),))
    run = simulate(Setting(client, server, LINE, LINE, MSS_BYTES))
    return {
        "uiomove": run.client.buffers,
        "sbappend": run.client.handed_over,
        "tcp_output": run.client.asked,
        "m_copy": sum(1 for packet in run.packets if packet.from_client and packet.payload_bytes),
        "ip_output": run.client.segments_out,
        "tcp_input": run.client.segments_in,
    }
