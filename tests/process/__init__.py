"""The process: its temporary files."""
