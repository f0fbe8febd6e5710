"""Tables and formats for export. Separate from `export`, so that the help of the command needs no Polars."""

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

    @property
    def is_text(self) -> bool:
        """Whether a terminal can show it."""
        return self in {Format.CSV, Format.NDJSON, Format.TCPTRACE}

    @property
    def is_table(self) -> bool:
        """Whether it holds the rows of a table. The others are output in tcptrace's formats."""
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
        """Whether it is a UDP table."""
        return self in {TableName.DATAGRAMS, TableName.FLOWS}
