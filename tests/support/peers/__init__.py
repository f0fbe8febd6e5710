"""Other programs, whose results are compared with ours."""
