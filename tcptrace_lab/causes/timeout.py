"""timeout: the sender waits for its retransmission timer (RTO)."""

from __future__ import annotations

from tcptrace_lab.causes.rule import Advice, Case, Confidence, Doubt, Instead, Rule
from tcptrace_lab.causes.texts import path_mtu, proof
from tcptrace_lab.causes.texts.spurious_retransmits import CURE, FINDING, LIMITS, REFUTED_BY, REMEDY

RULE = Rule(
    cause="timeout",
    colour="#b3261e",
    pattern="-",
    lost_to="waiting for retransmission timeouts (RTO)",
    confidence=Confidence.CONSISTENT,
    doubt=Doubt(
        limits="Without SACK and timestamps, a timeout looks the same if the receiver only delays its ACK for longer than the RTO.",
        remedy=("if nothing is lost: write each message with one call, or set TCP_NODELAY, so that the receiver does not delay the ACK",),
    ),
    proof=(proof.IN_FLIGHT, proof.TIMER),
    refuted_by="an ACK that the sender received, or a segment that it sent, less than one RTO before the retransmit",
    source="RFC 6298; Linux net/ipv4/tcp_timer.c (at least 200 ms)",
    advice=Advice(
        finding="timeout",
        title="Retransmission timeouts (RTO) cost {cost} in {waits_longest}",
        mechanism=(
            "A segment or its ACK was lost, and too few ACKs arrived to reveal the loss earlier. The sender was idle until its timer "
            "expired, and then until the retransmit was ACKed (median {median}, RTT {rtt}). Each timeout doubles the RTO."
        ),
        limits="A capture at one point does not show where on the path the segment was lost.",
        cure="a path without packet loss",
        remedy=(
            "find and fix the packet loss",
            "use SACK and tail-loss probes (RFC 8985) at the sender",
            "avoid many tiny exchanges: if the last segment of an exchange is lost, no later segment reveals the loss",
        ),
        instead={
            Case.TOO_LARGE: Instead(
                title="Retransmission timeouts (RTO) cost {cost} in {waits_longest}: segments of {lost_bytes} do not pass the path",
                mechanism=path_mtu.MECHANISM,
                limits=path_mtu.LIMITS,
                remedy=path_mtu.REMEDY,
                cure=path_mtu.CURE,
                lost_to=path_mtu.LOST_TO,
            ),
            Case.PEER_CLOSED: Instead(
                title=(
                    "Retransmission timeouts (RTO) cost {cost} in {waits_longest}: "
                    "{receiver} ({receiving}) had probably closed the connection"
                ),
                mechanism=(
                    "The sender had ACKed one byte more than before, which was probably the receiver's FIN. It then retransmitted the same "
                    "data until it gave up or the capture ended (median wait {median}). Each timeout doubles the RTO."
                ),
                limits=(
                    "The capture does not show the receiver's direction: the byte may be data, and the receiver may have waited for the "
                    "retransmitted data."
                ),
                refuted_by="a segment of the receiver with one byte of data, or with an ACK of the retransmitted data",
                remedy=("find out why the receiver closed before it had ACKed all data, and whether it answered with a RST",),
                cure="",
                lost_to="retransmitting to {receiver}, which had probably closed the connection,",
            ),
            Case.STOPPED_ANSWERING: Instead(
                title="Retransmission timeouts (RTO) cost {cost} in {waits_longest}: {receiver} ({receiving}) stopped answering",
                mechanism=(
                    "The receiver sent nothing more, and the sender retransmitted the same data until it gave up or the capture ended "
                    "(median wait {median}). Each timeout doubles the RTO."
                ),
                limits="A capture at one point does not show whether the receiver failed, or the path in either direction.",
                refuted_by="segments that the receiver sent after the first retransmit",
                remedy=("find out why the receiver stopped answering: its host, its network, or a firewall that dropped the connection",),
                cure="",
                lost_to="retransmitting to {receiver}, which had stopped answering,",
            ),
            Case.NEEDLESS: Instead(
                finding=FINDING,
                title="Spurious retransmission timeouts (RTO) cost {cost} in {waits_longest}: the originals had arrived",
                mechanism=(
                    "The ACKs arrived later than the sender's RTO, or not at all, so the sender retransmitted data that had arrived "
                    "(median wait {median}). Each timeout doubles the RTO."
                ),
                limits=LIMITS,
                refuted_by=REFUTED_BY,
                remedy=("if the ACKs do not arrive at all: find what drops them", *REMEDY),
                cure=CURE,
                lost_to="spurious retransmission timeouts (RTO)",
            ),
        },
    ),
)
