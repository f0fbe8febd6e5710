"""Tables for people, in 80 columns."""
