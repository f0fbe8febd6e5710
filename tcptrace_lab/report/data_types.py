"""Types of the report: its input (`Analysed`) and the dictionary that `data.py` returns (`ReportData`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NotRequired, Protocol, TypedDict

from tcptrace_lab.schema.captured import Captured

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

    from tcptrace_lab.engine.reread import Together
    from tcptrace_lab.messages.size_groups import GroupSizes
    from tcptrace_lab.report.figures.plots import Figure as PlotlyFigure


class Analysed(Captured, Protocol):
    """The attributes of `Analysis` that a report uses."""

    @property
    def ledger(self) -> pl.LazyFrame:
        """All rows of `schema.LEDGER`. The table can be larger than memory."""

    @property
    def together(self) -> Together | None:
        """A reader of `segments` and `ledger` in one pass; None if two separate queries cost no more."""

    @property
    def flows(self) -> pl.LazyFrame:
        """All rows of `schema.FLOWS`. The table can be larger than memory."""

    @property
    def transactions(self) -> pl.DataFrame:
        """Rows of `schema.TRANSACTIONS`."""

    @property
    def accounts(self) -> pl.LazyFrame:
        """All rows of `schema.ACCOUNTS`. The table can be larger than memory."""

    @property
    def longest_waits(self) -> pl.DataFrame:
        """Rows of `schema.LEDGER` for connections with findings: the longest intervals of each direction."""

    @property
    def stalls(self) -> pl.DataFrame:
        """Rows of `schema.STALLS` for connections with findings: the longest stalls of each direction."""

    @property
    def rates(self) -> pl.DataFrame:
        """Rows of `schema.RATES` for connections with findings."""

    @property
    def labels(self) -> Mapping[int, str]:
        """Number of a connection → what the connection was used for."""

    @property
    def findings(self) -> Sequence[Any]:
        """Findings, most expensive first."""

    @property
    def message_sizes(self) -> Sequence[GroupSizes]:
        """Message times by message size, for each group of connections."""


class Value(TypedDict):
    """One fact: its label, its value, and the `kind` of value, which `numbers.formatted` needs to format it."""

    label: str
    value: Any
    kind: str
    tooltip: NotRequired[str]


class Column(TypedDict):
    """One column of a table, such as the connection table or the UDP flows."""

    key: str
    label: str
    kind: str
    tooltip: str


class Figure(TypedDict):
    """One figure.

    `by` is the sender of the figure's direction ("client" or "server"), or "both". `without` is the text in place of a figure without
    traces. `text` describes the figure for readers who cannot see it.
    """

    key: str
    by: str
    title: str
    note: str
    without: str
    text: str
    figure: PlotlyFigure


class Side(TypedDict):
    """One direction of a drawn connection, named by its sender."""

    key: str
    label: str
    unique_bytes: int


class Named(TypedDict):
    """A cause and its meaning."""

    cause: str
    means: str


class Look(TypedDict):
    """The figure that shows a finding's cause best. `text` describes the figure for readers who cannot see it."""

    key: str
    title: str
    note: str
    text: str
    figure: PlotlyFigure


class Zoom(TypedDict):
    """The figures of a finding: `figure` is a time-sequence graph; `look` is another figure, if it shows the cause better.

    Times are in ns since the connection's first segment. The figure shades waits whose cause is in `shaded`.
    """

    conn: int
    side: str
    from_ns: int
    to_ns: int
    times: str
    segments: int
    first_frame: int
    last_frame: int
    proving: int
    elsewhere: int
    omitted: int
    causes: list[Named]
    shaded: list[str]
    figure: PlotlyFigure
    text: str
    look: Look | None


class Reproduce(TypedDict):
    """How to try a finding's remedy: a command, and a program that repeats the transfer (empty if no model was run)."""

    command: str
    script: str
    file: str


class Found(TypedDict):
    """One finding. `place` is the number of the finding on the page, from 1. Findings with equal `kind` have the same name and remedy."""

    place: int
    id: str
    severity: str
    confidence: str
    conn: int | None
    ends: str
    way: str
    share: float | None
    cost_ns: int | None
    active_ns: int | None
    title: str
    mechanism: str
    limits: str
    remedy: list[str]
    kind: str
    gain: str
    source: str
    filter: str
    zoom: Zoom | None
    summary: str
    reproduce: Reproduce | None


