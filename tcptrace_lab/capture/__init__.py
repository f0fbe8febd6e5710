"""Captures as files: streams, formats of other programs, single frames, copies, and TCP over ATM."""
