"""Tests of the explorer: its server, its tables, and who may ask."""
