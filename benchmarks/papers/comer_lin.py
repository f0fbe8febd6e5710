"""Comer & Lin 1994, and the repetition by Liu et al. with TCP_NODELAY: throughput over ATM for pairs of send and receive buffers.

The hosts are two SPARCstation IPC with SunOS 4.1 on TAXI at 100 Mb/s, with an MSS of 9148. Some parameters are not published, so they are
chosen here: writes and reads of 4 KB, 4 MB per transfer, and the phase of the delayed-ACK timers (heartbeats). They do not decide which
cells are slow. Reads of 8 KB and transfers of 1 MB give the same cells.

The rate of two slow cells differs: with a send buffer of 24K and a receive buffer of 48K or 51K, the model gives 0.63 Mb/s. The measured
rates are 0.76 and 0.74. The reason is unknown.
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
"""The paper shades cells with a lower rate."""

PHASES_NS = (0, 50_000_000, 100_000_000, 150_000_000)
RECEIVER_LATER_NS = 77_000_000
"""Delay of the receiver's delayed-ACK timer (heartbeat) behind that of the sender. Any value will do."""

UNFIRM = frozenset({(24, 48), (24, 51)})
"""Send and receive buffers (KiB) of the slow cells whose rate the model misses. It gives 0.63 Mb/s instead of 0.76 and 0.74."""


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
    """Return the throughput of one transfer in Mb/s of 2^20 bits."""
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
    """Return whether both rates are slow or both are fast."""
    return (measured < SLOW_MBPS) == (modelled < SLOW_MBPS)
