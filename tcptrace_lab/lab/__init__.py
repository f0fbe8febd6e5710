"""Live experiments in private networks, with the truth beside every capture: the path's own log, and the kernel's account of both ends.

Read in this order: `path` (what a network does to packets, and the log of it) · `relay` (carries them through it) · `network` (namespaces
joined by it) · `sockets` and `programs` (what talks) · `tcp_info` (what the kernel says of it) · `capture` (dumpcap) · `experiment` (all of
that, once) · `heads` and `truth` (the log as one verdict for each captured packet) · `score` (our verdicts held against it) ·
`kernel_ledger` (which gate held a sender, from the kernel's own state).
It needs root and Linux; nothing leaves the machine, and nothing stays behind.
"""
