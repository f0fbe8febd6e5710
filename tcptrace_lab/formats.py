"""What tables can be exported, and to which formats. Apart from `export`, so that the command's help needs no Polars."""

from __future__ import annotations

from enum import StrEnum


class Format(StrEnum):
    """A format that tables can be exported to."""

    PARQUET = "parquet"
    CSV = "csv"
    ARROW = "arrow"
    NDJSON = "ndjson"
    TCPTRACE = "tcptrace"
    XPLOT = "xplot"

    @property
    def is_text(self) -> bool:
        """True if it can be looked at in a terminal."""
        return self in {Format.CSV, Format.NDJSON, Format.TCPTRACE}

    @property
    def is_table(self) -> bool:
        """True if it holds the rows of a table; the others are what tcptrace makes of a capture."""
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
    DATAGRAMS = "datagrams"
    FLOWS = "flows"

    @property
    def is_udp(self) -> bool:
        """True if it is a table of UDP."""
        return self in {TableName.DATAGRAMS, TableName.FLOWS}
