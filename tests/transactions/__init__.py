"""Tests of HTTP and FTP transactions."""
