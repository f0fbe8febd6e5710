"""After the FIN."""

from __future__ import annotations

from tcptrace_lab.rules.rule import Confidence, Rule

RULE = Rule(
    cause="close",
    holds=None,
    confidence=Confidence.PROVED,
    refuted_by="data behind the FIN",
    source="RFC 9293, 3.6",
)
