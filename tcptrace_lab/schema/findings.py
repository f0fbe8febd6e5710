"""The table `findings`: the findings of `analyze`, and in an archive the findings of all captures."""

from __future__ import annotations

from tcptrace_lab.schema.column import Column, Unit, table

FINDINGS = table(
    "findings",
    "one finding, as in the JSON of analyze",
    [
        Column("rank", "Int64", Unit.NONE, "Position among the findings of the capture, from 0, the most expensive first"),
        Column("id", "String", Unit.NONE, "Identifier of the finding, as in docs/findings.md"),
        Column("severity", "String", Unit.NONE, "Severity: high, medium, low or info"),
        Column("confidence", "String", Unit.NONE, "Confidence: proved, consistent or possible"),
        Column("conn", "UInt32", Unit.NONE, "Number of the connection in its capture, from 0", "null for the capture as a whole"),
        Column("from_client", "Boolean", Unit.NONE, "True for the client's direction", "null if the finding is about both directions or about none"),
        Column("cost_ns", "Int64", Unit.NS, "Time that the finding cost", "null if it costs no time by itself"),
        Column("cost_share", "Float64", Unit.NONE, "cost_ns as a share of the active time of the direction", "null if it costs no time by itself"),
        Column("title", "String", Unit.NONE, "The finding in one line"),
        Column("mechanism", "String", Unit.NONE, "How the time is lost"),
        Column("evidence_frames", "List(Int64)", Unit.FRAME, "Frames that show the finding"),
        Column("limits", "String", Unit.NONE, "What the capture does not show about the finding"),
        Column("remedy", "String", Unit.NONE, "What to change, one remedy per line, the best first"),
        Column("predicted_gain", "String", Unit.NONE, "Expected gain of the remedy, as text", "null if it was not computed"),
        Column("source", "String", Unit.NONE, "Source of the rule behind the finding"),
    ],
)
