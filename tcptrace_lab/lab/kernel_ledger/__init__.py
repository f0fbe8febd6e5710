"""The kernel's ledger: for every instant, the gate that delayed a sender. A gate is a condition in the kernel's TCP.

The kernel's ledger can be recorded for any program. It is compared with the ledger of a capture.

Read in this order: `tracer.bpf.c` and `snapshot.h` (make one record at each event of a socket) · `tracer.c` (writes the records to a file)
· `build` (compiles both) · `trace` (runs the tracer beside a transfer) · `events` (records → table) · `sockets` (which records belong to
one connection) · `gates` (the tests of the kernel's `tcp_write_xmit`) · `intervals` (the gates that were closed in each interval, and which
one opened last) · `both_ends` (facts that only both ends show: bytes in transit, and which application writes next) · `ledger` (writes all
of this to one table) · `causes` (gates → names of causes) · `agreement` and `compare` (compare it with the ledger of a capture) ·
`transfers` (transfers with known causes). The package `lab.corpus` makes transfers by real programs.
"""