class Part(TypedDict):
    """The part of a bar for one cause. `name` is the cause in the legend; for `peer`, the name says what the peer did.

    `share` is a share of the direction's duration: the width of the part. `of_active` is the share of the active time as text, empty for
    `idle`.
    """

    cause: str
    name: str
    means: str
    ns: int
    share: float
    of_active: str


class Bar(TypedDict):
    """The time of one direction: by cause, the largest first, and by the states of RFC 4898."""

    key: str
    label: str
    time: str
    parts: list[Part]
    terms: str


class Stall(TypedDict):
    """One stall: its start, its duration, the frames around it, and the evidence for its cause."""

    way: str
    side: str
    at_ns: int
    ns: int
    cause: str
    means: str
    confidence: str
    frames: str
    filter: str
    proof: str


class Lane(TypedDict):
    """A connection on the time axis of all connections.

    `left` and `width` are shares of the axis. `command` analyzes this connection alone.
    """

    conn: int
    label: str
    start_ns: int
    duration_ns: int
    left: float
    width: float
    cause: str
    drawn: bool
    command: str


class Statistic(TypedDict):
    """One statistic of both directions, formatted by `kind` (`numbers.formatted`). The page's definitions explain it."""

    label: str
    kind: str
    client: Any
    server: Any


class Description(TypedDict):
    """A connection without its figures. In `sides`, the direction with the most payload is first."""

    conn: int
    client: str
    server: str
    facts: list[Value]
    behaviour: list[str]
    bars: list[Bar]
    stalls: list[Stall]
    statistics: list[Statistic]
    sides: list[Side]


class Drawings(TypedDict):
    """The figures of a connection.

    `ledger` contains, for each direction, the traces along the bottom of its figures. `omitted` says what the figures leave out.
    """

    ledger: dict[str, list[dict[str, Any]]]
    figures: list[Figure]
    omitted: list[str]


class Connection(Description, Drawings):
    """A connection with figures."""


class DrawnPair(TypedDict):
    """The figures of one connection that is in both captures. `conn` is the connection number in the first capture."""

    conn: int
    client: str
    server: str
    facts: list[Value]
    figures: list[Figure]


class PairSection(TypedDict):
    """The section on two captures of one transfer. `answer` is also shown at the top of the page."""

    answer: list[str]
    words: list[str]
    columns: list[Column]
    rows: list[dict[str, Any]]
    total: int
    drawn: list[DrawnPair]


class SlowSizes(TypedDict):
    """A range of message sizes whose messages take long."""

    from_bytes: int
    to_bytes: int
    messages: int
    stalled_share: float
    stalled_median_ns: int
    normal_median_ns: int
    cause: str


class SizeFigure(TypedDict):
    """Messages by size, for one direction of a group: the slow ranges, how many of them are predicted, and the prediction's assumptions."""

    title: str
    messages: int
    ranges: list[SlowSizes]
    predicted: int
    known: list[str]
    assumed: list[str]
    figure: PlotlyFigure


class Headline(TypedDict):
    """The top of the page: the verdict, why it describes this direction, the capture quality, and the ledger of the direction."""

    sentence: str
    quality: str
    quality_words: str
    ends: str
    why: str
    bar: Bar | None


class Definition(TypedDict):
    """A term of the page: its meaning, the source of its rule, and, for a cause, what would disprove it."""

    word: str
    means: str
    refuted_by: str
    source: str


class ReportData(TypedDict):
    """The contents of a report. `command` analyzes its capture."""

    name: str
    command: str
    headline: Headline
    findings: list[Found]
    findings_total: int
    capture: list[Value]
    complete: bool
    problems: list[Mapping[str, Any]]
    problems_total: int
    columns: list[Column]
    rows: list[dict[str, Any]]
    connections_total: int
    lanes: list[Lane]
    lane_causes: list[str]
    finding_ids: dict[str, int]
    listed_rule: str
    sizes: list[SizeFigure]
    flow_columns: list[Column]
    flows: list[dict[str, Any]]
    flows_total: int
    transactions: dict[str, Any] | None
    drawn_rule: str
    drawn: list[Connection]
    pair: PairSection | None
    undrawn_reason: str
