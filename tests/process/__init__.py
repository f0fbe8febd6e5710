"""The process and what it leaves behind."""
