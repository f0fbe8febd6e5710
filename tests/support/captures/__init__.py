"""Captures that tests make, change, or find."""
