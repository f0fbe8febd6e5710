"""Makes the pages findings.md and columns.md, and the lists of names in the JSON Schemas, from the package. `make docs` runs this.

Each finding has an example: a capture of captures/ that shows the finding, or a simulation by the models of TCP stacks.
"""

from __future__ import annotations

import re
import shlex
import sys
import tempfile
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from tcptrace_lab import analyze, causes, cli, schema
from tcptrace_lab.ledger import stalls
from tcptrace_lab.report.markdown_table import table
from tcptrace_lab.text import numbers
from tcptrace_lab.text.escape import markdown, markdown_code

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from tcptrace_lab import Analysis, Finding
    from tcptrace_lab.schema import Column, Table

ROOT = Path(__file__).parent.parent
RENEWED = "<!-- Made by `make docs`; do not edit. -->\n"

_SWEEP = (
    "20 * (write 4K; read 100; write 5000; read 100; write 6000; read 100; write 7000; read 100; write 3000; read 100)",
    "20 * (read 4K; write 100; read 5000; write 100; read 6000; write 100; read 7000; write 100; read 3000; write 100)",
)


@dataclass(frozen=True, slots=True)
class Example:
    """An example that shows a finding.

    Attributes:
        capture: file in captures/; empty if the example is simulated.
        simulated: arguments of `simulate`, without the output file.
    """

    capture: str = ""
    simulated: tuple[str, ...] = ()

    @property
    def command(self) -> str:
        """Return the command lines that show the finding."""
        if self.capture:
            return f"tcptrace-lab analyze captures/{self.capture}"
        return f"tcptrace-lab simulate {shlex.join(self.simulated)} -o model.pcap\ntcptrace-lab analyze model.pcap"

    def analysis(self, folder: Path) -> Analysis:
        """Return the analysis of the capture, or of the simulation, which is written to `folder`."""
        if self.capture:
            return analyze(ROOT / "captures" / self.capture)
        path = folder / "model.pcap"
        code = cli.run(["simulate", *self.simulated, "-q", "-o", str(path)])
        if code:
            message = f"simulate exits with {code}"
            raise RuntimeError(message)
        return analyze(path)


EXAMPLES = {
    "nagle-delayed-ack": Example("ethernet-nagle-on.pcapng"),
    "throughput-deadlock": Example(
        simulated=(
            *("--stack", "sunos4", "--mss", "9148", "--send-buffer", "16K", "--receive-buffer", "24K"),
            *("--rate", "100M", "--delay", "50us", "--framing", "atm", "--no-slow-start", "--phase", "70ms", "--client", "write 2M/4K"),
        )
    ),
    "delayed-ack": Example(simulated=("--stack", "bsd4.4", "--delay", "1ms", "--client", "write 6K")),
    "send-buffer-limited": Example("ethernet-small-send-buffer.pcapng"),
    "receiver-window-limited": Example("ethernet-small-receive-window.pcapng"),
    "zero-window": Example("ethernet-slow-reader.pcapng"),
    "application-limited": Example("ethernet-application-limited.pcapng"),
    "slow-start-limited": Example("ethernet-slow-start.pcapng"),
    "loss": Example("ethernet-loss.pcapng"),
    "timeout": Example("ethernet-tail-loss.pcapng"),
    "reordering": Example("ethernet-reordering-at-server.pcapng"),
    "spurious-retransmission": Example("ethernet-reordering.pcapng"),
    "bufferbloat": Example("ethernet-bottleneck.pcapng"),
    "network-limited": Example("ethernet-bottleneck.pcapng"),
    "handshake-slow": Example("ethernet-syn-loss.pcapng"),
    "path-outage": Example(
        simulated=(
            *("--stack", "linux", "--nodelay", "--delay", "10ms", "--client", "60 * (write 1000; think 40ms)"),
            *("--drop", "40,41,42,43,44,45,46,47"),
        )
    ),
    "anomalous-message-sizes": Example(
        simulated=(
            *("--stack", "sunos4", "--mss", "1460", "--send-buffer", "16K", "--receive-buffer", "16K"),
            *("--delay", "200us", "--rate", "10M", "--no-slow-start", "--client", _SWEEP[0], "--server", _SWEEP[1]),
        )
    ),
    "tinygrams": Example(simulated=("--stack", "linux", "--nodelay", "--delay", "5ms", "--client", "300 * (write 40; think 2ms)")),
}
"""Id of a finding → its example."""

