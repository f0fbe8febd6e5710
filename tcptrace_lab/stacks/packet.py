"""A simulated TCP segment."""

from __future__ import annotations

FIN, SYN, PSH, ACK = 0x01, 0x02, 0x08, 0x10
"""Flag bits of the TCP header (RFC 9293, 3.1)."""


class Packet:
    """One segment. Sequence numbers are relative: the SYN has 0, and the first byte has 1.

    Attributes:
        from_client: True if the client sends it.
        decided_ns: time at which the sender decided to send it.
        sent_ns: time at which its first bit leaves the sending host.
        arrived_ns: time at which its last bit reaches the receiving host; None: the packet is lost.
        seq, ack, flags, window_bytes, payload_bytes: header fields. The window is in bytes, after scaling.
        mss_bytes: MSS option of a SYN, else None.
        window_scale: window scale option of a SYN, else None.
        late_ack: its ACK was delayed, by a timer or until the application read.
        resent_for: cause of a retransmission: `timeout` or `loss-recovery`; empty: new data.
    """

    __slots__ = (
        "ack",
        "arrived_ns",
        "decided_ns",
        "flags",
        "from_client",
        "late_ack",
        "mss_bytes",
        "payload_bytes",
        "resent_for",
        "sent_ns",
        "seq",
        "window_bytes",
        "window_scale",
    )

    def __init__(self, seq: int, ack: int, flags: int, window_bytes: int, payload_bytes: int, *, from_client: bool) -> None:
        self.seq = seq
        self.ack = ack
        self.flags = flags
        self.window_bytes = window_bytes
        self.payload_bytes = payload_bytes
        self.from_client = from_client
        self.decided_ns = self.sent_ns = 0
        self.arrived_ns: int | None = None
        self.mss_bytes: int | None = None
        self.window_scale: int | None = None
        self.late_ack = False
        self.resent_for = ""

    def __repr__(self) -> str:
        """Return the packet as text in the style of tcpdump."""
        names = "".join(letter for letter, bit in (("S", SYN), ("F", FIN), ("P", PSH), (".", ACK)) if self.flags & bit)
        direction = "C > S" if self.from_client else "S > C"
        span = f"{self.seq}:{self.seq + self.payload_bytes}({self.payload_bytes})"
        return f"{self.sent_ns / 1e9:.6f} {direction} {names} {span} ack {self.ack} win {self.window_bytes}"
