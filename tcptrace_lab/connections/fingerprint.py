"""Which family of TCP stacks an endpoint may have, from its SYN. **A guess**: settings, middleboxes and tunnels change the SYN.

The guess uses the order of the TCP options, which is fixed in a stack's code and known for common stacks, and the initial TTL. A SYN-ACK
echoes only options that were offered, so it often shows less than a first SYN.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import polars as pl

from tcptrace_lab.schema import SIDES

if TYPE_CHECKING:
    from collections.abc import Mapping

SIGNATURES: Mapping[tuple[str, int], str] = {
    ("mss,sackOK,TS,nop,wscale", 64): "Linux",
    ("mss,nop,nop,sackOK,nop,wscale", 64): "Linux",
    ("mss,sackOK,TS", 64): "Linux",
    ("mss,nop,wscale,nop,nop,TS,sackOK,eol", 64): "Apple",
    ("mss,nop,wscale,nop,nop,TS,sackOK,eol,eol", 64): "Apple",
    ("mss,sackOK,eol,eol", 64): "Apple",
    ("mss,nop,wscale,sackOK,TS", 64): "FreeBSD",
    ("mss,nop,nop,sackOK,nop,wscale,nop,nop,TS", 64): "OpenBSD",
    ("mss,nop,wscale,nop,nop,sackOK", 128): "Windows",
    ("mss,nop,nop,sackOK", 128): "Windows",
    ("mss,nop,wscale,sackOK,TS", 128): "Windows",
    ("mss,nop,wscale,nop,nop,TS,nop,nop,sackOK", 128): "Windows",
    ("sackOK,TS,mss,nop,wscale", 64): "Solaris",
}
"""(options of the SYN in order, initial TTL) → family.

Sources: `tcp_options_write` (Linux), `tcp_addoptions` (FreeBSD), `tcp_output` (XNU, OpenBSD); Windows and Solaris from captures."""

INITIAL_TTLS = (64, 128, 255)
"""Initial TTLs of common stacks. The smallest one that is not below the captured TTL is taken as the initial TTL."""


@cache
def columns() -> Mapping[str, pl.Expr]:
    """Return expressions over `schema.CONNECTIONS`: `client_stack_guess` and `server_stack_guess`, a family or null."""
    return {f"{side}_stack_guess": _guess(side) for side in SIDES}


def family(options: str | None, ttl: int | None) -> str | None:
    """Return the family for one SYN, from its options in order and its captured TTL; None if unknown."""
    start = None if ttl is None else next((start for start in INITIAL_TTLS if ttl <= start), None)
    return None if options is None or start is None else SIGNATURES.get((options, start))


def _guess(side: str) -> pl.Expr:
    options, ttl = pl.col(f"{side}_syn_options"), pl.col(f"{side}_syn_ttl")
    least = pl.coalesce(*(pl.when(ttl <= start).then(start) for start in INITIAL_TTLS))
    mark = pl.concat_str(options, least, separator=" ")
    return mark.replace_strict(
        {f"{names} {start}": family for (names, start), family in SIGNATURES.items()}, default=None, return_dtype=pl.String
    )
