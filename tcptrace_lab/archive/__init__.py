"""Archives: thousands of captures, each analyzed once, stored as Parquet tables that any tool can read, with an HTML index.

Read in this order:

- `sources/`: `walk` finds captures, `rotation` joins the files of one capture, `completeness` finds captures that are still being written;
- `fingerprint`: identifies a capture by the hash of its contents;
- `storage`: reads and writes an archive's files atomically, in a folder or behind a URL; `registry`: the files the archive has seen;
- `work/`: `task` (one capture → its report and its part), `workers` and `cluster` (where tasks run), `lock` (one writer at a time);
- `dataset/`: `part` (the stored results of one capture), `rows` (analysis → rows), `tables` (parts → Parquet), `query`, `listing`;
- `run`: `batch`, which calls all of these; `ring_buffer`: `batch --watch`; `garbage_collection`: `archive gc`;
- `index/`: `transfers`, `overview`, `outliers` and `regressions` (the contents of the index), `page` (its HTML).

An archive is a folder:

    archive.json                                   marks the folder as an archive, with its format version
    index.html                                     the overview
    reports/CAPTURE.html                           one report per capture
    tables/TABLE/month=2026-11/FILE.parquet        the dataset; columns: `schema.ARCHIVE_TABLES`
    parts/SETTINGS/XX/CAPTURE.part                 the results of one capture; the tables are built from these
    state/                                         the registry, the lock, and the inputs of the last table build
    tmp/                                           files being written; empty between runs

CAPTURE is a prefix of a SHA-256 over the capture's contents (XX: its first two digits). SETTINGS is a prefix of a SHA-256 over everything
else that a result depends on: the program, the format version and the options. An existing part is therefore never computed again. The
tables depend on the captures alone, not on the order of work, interruptions or machines.
"""

from __future__ import annotations
