"""Helpers of the tests: exchanges written as text, commands, other programs, and captures."""
