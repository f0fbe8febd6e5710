"""Quantiles of ACK lags (time from a segment to its ACK): exchanges written by hand, and a comparison with the engine's own samples."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tcptrace_lab import read
from tcptrace_lab.schema import SIDES
from tests.support.packets import capture
from tests.support.places import CAPTURES

if TYPE_CHECKING:
    from pathlib import Path

MS = 1_000_000

HANDSHAKE = """
    0.000 C > S  S   0:0(0)        win 64240
    0.010 S > C  S.  0:0(0) ack 1  win 65160
    0.011 C > S  .          ack 1  win 502
"""


def test_median_and_95th_percentile_are_nearest_ranks_of_the_acks_without_data(tmp_path: Path) -> None:
    """Sorted, the ACK lags are 1, 2, 4 and 40 ms: the median is the second, the 95th percentile the fourth.

    ACKs with data, and ACKs of a SYN or FIN, give no sample.
    """
    text = f"""{HANDSHAKE}
        0.100 C > S P. 1:101   ack 1 win 502
        0.140 S > C .          ack 101 win 500
        0.200 C > S P. 101:201 ack 1 win 502
        0.202 S > C .          ack 201 win 500
        0.300 C > S P. 201:301 ack 1 win 502
        0.390 S > C P. 1:11    ack 301 win 500
        0.400 C > S P. 301:401 ack 11 win 502
        0.404 S > C .          ack 401 win 500
        0.500 C > S P. 401:501 ack 11 win 502
        0.501 S > C .          ack 501 win 500
        0.600 C > S F. 501:501 ack 11 win 502
        0.690 S > C .          ack 502 win 500
        """
    row = read(capture(tmp_path / "lags.pcap", text)).connections.collect().row(0, named=True)
    assert (row["server_ack_lag_samples"], row["server_ack_lag_max_ns"]) == (4, 40 * MS)
    assert (row["server_ack_lag_p50_ns"], row["server_ack_lag_p95_ns"]) == (2 * MS, 40 * MS)
    assert row["client_ack_lag_p50_ns"] is None


@pytest.mark.parametrize("path", sorted(CAPTURES.glob("ethernet-*.pcap*")), ids=lambda path: path.name)
def test_quantiles_are_of_the_engines_samples(path: Path) -> None:
    """The table has quantiles for each direction in which the engine has samples, and for no other direction.

    Each quantile lies between the smallest and the largest sample.
    """
    connections = read(path).connections.collect()
    found = {
        (row["conn"], from_client): (row[f"{side}_ack_lag_p50_ns"], row[f"{side}_ack_lag_p95_ns"])
        for row in connections.iter_rows(named=True)
        for side, from_client in SIDES.items()
        if row[f"{side}_ack_lag_p50_ns"] is not None
    }
    sampled = {
        (row["conn"], from_client): (row[f"{side}_ack_lag_min_ns"], row[f"{side}_ack_lag_max_ns"])
        for row in connections.iter_rows(named=True)
        for side, from_client in SIDES.items()
        if row[f"{side}_ack_lag_samples"]
    }
    assert found.keys() == sampled.keys()
    for direction, (min_ns, max_ns) in sampled.items():
        p50_ns, p95_ns = found[direction]
        assert min_ns <= p50_ns <= p95_ns <= max_ns
