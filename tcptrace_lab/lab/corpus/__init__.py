"""A corpus of many transfers by widely used programs.

The kernel's ledger of each transfer is stored next to its captures. This ledger is compared with the causes that the engine finds.

Read in this order: `programs` (a table: one entry is a server and a client, as commands) · `paths` (families of paths) · `drawn` (draws the
transfers of a seed, and decides which of them are held back) · `running` (one program over one path) · `middle` (what a router between both
ends would have captured) · `making` (makes several transfers at a time) · `manifest` (one line for each transfer) · `judging` (compares the
engine with the kernel for one transfer) · `compare` (tables over all transfers).
"""
