"""Compares our results for each segment with the results of tshark: header fields, verdicts and numbers."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from tcptrace_lab.verify import fields
from tcptrace_lab.verify.bounded_state import BoundedStates
from tcptrace_lab.verify.differences import Difference, by_item, explained
from tcptrace_lab.verify.our_verdicts import OurVerdict, VerdictMaker
from tcptrace_lab.verify.pairing import THEIRS
from tcptrace_lab.verify.tshark import ANALYSIS, SCALE_UNKNOWN
from tcptrace_lab.verify.wireshark_model import SEQ_SPACE, Header, Judgement, Stream

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from tcptrace_lab.verify.connections import Connections
    from tcptrace_lab.verify.differences import Account, Rule

TOOL = "tshark"

ONLY = {"frame_only_ours": "ours", "frame_only_theirs": "theirs"}
"""Item for frames that only one tool considers segments → `ours` if this tool is tcptrace-lab, `theirs` if it is tshark."""

MAX_FOREIGN, MAX_FOREIGN_FRAMES = 1_000, 64
"""Maximum number of streams for which frames of `ONLY` are stored, and maximum number of these frames per stream."""

ANNOUNCING = frozenset({"ftp", "sip", "rtsp"})
"""Protocols by which hosts announce the ports of later connections, as names of tshark's layers."""

NUMBERS = ("bytes_in_flight", "ack_rtt_ns", "rto_ns", "rto_frame")
"""Numbers in tshark's analysis that we compute, too."""


@dataclass(slots=True)
class SegmentCase:
    """A difference on one segment, with everything that the rules need.

    Attributes:
        item: the item that differs.
        row: our columns, and the columns of tshark with the prefix `their_`.
        verdict: our results; None if we have no segment.
        judged: our model of tshark's verdict. None if tshark has no segment, or if a number that the model needs is missing.
        connection: our row of its connection; empty if we have none.
        earlier: our row of the previous connection on these ports; empty if there is none.
        foreign: the stream's last frames that tshark considers segments and we do not.
        excess_duplicates: duplicate ACKs that only we count, minus those that only tshark counts, since the ACK number changed.
        other_excess_duplicates: as `excess_duplicates`, for the peer's ACKs.
        own: the connection's last frames that we consider segments and tshark does not.
        problems: messages of problems that the engine found while it read the capture.
        announced: True if the hosts announced connections by a protocol in `ANNOUNCING`.
    """

    item: str
    row: Mapping[str, Any]
    verdict: OurVerdict | None
    judged: Judgement | None
    connection: Mapping[str, Any]
    earlier: Mapping[str, Any]
    foreign: Collection[int]
    excess_duplicates: int
    other_excess_duplicates: int
    own: Collection[int]
    problems: Sequence[str]
    announced: bool = False

    @property
    def theirs(self) -> frozenset[str]:
        """Tshark's verdicts on this segment."""
        return frozenset(self.row[f"{THEIRS}analysis"] or ())

    @property
    def is_predicted(self) -> bool:
        """True if our model of tshark predicts exactly the value that tshark reports for this item."""
        if self.judged is None:
            return False
        if self.item in ANALYSIS:
            return (self.item in self.judged.flags) == (self.item in self.theirs)
        return bool(getattr(self.judged, self.item) == self.row[THEIRS + self.item])


@dataclass(slots=True)
class _ExcessDuplicates:
    """Counts how many more duplicates of the current ACK we report than tshark."""

    ack: int | None = None
    excess: int = 0


