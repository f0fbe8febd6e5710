"""Tests of the repository: documents, layers, public names."""
