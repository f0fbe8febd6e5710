"""Which family of TCP stacks a side may be, by the marks of its SYN. **A guess**: settings, middleboxes and tunnels change the marks.

What counts is the order of the options, which is fixed in a stack's code and known of the common ones, and the time to live that packets
start with. A SYN-ACK echoes only options that were offered, so that an answer often tells less than a first SYN.
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
"""(options of the SYN in order, initial time to live) → family.

From the stacks themselves: `tcp_options_write` (Linux), `tcp_addoptions` (FreeBSD), `tcp_output` (XNU, OpenBSD); Windows and Solaris as
captures show them.
"""

INITIAL_TTLS = (64, 128, 255)
"""Hop counts that stacks start with: the least of them that is no less than the one captured is taken for the start."""


@cache
def columns() -> Mapping[str, pl.Expr]:
    """Expressions over rows of `schema.CONNECTIONS`: `client_stack_guess`, `server_stack_guess`: a family, null without a known mark."""
    return {f"{side}_stack_guess": _guess(side) for side in SIDES}


def family(options: str | None, ttl: int | None) -> str | None:
    """The same of one SYN: its options in order, and the time to live that it was captured with."""
    start = None if ttl is None else next((start for start in INITIAL_TTLS if ttl <= start), None)
    return None if options is None or start is None else SIGNATURES.get((options, start))


def _guess(side: str) -> pl.Expr:
    options, ttl = pl.col(f"{side}_syn_options"), pl.col(f"{side}_syn_ttl")
    least = pl.coalesce(*(pl.when(ttl <= start).then(start) for start in INITIAL_TTLS))
    mark = pl.concat_str(options, least, separator=" ")
    return mark.replace_strict(
        {f"{names} {start}": family for (names, start), family in SIGNATURES.items()}, default=None, return_dtype=pl.String
    )
