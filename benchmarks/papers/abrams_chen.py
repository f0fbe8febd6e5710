"""Abrams & Chen 1991, Chen 1992: 40 KB between two PCs with MD-DOS/IP, and into one of them from a faster host (figure 8).

One parameter is fitted, `hosts.PC_TASK_CHANGE_NS`, to the 345 ms of 40 KB; the idle share then follows. Not reachable, and not claimed:

- the one idle gap of 15.446 ms in figure 5: the mean of the twenty gaps is half of it by the paper's own 156 ms;
- throughput "cut in half" where both hosts are equally fast (the ratio of rates is 1): 40 KB in 345 ms are 0.95 Mb/s against 2.209, but
  the time between the tasks that this takes would make figure 8's points (1.677 Mb/s is the 3.469 + 0.477 ms and the line, and nothing
  else) a third lower. So figure 8 is modelled without it, as the paper's 2.209 is: the two experiments do not fit one set of costs.
"""

from __future__ import annotations

from dataclasses import dataclass

from tcptrace_lab.stacks import STACKS, Host, Link, Mark, Read, Setting, Write, hosts, simulate

ETHERNET = Link(rate_bps=10_000_000, propagation_ns=5_000, framing="ethernet")
FILE_BYTES = 40 * 1024
CALL_BYTES = 1024
BUFFER_BYTES = 2048
MSS_BYTES = 1460
DEC_MSS_BYTES = 1024
"""MSS of 4.3BSD and Ultrix on an Ethernet: whole clusters."""


@dataclass(frozen=True)
class Transfer:
    """One transfer of the file.

    Attributes:
        ms: from the first packet's arrival to the last byte read (section 2.1).
        idle_share: of the sending host's processor.
        segments: sizes of the segments with data, in order.
        acks: segments that came back after the handshake.
    """

    ms: float
    idle_share: float
    segments: tuple[int, ...]
    acks: tuple[int, ...]

    @property
    def mbps(self) -> float:
        """Mb/s of 10^6."""
        return FILE_BYTES * 8 / 1000 / self.ms


def _transfer(client: Host, server: Host, mss_bytes: int, *, no_slow_start: bool) -> Transfer:
    run = simulate(Setting(client, server, ETHERNET, ETHERNET, mss_bytes, no_slow_start=no_slow_start))
    data = [packet for packet in run.packets if packet.from_client and packet.payload_bytes]
    spent_ns = dict(run.server.marks)["end"] - (data[0].arrived_ns or 0)
    acks = tuple(packet.ack for packet in run.packets if not packet.from_client and packet.ack > 1)
    return Transfer(spent_ns / 1e6, 1 - run.client.busy_ns / spent_ns, tuple(packet.payload_bytes for packet in data), acks)


def between_pcs(task_change_ns: int = hosts.PC_TASK_CHANGE_NS) -> Transfer:
    """Section 3.3: writes of 1 KB over buffers of 2 KB."""
    stack, costs = STACKS["md-dos"], hosts.pc(task_change_ns)
    client = Host(stack, BUFFER_BYTES, BUFFER_BYTES, costs=costs, program=(Write(FILE_BYTES, CALL_BYTES),))
    server = Host(stack, BUFFER_BYTES, BUFFER_BYTES, costs=costs, program=(Read(FILE_BYTES, CALL_BYTES), Mark("end")))
    return _transfer(client, server, MSS_BYTES, no_slow_start=False)


def into_the_d310(receive_buffer_bytes: int) -> Transfer:
    """Figure 8: from a DEC5000, taken to need no time, by the receive buffer."""
    client = Host(STACKS["sunos4"], 16 * 1024, 16 * 1024, program=(Write(FILE_BYTES, CALL_BYTES),))
    reads = (Read(FILE_BYTES, CALL_BYTES), Mark("end"))
    server = Host(STACKS["md-dos"], BUFFER_BYTES, receive_buffer_bytes, costs=hosts.D310_RECEIVING, program=reads)
    return _transfer(client, server, DEC_MSS_BYTES, no_slow_start=True)
