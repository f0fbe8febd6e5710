"""Tests of `tcptrace_lab.lab.corpus`: transfers by real programs, at scale."""
