"""Exchanges that several tests use, written as text (grammar of `tests.support.packets`)."""

LATE_ACK = """
0.0000 C > S  S   0:0(0)        win 64240 <mss 1460, sackOK, wscale 7>
0.0200 S > C  S.  0:0(0) ack 1  win 65160 <mss 1460, sackOK, wscale 7>
0.0200 C > S  .          ack 1  win 502
0.0400 C > S P. 1:101    ack 1
0.1000 S > C .           ack 101
0.1001 C > S P. 101:201  ack 1
0.1201 S > C P. 1:51     ack 201
"""
"""The data in frame 4 are acknowledged after 60 ms. The ACK releases frame 6, which is sent 60.1 ms after frame 4."""
