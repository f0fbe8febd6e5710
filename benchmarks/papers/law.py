"""Law 1998: writes of 1 KB with socket buffers of 4 KB, over Ethernet between hosts with IRIX 6.2, reach only 0.04 Mb/s.

The model assumes that IRIX rounds a buffer down to whole segments. Two observations support this. Law writes that the kernel fits a buffer
to the next lowest MSS (section 4.3.2). And one of her senders stopped after 42 writes of 1,460 bytes with a buffer of 61,440.

So a buffer from 2 to just under 3 segments counts as 2 segments. Buffers of 3K and 4K therefore lead to the deadlock. A larger buffer has
at least 3 segments, so 4,380 bytes and 5K do not lead to it. 4.4BSD rounds up: it makes three segments of 4 KB, which cannot lead to the
deadlock.
"""

from __future__ import annotations

from tcptrace_lab.stacks import STACKS, Host, Link, Mark, Read, Setting, Write, simulate

ETHERNET = Link(rate_bps=10_000_000, propagation_ns=5_000, framing="ethernet")
MSS_BYTES = 1460
CALL_BYTES = 1024
TRANSFER_BYTES = 400_000
MEBIBIT = 1 << 20


def mbps(buffer_bytes: int, *, no_delay: bool = False, phase_ns: int = 0, stack: str = "irix6.2") -> float:
    """Return the throughput in Mb/s of 2^20 bits if both buffers have this size. The hosts take no time."""
    ours = STACKS[stack]
    client = Host(ours, buffer_bytes, buffer_bytes, no_delay=no_delay, phase_ns=phase_ns, program=(Write(TRANSFER_BYTES, CALL_BYTES),))
    reads = (Mark("start"), Read(TRANSFER_BYTES, CALL_BYTES), Mark("end"))
    server = Host(ours, buffer_bytes, buffer_bytes, phase_ns=phase_ns + 33_000_000, program=reads)
    run = simulate(Setting(client, server, ETHERNET, ETHERNET, MSS_BYTES))
    (spent_ns,) = run.server.spans("start", "end")
    return TRANSFER_BYTES * 8 / MEBIBIT / (spent_ns / 1e9)


def blocked_after_bytes(buffer_bytes: int, *, stack: str = "irix6.2") -> int:
    """Return how many bytes a program writes before it sleeps for the first time.

    Each write is one segment, and the peer has not answered yet.
    """
    ours = STACKS[stack]
    far = Link(rate_bps=10_000_000, propagation_ns=2_000_000_000, framing="ethernet")
    marks = tuple(step for n in range(60) for step in (Write(MSS_BYTES), Mark(str(n))))
    client = Host(ours, buffer_bytes, buffer_bytes, program=marks)
    run = simulate(Setting(client, Host(ours, program=(Read(),)), far, far, MSS_BYTES, no_slow_start=True, until_ns=5_500_000_000))
    return len(run.client.marks) * MSS_BYTES
