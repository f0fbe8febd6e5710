"""Conclusions about whole connections: capture point, capture quality, and how both endpoints behave."""
