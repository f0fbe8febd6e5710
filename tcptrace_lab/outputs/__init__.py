"""An analysis for other programs: JSON, tables in other formats, annotated captures, tcptrace's listing, xplot's graphs."""
