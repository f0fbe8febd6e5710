"""Tests that read capture files."""
