"""application: the sending application had no data to send."""

from __future__ import annotations

from tcptrace_lab.causes.rule import Advice, Clause, Confidence, Rule
from tcptrace_lab.causes.texts import congestion_marks, proof

RULE = Rule(
    cause="application",
    colour="#b9bfc7",
    pattern="",
    lost_to=Clause("the application on {sender} ({sending}) was not sending"),
    confidence=Confidence.CONSISTENT,
    proof=(proof.IN_FLIGHT, proof.ACK, proof.TIMER),
    doubt=congestion_marks.DOUBT,
    refuted_by="an ACK, a timer or a larger receive window that released the segment at the end of the wait",
    source="Siekkinen et al. 2005 (application-limited periods)",
    advice=Advice(
        finding="application-limited",
        title="The application on {sender} ({sending}) was not sending for {cost} in {pauses_longest}",
        mechanism=(
            "The window was open, and the sender had sent all that the application had written. This happened {times}; the median pause "
            "took {median}. "
            "The sender's TCP was waiting for the application, not the application for TCP."
        ),
        limits=(
            "The capture does not show what the application was doing: computing, reading a disk, sleeping, or waiting for a user. If the "
            "capture point is away from the sender, two other cases look the same: segments waited in a queue before the capture point, "
            "or segments were lost before it and no later segment revealed the loss."
        ),
        remedy=("check the application at the times of the evidence frames, with a profiler or its log",),
        is_a_fault=False,
    ),
)
