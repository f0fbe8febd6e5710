"""Processor times of the hosts in the studies, in nanoseconds. The authors measured them; fitted and assumed values are marked.

Names that end in `_per_kib` are times per 1,024 bytes.
"""

from __future__ import annotations

from tcptrace_lab.stacks.setting import Costs

US = 1_000

SPARC_IPC = Costs(
    write_call_ns=100 * US,
    read_call_ns=100 * US,
    copy_in_ns_per_kib=110 * US,
    copy_out_ns_per_kib=110 * US,
    wakeup_ns=150 * US,
    data_out_ns=200 * US,
    data_out_ns_per_kib=120 * US,
    ack_out_ns=200 * US,
    data_in_ns=250 * US,
    data_in_ns_per_kib=120 * US,
    ack_in_ns=200 * US,
)
"""SPARCstation IPC with SunOS 4.1 (Comer & Lin).

The costs are fitted by eye to the fast cells of Table 2, about 20 Mb/s. The slow cells do not depend on these costs.
"""

_VAX_WRITE_US, _VAX_BUFFER_US, _VAX_SEGMENT_US = 2_550, 680, 2_270
_VAX_COPY_US, _VAX_CHECKSUM_US = 690, 1_340

VAX_750 = Costs(
    write_call_ns=_VAX_WRITE_US * US,
    read_call_ns=500 * US,
    copy_in_ns_per_kib=_VAX_COPY_US * US,
    copy_out_ns_per_kib=_VAX_COPY_US * US,
    buffer_ns=_VAX_BUFFER_US * US,
    wakeup_ns=300 * US,
    data_out_ns=_VAX_SEGMENT_US * US,
    data_out_ns_per_kib=_VAX_CHECKSUM_US * US,
    ack_out_ns=1_500 * US,
    data_in_ns=1_500 * US,
    data_in_ns_per_kib=_VAX_CHECKSUM_US * US,
    ack_in_ns=1_000 * US,
)
"""VAX 11/750 with 4.2BSD (Mosher).

Table 2 of the study gives the costs of sending. A segment takes 2.27 ms (`m_copy`, `tcp_output`, `tcp_cksum`, `ip_output`, `in_cksum`,
`enoutput`, `if_wubaput` at 1 byte). A buffer takes 0.68 ms (from the times of 1,023 and of 112 bytes). A KB takes 2.03 ms (from the times
of 1,024 bytes and of 1 byte), and copying is 0.69 ms of this time (`Copyin`). The smallest packet takes 5.5 ms (section 2). After
subtracting the segment and the buffer, 2.55 ms remain for the call. The study did not measure receiving, so the costs of receiving are
assumed.
"""

_PC_COPY_US, _PC_CHECKSUM_US = 285, 254
_PC_SEND_US, _PC_SEND_ACK_US = 647, 477
_PC_RECEIVE_US, _PC_RECEIVE_ACK_US = 599, 409
_PC_RECEIVE_KIB_US = 3_469
_PC_DRIVER_US = _PC_RECEIVE_KIB_US - _PC_RECEIVE_US - _PC_COPY_US - _PC_CHECKSUM_US

PC_TASK_CHANGE_NS = 376_953
"""Processor time of a task change in MD-DOS/IP.

This is the only fitted parameter. It is fitted so that the transfer of 40 KB takes 345.452 ms, as Abrams and Chen measured.
"""


def pc(task_change_ns: int) -> Costs:
    """Return the costs of a host with an 80386 at 12.5 MHz and MD-DOS/IP.

    TCP and IP processing of a segment is from table 6. Section 3.5 gives 3.469 ms for receiving a segment of 1 KB, and 0.477 ms for sending
    an ACK. In figure 6, 1,460 bytes take 1.13 ms: 36 % of this time for copying, and 32 % for the checksum. What then remains of the 3.469
    ms is the driver's time. Sending is assumed to take as much driver time. The processor also switches between the tasks of section 3.1. A
    write takes one switch, from the program to TCP. A read takes two switches, to TCP and back. An arriving segment takes two switches,
    from the interrupt to IP and from IP to TCP. One more switch wakes a program.
    """
    return Costs(
        write_call_ns=task_change_ns,
        read_call_ns=2 * task_change_ns,
        wakeup_ns=task_change_ns,
        copy_in_ns_per_kib=_PC_COPY_US * US,
        copy_out_ns_per_kib=_PC_COPY_US * US,
        data_out_ns=_PC_SEND_US * US,
        data_out_ns_per_kib=(_PC_CHECKSUM_US + _PC_DRIVER_US) * US,
        ack_out_ns=_PC_SEND_ACK_US * US,
        data_in_ns=_PC_RECEIVE_US * US + 2 * task_change_ns,
        data_in_ns_per_kib=(_PC_CHECKSUM_US + _PC_DRIVER_US) * US,
        ack_in_ns=_PC_RECEIVE_ACK_US * US + 2 * task_change_ns,
    )


D310_RECEIVING = Costs(
    data_in_ns=_PC_RECEIVE_US * US,
    data_in_ns_per_kib=(_PC_RECEIVE_KIB_US - _PC_RECEIVE_US) * US,
    ack_out_ns=_PC_SEND_ACK_US * US,
)
"""Costs of the receiving host D310, as figure 8 assumes them: 3.469 ms per KB, 0.477 ms per ACK, and no time of the program.

With these costs, the model reaches the 2.209 Mb/s of figure 8.
"""

HOSTS = {"sparc-ipc": SPARC_IPC, "vax-750": VAX_750, "pc-386": pc(PC_TASK_CHANGE_NS)}
"""Costs of each host. The keys are the names in `simulate` and in settings files."""
