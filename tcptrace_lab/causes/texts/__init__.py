"""Texts that several causes share."""
