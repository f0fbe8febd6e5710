//! What a segment is, and what let it leave.

/// What a segment is. The order is that of `KINDS` in `schema.py`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// New data, or the first SYN or FIN.
    New,
    /// A pure ACK that is nothing more special.
    #[default]
    Ack,
    /// Bytes sent before; the cause is not told further.
    Retransmit,
    /// Resent after three duplicate ACKs (RFC 5681, 3.2).
    FastRetransmit,
    /// Resent by the retransmission timer (RFC 6298).
    RtoRetransmit,
    /// A tail loss probe (RFC 8985, 7).
    TailProbe,
    /// Resent although the first copy arrived.
    Spurious,
    /// Came behind later bytes, sent once.
    OutOfOrder,
    /// The capture holds the packet twice.
    CaptureDuplicate,
    /// A keepalive probe (RFC 9293, 3.8.4).
    Keepalive,
    /// The answer to it.
    KeepaliveAck,
    /// A probe into a closed window (RFC 9293, 3.8.6.1).
    ZeroWindowProbe,
    /// An ACK sent only to move the window.
    WindowUpdate,
    /// A duplicate ACK (RFC 5681, 2).
    DuplicateAck,
    /// A RST.
    Reset,
    /// Sent, and thrown away by the receiver's link because a part was lost or damaged (AAL5).
    LinkDamaged,
    /// Resent in the course of a recovery (RFC 6582, RFC 6675).
    RecoveryRetransmit,
    /// A SYN or SYN-ACK sent again.
    SynRetransmit,
    /// The network delivered the packet twice.
    NetworkDuplicate,
    /// The answer to a probe into a closed window that stays closed.
    ZeroWindowProbeAck,
    /// An ACK for a part of what was out when a recovery began (RFC 6582).
    PartialAck,
}

impl Kind {
    /// Whether it carries bytes that had been sent before.
    #[must_use]
    pub fn is_resent(self) -> bool {
        matches!(
            self,
            Self::Retransmit
                | Self::FastRetransmit
                | Self::RtoRetransmit
                | Self::TailProbe
                | Self::Spurious
                | Self::RecoveryRetransmit
                | Self::SynRetransmit
        )
    }
}

/// What let a data segment leave. The order is that of `RELEASED_BY` in `schema.py`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum ReleasedBy {
    /// An ACK that arrived just before.
    Ack,
    /// The program wrote: nothing was in flight.
    Write,
    /// A timer of the sender.
    Timer,
    /// It follows another segment of the same burst.
    Burst,
    /// The capture does not tell.
    #[default]
    Unknown,
}
