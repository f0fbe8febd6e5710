"""Transfers made again."""
