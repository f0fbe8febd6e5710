"""One direction of a connection, as input of the verdict: its time by cause, its findings, and the phrases that name a cause."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import polars as pl

from tcptrace_lab import causes
from tcptrace_lab.causes import Confidence
from tcptrace_lab.causes.rule import WORTH_NS, WORTH_SHARE, Case, Clause
from tcptrace_lab.causes.texts import rivals, special_cases
from tcptrace_lab.connections import host_names
from tcptrace_lab.schema import CAUSES, SIDES
from tcptrace_lab.text import numbers
from tcptrace_lab.verdict import lacking

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tcptrace_lab.causes.rule import Doubt
    from tcptrace_lab.findings.finding import Finding
    from tcptrace_lab.verdict.result import Analysed

OF_LOSSES: Final = frozenset({"loss-recovery", "congestion-window", "timeout"})
"""Causes that follow from packet loss: the sender repairs the loss, and then the reduced congestion window slows it down."""

GRADES: Final = {Confidence.PROVED: "", Confidence.CONSISTENT: "most likely ", Confidence.POSSIBLE: "possibly "}

BY_CERTAINTY: Final = (Confidence.PROVED, Confidence.CONSISTENT, Confidence.POSSIBLE)

WRONG_SHARE: Final = 0.05
"""In waits that the ledger calls proved or consistent, at most this share of the time has a wrong cause (docs/how-sure.md)."""


class Direction(NamedTuple):
    """One direction of a connection.

    Attributes:
        row: row of `schema.CONNECTIONS`.
        from_client: whether the client sends in this direction.
        ns: cause → time in ns.
        findings: the findings on this direction.
        rivals: causes that explain the time of unknown cause equally well.
    """

    row: Mapping[str, Any]
    from_client: bool
    ns: Mapping[str, int]
    findings: tuple[Finding, ...]
    rivals: tuple[str, ...] = ()

    @property
    def life_ns(self) -> int:
        """Duration of the direction."""
        return sum(self.ns.values())

    @property
    def active(self) -> dict[str, int]:
        """The time (ns) of each cause, without idle time."""
        return {cause: ns for cause, ns in self.ns.items() if cause != "idle"}

    @property
    def active_ns(self) -> int:
        """The duration of the direction without idle time."""
        return sum(self.active.values())

    @property
    def time(self) -> str:
        """The time that shares refer to, as text: `45 s`, or `45 s active time (65 s idle)`."""
        idle_ns, active = self.ns.get("idle", 0), numbers.duration(self.active_ns)
        return f"{active} active time ({numbers.duration(idle_ns)} idle)" if idle_ns else active

    @property
    def main_cause(self) -> str:
        """The cause with most time.

        The causes that follow from packet loss count as one, with the sum of their times. If this sum is the largest time, the largest of
        these causes is returned.
        """
        own = {cause: ns for cause, ns in self.active.items() if cause not in OF_LOSSES}
        lost = {cause: ns for cause, ns in self.ns.items() if cause in OF_LOSSES}
        best = max(own, key=lambda cause: own[cause], default="idle")
        return max(lost, key=lambda cause: lost[cause]) if sum(lost.values()) > own.get(best, 0) else best

    @property
    def main_causes(self) -> frozenset[str]:
        """The main cause. If it follows from packet loss: all causes that follow from packet loss."""
        return OF_LOSSES if self.main_cause in OF_LOSSES else frozenset({self.main_cause})

    @property
    def confidence_of_main(self) -> Confidence:
        """The confidence that the main cause took most time. It comes from the finding on the cause, or else from its waits."""
        confidences = (one.confidence for one in self.found(self.main_cause))
        confidence = max(confidences, key=BY_CERTAINTY.index, default=self.confidence_of(self.main_cause))
        return self.as_largest(self.main_causes, confidence)

    def found(self, cause: str) -> list[Finding]:
        """Return the findings whose only cause is `cause`."""
        return [one for one in self.findings if one.causes == {cause}]

    def as_largest(self, named: frozenset[str], confidence: Confidence) -> Confidence:
        """Return the confidence that the named causes took more time than any other cause.

        The result is one step below `confidence` if another cause can be the largest. Time of unknown cause can belong to the other cause,
        and so can time for which the ledger is wrong (`WRONG_SHARE`). The ledger is never wrong about a proved cause.

        Args:
            named: the named causes.
            confidence: confidence in the named causes without a comparison with other causes.
        """
        if "unknown" in named:
            return confidence
        wrong_ns = 0 if confidence is Confidence.PROVED else round(WRONG_SHARE * self.active_ns)
        doubtful_ns = self.ns.get("unknown", 0) + wrong_ns
        others_ns = [ns for cause, ns in self.active.items() if cause not in {*named, *OF_LOSSES, "unknown"}]
        most_ns = max(self._together_ns(OF_LOSSES - named), *others_ns, 0)
        is_close = doubtful_ns > 0 and most_ns + doubtful_ns >= self._together_ns(named)
        return BY_CERTAINTY[min(BY_CERTAINTY.index(confidence) + is_close, len(BY_CERTAINTY) - 1)]

    def confidence_of(self, cause: str) -> Confidence:
        """Return the confidence of the waits with this cause."""
        return Confidence.POSSIBLE if self.doubt_of(cause) else causes.of_cause(cause).confidence

    def doubt_of(self, cause: str) -> Doubt | None:
        """Return the doubt that applies to all waits with this cause; None if there is none."""
        doubt = causes.of_cause(cause).doubt
        return doubt if doubt is not None and doubt.of_all is not None and doubt.of_all(self._own) else None

    @property
    def before_close(self) -> Direction | None:
        """This direction before the first FIN, without idle time; None if that time is short or its main cause unknown."""
        rest = {cause: ns for cause, ns in self.active.items() if cause != "close"}
        one = self._replace(ns=rest)
        return one if one.life_ns >= WORTH_NS and one.main_cause != "unknown" else None

    @property
    def curable(self) -> str | None:
        """The largest cause that has a `cure` but no advice; None if its time is short or its confidence only `possible`."""
        worth = [
            cause for cause, ns in self.ns.items() if ns >= max(WORTH_NS, WORTH_SHARE * self.active_ns) and causes.of_cause(cause).cure
        ]
        return max(
            (cause for cause in worth if self.confidence_of(cause) != Confidence.POSSIBLE), key=lambda cause: self.ns[cause], default=None
        )

    def _together_ns(self, some: frozenset[str]) -> int:
        return sum(self.ns.get(cause, 0) for cause in some)

    def _own(self, name: str) -> int:
        return int(self.row[f"{'client' if self.from_client else 'server'}_{name}"])

    def fill_in(self, words: str) -> str:
        """Replace `{sender}` and `{receiver}` by the names of the hosts, `{sending}` and `{receiving}` by `client` or `server`."""
        for role, name in host_names.roles(self.row, "client" if self.from_client else "server").items():
            words = words.replace(f"{{{role}}}", name)
        return words

    def phrase(self, lost_to: str, ns: int, sure: Confidence, where: str, found: Iterable[Finding] = ()) -> str:
        """Return `X took 91% of 531 ms`, or for a `Clause`: `the application was not sending for 91% of 531 ms`.

        The text `, mostly in one wait of 400 ms` is added if the longest wait of the findings `found` takes most of the time `ns`.
        """
        verb = "for" if isinstance(lost_to, Clause) else "took"
        longest_ns = min(max((one.longest_ns or 0 for one in found), default=0), ns)
        name = "pause" if isinstance(lost_to, Clause) else "wait"
        in_one = f", {'mostly ' if longest_ns < ns else ''}in one {name} of {numbers.duration(longest_ns)}" if 2 * longest_ns > ns else ""
        words = f"{GRADES[sure]}{lost_to}"  # capitalized before the addresses are filled in, because an address keeps its case
        return f"{self.fill_in(words[:1].upper() + words[1:])} {verb} {numbers.share(ns / self.active_ns)} of {self.time}{where}{in_one}"

    @property
    def cases(self) -> frozenset[Case]:
        """The special cases that apply to the sender."""
        return special_cases.of(self.row, "client" if self.from_client else "server")


def direction_of(analysis: Analysed, row: Mapping[str, Any], account: Mapping[str, Any], *, from_client: bool) -> Direction:
    """Return a direction of the connection in `row`, with its times and findings."""
    side = next(name for name, of_client in SIDES.items() if of_client == from_client)
    ns = {cause: account.get(f"{side}_{cause.replace('-', '_')}_ns") or 0 for cause in CAUSES}
    findings = tuple(one for one in analysis.findings if (one.conn, one.from_client) == (row["conn"], from_client))
    names = rivals.names_of(account.get(f"{side}_rivals"))
    return Direction(row, from_client, ns, findings, () if lacking.what(row, from_client=from_client) else names)


def rows_of(analysis: Analysed, conn: int | None) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Return the attributes `row` and `account` of a `Verdict` on this connection."""
    if conn is None:
        return {}, {}
    row = analysis.connections.filter(pl.col("conn") == conn).collect().row(0, named=True)
    return row, account_of(analysis, conn)


def account_of(analysis: Analysed, conn: int) -> Mapping[str, Any]:
    """Return the connection's row of `schema.ACCOUNTS`; empty if it has none."""
    rows = analysis.accounts.filter(pl.col("conn") == conn).collect()
    return rows.row(0, named=True) if rows.height else {}


def is_a_fault(cause: str) -> bool:
    """Return whether time with this cause is a fault that can be fixed."""
    advice = causes.of_cause(cause).advice
    return advice is not None and advice.is_a_fault
