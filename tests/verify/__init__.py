"""Other programs beside ours."""
