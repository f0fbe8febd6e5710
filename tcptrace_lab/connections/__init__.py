"""Conclusions about whole connections: capture point, capture quality, and the behaviour of both endpoints."""
