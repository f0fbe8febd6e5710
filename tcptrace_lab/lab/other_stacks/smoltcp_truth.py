"""The rules of smoltcp (`src/socket/tcp.rs`), expressed in the fields of Linux.

The program reports the sender's state after it has done all that was due. smoltcp differs from Linux in these rules:

- The congestion window is in bytes. So `packets_out`, `snd_cwnd` and `ssthresh` are in bytes. Without congestion control, the congestion
  window is unlimited.
- A segment of any size is sent as soon as both windows have room for one byte. Nagle's algorithm adds a condition while data is in flight:
  both windows must have room for a full segment, unless less than that is unsent. So the first unsent segment counts as one byte, or as one
  MSS.
- Nagle's algorithm delays a partial segment while *any* data is in flight, as RFC 896 says: `snd_sml` is the end of all sent data. After
  the application has closed, no segment waits for Nagle's algorithm.
- After a timeout, smoltcp sends everything again from SND.UNA. `flight_end` is the end of the data that has been sent again. `snd_nxt`
  stays the end of all sent data.
- SACK blocks of the receiver are not read. The third duplicate ACK sends one segment again, and the next ACK of new data ends the recovery.
  As in Linux without SACK, duplicate ACKs count as SACKed segments.

A zero-window probe carries the next byte, but this byte does not count as sent.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tcptrace_lab.lab.kernel_ledger.gates import CA_LOSS, CA_RECOVERY, HAS_FIN, IS_LAST
from tcptrace_lab.lab.kernel_ledger.ledger import NO_THRESHOLD, NS_PER_US
from tcptrace_lab.lab.kernel_ledger.sockets import FIN_SENT, OPENING, ahead
from tcptrace_lab.lab.networks.tcp_headers import SYN
from tcptrace_lab.lab.other_stacks.truth import Sender

TIMEOUT, FAST_RETRANSMIT = "timeout", "fast-retransmit"
"""Messages of smoltcp that say why it sends data again."""


@dataclass(slots=True)
class SmoltcpSender(Sender):
    """A sender of smoltcp.

    Attributes:
        flight_end: smoltcp's SND.NXT.
        is_repairing: True from a fast retransmit until new data is acknowledged.
        timer_expired: True from the expiry of the retransmission timer until a segment is sent.
        timed: end and departure time of the segment whose RTT is measured. smoltcp's own measurement has a resolution of only 1 ms.
    """

    flight_end: int = field(init=False, default=0)
    is_repairing: bool = field(init=False, default=False)
    timer_expired: bool = field(init=False, default=False)
    timed: tuple[int, int] | None = field(init=False, default=None)

    def settle(self, state: dict[str, Any]) -> None:
        """Take over the state that smoltcp prints."""
        if ahead(state["snd_una"], self.socket.snd_una) > 0:
            self.is_repairing = False
        Sender.settle(self, state)
        self.flight_end, self.timer_expired = state["snd_nxt"], False
        self.set(
            snd_nxt=self.flight_end if ahead(self.flight_end, self.socket.snd_nxt) > 0 else self.socket.snd_nxt,
            snd_cwnd=NO_THRESHOLD if state["snd_cwnd"] is None else min(state["snd_cwnd"], NO_THRESHOLD),
            ssthresh=NO_THRESHOLD if state["ssthresh"] is None else min(state["ssthresh"], NO_THRESHOLD),
            sacked_out=state["duplicate_acks"],
        )

    def depart(self, segment: dict[str, Any], end: int) -> bool:
        """Count a sent segment. Return whether its bytes were sent before."""
        if segment.get("bytes") == 1 and not self.socket.snd_wnd:  # a zero-window probe
            return False
        is_again = Sender.depart(self, segment, end)
        if ahead(end, self.flight_end) > 0:
            self.flight_end = end
        if is_again:
            self.timed = None
        elif self.timed is None:
            self.timed = end, segment["time_ns"]
        return is_again

    def receive(self, segment: dict[str, Any]) -> None:
        """Measure the RTT, if the segment acknowledges the timed segment, or the SYN."""
        if segment.get("flags", 0) & SYN:
            self._measured(segment["time_ns"] - self.touched_ns)
        elif self.timed is not None and ahead(segment["ack"], self.timed[0]) >= 0:
            self._measured(segment["time_ns"] - self.timed[1])
            self.timed = None

    def _measured(self, rtt_ns: int) -> None:
        rtt_us = rtt_ns // NS_PER_US
        self.set(srtt_us=rtt_us, min_rtt_us=min(rtt_us, self.socket.min_rtt_us or rtt_us))

    def hear(self, message: str) -> None:
        """Note why smoltcp sends data again."""
        if message == TIMEOUT:
            self.timer_expired, self.is_repairing, self.flight_end = True, False, self.socket.snd_una
        elif message == FAST_RETRANSMIT:
            self.is_repairing = True

    def is_timeout(self, _at_ns: int) -> bool:
        """Return whether the retransmission timer has just expired."""
        expired, self.timer_expired = self.timer_expired, False
        return expired

    def complete(self) -> None:
        """Set the fields of Nagle's algorithm, of the first unsent segment, and of the bytes in flight."""
        socket = self.socket
        is_shut = socket.state in FIN_SENT
        unsent_bytes = max(ahead(socket.write_seq, self.flight_end), 0)
        in_flight_bytes = 0 if socket.state in OPENING else max(ahead(self.flight_end, socket.snd_una), 0)
        must_be_full = self.nagle and not is_shut and in_flight_bytes > 0 and unsent_bytes >= socket.mss_cache
        needed_bytes = socket.mss_cache if must_be_full else min(unsent_bytes, 1)
        self.set(
            snd_sml=socket.snd_nxt,
            unsent_skb_bytes=needed_bytes,
            unsent_marks=(IS_LAST if unsent_bytes < socket.mss_cache else 0) | (HAS_FIN if is_shut else 0),
            # The congestion window has no room if it cannot take the next segment.
            packets_out=in_flight_bytes + max(needed_bytes - 1, 0) + socket.sacked_out,
            ca_state=CA_LOSS if self.recovers_at is not None else CA_RECOVERY if self.is_repairing else 0,
        )
