"""Comer & Lin 1994, and Liu et al.'s repetition with TCP_NODELAY: throughput over ATM against both buffers.

Two SPARCstation IPC with SunOS 4.1 on TAXI at 100 Mb/s, MSS 9148. Not published, and chosen here: writes and reads of 4 KB (reads of 8 KB
do the same), 4 MB a transfer (1 MB does the same), the phase of the heartbeats. Whether a cell is slow depends on none of them. At a send
buffer of 24K with 48K or 51K the model locks as measured, but at 0.63 Mb/s instead of 0.76 and 0.74; why, is not known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from papers import published
from tcptrace_lab.stacks import STACKS, Host, Link, Mark, Read, Setting, Write, hosts, simulate

if TYPE_CHECKING:
    from tcptrace_lab.stacks import Stack

MSS_BYTES = 9148
TAXI = Link(rate_bps=100_000_000, propagation_ns=10_000, framing="atm")
CALL_BYTES = 4096
TRANSFER_BYTES = 4 << 20
LONG_TRANSFER_BYTES = 8 << 20
SLOW_MBPS = 2.0
"""Below it a cell is shaded in the paper."""

PHASES_NS = (0, 50_000_000, 100_000_000, 150_000_000)
RECEIVER_LATER_NS = 77_000_000
"""How much later the receiver's heartbeats come than the sender's (any value will do)."""

UNFIRM = frozenset({(24, 48), (24, 51)})
"""Send and receive buffer (KiB) of the slow cells whose rate the model misses: 0.63 Mb/s against 0.76 and 0.74."""


def mbps(
    send_kib: int,
    receive_kib: int,
    *,
    no_delay: bool = False,
    phase_ns: int = 0,
    transfer_bytes: int = TRANSFER_BYTES,
    read_bytes: int = CALL_BYTES,
    stack: Stack = STACKS["sunos4"],
    mss_bytes: int = MSS_BYTES,
) -> float:
    """Throughput of one transfer, in Mb/s of 2^20."""
    send, receive = published.buffer_bytes(send_kib), published.buffer_bytes(receive_kib)
    client = Host(
        stack, send, receive, no_delay=no_delay, costs=hosts.SPARC_IPC, phase_ns=phase_ns, program=(Write(transfer_bytes, CALL_BYTES),)
    )
    reads = (Mark("start"), Read(transfer_bytes, read_bytes), Mark("end"))
    server = Host(stack, send, receive, costs=hosts.SPARC_IPC, phase_ns=phase_ns + RECEIVER_LATER_NS, program=reads)
    run = simulate(Setting(client, server, TAXI, TAXI, mss_bytes))
    (spent_ns,) = run.server.spans("start", "end")
    return transfer_bytes * 8 / published.MEBIBIT / (spent_ns / 1e9)


def agrees(measured: float, modelled: float) -> bool:
    """Both slow, or both fast."""
    return (measured < SLOW_MBPS) == (modelled < SLOW_MBPS)
