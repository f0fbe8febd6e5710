"""The explorer: a local web server over the tables of a capture, of a pair of captures, or of an archive.

Read in this order:

- `cached/`: `cache`, the folder with the tables of captures that were viewed, and the identity of a capture; `build`: capture → tables;
  `by_connection`: rows sorted by connection in files of bounded size; `timeline`, `listing`: tables of the overview; `store` reads them;
- `windows`: the report's figures for a window of a connection; `tables`: rows of a connection's tables; `frames`: one packet;
  `connections`: the list of connections;
- `capture_api`, `archive_api`, `two`: what the browser asks for, as JSON; `pages`: HTML;
- `security`: which requests are allowed; `server`: addresses, browser, shutdown.

Every request reads only what it needs from disk. No text from a request becomes a path.
"""
