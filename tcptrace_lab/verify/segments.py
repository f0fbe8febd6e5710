"""Compares our results with tshark's for each segment: header fields, verdicts and numbers."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from tcptrace_lab.verify import fields
from tcptrace_lab.verify.bounded_state import Following
from tcptrace_lab.verify.differences import Difference, by_item, explained
from tcptrace_lab.verify.our_verdicts import Said, Speaker
from tcptrace_lab.verify.pairing import THEIRS
from tcptrace_lab.verify.tshark import ANALYSIS, SCALE_UNKNOWN
from tcptrace_lab.verify.wireshark_model import SEQ_SPACE, Header, Judgement, Stream

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from tcptrace_lab.verify.connections import Connections
    from tcptrace_lab.verify.differences import Account, Rule

TOOL = "tshark"

ONLY = {"frame_only_ours": "ours", "frame_only_theirs": "theirs"}
"""Item for frames that only one tool considers a segment → that tool (`ours` or `theirs`)."""

MAX_FOREIGN, MAX_FOREIGN_FRAMES = 1_000, 64
"""Maximum numbers of streams, and of frames per stream, remembered for frames that only one tool considers segments."""

ANNOUNCING = frozenset({"ftp", "sip", "rtsp"})
"""Protocols in which hosts announce ports of later connections: names of tshark's layers."""

NUMBERS = ("bytes_in_flight", "ack_rtt_ns", "rto_ns", "rto_frame")
"""Numbers of tshark's analysis that we compute, too."""


@dataclass(slots=True)
class SegmentCase:
    """A difference on one segment, with everything that rules need.

    Attributes:
        item: the item that differs.
        row: our columns, and tshark's with the prefix `their_`.
        said: our results; None if we have no segment.
        judged: our model of tshark's verdict; None if tshark has no segment, or a number that the model needs is missing.
        connection: our row of its connection; empty if we have none.
        earlier: our row of the previous connection on these ports; empty if there is none.
        foreign: the last frames of the stream that only tshark considers segments.
        duplicates_told_apart: duplicate ACKs since the ACK number last changed: those that only we count, minus those only tshark does.
        other_duplicates_told_apart: this number for the peer's ACKs.
        own: the last frames of the connection that only we consider segments.
        problems: messages of problems that the engine found while reading the capture.
        announced: its hosts announced connections by a protocol of `ANNOUNCING`.
    """

    item: str
    row: Mapping[str, Any]
    said: Said | None
    judged: Judgement | None
    connection: Mapping[str, Any]
    earlier: Mapping[str, Any]
    foreign: Collection[int]
    duplicates_told_apart: int
    other_duplicates_told_apart: int
    own: Collection[int]
    problems: Sequence[str]
    announced: bool = False

    @property
    def theirs(self) -> frozenset[str]:
        """The verdicts of tshark on this segment."""
        return frozenset(self.row[f"{THEIRS}analysis"] or ())

    @property
    def foreseen(self) -> bool:
        """True if our model of tshark predicts exactly what tshark reports for this item."""
        if self.judged is None:
            return False
        if self.item in ANALYSIS:
            return (self.item in self.judged.flags) == (self.item in self.theirs)
        return bool(getattr(self.judged, self.item) == self.row[THEIRS + self.item])


