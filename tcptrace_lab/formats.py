"""What tables can be exported, and to which formats. Apart from `export`, so that the command's help needs no Polars."""

from __future__ import annotations

from enum import StrEnum


class Format(StrEnum):
    """A format that tables can be exported to."""

    PARQUET = "parquet"
    CSV = "csv"
    ARROW = "arrow"
    NDJSON = "ndjson"

    @property
    def is_text(self) -> bool:
        """True if it can be looked at in a terminal."""
        return self in {Format.CSV, Format.NDJSON}


class TableName(StrEnum):
    """A table that can be exported."""

    SEGMENTS = "segments"
    CONNECTIONS = "connections"
    DATAGRAMS = "datagrams"
    FLOWS = "flows"

    @property
    def is_udp(self) -> bool:
        """True if it is a table of UDP."""
        return self in {TableName.DATAGRAMS, TableName.FLOWS}
