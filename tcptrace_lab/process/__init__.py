"""The process of a command: interrupts, temporary folders, and output files that appear whole or not at all."""
