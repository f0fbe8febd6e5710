"""The repository: documents, layers, public names."""
