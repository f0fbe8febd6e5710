"""Finds the captures in the user's files and folders, joins rotated files, and checks whether files are complete."""
