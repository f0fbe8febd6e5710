"""This process: interrupts, temporary folders, and files that appear whole or not at all."""
