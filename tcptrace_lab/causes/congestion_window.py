"""congestion-window: after a loss, the congestion window is still small."""

from __future__ import annotations

from tcptrace_lab.causes.rule import Advice, Case, Confidence, Instead, Rule
from tcptrace_lab.causes.texts import proof
from tcptrace_lab.causes.texts.spurious_retransmits import CURE, FINDING, LIMITS, REFUTED_BY, REMEDY

RULE = Rule(
    cause="congestion-window",
    colour="#2f7fb8",
    pattern="\\",
    lost_to="a congestion window reduced by packet loss",
    confidence=Confidence.CONSISTENT,
    proof=(proof.IN_FLIGHT, proof.ROOM, proof.ACK),
    refuted_by=(
        "as many bytes in flight during the wait as before the loss; an RTT that grows during the wait, which shows that the path is full"
    ),
    source="RFC 5681, 3.1 and 3.2; RFC 9438",
    advice=Advice(
        finding="loss",
        title="A congestion window reduced by packet loss limited the sender for {cost}",
        mechanism=(
            "After a loss the sender reduces its congestion window, or restarts with one segment, and grows the window slowly, once per "
            "RTT ({rtt}). Meanwhile part of the path's capacity is unused."
        ),
        limits="A capture does not show the congestion window; the size of the flights suggests how large it was.",
        cure="a path without packet loss",
        remedy=("find and fix the packet loss", "use a congestion control that recovers faster from isolated losses (CUBIC, BBR)"),
        instead={
            Case.NEEDLESS: Instead(
                finding=FINDING,
                title="A congestion window reduced by spurious retransmits limited the sender for {cost}",
                mechanism=(
                    "The sender retransmitted segments that it assumed lost, although the originals had arrived, and reduced its "
                    "congestion window. Then it grew the window slowly, once per RTT ({rtt})."
                ),
                limits=LIMITS,
                refuted_by=REFUTED_BY,
                remedy=REMEDY,
                cure=CURE,
                lost_to="a congestion window reduced by spurious retransmits",
            )
        },
    ),
)
