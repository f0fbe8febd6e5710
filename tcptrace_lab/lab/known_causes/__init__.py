"""Transfers whose causes of waiting are known."""
