"""Compares our figures of each connection with those of tcptrace's listing.

Connections are matched by their endpoints, in order of their start. The printed value of a figure is compared with our figure of that name
(`tcptrace_figures`). If the values differ, tcptrace's rules are applied to the connection's segments (`tcptrace_model`).
"""

from __future__ import annotations

import ipaddress
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import polars as pl

from tcptrace_lab.outputs.tcptrace_figures import FIGURES, Direction
from tcptrace_lab.verify.differences import Difference, by_item, explained
from tcptrace_lab.verify.model_figures import figure as model_figure
from tcptrace_lab.verify.tcptrace_model import COLUMNS, TcptraceModel, follows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from tcptrace_lab.engine.segments import Tables
    from tcptrace_lab.outputs.tcptrace_figures import Figure
    from tcptrace_lab.verify.differences import Account, Rule
    from tcptrace_lab.verify.tcptrace import Listed
    from tcptrace_lab.verify.tcptrace_model import Tally

TOOL = "tcptrace"

HALF_A_STEP = 0.511
"""Tolerance, in units of the last printed digit. Both tools round, and tcptrace first truncates times to microseconds."""

STEPS = {"8.1f": 0.1, "7.3f": 0.001}
"""Value of the last digit for each printing format of a figure. For all other formats, this value is 1."""

End = tuple[str, int]

_ENDS = (
    *("conn", "client_addr", "client_port", "server_addr", "server_port", "first_frame", "first_ts_ns", "last_ts_ns"),
    *(f"{side}_{name}" for side in ("client", "server") for name in ("segments", "capture_duplicates", "network_duplicates")),
)
"""Columns for matching connections."""


@dataclass(slots=True)
class FigureCase:
    """A difference on one connection, with everything that the rules need.

    Attributes:
        item: the figure. `connections` means the number of connections between two endpoints.
        direction: our figures of the direction; None for `connections`.
        theirs: the value that tcptrace prints.
        modelled: the figure that tcptrace's rules give for our segments; None if it is not modelled.
        tally: all counts that tcptrace's rules give for the direction.
        model: all counts that tcptrace's rules give for the connection.
        ours_listed: our connections between these endpoints.
        theirs_listed: tcptrace's connections between these endpoints.
        layers: protocol layers above the first segment of the connection.
        largest_bytes: largest payload of a segment of the connection.
        readable: number of segments between these endpoints, with duplicates, in encapsulations that tcptrace reads.
        capture_end_us: time of the capture's last packet.
        problems: messages of the engine's problems, with their counts.
        refused: tcptrace's message if it did not read the whole file.
    """

    item: str
    theirs: str
    direction: Direction | None = None
    modelled: float | None = None
    tally: Tally | None = None
    model: TcptraceModel | None = None
    ours_listed: Sequence[Mapping[str, Any]] = ()
    theirs_listed: Sequence[Listed] = ()
    layers: str = ""
    largest_bytes: int = 0
    readable: int = 0
    capture_end_us: int | None = None
    problems: Mapping[str, int] = field(default_factory=dict)
    refused: str | None = None

    def survived(self, words: str) -> int:
        """Return how often the engine reported a problem whose message contains `words`."""
        return sum(count for problem, count in self.problems.items() if words in problem)

    @property
    def false_headers(self) -> int:
        """Return the number of TCP headers in the capture with an impossible length field."""
        return self.survived("TCP header's length contradicts itself")


@dataclass(slots=True)
class _Pair:
    """A connection that both tools have, and all connections between its endpoints."""

    row: Mapping[str, Any]
    listed: Listed
    ours_listed: Sequence[Mapping[str, Any]]
    theirs_listed: Sequence[Listed]

    def directions(self) -> Iterator[tuple[Direction, Mapping[str, str]]]:
        """Yield both directions of our row, each with the figures that tcptrace printed for the direction."""
        client = (self.row["client_addr"], self.row["client_port"])
        sides = ("client", "server") if normal(self.listed.ends[0]) == client else ("server", "client")
        for side, printed in zip(sides, self.listed.figures, strict=True):
            yield Direction(self.row, side), printed

    def reads_alike(self, packets: Mapping[str, int], data_bytes: Mapping[str, int]) -> bool:
        """Return whether tcptrace counts these numbers of packets and data bytes for each host."""
        return all(
            (int(printed["total_packets"]), int(printed["actual_data_bytes"])) == (packets[direction.side], data_bytes[direction.side])
            for direction, printed in self.directions()
        )


