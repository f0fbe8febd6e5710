"""Minimal reproducers: the smallest schedule that still shows a stall, as scripts and programs."""
