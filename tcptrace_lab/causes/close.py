"""close: the time after the first FIN. If all data was delivered, a late retransmit of the FIN delays no data."""

from __future__ import annotations

from tcptrace_lab.causes.rule import Confidence, Rule
from tcptrace_lab.causes.texts import proof

RULE = Rule(
    cause="close",
    colour="#8a929c",
    pattern="-",
    lost_to="closing the connection (after the first FIN)",
    confidence=Confidence.PROVED,
    proof=(proof.IN_FLIGHT,),
    refuted_by="data that one of the two hosts sends after the first FIN",
    source="RFC 9293, 3.6",
)