@dataclass(slots=True)
class _ToldApart:
    """How many more duplicates of the current ACK we count than tshark."""

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
        """Start without rows. `connections` are all connections of the capture, `problems` the messages of the engine's problems."""
        self._account, self._rules, self._connections, self._problems = account, by_item(rules), connections, problems
        self._partners = fields.Partners()
        self._speaker = Speaker()
        self._streams: Following[int, Stream] = Following(Stream)
        self._foreign: dict[int, deque[int]] = {}
        self._own: dict[int, deque[int]] = {}
        self._announced: set[frozenset[str]] = set()
        self._complete: Following[int, list[int | None]] = Following(list)
        self._told_apart: Following[tuple[int, bool], _ToldApart] = Following(_ToldApart)

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
        said = self._speaker.say(row, reuses_ports=self._connections.begins_again(row["conn"], row["frame"])) if row["ours"] else None
        judged = self._judge(row) if row["theirs"] else None
        if row["theirs"]:
            self._hear(row)
        if said is None or not row["theirs"]:
            item = "frame_only_theirs" if said is None else "frame_only_ours"
            self._add(item, row, said, judged, said is not None, said is None)
            held, key = (self._foreign, row["their_conn"]) if said is None else (self._own, row["conn"])
            if len(held) < MAX_FOREIGN:
                held.setdefault(key, deque(maxlen=MAX_FOREIGN_FRAMES)).append(row["frame"])
            return
        for name in differing:
            self._add(name, row, said, judged, *_values(name, row))
        verdicts = frozenset(row["their_analysis"])
        for name in sorted(verdicts ^ said.verdicts):
            self._add(name, row, said, judged, name in said.verdicts, name in verdicts)
        values = said.bytes_in_flight, row["rtt_ns"], said.rto_ns, said.rto_frame
        for name, value in zip(NUMBERS, values, strict=True):
            if value != row[THEIRS + name]:
                self._add(name, row, said, judged, value, row[THEIRS + name])
        self._take_duplicate(row, said, judged)
        self._take_completeness(row, said, judged)

    def _take_completeness(self, row: dict[str, Any], said: Said, judged: Judgement | None) -> None:
        """Compare the completeness of the connection, at each segment that adds to it."""
        now, before = [int(said.complete), row["their_completeness"]], self._complete[row["conn"]]
        if now == before:
            return
        before[:] = now
        self._account.compared(TOOL, "completeness", 1)
        if now[0] != now[1]:
            self._add("completeness", row, said, judged, *now)

    def _take_duplicate(self, row: dict[str, Any], said: Said, judged: Judgement | None) -> None:
        """Compare the number of a duplicate ACK, if both tools report one."""
        told_apart = self._told_apart[row["conn"], row["from_client"]]
        if row["ack"] != told_apart.ack:
            told_apart.ack, told_apart.excess = row["ack"], 0
        told_apart.excess += ("duplicate_ack" in said.verdicts) - ("duplicate_ack" in row["their_analysis"])
        if said.duplicate_ack_num is None or row["their_duplicate_ack_num"] is None:
            return
        self._account.compared(TOOL, "duplicate_ack_num", 1)
        if said.duplicate_ack_num != row["their_duplicate_ack_num"]:
            self._add("duplicate_ack_num", row, said, judged, said.duplicate_ack_num, row["their_duplicate_ack_num"])

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

    def _hear(self, row: Mapping[str, Any]) -> None:
        """Record hosts that announce connections to each other."""
        if len(self._announced) < MAX_FOREIGN and not ANNOUNCING.isdisjoint(row["their_protocols"].split(":")):
            self._announced.add(frozenset((row["their_source"], row["their_target"])))

    def _add(self, item: str, row: dict[str, Any], said: Said | None, judged: Judgement | None, ours: object, theirs: object) -> None:
        conn = row["conn"]
        connection, earlier = ({}, {}) if conn is None else (self._connections[conn], self._connections.earlier(conn))
        foreign = self._foreign.get(row["their_conn"], ())
        ways = (row["from_client"], not row["from_client"])
        excess, other_excess = (0 if conn is None else self._told_apart[conn, way].excess for way in ways)
        announced = frozenset((row["their_source"], row["their_target"])) in self._announced
        own = self._own.get(conn, ())
        case = SegmentCase(item, row, said, judged, connection, earlier, foreign, excess, other_excess, own, self._problems, announced)
        rule, words = explained(case, item, self._rules)
        difference = Difference(TOOL, item, row["frame"], row["conn"], row["from_client"], ours, theirs, rule, words)
        self._account.add(difference)


_TOLD = {"ack": "their_ack", "window_known": "their_scale", "window_bytes": "their_window_bytes", "ect": "their_ecn", "ce": "their_ecn"}
"""Item → tshark's column with its value, if that has another name."""


def _values(name: str, row: Mapping[str, Any]) -> tuple[object, object]:
    """Our value and theirs, for output."""
    if name == "conn":
        return row["conn"], row["their_conn"]
    if name == "window_known":
        return row["window_bytes"] is not None, row["their_scale"] != SCALE_UNKNOWN
    return row[name], row[_TOLD.get(name, THEIRS + name)]
