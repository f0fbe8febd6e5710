"""Helpers for tests of reports: analyses written by hand, parsed pages, and a browser."""
