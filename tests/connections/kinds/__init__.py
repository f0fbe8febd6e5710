"""Tests of segment kinds (retransmission, keepalive, duplicate ACK, …), on exchanges written by hand."""