class FigureComparison:
    """Compares all connections that tcptrace lists."""

    def __init__(self, account: Account, rules: Sequence[Rule[FigureCase]], tables: Tables) -> None:
        """Start without any connection."""
        self._account, self._rules, self._tables = account, by_item(rules), tables
        self._problems = {problem["what"]: problem["count"] for problem in tables.problems}

    def compare(self, listed: Iterable[Listed], refused: str | None) -> None:
        """Compare all `listed` connections. `refused` is tcptrace's message if tcptrace did not read the whole file."""
        theirs: dict[frozenset[End], list[Listed]] = defaultdict(list)
        for one in listed:
            theirs[frozenset(normal(end) for end in one.ends)].append(one)
        ours: dict[frozenset[End], list[Mapping[str, Any]]] = defaultdict(list)
        for row in self._tables.connections.select(_ENDS).collect().sort("first_frame").iter_rows(named=True):
            ours[frozenset([(row["client_addr"], row["client_port"]), (row["server_addr"], row["server_port"])])].append(row)
        pairs = self._paired(ours, theirs, refused)
        odd = [pair for pair in pairs if not _counts_alike(pair)]
        models = self._model_runs([pair.row for pair in odd])
        read_otherwise = self._read_otherwise(len(pairs), odd, models)
        found = [one for pair in pairs if pair.row["conn"] not in read_otherwise for one in self._differing(pair)]
        missing = {pair.row["conn"]: pair.row for pair, *_ in found if pair.row["conn"] not in models}
        self._explain(found, models | self._model_runs(list(missing.values())))

    def _paired(
        self, ours: Mapping[frozenset[End], list[Mapping[str, Any]]], theirs: Mapping[frozenset[End], list[Listed]], refused: str | None
    ) -> list[_Pair]:
        """Pair the connections between two endpoints if both tools have equally many. Otherwise, record a difference."""
        self._account.compared(TOOL, "connections", len(ours.keys() | theirs.keys()))
        odd = [ends for ends in ours.keys() | theirs.keys() if len(ours.get(ends, ())) != len(theirs.get(ends, ()))]
        layers = self._layers([row["conn"] for ends in odd for row in ours.get(ends, ())])
        for ends in sorted(odd, key=lambda ends: min((row["first_frame"] for row in ours.get(ends, ())), default=0)):
            mine, others = ours.get(ends, []), theirs.get(ends, [])
            conn = mine[0]["conn"] if mine else None
            by, largest, _ = layers.get(conn, ("", 0, 0))
            case = FigureCase(
                "connections",
                str(len(others)),
                ours_listed=mine,
                theirs_listed=others,
                layers=by,
                largest_bytes=largest,
                readable=sum(layers[row["conn"]][2] for row in mine),
                problems=self._problems,
                refused=refused,
            )
            self._add(case, conn, None, len(mine), len(others))
        same = {ends: mine for ends, mine in ours.items() if len(mine) == len(theirs.get(ends, ()))}
        conns = [row["conn"] for mine in same.values() for row in mine]
        rows = {row["conn"]: row for row in self._tables.connections.filter(pl.col("conn").is_in(conns)).collect().iter_rows(named=True)}
        return [
            _Pair(rows[row["conn"]], one, mine, theirs[ends])
            for ends, mine in same.items()
            for row, one in zip(mine, theirs[ends], strict=True)
        ]

    def _layers(self, conns: Sequence[int]) -> dict[int | None, tuple[str, int, int]]:
        """Return for each connection: layers above its first segment, largest payload, and number of its segments that tcptrace reads."""
        if not conns:
            return {}
        rows = self._tables.segments.filter(pl.col("conn").is_in(list(conns)))
        max_segments: dict[int | None, tuple[str, int, int]] = {}
        aggregates = (pl.len(), pl.col("payload_bytes").max())
        for batch in rows.select("conn", "layers", "payload_bytes").collect_batches(maintain_order=True):
            by_layers = batch.with_columns(pl.col("layers").cast(pl.String)).group_by("conn", "layers", maintain_order=True).agg(aggregates)
            for conn, layers, segments, largest in by_layers.iter_rows():
                first, before, readable = max_segments.get(conn, (layers, 0, 0))
                max_segments[conn] = (first, max(before, largest), readable + segments * follows(layers))
        return max_segments

    def _read_otherwise(self, pairs: int, odd: Sequence[_Pair], models: Mapping[int, TcptraceModel]) -> set[int]:
        """Return the connections for which tcptrace's counts equal our counts neither with duplicates nor without them.

        The figures of these connections cannot be compared.
        """
        self._account.compared(TOOL, "segments_read", pairs)
        found = set()
        for pair in odd:
            model = models[pair.row["conn"]]
            tallies = {"client": model.sides[True], "server": model.sides[False]}
            if not model.strange and pair.reads_alike(
                {side: tally.packets for side, tally in tallies.items()}, {side: tally.data_bytes for side, tally in tallies.items()}
            ):
                continue
            found.add(pair.row["conn"])
            theirs = {direction.side: int(printed["total_packets"]) for direction, printed in pair.directions()}
            case = FigureCase(
                "segments_read",
                str(sum(theirs.values())),
                model=model,
                ours_listed=pair.ours_listed,
                theirs_listed=pair.theirs_listed,
                problems=self._problems,
            )
            ours = sum(tally.packets for tally in tallies.values()) + model.strange.total()
            self._add(case, pair.row["conn"], None, ours, sum(theirs.values()))
        return found

    def _differing(self, pair: _Pair) -> Iterator[tuple[_Pair, Direction, Figure, str]]:
        for direction, printed in pair.directions():
            for figure in FIGURES:
                if figure.name not in printed:
                    continue
                self._account.compared(TOOL, figure.name, 1)
                if not agrees(figure.value(direction), printed[figure.name], STEPS.get(figure.form, 1.0)):
                    yield pair, direction, figure, printed[figure.name]

    def _explain(self, found: Sequence[tuple[_Pair, Direction, Figure, str]], models: Mapping[int, TcptraceModel]) -> None:
        end_ns = self._tables.info["last_ts_ns"]
        for pair, direction, figure, theirs in found:
            from_client = direction.side == "client"
            model = models[pair.row["conn"]]
            case = FigureCase(
                figure.name,
                theirs,
                direction,
                model_figure(model, figure.name, from_client=from_client),
                model.sides[from_client],
                model,
                capture_end_us=None if end_ns is None else end_ns // 1_000,
                problems=self._problems,
            )
            self._add(case, pair.row["conn"], from_client, figure.value(direction), theirs)

    def _add(self, case: FigureCase, conn: int | None, from_client: bool | None, ours: object, theirs: object) -> None:  # noqa: FBT001
        rule, words = explained(case, case.item, self._rules)
        self._account.add(Difference(TOOL, case.item, None, conn, from_client, ours, theirs, rule, words))

    def _model_runs(self, connections: Sequence[Mapping[str, Any]]) -> dict[int, TcptraceModel]:
        """Apply tcptrace's rules to the segments of these connections."""
        models = {row["conn"]: TcptraceModel(row) for row in connections}
        if models:
            rows = self._tables.segments.filter(pl.col("conn").is_in(list(models))).select(*COLUMNS, pl.col("layers").cast(pl.String))
            for batch in rows.collect_batches(maintain_order=True):
                for row in batch.iter_rows(named=True):
                    models[row["conn"]].take(row)
        return models


