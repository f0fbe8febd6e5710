"""Make it happen again: the packets, the transfer, the transfer under another rule, and the smallest program that still shows it.

Read in this order: `schedule` (what the applications of a connection did, as editable data) · `evidence` (what is taken from the capture) ·
`reading` (pauses of a slow reader, from the windows that it offers) · `losses` (which packets the path lost) · `reconstruct` (capture →
schedule) · `ends` (one end of a schedule, over a real socket) · `private` (both ends, in namespaces of their own) · `laid` (original and
replays side by side). Beside them: `packets` (frames, back onto an interface), `whatif` (the schedule through a model of both stacks),
`script` (a minimal reproducer: `showing` and `shrink` find the smallest schedule, `reproducer` and `drill` write it down; `standalone` is
the program that is handed out).
"""
