"""The table of findings: those of `analyze`, and in an archive those of all captures."""

from __future__ import annotations

from tcptrace_lab.schema.column import Column, Unit, table

FINDINGS = table(
    "findings",
    "one finding, as in the JSON of analyze",
    [
        Column("rank", "Int64", Unit.NONE, "Rank in its capture, from 0: most expensive first"),
        Column("id", "String", Unit.NONE, "What it is"),
        Column("severity", "String", Unit.NONE, "high, medium, low or info"),
        Column("confidence", "String", Unit.NONE, "proved, consistent or possible"),
        Column("conn", "UInt32", Unit.NONE, "Connection, numbered from 0 in its capture", "null for the capture as a whole"),
        Column("from_client", "Boolean", Unit.NONE, "True for the client's direction", "null for both or none"),
        Column("cost_ns", "Int64", Unit.NS, "Time lost to it", "null if it costs no time by itself"),
        Column("cost_share", "Float64", Unit.NONE, "Share of the active time of the direction", "null as above"),
        Column("title", "String", Unit.NONE, "In one line"),
        Column("mechanism", "String", Unit.NONE, "How the time is lost"),
        Column("evidence_frames", "List(Int64)", Unit.FRAME, "Frames that show it"),
        Column("limits", "String", Unit.NONE, "What the capture does not show about it"),
        Column("remedy", "String", Unit.NONE, "What to change, best first, a line each"),
        Column("predicted_gain", "String", Unit.NONE, "Expected gain of the remedy", "null if not computed"),
        Column("source", "String", Unit.NONE, "Source of the rule"),
    ],
)
