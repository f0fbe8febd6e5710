"""Tests of the stack models."""
