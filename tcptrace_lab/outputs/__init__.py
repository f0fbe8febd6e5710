"""Output for other programs: JSON, tables, annotated captures, tcptrace's listing, and xplot graphs."""