def _counts_alike(pair: _Pair) -> bool:
    """Return whether tcptrace's counts equal our figures, which do not include duplicates."""
    sides = ("client", "server")
    return pair.reads_alike(
        {side: pair.row[f"{side}_segments"] for side in sides}, {side: pair.row[f"{side}_payload_bytes"] for side in sides}
    )


def agrees(ours: object, theirs: str, step: float) -> bool:
    """Return whether the printed text equals our value. `step` is the value of the last printed digit."""
    number = as_number(theirs)
    if ours is None:
        return theirs == "NA" or number == 0  # tcptrace prints unknown values as NA or 0
    if isinstance(ours, str):
        return theirs == ours
    if number is None or not isinstance(ours, (int, float)):
        return False
    return abs(number - ours) <= (HALF_A_STEP * step if isinstance(ours, float) else 0)


def as_number(text: str) -> float | None:
    """Return a printed figure as a number; None for `NA` and other words."""
    try:
        return float(text)
    except ValueError:
        return None


def normal(end: End) -> End:
    """Return an endpoint with its address as we write it. If an IPv6 address begins or ends with zeros, tcptrace omits a colon."""
    address, port = end
    for text in (address, f":{address}", f"{address}:"):
        try:
            return str(ipaddress.ip_address(text)), port
        except ValueError:
            continue
    return end
