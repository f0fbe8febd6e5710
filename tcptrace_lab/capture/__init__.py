"""Reads, converts and copies capture files: streams, formats of other programs, single frames, copies with comments, and TCP over ATM."""
