"""Datagrams and flows."""
