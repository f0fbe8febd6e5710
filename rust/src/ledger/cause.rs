//! The names of causes.

/// Defines the enum [`Cause`] from lines of the form `variant = "name in tables and JSON"`.
macro_rules! causes {
    ($($(#[$meaning:meta])* $cause:ident = $name:literal,)+) => {
        /// Why the sender of a direction does not send the next byte yet.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Cause {
            $($(#[$meaning])* $cause,)+
        }

        /// Number of causes.
        pub const CAUSES: usize = [$($name),+].len();

        impl Cause {
            /// All causes, indexed by their codes.
            pub const ALL: [Self; CAUSES] = [$(Self::$cause),+];

            /// Returns the name of the cause in tables and JSON.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$cause => $name,)+
                }
            }
        }
    };
}

// The causes have the same order as `CAUSES` in `tcptrace_lab/schema/ledger.py`, because tables store each cause as its
// position in this order.
causes! {
    /// The handshake is not complete.
    Handshake = "handshake",
    /// A long silence in which neither host had to answer the other.
    Idle = "idle",
    /// The application on the sender was not sending.
    Application = "application",
    /// The sender waited for data from the peer.
    Peer = "peer",
    /// Nagle's algorithm delayed a small segment; the receiver did not delay the ACK.
    Nagle = "nagle",
    /// Nagle's algorithm delayed a small segment until a delayed ACK arrived.
    NagleDelayedAck = "nagle-delayed-ack",
    /// The sender waited for a delayed ACK, but not because of Nagle's algorithm.
    DelayedAck = "delayed-ack",
    /// The send buffer was full of unacknowledged bytes.
    SendBuffer = "send-buffer",
    /// The receiver window had no room.
    ReceiverWindow = "receiver-window",
    /// The receiver window was 0.
    ZeroWindow = "zero-window",
    /// Slow start: flights still grow towards the capacity of the path.
    SlowStart = "slow-start",
    /// The congestion window limited the sender, after a packet loss had made the window smaller.
    CongestionWindow = "congestion-window",
    /// Pacing: the sender spaces its segments.
    Pacing = "pacing",
    /// Loss recovery: the sender retransmits lost segments.
    LossRecovery = "loss-recovery",
    /// Retransmission timeout (RTO).
    Timeout = "timeout",
    /// Bytes are in transit, or they drain through the bottleneck.
    Network = "network",
    /// The connection is closing: time after the FIN.
    Close = "close",
    /// The capture does not show the cause.
    Unknown = "unknown",
}
