"""Words that several causes share."""
