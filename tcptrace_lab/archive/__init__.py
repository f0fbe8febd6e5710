"""Archives: thousands of captures, each analyzed once, kept as tables that any program can read, with an index over all.

Read in this order: `walk` and `rotated` (which files are which captures) · `fingerprint` (what a capture is known by) · `place` (files of
an archive, here or behind a URL, each written whole or not at all) · `part` (what is kept of one capture) · `task` (one capture → its
report and its part) · `workers` and `cluster` (many tasks, in processes here or on a Dask cluster) · `registry` and `lock` (what the
archive knows, and that one run at a time writes it) · `tables` (parts → the Parquet dataset) · `run` (all of it: `batch`) · `closed` and
`watching` · `query`, `upkeep` (list, gc) · `overview`, `outliers`, `regressions` and `page` (the index).

An archive is a folder:

    archive.json                                   that it is one, and of which version
    index.html                                     the overview
    reports/CAPTURE.html                           a report for each capture
    tables/TABLE/month=2026-11/PART.parquet        the dataset; its columns: `schema.ARCHIVE_TABLES`
    parts/SETTINGS/CAPTURE.part                    what was made of a capture, by this version of the program; the tables are made of these
    state/                                         the registry of files, and what the tables were made of
    tmp/                                           what is being written; nothing that outlives a run

CAPTURE is the beginning of the SHA-256 of a capture's contents, SETTINGS that of all else that a result depends on. So a part that is
there is never made again, and the tables are a function of the captures alone: the order of work, interruptions and machines leave no
trace in them.
"""

from __future__ import annotations
