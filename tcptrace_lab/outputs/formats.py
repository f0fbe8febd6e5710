"""Tables and formats for export. This module is separate from `export`, so that the help of the command need not import Polars."""

from __future__ import annotations

from enum import StrEnum


class Format(StrEnum):
    """An export format."""

    PARQUET = "parquet"
    CSV = "csv"
    ARROW = "arrow"
    NDJSON = "ndjson"
    TCPTRACE = "tcptrace"
    XPLOT = "xplot"

    @classmethod
    def of_path(cls, path: str) -> Format:
        """Return the format of a file with this name; Parquet if the suffix is unknown."""
        ending = path.rpartition(".")[2].lower()
        return {
            "csv": cls.CSV,
            "arrow": cls.ARROW,
            "ipc": cls.ARROW,
            "feather": cls.ARROW,
            "ndjson": cls.NDJSON,
            "jsonl": cls.NDJSON,
        }.get(ending, cls.PARQUET)

    @property
    def is_text(self) -> bool:
        """True if a terminal can show the format."""
        return self in {Format.CSV, Format.NDJSON, Format.TCPTRACE}

    @property
    def is_table(self) -> bool:
        """True if the format contains the rows of a table. The other formats are those of tcptrace and xplot."""
        return self not in {Format.TCPTRACE, Format.XPLOT}


class TableName(StrEnum):
    """A table that can be exported."""

    SEGMENTS = "segments"
    CONNECTIONS = "connections"
    LEDGER = "ledger"
    DEPARTURES = "departures"
    STALLS = "stalls"
    ACCOUNTS = "accounts"
    MESSAGES = "messages"
    TRANSACTIONS = "transactions"
    RATES = "rates"
    FINDINGS = "findings"
    DATAGRAMS = "datagrams"
    FLOWS = "flows"

    @property
    def is_udp(self) -> bool:
        """True if the table is one of the UDP tables."""
        return self in {TableName.DATAGRAMS, TableName.FLOWS}
