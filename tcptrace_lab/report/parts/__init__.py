"""The parts of a report's page, each as plain data."""
