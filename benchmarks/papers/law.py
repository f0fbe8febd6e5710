"""Law 1998: 0.04 Mb/s at writes of 1 KB on socket buffers of 4 KB, over Ethernet between hosts with IRIX 6.2, and what cures it.

Assumed, because Law says that the kernel fits a buffer to the next lowest MSS (section 4.3.2), and because a sender of hers stopped after
42 writes of 1,460 bytes on a buffer of 61,440: a buffer is rounded down to whole segments. So every buffer from 2 to just under 3
segments is 2 (3K and 4K lock alike), and every one from 3 segments on is at least 3 (4,380 bytes and 5K do not lock). 4.4BSD's own rule,
rounding up, would make 4 KB three segments, which cannot lock.
"""

from __future__ import annotations

from tcptrace_lab.stacks import STACKS, Host, Link, Mark, Read, Setting, Write, simulate

ETHERNET = Link(rate_bps=10_000_000, propagation_ns=5_000, framing="ethernet")
MSS_BYTES = 1460
CALL_BYTES = 1024
TRANSFER_BYTES = 400_000
MEBIBIT = 1 << 20


def mbps(buffer_bytes: int, *, no_delay: bool = False, phase_ns: int = 0, stack: str = "irix6.2") -> float:
    """Throughput in Mb/s (2^20) with both buffers of a size; hosts need no time."""
    ours = STACKS[stack]
    client = Host(ours, buffer_bytes, buffer_bytes, no_delay=no_delay, phase_ns=phase_ns, program=(Write(TRANSFER_BYTES, CALL_BYTES),))
    reads = (Mark("start"), Read(TRANSFER_BYTES, CALL_BYTES), Mark("end"))
    server = Host(ours, buffer_bytes, buffer_bytes, phase_ns=phase_ns + 33_000_000, program=reads)
    run = simulate(Setting(client, server, ETHERNET, ETHERNET, MSS_BYTES))
    (spent_ns,) = run.server.spans("start", "end")
    return TRANSFER_BYTES * 8 / MEBIBIT / (spent_ns / 1e9)


def blocked_after_bytes(buffer_bytes: int, *, stack: str = "irix6.2") -> int:
    """Bytes that a program writes before it first sleeps, if each write is one segment and the peer has not answered yet."""
    ours = STACKS[stack]
    far = Link(rate_bps=10_000_000, propagation_ns=2_000_000_000, framing="ethernet")
    marks = tuple(step for n in range(60) for step in (Write(MSS_BYTES), Mark(str(n))))
    client = Host(ours, buffer_bytes, buffer_bytes, program=marks)
    run = simulate(Setting(client, Host(ours, program=(Read(),)), far, far, MSS_BYTES, no_slow_start=True, until_ns=5_500_000_000))
    return len(run.client.marks) * MSS_BYTES
