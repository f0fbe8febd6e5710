"""Many transfers by programs that people use.

Each has the kernel's ledger beside its captures, with which the engine's causes are compared.

Read in this order: `programs` (a table: one entry is a server and a client, as commands) · `paths` (families of paths) · `drawn` (the
transfers that a seed gives, and which of them are held back) · `running` (one program over one path) · `middle` (what a router between both
ends would have captured) · `making` (several at a time) · `manifest` (one line for each) · `judging` (compares the engine with the kernel
for one transfer) · `compare` (tables over all of them).
"""
