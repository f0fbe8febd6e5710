"""The kernel's own account of which gate held a sender, at every instant, for any program: the truth for the ledger of a capture.

Read in this order: `tracer.bpf.c` and `snapshot.h` (one record at each event of a socket) · `tracer.c` (writes the records to a file) ·
`build` (compiles both) · `trace` (runs the tracer beside a transfer) · `events` (records → table) · `lives` (which records belong to one
connection) · `gates` (the tests of the kernel's `tcp_write_xmit`) · `waits` (intervals with the gates that were closed, and which one
opened last) · `turns` (what only both ends show: bytes on their way, and whose turn it was) · `ledger` (all of that → one table) ·
`causes` (gates → names of causes) · `agreement` and `compare` (against the ledger of a capture) · `programs` and `made` (transfers to
compare with).
"""
