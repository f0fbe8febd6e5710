"""`Anonymizer`: replaces addresses by pseudonyms in the tables from which all outputs are made.

The anonymizer flips some bits of an address. Whether a bit is flipped depends on the key and on all bits before it. So two pseudonyms share
as many leading bits as their addresses, and different addresses get different pseudonyms. The method is that of Xu et al.,
"Prefix-preserving IP address anonymization", ICNP 2002, with keyed BLAKE2 in place of AES. Nobody can recover an address without the key.
"""

from __future__ import annotations

import hashlib
import ipaddress
import re
import secrets
from functools import cache
from typing import TYPE_CHECKING

import polars as pl

from tcptrace_lab.schema import SIDES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

KEY_BYTES = 32

NAME = "capture"
"""Start of each pseudonym for a file."""


class Anonymizer:
    """Replaces addresses by pseudonyms. A key always maps an address to the same pseudonym, also in later runs.

    Args:
        key: any text. If it is None, the key is random and is never stored.
    """

    def __init__(self, key: str | None = None) -> None:
        self._take(secrets.token_bytes(KEY_BYTES) if key is None else hashlib.sha256(key.encode(errors="surrogateescape")).digest())

    def _take(self, key: bytes) -> None:
        self._key = key
        self.address: Callable[[str], str] = cache(self._address)

    def __getstate__(self) -> bytes:
        """Return the key for pickling, so that worker processes can use this anonymizer."""
        return self._key

    def __setstate__(self, key: bytes) -> None:
        """Restore the anonymizer from its key."""
        self._take(key)

    @property
    def mark(self) -> str:
        """A fingerprint of the key: 16 hex digits. Two anonymizers with the same key have the same fingerprint."""
        return self._digest(b"mark", b"").hex()

    def file(self, path: str) -> str:
        """Return a pseudonym for the file at `path`."""
        return f"{NAME}-{self._digest(b'file', path.encode(errors='surrogateescape')).hex()}"

    def without_paths(self, words: str, paths: Iterable[str]) -> str:
        """Return the message `words` with pseudonyms in place of `paths` and their file names."""
        spellings = {spelling: path for path in paths for spelling in (path.rpartition("/")[2], repr(path)[1:-1], path) if spelling}
        longest_first = sorted(spellings, key=len, reverse=True)
        # All names are replaced in one pass, so that no file name is found inside a pseudonym.
        return re.sub("|".join(map(re.escape, longest_first)), lambda found: self.file(spellings[found[0]]), words) if spellings else words

    def rows(self, table: pl.LazyFrame) -> pl.LazyFrame:
        """Return the rows with pseudonyms in `client_addr` and `server_addr`."""
        names = [f"{side}_addr" for side in SIDES]
        return table.with_columns(pl.col(names).map_elements(self.address, return_dtype=pl.String))

    def _address(self, text: str) -> str:
        try:
            original = ipaddress.ip_address(text)
        except ValueError:
            return f"host-{self._digest(b'name', text.encode()).hex()[:12]}"
        bits, flips = original.max_prefixlen, 0
        for count in range(bits):
            prefix = int(original) >> (bits - count)
            flips = flips << 1 | self._digest(bytes((original.version, count)), prefix.to_bytes(bits // 8, "big"))[0] & 1
        return str(type(original)(int(original) ^ flips))

    def _digest(self, kind: bytes, data: bytes) -> bytes:
        return hashlib.blake2b(kind + data, key=self._key, digest_size=8).digest()
