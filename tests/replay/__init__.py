"""Tests of replayed transfers."""
