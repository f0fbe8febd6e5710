"""Tests of the explorer: its server, its tables, and which requests it allows."""
