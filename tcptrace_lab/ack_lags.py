"""Lags of ACKs → their median and 95th percentile, for each side, in the pass that reads them, with bounded memory.

The samples are those of the columns `ack_lag_*`: ACKs without data that cover data, and none that was sent twice (Karn), until the data's
side sends its FIN, which is acknowledged at once.
"""

from __future__ import annotations

import polars as pl

from tcptrace_lab.rtt import Samples

FIN, SYN, RST = 0x01, 0x02, 0x04


class AckLags(Samples):
    """Counts lags as segments go by (a `segments.Watcher`). Those of the client's ACKs are of the server's data."""

    columns = ("frame", "conn", "from_client", "ack", "payload_bytes", "flags", "ack_lag_ns", "rtt_ns")

    def __init__(self) -> None:
        """No samples yet."""
        super().__init__()
        self._finished = pl.DataFrame(schema={"conn": pl.UInt32, "from_client": pl.Boolean, "fin_frame": pl.UInt64})

    def add(self, rows: pl.DataFrame) -> None:
        """Count the samples in some rows of `schema.SEGMENTS`."""
        fins = rows.filter(pl.col("flags") & FIN != 0).select("conn", "from_client", fin_frame="frame")
        if not fins.is_empty():
            self._finished = pl.concat([self._finished, fins]).group_by("conn", "from_client").agg(pl.col("fin_frame").min())
        plain = (pl.col("payload_bytes") == 0) & (pl.col("flags") & (FIN | SYN | RST) == 0) & (pl.col("ack") > 1)
        acks = rows.filter(pl.col("rtt_ns").is_not_null() & (pl.col("ack_lag_ns") >= 0) & plain).select(
            "frame", "conn", "from_client", "ack_lag_ns"
        )
        if not self._finished.is_empty():
            of_data = acks.with_columns(of=~pl.col("from_client"))
            known = of_data.join(self._finished, left_on=["conn", "of"], right_on=["conn", "from_client"], how="left")
            acks = known.filter(pl.col("fin_frame").is_null() | (pl.col("frame") < pl.col("fin_frame")))
        self.count(acks["conn"], acks["from_client"], acks["ack_lag_ns"])

    def take(self, conn: pl.Series) -> pl.DataFrame:
        """The quantiles of some connections, which are over: they are forgotten."""
        self._finished = self._finished.filter(~pl.col("conn").is_in(conn.implode()))
        return super().take(conn)
