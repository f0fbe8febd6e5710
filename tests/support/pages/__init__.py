"""Reports: analyses written by hand, pages taken apart, and a browser."""
