"""Helpers that make frames of every encapsulation of IP."""
