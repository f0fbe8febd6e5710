"""A transfer whose causes of waiting are known, and how much of their time the ledger gives to them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import polars as pl

from tcptrace_lab.engine.segments import read
from tcptrace_lab.lab.experiment import Experiment, Outcome, run
from tcptrace_lab.lab.hosts import witness

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tcptrace_lab.engine.segments import Tables

KNOWN_SHARE, OTHER_SHARE, UNKNOWN_SHARE = 0.90, 0.03, 0.05
"""The ledger must give so much of a known cause's time to it; to no cause more than is its own by so much of all time; and unknown may
stay no more."""

WHOSE: Mapping[str, str] = {
    "receiver-window": witness.WINDOW,
    "zero-window": witness.WINDOW,
    "loss-recovery": witness.LOSS,
    "timeout": witness.LOSS,
    "congestion-window": witness.LOSS,
    "slow-start": witness.SLOW_START,
    "nagle": witness.NAGLE,
    "nagle-delayed-ack": witness.NAGLE,
    "send-buffer": witness.SEND_BUFFER,
    "network": witness.NETWORK,
    "application": witness.APPLICATION,
    "peer": witness.PEER,
}
"""The ledger's cause → what a witness calls it; the others it never sees: they are always wrong here."""

NOTHING_HOLDS = frozenset({"network", "application", "peer", "handshake", "close", "unknown"})
"""Causes with which nothing in TCP holds the sender: bytes that are on their way belong to one of them, too."""


@dataclass(frozen=True, slots=True)
class Known:
    """A transfer and the states (`witness`) that it was made for.

    Attributes:
        experiment: what is done.
        due: the states of its connection, or of the first of several.
        beside: those of the others.
    """

    experiment: Experiment
    due: frozenset[str]
    beside: tuple[frozenset[str], ...] = ()

    @property
    def dues(self) -> tuple[frozenset[str], ...]:
        """The states of each connection, in the order in which they begin."""
        return self.due, *self.beside


@dataclass(frozen=True, slots=True)
class Verdict:
    """The client's direction from its first data to its last.

    Attributes:
        due: the states that it was made for.
        found: the ledger's causes, in shares of that time.
        truth: the witness's states, in shares of the same time.
    """

    due: frozenset[str]
    found: Mapping[str, float]
    truth: Mapping[str, float]

    def given(self, state: str) -> float:
        """The share that the ledger gives to a state."""
        return sum(share for cause, share in self.found.items() if WHOSE.get(cause, cause) == state)

    @property
    def least(self) -> float:
        """Of the due states' own time, how much the ledger gives them: the worst of them."""
        return min(min(self.given(state) / self.truth[state], 1.0) if self.truth.get(state) else 0.0 for state in self.due)

    @property
    def worst_other(self) -> tuple[str, float]:
        """The cause that is given most beyond its own time, and how much."""
        held = {WHOSE.get(cause, cause) for cause in self.found if cause not in NOTHING_HOLDS}
        beyond = {state: self.given(state) - self.truth.get(state, 0.0) for state in held}
        return max(beyond.items(), key=lambda item: item[1], default=("", 0.0))

    @property
    def holds(self) -> bool:
        """Whether the known causes are found, and no other is."""
        unknown = self.found.get("unknown", 0.0)
        return self.least >= KNOWN_SHARE and self.worst_other[1] <= OTHER_SHARE and unknown < UNKNOWN_SHARE


def make(known: Known, folder: Path) -> Outcome:
    """Make the transfer, with a witness."""
    return run(replace(known.experiment, witnessed=True), folder)


def judge(known: Known, outcome: Outcome, vantage: str, conn: int = 0) -> Verdict:
    """The ledger of one capture of a transfer, or of one of its connections, beside what its witness saw.

    Shares are of the time from the first data to the last as the client sent them.
    """
    sent = _data(read(outcome.captures["client"]), conn)
    total = sent[1] - sent[0] or 1
    tables = read(outcome.captures[vantage], worth=())
    first, last = _data(tables, conn)
    within = tables.ledger.filter(_mine(conn), pl.col("start_ns") >= first, pl.col("end_ns") <= last)
    sums = within.group_by("cause").agg(ns=(pl.col("end_ns") - pl.col("start_ns")).sum()).collect()
    seen = outcome.witnesses[conn]
    forward = known.experiment.medium.forward
    log = outcome.relay.forward_log if outcome.relay is not None and forward.rate_bps is not None else None
    truth = seen.truth(*sent, nodelay=known.experiment.options.nodelay, forward=log)
    return Verdict(
        known.dues[conn], {cause: ns / total for cause, ns in sums.iter_rows()}, {state: ns / total for state, ns in truth.items()}
    )


def late_ns(known: Known, outcome: Outcome) -> int | None:
    """How much longer than the fastest packet the slowest one took from end to end, each way for itself: the path's own steps.

    A path that only delays takes as long for all; what is more is a busy machine's, and the server's ledger rightly calls it the network's.
    None where the path has a rate, or where not every packet came through.
    """
    if known.experiment.medium.forward.rate_bps is not None:
        return None
    here, there = (
        read(outcome.captures[end]).segments.filter(pl.col("conn") == 0).select("from_client", "ts_ns").collect()
        for end in ("client", "server")
    )
    most_ns = 0
    for from_client in (True, False):
        own, others = (rows.filter(pl.col("from_client") == from_client)["ts_ns"] for rows in (here, there))
        if own.len() != others.len():
            return None
        took_ns = (others - own).to_list() if from_client else (own - others).to_list()
        most_ns = max(most_ns, max(took_ns, default=0) - min(took_ns, default=0))
    return most_ns


def _mine(conn: int) -> pl.Expr:
    return (pl.col("conn") == conn) & pl.col("from_client")


def _data(tables: Tables, conn: int) -> tuple[int, int]:
    """When the first data of the client were captured, and the last."""
    times = tables.segments.filter(_mine(conn) & (pl.col("payload_bytes") > 0)).select("ts_ns").collect()["ts_ns"]
    return times[0], times[-1]