class SegmentComparison:
    """Compares the joined tables in batches, and counts the results."""

    def __init__(
        self,
        account: Account,
        rules: Sequence[Rule[SegmentCase]],
        connections: Connections,
        problems: Sequence[str],
    ) -> None:
        """Start without rows.

        `connections` are all connections of the capture. `problems` are the messages of the problems that the engine found.
        """
        self._account, self._rules, self._connections, self._problems = account, by_item(rules), connections, problems
        self._partners = fields.Partners()
        self._verdicts = VerdictMaker()
        self._streams: BoundedStates[int, Stream] = BoundedStates(Stream)
        self._foreign: dict[int, deque[int]] = {}
        self._own: dict[int, deque[int]] = {}
        self._announced: set[frozenset[str]] = set()
        self._complete: BoundedStates[int, list[int | None]] = BoundedStates(list)
        self._excess_of: BoundedStates[tuple[int, bool], _ExcessDuplicates] = BoundedStates(_ExcessDuplicates)

    def take(self, both: pl.DataFrame) -> None:
        """Compare the next rows, as `pairing.joined` returns them."""
        both = self._partners.named(both)
        shared = both["ours"] & both["theirs"]
        differs = both.select(**{name: pl.col("ours") & pl.col("theirs") & test for name, test in fields.DIFFERS.items()})
        counts = both.filter(shared).select(**{name: fields.compared(name).sum() for name in fields.DIFFERS}).row(0, named=True)
        for item in ONLY:
            self._account.compared(TOOL, item, both.height)
        for name, count in counts.items():
            self._account.compared(TOOL, name, count)
        for item in (*ANALYSIS, *NUMBERS):
            self._account.compared(TOOL, item, int(shared.sum()))
        of_fields: dict[int, list[str]] = {}
        for name in fields.DIFFERS:
            for index in differs[name].arg_true():
                of_fields.setdefault(index, []).append(name)
        for index, row in enumerate(both.iter_rows(named=True)):
            self._take_row(row, of_fields.get(index, ()))

    def _take_row(self, row: dict[str, Any], differing: Sequence[str]) -> None:
        verdict = (
            self._verdicts.verdict_on(row, reuses_ports=self._connections.begins_again(row["conn"], row["frame"])) if row["ours"] else None
        )
        judged = self._judge(row) if row["theirs"] else None
        if row["theirs"]:
            self._follow_model(row)
        if verdict is None or not row["theirs"]:
            item = "frame_only_theirs" if verdict is None else "frame_only_ours"
            self._add(item, row, verdict, judged, verdict is not None, verdict is None)
            patterns, key = (self._foreign, row["their_conn"]) if verdict is None else (self._own, row["conn"])
            if len(patterns) < MAX_FOREIGN:
                patterns.setdefault(key, deque(maxlen=MAX_FOREIGN_FRAMES)).append(row["frame"])
            return
        for name in differing:
            self._add(name, row, verdict, judged, *_values(name, row))
        verdicts = frozenset(row["their_analysis"])
        for name in sorted(verdicts ^ verdict.verdicts):
            self._add(name, row, verdict, judged, name in verdict.verdicts, name in verdicts)
        values = verdict.bytes_in_flight, row["rtt_ns"], verdict.rto_ns, verdict.rto_frame
        for name, value in zip(NUMBERS, values, strict=True):
            if value != row[THEIRS + name]:
                self._add(name, row, verdict, judged, value, row[THEIRS + name])
        self._take_duplicate(row, verdict, judged)
        self._take_completeness(row, verdict, judged)

    def _take_completeness(self, row: dict[str, Any], verdict: OurVerdict, judged: Judgement | None) -> None:
        """Compare the completeness of both tools if the segment adds to the completeness of its connection."""
        now, before = [int(verdict.complete), row["their_completeness"]], self._complete[row["conn"]]
        if now == before:
            return
        before[:] = now
        self._account.compared(TOOL, "completeness", 1)
        if now[0] != now[1]:
            self._add("completeness", row, verdict, judged, *now)

    def _take_duplicate(self, row: dict[str, Any], verdict: OurVerdict, judged: Judgement | None) -> None:
        excess_here = self._excess_of[row["conn"], row["from_client"]]
        if row["ack"] != excess_here.ack:
            excess_here.ack, excess_here.excess = row["ack"], 0
        excess_here.excess += ("duplicate_ack" in verdict.verdicts) - ("duplicate_ack" in row["their_analysis"])
        if verdict.duplicate_ack_num is None or row["their_duplicate_ack_num"] is None:
            return
        self._account.compared(TOOL, "duplicate_ack_num", 1)
        if verdict.duplicate_ack_num != row["their_duplicate_ack_num"]:
            self._add("duplicate_ack_num", row, verdict, judged, verdict.duplicate_ack_num, row["their_duplicate_ack_num"])

    def _judge(self, row: Mapping[str, Any]) -> Judgement | None:
        if row["their_payload_bytes"] is None or row["their_tcp_headers"] != 1:
            return None
        sender = (row["their_source"], row["their_source_port"])
        stream = row["their_conn"]
        header = Header(
            row["frame"],
            row["their_ts_ns"] or 0,
            row["their_raw_seq"],
            row["their_raw_ack"],
            row["their_payload_bytes"],
            row["their_flags"],
            row["their_window_field"],
            row["their_scale"] or 0,
            tuple(row["their_sack_blocks"] or ()),
            row["their_initial_rtt_ns"],
            (row["their_raw_seq"] - row["their_seq"]) % SEQ_SPACE,
            "reused_ports" in row["their_analysis"],
        )
        return self._streams[stream].take(header, sender)

    def _follow_model(self, row: Mapping[str, Any]) -> None:
        if len(self._announced) < MAX_FOREIGN and not ANNOUNCING.isdisjoint(row["their_protocols"].split(":")):
            self._announced.add(frozenset((row["their_source"], row["their_target"])))

    def _add(
        self, item: str, row: dict[str, Any], verdict: OurVerdict | None, judged: Judgement | None, ours: object, theirs: object
    ) -> None:
        conn = row["conn"]
        connection, earlier = ({}, {}) if conn is None else (self._connections[conn], self._connections.earlier(conn))
        foreign = self._foreign.get(row["their_conn"], ())
        directions = (row["from_client"], not row["from_client"])
        excess, other_excess = (0 if conn is None else self._excess_of[conn, direction].excess for direction in directions)
        announced = frozenset((row["their_source"], row["their_target"])) in self._announced
        own = self._own.get(conn, ())
        case = SegmentCase(item, row, verdict, judged, connection, earlier, foreign, excess, other_excess, own, self._problems, announced)
        rule, words = explained(case, item, self._rules)
        difference = Difference(TOOL, item, row["frame"], row["conn"], row["from_client"], ours, theirs, rule, words)
        self._account.add(difference)


_TOLD = {"ack": "their_ack", "window_known": "their_scale", "window_bytes": "their_window_bytes", "ect": "their_ecn", "ce": "their_ecn"}
"""Name of tshark's column for an item, if the item has another name."""


def _values(name: str, row: Mapping[str, Any]) -> tuple[object, object]:
    if name == "conn":
        return row["conn"], row["their_conn"]
    if name == "window_known":
        return row["window_bytes"] is not None, row["their_scale"] != SCALE_UNKNOWN
    return row[name], row[_TOLD.get(name, THEIRS + name)]
