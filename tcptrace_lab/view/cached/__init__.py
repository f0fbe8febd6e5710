"""The tables of captures in the cache: `build` writes them once, `cache` manages their folders, and `store` reads them."""
