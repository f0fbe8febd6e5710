"""Mosher 1985: how often 4.2BSD calls the kernel's routines for 10,000 writes of six sizes, on a VAX 11/750 over the 3 Mb/s Ethernet.

Writes of 1,025 bytes show a silly window at the socket. Its buffer has 2,048 bytes, and 1,023 of them are free. So nearly every write is
cut into ten small buffers instead of 1,024 + 1 bytes.

For small sizes, two rules decide the number of ACKs. The receiver sends an ACK after at least 717 bytes (35 %), or when the delayed-ACK
timer fires every 200 ms. For writes of 1 byte, Mosher counted 323 ACKs. Her smallest packets took 5.5 ms, so 10,000 of them take 55 s, in
which the timer fires 275 times. It is unknown why there were more ACKs.
"""

from __future__ import annotations

from tcptrace_lab.stacks import STACKS, Host, Link, Read, Repeat, Setting, Write, hosts, simulate

SIZES = (1, 112, 113, 1023, 1024, 1025)
WRITES = 10_000
BUFFER_BYTES = 2048
MSS_BYTES = 1024
LINE = Link(rate_bps=2_940_000, propagation_ns=5_000, framing="ethernet")
"""The experimental Ethernet. The model assumes frames as long as those of the later Ethernet."""


def calls(size: int, *, writes: int = WRITES) -> dict[str, int]:
    """Return the number of calls of each routine, as gprof would count them on the sender."""
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
