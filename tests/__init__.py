"""The tests, one folder for each subject. Helpers that several folders use are in `tests/support`."""
