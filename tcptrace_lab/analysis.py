"""`analyze` takes the paths of a capture and returns an `Analysis`. This module only calls the steps: read, summarize, judge."""

from __future__ import annotations

import io
import json
import os
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import IO, TYPE_CHECKING, Any

import polars as pl

from tcptrace_lab import causes, schema, transactions, verdict
from tcptrace_lab.connections import capture_quality
from tcptrace_lab.connections.anonymizer import NAME
from tcptrace_lab.connections.where import Where
from tcptrace_lab.engine import memory
from tcptrace_lab.engine.segments import MAX_COSTS, REREAD_BYTES, SPILL_ROWS, read
from tcptrace_lab.errors import UsageError
from tcptrace_lab.findings import capture_findings, cause_findings, confidence
from tcptrace_lab.ledger import other_rules
from tcptrace_lab.messages import size_choice
from tcptrace_lab.outputs import json_output

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from plotly.graph_objects import Figure

    from tcptrace_lab._core import Problem
    from tcptrace_lab.connections.anonymizer import Anonymizer
    from tcptrace_lab.engine.reread import Progress, Together
    from tcptrace_lab.engine.segments import Tables
    from tcptrace_lab.errors import ReadInPart
    from tcptrace_lab.findings.finding import Finding
    from tcptrace_lab.messages.size_groups import GroupSizes

MAX_OF_SELECTED = 4_096
"""Maximum number of costs whose evidence is kept while some connections are selected. A cost is the time of one cause in one direction. The
connections are selected after the capture was read, so the evidence of all connections is kept until then. A capture from a pipe cannot
be read again."""

SUFFIXES = (".gz", ".zst", ".lz4", ".xz", ".pcap", ".pcapng", ".cap", ".trace", ".dmp")
"""File name suffixes of formats and compressions, which `capture_name` removes."""


