"""Captures that models write."""
