"""Archives of many captures."""
