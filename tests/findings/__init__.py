"""Findings and the verdict."""
