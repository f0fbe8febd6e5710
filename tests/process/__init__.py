"""Tests of temporary files."""
