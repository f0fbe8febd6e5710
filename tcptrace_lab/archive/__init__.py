"""An archive stores the results of thousands of captures: Parquet tables, which many tools can read, and an HTML index.

Read in this order:

- `sources/`: `walk` finds captures, `rotation` joins the files of one capture, `completeness` finds captures that are still being written;
- `fingerprint`: identifies a capture by the hash of its contents;
- `storage`: reads and writes an archive's files atomically, in a folder or behind a URL; `registry`: lists the files that were read;
- `work/`: `task` analyzes one capture and writes its report and its part; `workers` and `cluster` run the tasks; `lock` allows one writer
  at a time;
- `dataset/`: `rows` converts an analysis to table rows; `part` stores the rows of one capture; `tables` builds Parquet files from all
  parts; `query` runs SQL;
- `run` is the command `batch`, which calls all these modules; `ring_buffer` is `batch --watch`; `garbage_collection` is `archive gc`;
- `index/`: `transfers`, `overview`, `outliers` and `regressions` compute the contents of the index; `page` writes its HTML.

An archive is a folder:

    archive.json                                   marks the folder as an archive; contains the format version
    index.html                                     the overview
    reports/CAPTURE.html                           one report per capture
    tables/TABLE/month=2026-11/FILE.parquet        the dataset; columns: `schema.ARCHIVE_TABLES`
    parts/SETTINGS/XX/CAPTURE.part                 the results of one capture; the tables are built from these
    state/                                         the registry, the lock, and the inputs of the last table build
    tmp/                                           files being written; empty between runs

CAPTURE is a prefix of a SHA-256 over the capture's contents (XX: its first two digits). SETTINGS is a prefix of a SHA-256 over the program,
the archive format's version and the options. Nothing else determines a result, so a capture whose part exists is not analyzed again. The
tables depend only on the captures: interruptions, the order of the tasks and the number of machines do not change them.
"""

from __future__ import annotations