@dataclass(frozen=True, slots=True)
class Analysis:
    """The result of `analyze` for one capture.

    Attributes:
        name: name of the capture: its file name without folder and suffixes.
        capture: facts about the capture, as under `capture` in the JSON.
        connections: rows of `schema.CONNECTIONS`, by `conn`. This table and all others up to `accounts` are lazy, because they can be
            larger than memory (see `Tables`).
        segments: rows of `schema.SEGMENTS` of the connections, in capture order.
        ledger: rows of `schema.LEDGER` of the connections: every interval. Further columns can follow (see `Tables`).
        together: yields rows of `segments` and `ledger` in one pass over the files; None if the tables are kept (see `Tables`).
        notes: rows of `schema.NOTES` of the connections.
        flows: rows of `schema.FLOWS`, by `flow`; empty if connections were selected.
        accounts: rows of `schema.ACCOUNTS`, by `conn`: the sums of each connection's ledger.
        findings: where the time went, most expensive first.
        longest_waits: the longest waits of each direction, in connections with findings; rows of `schema.LEDGER`.
        stalls: the longest stalls of each direction, in connections with findings; rows of `schema.STALLS`.
        rates: rows of `schema.RATES` of the connections with findings.
        message_sizes: message times by message size, for groups of connections that lose enough time for a finding, most expensive first.
        transactions: rows of `schema.TRANSACTIONS`: HTTP/1 and FTP transactions.
        labels: number of a connection → purpose of the connection in words, judged by its first data (`transactions.labels`). Empty if the
            rows of the capture are not kept.
        problems: errors in the capture that did not stop the engine.
        loss: the part of the capture that could not be used; None if everything was used.
    """

    name: str
    capture: dict[str, Any]
    connections: pl.LazyFrame
    segments: pl.LazyFrame
    ledger: pl.LazyFrame
    notes: pl.LazyFrame
    flows: pl.LazyFrame
    accounts: pl.LazyFrame
    together: Together | None = None
    findings: tuple[Finding, ...] = ()
    longest_waits: pl.DataFrame = field(default_factory=schema.LEDGER.no_rows)
    stalls: pl.DataFrame = field(default_factory=schema.STALLS.no_rows)
    rates: pl.DataFrame = field(default_factory=schema.RATES.no_rows)
    message_sizes: tuple[GroupSizes, ...] = ()
    transactions: pl.DataFrame = field(default_factory=schema.TRANSACTIONS.no_rows)
    labels: Mapping[int, str] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()
    loss: ReadInPart | None = None

    def write_json(self, stream: IO[bytes], progress: Callable[[int], None] | None = None) -> None:
        """Write the JSON document, a batch of connections and flows at a time. The document is UTF-8 and ends with a newline.

        Args:
            stream: receives the bytes.
            progress: called at intervals with the number of connections written so far.
        """
        sizes = [group.to_dict() for group in self.message_sizes]
        verdict_json = verdict.of(self).to_dict()
        json_output.write(
            stream,
            self.capture,
            self.connections,
            self.accounts,
            self.flows,
            self.findings,
            sizes,
            verdict_json,
            self.transactions,
            progress,
            self.labels,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON document as a dict. With very many connections, `write_json` needs less memory."""
        document = io.BytesIO()
        self.write_json(document)
        data: dict[str, Any] = json.loads(document.getvalue())
        return data

    def figure(self, name: str, connection: int = 0, *, from_client: bool | None = None) -> Figure:
        """Return one figure of the report as a Plotly object, which a notebook can show, change or save.

        Args:
            name: `time-sequence`, `flight` (bytes in flight and the receive window), `rtt` or `throughput`: the figures of the report.
            connection: its number (`conn`).
            from_client: True for data from the client, False for data from the server; None for the direction with more data.

        Raises:
            UsageError: there is no such connection or figure.
            MissingTool: Plotly's Python package is not installed.
        """
        from tcptrace_lab.report import notebook  # noqa: PLC0415  (the only import against the layer order, see pyproject.toml)

        return notebook.figure(self, name, connection, from_client=from_client)

    def _repr_html_(self) -> str:
        """Return the HTML that a notebook shows: verdict, where the time went, connections and findings.

        The HTML has no script and loads nothing from the network.
        """
        from tcptrace_lab.report import notebook  # noqa: PLC0415  (`report` is above `analysis` in the layer order)

        return notebook.html(self)


def analyze(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    connection: int | None = None,
    where: str | None = None,
    spill_rows: int = SPILL_ROWS,
    reread_bytes: int = REREAD_BYTES,
    proofs: bool = False,
    anonymizer: Anonymizer | None = None,
    progress: Progress | None = None,
    say: Callable[[str], None] | None = None,
) -> Analysis:
    """Analyze a capture.

    Args:
        paths: a file, or several files that are one capture and are merged by time; `-` is standard input.
        connection: keep only the connection with this number (`conn`), and no UDP.
        where: keep only the connections for which this SQL expression is true, and no UDP. The expression uses the columns of
            `schema.CONNECTIONS` and `schema.ACCOUNTS`; null counts as false.
        spill_rows: see `read`.
        reread_bytes: see `read`.
        proofs: see `read`; affects only the ledger of the result.
        anonymizer: replaces all addresses in the result, and leaves out file names and transaction targets. `where` still sees the real
            addresses.
        progress: see `read`.
        say: see `read`.

    Raises:
        UsageError: no such connection, no path, or `where` is invalid.
        CaptureUnreadable: nothing could be read.
        MissingTool: see `read`.
        OutputUnwritable: no room for temporary files.
    """
    condition = None if where is None else Where(where)
    names = [os.fspath(paths)] if isinstance(paths, (str, os.PathLike)) else [os.fspath(path) for path in paths]
    selected = connection is not None or condition is not None
    found = read(
        names,
        spill_rows=spill_rows,
        reread_bytes=reread_bytes,
        udp=True,
        worth=causes.worth(),
        proofs=proofs or bool(causes.others()),
        most=MAX_OF_SELECTED if selected or causes.others() else MAX_COSTS,
        progress=progress,
        say=say if anonymizer is None else None,
    )
    tables = other_rules.overridden(found)
    if tables.info["bytes_read"] > memory.SMALL_BYTES:
        memory.give_back()
    believed = capture_quality.judge(tables.info, tables.connections, complete=tables.complete)
    flows = schema.FLOWS.no_rows().lazy() if tables.flows is None or selected else tables.flows
    count = tables.info["connections"]
    if connection is not None:
        tables = tables.of(pl.col("conn") == connection)
        if tables.connections.limit(1).collect().is_empty():
            raise UsageError(f"no connection {connection}", where=", ".join(names), remedy=_numbers(count))
    if condition is not None:
        chosen = condition.chosen(tables.connections, tables.accounts if condition.needs_accounts else None)
        tables = tables.of(pl.col("conn").is_in(chosen.implode()))
        if say is not None:
            say(f"{len(chosen):,} of {count:,} connections kept" + (f": {where}" if anonymizer is None else ""))
    exchanged = transactions.found(names, tables.segments, tables.connections)
    if anonymizer is not None:
        tables, flows = _anonymous(tables, names, anonymizer), anonymizer.rows(flows)
        exchanged, names = transactions.without_names(exchanged), [NAME]
    connections, segments, sums = tables.connections, tables.segments, tables.accounts
    advised = cause_findings.findings(sums, segments, connections, tables.details)
    sizes, of_sizes = _slow_sizes(tables)
    made = _by_cost((*advised.findings, *of_sizes))
    conns = {*(each.conn for each in made if each.conn is not None), *advised.longest["conn"], *advised.stalls["conn"]}
    lowering = confidence.Lowering(believed, connections, conns)
    findings = lowering.findings(made)
    labels = {} if anonymizer is not None or tables.together is not None else _labels(names, tables, findings)
    of_capture = capture_findings.findings(believed, segments, connections)
    return Analysis(
        name=capture_name(names),
        capture=json_output.capture_object(", ".join(names), tables, believed),
        connections=connections,
        segments=segments,
        ledger=tables.ledger,
        together=tables.together,
        notes=tables.notes,
        flows=flows,
        accounts=sums,
        findings=(*findings, *of_capture),
        longest_waits=confidence.proved_by_repetition(lowering.waits(advised.longest), findings),
        stalls=confidence.proved_by_repetition(lowering.waits(advised.stalls), findings),
        rates=advised.rates,
        message_sizes=sizes,
        transactions=exchanged,
        labels=labels,
        problems=tables.problems,
        loss=tables.loss,
    )


def _labels(names: list[str], tables: Tables, findings: Iterable[Finding]) -> dict[int, str]:
    wanted = dict.fromkeys(finding.conn for finding in findings if finding.conn is not None)
    return transactions.labels.found(names, tables.segments, tables.connections, list(wanted))


def _anonymous(tables: Tables, names: list[str], anonymizer: Anonymizer) -> Tables:
    problems = tuple(problem.copy() for problem in tables.problems)
    for problem in problems:
        problem["path"], problem["what"] = NAME, anonymizer.without_paths(problem["what"], names)
    return replace(tables, connections=anonymizer.rows(tables.connections), problems=problems)


def _slow_sizes(tables: Tables) -> tuple[tuple[GroupSizes, ...], tuple[Finding, ...]]:
    """Return the groups of messages that lose enough time for a finding, and their findings."""
    chosen = size_choice.chosen(tables.accounts, tables.connections)
    if chosen.is_empty():
        return (), ()
    from tcptrace_lab.findings import size_findings  # noqa: PLC0415  (imports NumPy and the size rules of the models)
    from tcptrace_lab.messages import size_groups  # noqa: PLC0415  (imports NumPy and the size rules of the models)

    groups = size_groups.found(chosen, tables.segments, tables.connections, tables.notes, tables.accounts)
    return groups, size_findings.findings(groups)


def _by_cost(found: Iterable[Finding]) -> tuple[Finding, ...]:
    return tuple(sorted(found, key=lambda finding: -1 if finding.cost_ns is None else finding.cost_ns, reverse=True))


def capture_name(paths: list[str]) -> str:
    """Name a capture: `/tmp/slow.pcap.gz` → `slow`.

    A capture of three files is named after the first file: `slow-and-2-more`.
    """
    path = PurePath("stdin" if paths[0] == "-" else paths[0])
    while path.suffix.lower() in SUFFIXES:
        path = path.with_suffix("")
    name = "".join(letter if letter.isprintable() else "_" for letter in path.name)  # file names and titles contain the name
    return name if len(paths) == 1 else f"{name}-and-{len(paths) - 1}-more"


def _numbers(count: int) -> str:
    return f"they are numbered 0 to {count - 1}" if count else "the capture has none"
