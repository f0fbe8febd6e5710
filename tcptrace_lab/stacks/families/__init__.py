"""What each family of stacks decides."""
