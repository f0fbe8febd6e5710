"""Archives: thousands of captures, each analyzed once, stored as Parquet tables that any tool can read, with an HTML index.

Read in this order: `walk` and `rotated` (find the captures; join rotated files) · `fingerprint` (identify a capture by hashes) · `place`
(read and write an archive's files in a folder or behind a URL, atomically) · `part` (the stored results of one capture) · `task` (one
capture → its report and its part) · `workers` and `cluster` (run many tasks, in local processes or on a Dask cluster) · `registry` (the
files and captures that the archive has seen) · `lock` (one writer at a time) · `tables` (parts → the Parquet dataset) · `run` (`batch`,
which does all of this) · `closed` and `watching` (`batch --watch`) · `query`, `listing` and `upkeep` (SQL, `list`, `gc`) · `overview`,
`outliers`, `regressions` and `page` (the index).

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
