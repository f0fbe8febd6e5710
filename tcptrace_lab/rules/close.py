"""After the FIN."""

from __future__ import annotations

from tcptrace_lab.rules.rule import Confidence, Rule

RULE = Rule(
    cause="close",
    lost_to="the close, after the first FIN",
    holds=None,
    confidence=Confidence.PROVED,
    refuted_by="data behind the FIN",
    source="RFC 9293, 3.6",
)
