"""Tests of the transfers at scale."""
