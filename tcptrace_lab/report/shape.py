"""What goes in (`Analysed`) and what comes out (`ReportData`) of `data.py`: types only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NotRequired, Protocol, TypedDict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

    from tcptrace_lab.engine.reread import Together
    from tcptrace_lab.messages.size_groups import GroupSizes
    from tcptrace_lab.report.figures.plots import Figure as PlotlyFigure


class Analysed(Protocol):
    """What a report needs of an `Analysis`."""

    @property
    def name(self) -> str:
        """The capture's name, as people know it."""

    @property
    def capture(self) -> Mapping[str, Any]:
        """What was captured and what could not be read: the "capture" object of the JSON output."""

    @property
    def connections(self) -> pl.LazyFrame:
        """`schema.CONNECTIONS`; possibly larger than memory."""

    @property
    def segments(self) -> pl.LazyFrame:
        """`schema.SEGMENTS`, in frame order; possibly larger than memory."""

    @property
    def ledger(self) -> pl.LazyFrame:
        """`schema.LEDGER`: every interval; possibly larger than memory."""

    @property
    def together(self) -> Together | None:
        """Gives rows of `segments` and `ledger` in one pass; None where two queries cost no more."""

    @property
    def flows(self) -> pl.LazyFrame:
        """`schema.FLOWS`; possibly larger than memory."""

    @property
    def transactions(self) -> pl.DataFrame:
        """`schema.TRANSACTIONS`."""

    @property
    def accounts(self) -> pl.LazyFrame:
        """`schema.ACCOUNTS`; possibly larger than memory."""

    @property
    def longest_waits(self) -> pl.DataFrame:
        """`schema.LEDGER` of the connections with findings: the longest intervals of each direction."""

    @property
    def stalls(self) -> pl.DataFrame:
        """`schema.STALLS` of the connections with findings: the longest of each direction."""

    @property
    def rates(self) -> pl.DataFrame:
        """`schema.RATES` of the connections with findings."""

    @property
    def findings(self) -> Sequence[Any]:
        """Findings, most expensive first."""

    @property
    def message_sizes(self) -> Sequence[GroupSizes]:
        """Times of messages by their size."""


class Value(TypedDict):
    """One fact: its name, its value, and how to read it (`numbers.said`)."""

    label: str
    value: Any
    kind: str
    tooltip: NotRequired[str]


class Column(TypedDict):
    """One column of the connection table or of the UDP flows."""

    key: str
    label: str
    kind: str
    tooltip: str


class Figure(TypedDict):
    """One figure: `by` is the direction it belongs to ("client", "server") or "both"; `without` is said where it has no traces."""

    key: str
    by: str
    title: str
    note: str
    without: str
    figure: PlotlyFigure


class Side(TypedDict):
    """One direction of a drawn connection, named by its sender."""

    key: str
    label: str
    unique_bytes: int


class Named(TypedDict):
    """A cause, and what it means."""

    cause: str
    means: str


class Zoom(TypedDict):
    """The figure of a finding: times since the connection's begin; `shaded` are the causes whose waits are shaded."""

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


class Found(TypedDict):
    """One finding; `place` is its number on the page, from 1, and those of one `kind` have one name and one remedy."""

    place: int
    id: str
    severity: str
    confidence: str
    conn: int | None
    ends: str
    way: str
    share: float | None
    cost_ns: int | None
    title: str
    mechanism: str
    limits: str
    remedy: list[str]
    kind: str
    gain: str
    source: str
    filter: str
    zoom: Zoom | None


class Part(TypedDict):
    """One cause's part of a direction's life."""

    cause: str
    means: str
    ns: int
    share: float


class Bar(TypedDict):
    """Where the time of one direction went, the largest part first."""

    key: str
    label: str
    life_ns: int
    parts: list[Part]


class Stall(TypedDict):
    """One stall: when it began, how long it was, the frames around it, and what proves its cause."""

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


class Band(TypedDict):
    """One cause's stretch of time, in nanoseconds since the connection's begin."""

    start_ns: int
    end_ns: int
    cause: str


class Statistic(TypedDict):
    """One figure of both directions (`numbers.said` reads them by `kind`); what it means is among the page's definitions."""

    label: str
    kind: str
    client: Any
    server: Any


class Connection(TypedDict):
    """A drawn connection.

    `sides` has the direction with most payload first; `ledger` has traces for each side, drawn along the foot of its figures; `omitted`
    says what the figures leave away.
    """

    conn: int
    client: str
    server: str
    facts: list[Value]
    behaviour: list[str]
    bars: list[Bar]
    stalls: list[Stall]
    statistics: list[Statistic]
    sides: list[Side]
    ledger: dict[str, list[dict[str, Any]]]
    figures: list[Figure]
    omitted: list[str]


class DrawnPair(TypedDict):
    """A pair of connections with its figures; `conn` is the number in the first capture."""

    conn: int
    client: str
    server: str
    facts: list[Value]
    figures: list[Figure]


class PairSection(TypedDict):
    """What two captures tell together."""

    words: list[str]
    columns: list[Column]
    rows: list[dict[str, Any]]
    total: int
    drawn: list[DrawnPair]


class SlowSizes(TypedDict):
    """A range of message sizes that is slow."""

    from_bytes: int
    to_bytes: int
    messages: int
    stalled_share: float
    stalled_median_ns: int
    normal_median_ns: int
    cause: str


class SizeFigure(TypedDict):
    """Messages of one direction of a group by size: slow ranges, how many are predicted, and what the prediction rests on."""

    title: str
    messages: int
    ranges: list[SlowSizes]
    predicted: int
    known: list[str]
    assumed: list[str]
    figure: PlotlyFigure


class Headline(TypedDict):
    """The first screen: the verdict's sentence, whether the capture can be believed, and the ledger of the direction that it speaks of."""

    sentence: str
    trust: str
    trust_words: str
    ends: str
    bar: Bar | None


class Definition(TypedDict):
    """A word of the page, what it means, what would have refuted it (of a cause) and where the rule comes from."""

    word: str
    means: str
    refuted_by: str
    source: str


class ReportData(TypedDict):
    """All that a page says."""

    name: str
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
