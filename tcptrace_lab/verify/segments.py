"""Segment by segment: what headers say, and what is made of them, by us and by tshark."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from tcptrace_lab.verify import fields
from tcptrace_lab.verify.differences import Difference, by_item, explained
from tcptrace_lab.verify.following import Following
from tcptrace_lab.verify.ours import Said, Speaker
from tcptrace_lab.verify.pairing import THEIRS
from tcptrace_lab.verify.tshark import ANALYSIS, SCALE_UNKNOWN
from tcptrace_lab.verify.wireshark import SEQ_SPACE, Header, Judgement, Stream

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from tcptrace_lab.verify.connections import Connections
    from tcptrace_lab.verify.differences import Account, Rule

TOOL = "tshark"

ONLY = {"frame_only_ours": "ours", "frame_only_theirs": "theirs"}
"""Item for frames that one side alone takes for a segment → who that is."""

MAX_FOREIGN, MAX_FOREIGN_FRAMES = 1_000, 64
"""Streams, and frames of each, remembered that only one side takes for segments."""

ANNOUNCING = frozenset({"ftp", "sip", "rtsp"})
"""Protocols in which hosts tell each other the ports of connections to come: names of tshark's layers."""

NUMBERS = ("bytes_in_flight", "ack_rtt_ns", "rto_ns", "rto_frame")
"""Numbers of the analysis that we have, too."""


@dataclass(slots=True)
class SegmentCase:
    """Everything that is known where a segment is told differently.

    Attributes:
        item: what is told differently.
        row: our columns, and tshark's with `their_` before them.
        said: what we say of it; None where we have no segment.
        judged: how tshark comes to what it says; None where it has no segment, or no number to judge by.
        connection: our row of its connection; empty where we have none.
        earlier: our row of the connection before it on the same ports; empty where there is none.
        foreign: the last frames of the stream that tshark alone takes for segments.
        duplicates_told_apart: duplicate ACKs since the ACK last moved that only we, less those that only tshark calls so.
        other_duplicates_told_apart: the same of the other side's ACKs.
        own: the last frames of the connection that we alone take for segments.
        problems: what the engine survived in reading the capture, in words.
        announced: its hosts were seen to announce connections to each other by a protocol of `ANNOUNCING`.
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
        """The verdicts of tshark."""
        return frozenset(self.row[f"{THEIRS}analysis"] or ())

    @property
    def foreseen(self) -> bool:
        """True if what is known of tshark leads to just what it says of this item."""
        if self.judged is None:
            return False
        if self.item in ANALYSIS:
            return (self.item in self.judged.flags) == (self.item in self.theirs)
        return bool(getattr(self.judged, self.item) == self.row[THEIRS + self.item])


@dataclass(slots=True)
class _ToldApart:
    """How many more duplicates of an ACK we count than tshark."""

    ack: int | None = None
    excess: int = 0


class SegmentComparison:
    """Takes the joined tables some rows at a time and keeps account."""

    def __init__(
        self,
        account: Account,
        rules: Sequence[Rule[SegmentCase]],
        connections: Connections,
        problems: Sequence[str],
    ) -> None:
        """Begin without rows; `connections` are all of the capture, `problems` the words of what the engine survived."""
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
        """The next rows, as `pairing.joined` makes them."""
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
        """What was seen of the connection, wherever that is more than before."""
        now, before = [int(said.complete), row["their_completeness"]], self._complete[row["conn"]]
        if now == before:
            return
        before[:] = now
        self._account.compared(TOOL, "completeness", 1)
        if now[0] != now[1]:
            self._add("completeness", row, said, judged, *now)

    def _take_duplicate(self, row: dict[str, Any], said: Said, judged: Judgement | None) -> None:
        """The number of a duplicate ACK, where both call it one."""
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
        """Which hosts announce connections to each other."""
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
"""Item → tshark's column that is shown for it, where it has another name."""


def _values(name: str, row: Mapping[str, Any]) -> tuple[object, object]:
    """Ours and theirs as they are shown."""
    if name == "conn":
        return row["conn"], row["their_conn"]
    if name == "window_known":
        return row["window_bytes"] is not None, row["their_scale"] != SCALE_UNKNOWN
    return row[name], row[_TOLD.get(name, THEIRS + name)]