_OF_CAPTURE = "No capture in `captures/` has this problem; `tests/findings/test_path_findings.py` contains an exchange that has it."

WITHOUT_EXAMPLE = {
    "congestion-marks": "No capture in `captures/` has CE marks; `tests/findings/test_congestion_marks.py` has an exchange with them.",
    "silly-window": "Linux and the modelled stacks send no such segments; see the exchange in `tests/findings/test_small_packets.py`.",
    **dict.fromkeys(("capture-incomplete", "capture-duplicates", "offload", "clock"), _OF_CAPTURE),
}
"""Id of a finding without an example → the test that shows it."""

_HEAD = """# Findings

This page shows each finding in an example that you can reproduce: a capture from [captures/](../captures/README.md), which was made to have
this cause, or a simulation. The texts are the output of tcptrace-lab.

The parts of a finding have these meanings:

- The **severity** depends on the cost of the finding, as a share of the direction's active time: *high* from 50%, *medium* from 20%,
  otherwise *low*. *Info* means time that the application or the path needs, which is not a TCP problem.
- The **confidence** is *proved* if the frames exclude all other explanations, *consistent* if nothing contradicts the finding, and
  otherwise *possible*. The confidence is lowered if the quality of the capture is limited or poor.
- The **gain** is an upper bound, because after the fix the data may wait for another reason.
- The **evidence** describes the longest wait. The **frames** are a Wireshark display filter.

[benchmarks/verdicts/causes.md](../benchmarks/verdicts/causes.md) shows how often findings are right, for transfers whose cause is known.
[benchmarks/verdicts/proved-findings.md](../benchmarks/verdicts/proved-findings.md) lists all *proved* findings on public captures, which
were checked by hand.
"""


def findings_page() -> str:
    """Return the page findings.md."""
    parts = [RENEWED, _HEAD]
    with tempfile.TemporaryDirectory() as folder:
        for name, example in EXAMPLES.items():
            analysis = example.analysis(Path(folder))
            found = next((finding for finding in analysis.findings if finding.id == name), None)
            if found is None:
                message = f"{example.command}: no finding {name}, but {[finding.id for finding in analysis.findings]}"
                raise RuntimeError(message)
            parts.append("\n".join(_finding(found, analysis, example)) + "\n")
    for name, words in WITHOUT_EXAMPLE.items():
        parts.append(f"## {name}\n\n{words}\n")
    return "\n".join(parts)


def _finding(found: Finding, analysis: Analysis, example: Example) -> Iterator[str]:
    """Yield the parts of the section about a finding, with its example."""
    share = "" if found.cost_share is None else f", {numbers.share(found.cost_share)} of the direction's active time"
    yield f"## {found.id}\n"
    yield f"**{markdown(found.title)}** ({found.severity}, {found.confidence}{share})\n"
    yield f"{markdown(found.mechanism)}\n"
    proof = _proof(found, analysis)
    if proof:
        yield f"- **Evidence**: {markdown(proof)}"
    if found.wireshark_filter:
        yield f"- **Frames**: {markdown_code(found.wireshark_filter)}"
    if found.remedy:
        yield f"- **Remedy**: {markdown('; or '.join(found.remedy))}"
    if found.predicted_gain:
        yield f"- **Gain**: {markdown(found.predicted_gain)}"
    if found.limits:
        yield f"- **Limits**: {markdown(found.limits)}"
    rule = _rule_file(found)
    yield f"- **Rule**: {rule}{markdown(found.source)}\n"
    yield "\n".join(f"    {line}" for line in example.command.splitlines())


def _proof(found: Finding, analysis: Analysis) -> str:
    """Return the proof of the finding's longest wait, as in the table `stalls`; empty if it has no wait."""
    own = analysis.stalls.filter(
        pl.col("conn") == found.conn,
        pl.col("from_client") == found.from_client,
        pl.col("cause").cast(pl.String).is_in(sorted(found.causes)),
    )
    if own.is_empty():
        return ""
    row = own.sort(pl.col("end_ns") - pl.col("start_ns"), "start_ns", descending=[True, False]).row(0, named=True)
    frames = " to ".join(str(row[name]) for name in ("frame_before", "frame_after") if row[name] is not None)
    proof = stalls.proof(row)
    return f"frames {frames}, {numbers.duration(row['end_ns'] - row['start_ns'])}{': ' if proof else ''}{proof}"


