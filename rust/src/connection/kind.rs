//! The kind of a segment, and what released it.

/// The kind of a segment, in the order of `KINDS` in `tcptrace_lab/schema/`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// A segment with new data, or the first SYN or FIN.
    New,
    /// A pure ACK that has no more specific kind.
    #[default]
    Ack,
    /// A retransmission whose trigger is unknown.
    Retransmit,
    /// A retransmission after three duplicate ACKs (RFC 5681, 3.2).
    FastRetransmit,
    /// A retransmission triggered by the retransmission timer (RFC 6298).
    RtoRetransmit,
    /// A tail loss probe (RFC 8985, 7).
    TailProbe,
    /// A spurious retransmission: the original had arrived.
    Spurious,
    /// An original segment that was captured after segments with higher sequence numbers.
    OutOfOrder,
    /// A packet that was captured twice.
    CaptureDuplicate,
    /// A keepalive probe (RFC 9293, 3.8.4).
    Keepalive,
    /// The ACK that answers a keepalive probe.
    KeepaliveAck,
    /// A zero-window probe (RFC 9293, 3.8.6.1).
    ZeroWindowProbe,
    /// An ACK sent only to update the window.
    WindowUpdate,
    /// A duplicate ACK (RFC 5681, 2).
    DuplicateAck,
    /// A RST.
    Reset,
    /// A segment that the receiver's link layer (AAL5) discarded, because a part of the segment was lost or damaged.
    LinkDamaged,
    /// A retransmission during loss recovery (RFC 6582, RFC 6675).
    RecoveryRetransmit,
    /// A retransmitted SYN or SYN-ACK.
    SynRetransmit,
    /// A packet that the network duplicated.
    NetworkDuplicate,
    /// The ACK that answers a zero-window probe while the window is still 0.
    ZeroWindowProbeAck,
    /// An ACK that covers only a part of the data in flight at the start of loss recovery (RFC 6582).
    PartialAck,
}

impl Kind {
    /// Whether a segment of this kind retransmits bytes that were sent before.
    ///
    /// ```
    /// use tcptrace_lab_core::connection::Kind;
    ///
    /// assert!(Kind::Spurious.is_resent());
    /// assert!(!Kind::CaptureDuplicate.is_resent()); // sent once, captured twice
    /// ```
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

/// What released a data segment, in the order of `RELEASED_BY` in `tcptrace_lab/schema/`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum ReleasedBy {
    /// An ACK that arrived just before the segment was sent.
    Ack,
    /// A write of the application, while nothing was in flight.
    Write,
    /// A timer of the sender.
    Timer,
    /// The segment follows another segment of the same burst.
    Burst,
    /// The capture does not show what released the segment.
    #[default]
    Unknown,
}
