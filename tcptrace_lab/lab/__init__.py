"""Live experiments in private network namespaces, each with a ground truth beside the capture: the path's log and the kernel's TCP state.

Read in this order: `path` (what the emulated network does to packets, and its log) · `relay` (forwards packets through the path) ·
`network` (the namespaces that the relay connects) · `sockets` and `programs` (the applications) · `tcp_info` (the kernel's TCP_INFO) ·
`capture` (dumpcap) · `experiment` (one run of all of these) · `heads` and `truth` (the log as one verdict per captured packet) · `score`
(our verdicts against the truth) · `kernel_ledger` (what limited a sender, from the kernel's own state).
The lab needs Linux and root. Its traffic stays on the machine, and it removes what it creates.
"""
