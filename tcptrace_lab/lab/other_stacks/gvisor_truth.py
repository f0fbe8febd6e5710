"""The rules of gVisor's netstack (`transport/tcp/snd.go`), expressed in the fields of Linux.

Netstack's probe reports the sender's state after each received segment. Three rules differ from the rules of Linux:

- Nagle's algorithm delays a partial segment while *any* data is in flight, as RFC 896 says: `snd_sml` is the end of all sent data.
- A segment waits until the window has room for the whole segment. Segments are never deferred. So the first unsent segment counts as at
  most one MSS.
- Netstack compares `Outstanding` with the congestion window. So `Outstanding` is used as the number of packets in flight.

A zero-window probe carries a byte that is already acknowledged, so it is no retransmission.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tcptrace_lab.lab.kernel_ledger.gates import CA_LOSS, CA_RECOVERY, IS_LAST
from tcptrace_lab.lab.other_stacks.truth import Sender
from tcptrace_lab.text.numbers import NS_PER_MS, NS_PER_S

TIMER_SHARE = 0.9
"""A retransmission is a timeout if at least this share of the RTO has passed. Otherwise, it is a tail loss probe (a choice)."""


@dataclass(slots=True)
class GvisorSender(Sender):
    """A sender of netstack. `rto_ns` is the retransmission timeout."""

    rto_ns: int = field(init=False, default=NS_PER_S)

    def settle(self, state: dict[str, Any]) -> None:
        """Take over the state that netstack's probe reports."""
        Sender.settle(self, state)
        before, sacked_out = self.socket, max(state["sacked_out"], 0)
        self.rto_ns = state["rto_ms"] * NS_PER_MS
        self.set(
            snd_cwnd=max(state["snd_cwnd"], 0),
            ssthresh=max(state["ssthresh"], 0),
            packets_out=max(state["outstanding"], 0) + sacked_out,  # netstack possibly subtracts SACKed packets twice
            sacked_out=sacked_out,
            ca_state=CA_LOSS if self.recovers_at is not None else CA_RECOVERY if state["is_recovery"] else 0,
            srtt_us=state["srtt_us"],
            min_rtt_us=min(state["rtt_us"], before.min_rtt_us or state["rtt_us"]) if state["rtt_us"] else before.min_rtt_us,
        )

    def is_timeout(self, at_ns: int) -> bool:
        """Return whether about a retransmission timeout has passed since the last segment."""
        return at_ns - self.touched_ns >= TIMER_SHARE * self.rto_ns

    def receive(self, segment: dict[str, Any]) -> None:
        """Do nothing: the records of netstack contain the RTT."""

    def hear(self, message: str) -> None:
        """Do nothing: netstack prints no messages."""

    def complete(self) -> None:
        """Set the fields of Nagle's algorithm and of the first unsent segment."""
        unsent_bytes, mss = max(self.socket.unsent_bytes, 0), self.socket.mss_cache
        self.set(
            snd_sml=self.socket.snd_nxt,
            unsent_skb_bytes=min(unsent_bytes, mss),
            unsent_marks=IS_LAST if unsent_bytes <= mss else 0,
        )