def _rule_file(found: Finding) -> str:
    names = [rule.cause.replace("-", "_") for rule in causes.OURS.values() if rule.advice is not None and {rule.cause} == found.causes]
    return "".join(f"[{name}.py](../tcptrace_lab/causes/{name}.py); " for name in names)


_COLUMNS_HEAD = """# Columns

This page lists every column of every table. It is made from the declarations that the report, the JSON and the exports use
(`tcptrace_lab/schema/`). Times are integer nanoseconds, sizes are bytes, and unknown values are null, never 0. `frame` is the frame
number in Wireshark. Stream offsets are relative sequence numbers: the SYN has 0, and the first byte has 1. `tcptrace-lab export --table
NAME` writes any table. In Python, the tables are Polars frames ([python.md](python.md)).

If client and server have the same column, only the column `client_…` is listed; the column `server_…` has the same meaning for the
server.
"""


def columns_page() -> str:
    """Return the page columns.md."""
    tables = [_table(one) for one in schema.TABLES.values()]
    links = " · ".join(f"[{name}](#{name})" for name in schema.TABLES)
    causes = table(
        ["cause", "why the direction did not send its next byte"],
        [[f"`{cause}`", markdown(words)] for cause, words in schema.CAUSES.items()],
    )
    return "\n".join([RENEWED, _COLUMNS_HEAD, f"{links} · [causes](#causes)\n", *tables, "## causes\n", causes])


def _table(one: Table) -> str:
    names = set(one.names)
    shown = [column for column in one if not (column.name.startswith("server_") and f"client_{column.name[7:]}" in names)]
    rows = [_column(column) for column in shown]
    return f"## {one.name}\n\nOne row: {markdown(one.row)}.\n\n{_left(table(['column', 'type', 'unit', 'meaning', 'limits'], rows))}"


def _left(text: str) -> str:
    """Return the table with its first four columns aligned left."""
    return text.replace("---:", "---", 4)


def _column(column: Column) -> list[str]:
    values = "" if not column.values else ": " + ", ".join(f"`{value}`" for value in column.values)
    unit = "" if column.unit == schema.Unit.NONE else str(column.unit)
    return [f"`{column.name}`", column.dtype, unit, markdown(column.meaning) + values, markdown(column.limits)]


PAGES = {"findings.md": findings_page, "columns.md": columns_page}
"""File in docs/ → the function that returns its text."""

SCHEMAS = ("analysis.schema.json", "compare.schema.json")
"""JSON Schemas in the package that list the causes. The first of them also lists the statistics of a direction."""

_SCHEMA_WIDTH = 170
_CAUSES = re.compile(r'(?<="enum": \[\n)( +)"handshake", [^\]]*?(?=\n +\])')
_MIN_CAUSES = re.compile(r'("propertyNames": {\s*"enum": \[\s*"handshake", [^\]]*\]\s*},\s*"minProperties": )\d+')
_STATISTICS = re.compile(r'(?<="required": \[\n)( +)"frame_bytes", [^\]]*?(?=\n +\])')
_MAX_STATISTICS = re.compile(r'("required": \[\s*"frame_bytes", [^\]]*\],\s*"maxProperties": )\d+')


def with_lists(text: str) -> str:
    """Return the text of a JSON Schema with the current causes and statistics in its lists, and with their numbers."""

    def listed(names: Iterable[str]) -> Callable[[re.Match[str]], str]:
        words = ", ".join(f'"{name}"' for name in names)
        return lambda found: textwrap.fill(
            words, _SCHEMA_WIDTH, initial_indent=found[1], subsequent_indent=found[1], break_on_hyphens=False
        )

    text = _MIN_CAUSES.sub(rf"\g<1>{len(schema.CAUSES)}", _CAUSES.sub(listed(schema.CAUSES), text))
    names = schema.MORE_STATISTICS_NAMES
    return _MAX_STATISTICS.sub(rf"\g<1>{len(names)}", _STATISTICS.sub(listed(names), text))


def main() -> None:
    """Write all pages, and update the JSON Schemas."""
    for name, make in PAGES.items():
        (ROOT / "docs" / name).write_text(make(), encoding="utf-8")
        sys.stdout.write(f"docs/{name}\n")
    for name in SCHEMAS:
        path = ROOT / "tcptrace_lab" / "outputs" / "schemas" / name
        path.write_text(with_lists(path.read_text(encoding="utf-8")), encoding="utf-8")
        sys.stdout.write(f"tcptrace_lab/outputs/schemas/{name}\n")


if __name__ == "__main__":
    main()
