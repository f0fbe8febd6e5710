"""Captures held against each other."""
