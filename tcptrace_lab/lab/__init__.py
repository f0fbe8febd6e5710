"""Live experiments in private network namespaces.

Each experiment stores a ground truth next to its capture: the path's log and the kernel's TCP state.

Read in this order:

- `networks/`: `path` (delays and drops packets, and logs this), `relay` (forwards packets through the path), `network` (the namespaces that
  the relay connects), `tcp_headers` and `truth` (derive the true kind of each captured segment from the log);
- `hosts/`: `sockets`, `endpoints`, `applications`, `transfer_kinds` and `files` (what both hosts do), `tcp_info` and `samples` (the
  kernel's TCP_INFO), `sender_limits` (what limited a sender, from TCP_INFO), `load` (busy processors);
- `capturing/`: dumpcap, for the lab and for `tcptrace-lab capture`;
- `experiment`: one network, its applications and its captures;
- `studies/`: experiments that a file declares (`tcptrace-lab lab run`);
- `trials` and `score`: compare our segment classification with the truth; `known_causes/` and `causes`: compare our causes with the truth;
- `kernel_ledger/`: what limited a sender, according to the kernel; `corpus/`: transfers by real programs, to compare our causes with the
  causes of the kernel.

The lab needs Linux and root. Lab traffic stays on the machine. The lab removes the namespaces and interfaces that it creates.
"""
