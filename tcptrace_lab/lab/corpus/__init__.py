"""Transfers at scale by programs that people run, each with the kernel's ledger beside its captures, and how the judge does on them.

Read in this order: `programs` (a table: one entry is a server and a client, as commands) · `paths` (families of paths) · `drawn` (which
transfers a seed stands for, and which of them are held back) · `running` (one program over one path) · `middle` (what a router between
them would have captured) · `making` (several at a time) · `manifest` (one line for each) · `judging` (the judge against the kernel,
for one transfer) · `compare` (tables over all of them).
"""
