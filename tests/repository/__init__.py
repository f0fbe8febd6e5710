"""Tests of the repository itself: documents, layers and public names."""
