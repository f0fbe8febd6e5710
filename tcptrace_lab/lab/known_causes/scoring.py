"""Scores the ledger on transfers with known causes.

The score is the share of the waiting time that the ledger assigns to the known causes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import polars as pl

from tcptrace_lab.engine.segments import read
from tcptrace_lab.lab.experiment import Experiment, Outcome, run
from tcptrace_lab.lab.hosts import sender_limits

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tcptrace_lab.engine.segments import Tables

KNOWN_SHARE, OTHER_SHARE, UNKNOWN_SHARE = 0.90, 0.03, 0.05
"""Criteria for the ledger.

`KNOWN_SHARE`: the ledger must assign at least this share of a known cause's time to this cause. `OTHER_SHARE`: if the ledger assigns more
than the true time to a cause, the excess must be at most this share of all time. `UNKNOWN_SHARE`: the ledger must leave at most this share
of all time without a cause.
"""

WHOSE: Mapping[str, str] = {
    "receiver-window": sender_limits.WINDOW,
    "zero-window": sender_limits.WINDOW,
    "loss-recovery": sender_limits.LOSS,
    "timeout": sender_limits.LOSS,
    "congestion-window": sender_limits.LOSS,
    "slow-start": sender_limits.SLOW_START,
    "nagle": sender_limits.NAGLE,
    "nagle-delayed-ack": sender_limits.NAGLE,
    "send-buffer": sender_limits.SEND_BUFFER,
    "network": sender_limits.NETWORK,
    "application": sender_limits.APPLICATION,
    "peer": sender_limits.PEER,
}
"""State that the witness records for each cause of the ledger.

A cause that is not in this table never occurs in these transfers, so it is always wrong.
"""

NOTHING_HOLDS = frozenset({"network", "application", "peer", "handshake", "close", "unknown"})
"""Causes of waits in which TCP does not limit the sender."""


@dataclass(frozen=True, slots=True)
class Known:
    """A transfer, and the sender's states (`sender_limits`) that it is designed to produce.

    Attributes:
        experiment: the experiment.
        due: the states of the only or the first connection.
        beside: the states of the other connections, with one set for each.
    """

    experiment: Experiment
    due: frozenset[str]
    beside: tuple[frozenset[str], ...] = ()

    @property
    def dues(self) -> tuple[frozenset[str], ...]:
        """Return the states of each connection, in order of their start."""
        return self.due, *self.beside


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the ledger and the witness say about the client's direction, from its first data segment to its last.

    Attributes:
        due: the states that the transfer is designed to produce.
        found: share of the time for each cause in the ledger.
        truth: share of the time for each state that the witness recorded.
    """

    due: frozenset[str]
    found: Mapping[str, float]
    truth: Mapping[str, float]

    def given(self, state: str) -> float:
        """Return the share of the time that the ledger assigns to a state."""
        return sum(share for cause, share in self.found.items() if WHOSE.get(cause, cause) == state)

    @property
    def least(self) -> float:
        """Return the share of a due state's true time that the ledger assigns to this state.

        With several due states, return the smallest share.
        """
        return min(min(self.given(state) / self.truth[state], 1.0) if self.truth.get(state) else 0.0 for state in self.due)

    @property
    def worst_other(self) -> tuple[str, float]:
        """Return the state that the ledger overestimates most, and the excess as a share of all time."""
        held = {WHOSE.get(cause, cause) for cause in self.found if cause not in NOTHING_HOLDS}
        beyond = {state: self.given(state) - self.truth.get(state, 0.0) for state in held}
        return max(beyond.items(), key=lambda item: item[1], default=("", 0.0))

    @property
    def holds(self) -> bool:
        """Return whether the ledger meets all criteria: it finds the known causes, and no others."""
        unknown = self.found.get("unknown", 0.0)
        return self.least >= KNOWN_SHARE and self.worst_other[1] <= OTHER_SHARE and unknown < UNKNOWN_SHARE


def make(known: Known, folder: Path) -> Outcome:
    """Perform the transfer while a witness reads the sending kernel's state."""
    return run(replace(known.experiment, witnessed=True), folder)


def judge(known: Known, outcome: Outcome, vantage: str, conn: int = 0) -> Verdict:
    """Return the verdict on connection `conn`, from the ledger of one capture and the witness's states.

    All shares refer to the time from the client's first to its last data segment in the client's capture.
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
    """Return the largest difference between the path delays of two packets of one direction.

    If a path only delays packets, all packets have equal delays. A difference then comes from a busy machine. The server's ledger correctly
    assigns this difference to the network. Return None if the path has a rate limit, or if packets were lost.
    """
    if known.experiment.medium.forward.rate_bps is not None:
        return None
    here, there = (
        read(outcome.captures[end]).segments.filter(pl.col("conn") == 0).select("from_client", "ts_ns").collect()
        for end in ("client", "server")
    )
    max_ns = 0
    for from_client in (True, False):
        own, others = (rows.filter(pl.col("from_client") == from_client)["ts_ns"] for rows in (here, there))
        if own.len() != others.len():
            return None
        took_ns = (others - own).to_list() if from_client else (own - others).to_list()
        max_ns = max(max_ns, max(took_ns, default=0) - min(took_ns, default=0))
    return max_ns


def _mine(conn: int) -> pl.Expr:
    return (pl.col("conn") == conn) & pl.col("from_client")


def _data(tables: Tables, conn: int) -> tuple[int, int]:
    times = tables.segments.filter(_mine(conn) & (pl.col("payload_bytes") > 0)).select("ts_ns").collect()["ts_ns"]
    return times[0], times[-1]
