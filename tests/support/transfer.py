"""A transfer for tests of tables, JSON and commands. Its expected values are calculated by hand.

The request has 100 bytes. The answer has 4,380 bytes in three segments. The second segment of the answer is lost behind the capture point.
SACK reports it missing, and a timeout retransmits it.
"""

from __future__ import annotations

TEXT = """
    0.000 C > S  S   0:0(0)             win 64240 <mss 1460, sackOK, wscale 7>
    0.010 S > C  S.  0:0(0)      ack 1  win 65160 <mss 1460, sackOK, wscale 7>
    0.011 C > S  .               ack 1  win 502
    0.020 C > S  P.  1:101(100)  ack 1  win 502
    0.030 S > C  .   1:1461      ack 101 win 509
    0.031 S > C  .   1461:2921   ack 101
    0.032 S > C  P.  2921:4381   ack 101
    0.041 C > S  .               ack 1461
    0.043 C > S  .               ack 1461  <sack 2921:4381>
    0.300 S > C  .   1461:2921   ack 101
    0.311 C > S  .               ack 4381
    0.330 C > S  F.  101:101     ack 4381
    0.340 S > C  F.  4381:4381   ack 102
    0.341 C > S  .   102:102     ack 4382
"""

SEGMENTS = 14

DURATION_S = 0.341

CLIENT = {
    "segments": 8,
    "data_segments": 1,
    "payload_bytes": 100,
    "unique_bytes": 100,
    "retransmitted_segments": 0,
    "retransmitted_bytes": 0,
}
SERVER = {
    "segments": 6,
    "data_segments": 4,
    "payload_bytes": 5840,
    "unique_bytes": 4380,
    "retransmitted_segments": 1,
    "retransmitted_bytes": 1460,
}
"""The counts of each direction, `CLIENT` and `SERVER`."""

CLIENT_RTT_MS = {"samples": 3, "min": 10.0, "mean": 10.0, "p50": 10.0, "p95": 10.0, "max": 10.0}
"""RTT samples of the client. SYN, request and FIN are answered after 10 ms each."""

SERVER_RTT_MS = {"samples": 3, "min": 1.0, "mean": 4.333333, "p50": 1.0, "p95": 11.0, "max": 11.0}
"""RTT samples of the server.

They are 1 ms (SYN-ACK), 11 ms (the first 1,460 bytes) and 1 ms (FIN). By Karn's rule, bytes that were sent twice give no sample.
"""

SERVER_THROUGHPUT_BPS = 4380 * 8 / (0.300 - 0.030)

SACK_FRAME, SACK_BLOCKS = 9, [2921, 4381]
