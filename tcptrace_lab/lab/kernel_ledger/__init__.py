"""Which gate delayed a sender at every instant, recorded by the kernel itself, for any program.

The ledger of a capture is compared with it.

Read in this order: `tracer.bpf.c` and `snapshot.h` (one record at each event of a socket) · `tracer.c` (writes the records to a file) ·
`build` (compiles both) · `trace` (runs the tracer beside a transfer) · `events` (records → table) · `sockets` (which records belong to one
connection) · `gates` (the tests of the kernel's `tcp_write_xmit`) · `intervals` (the gates that were closed in each interval, and which one
opened last) · `both_ends` (facts that only both ends show: bytes in transit, and which application writes next) · `ledger` (all of these →
one table) · `causes` (gates → names of causes) · `agreement` and `compare` (comparison with the ledger of a capture) · `transfers`
(transfers of known causes, to compare). Transfers by real programs are in `lab.corpus`.
"""
