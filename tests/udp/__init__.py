"""Tests of UDP datagrams and flows."""
