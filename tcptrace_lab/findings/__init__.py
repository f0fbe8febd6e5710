"""Findings: what costs time, what proves it, and what to change."""
