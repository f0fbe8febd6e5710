"""The explorer: a local web server over the tables of a capture, of a pair of captures, or of an archive.

Read in this order:

- `cached/`: `cache` manages the folders with the tables of viewed captures, and `build` writes the tables of one capture. `by_connection`
  writes rows, sorted by connection, to files of bounded size. `timeline` and `listing` are the tables of the overview. `store` reads the
  tables.
- `windows`: the report's figures for a window of a connection; `tables`: rows of a connection's tables; `frames`: one packet;
  `connections`: the list of connections.
- `capture_api`, `archive_api`, `two`: what the browser asks for, as JSON; `pages`: HTML.
- `security`: which requests are allowed; `server`: addresses, browser, shutdown.

Every request reads only what it needs from disk. No text from a request becomes a path.
"""
