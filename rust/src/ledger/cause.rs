//! The names of causes.

/// Makes [`Cause`] from its lines: a cause, and its name in tables and JSON.
macro_rules! causes {
    ($($(#[$meaning:meta])* $cause:ident = $name:literal,)+) => {
        /// Why the next byte of a direction does not leave.
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

            /// Its name in tables and JSON.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$cause => $name,)+
                }
            }
        }
    };
}

// The order is that of `CAUSES` in `tcptrace_lab/schema/ledger.py`: tables hold codes.
causes! {
    /// The handshake is not complete.
    Handshake = "handshake",
    /// A long silence in which neither host owed anything.
    Idle = "idle",
    /// The application on the sender was not sending.
    Application = "application",
    /// Waiting for data from the peer.
    Peer = "peer",
    /// Held by Nagle's algorithm; no ACK was delayed.
    Nagle = "nagle",
    /// Held by Nagle's algorithm until a delayed ACK.
    NagleDelayedAck = "nagle-delayed-ack",
    /// Waiting for a delayed ACK, not because of Nagle's algorithm.
    DelayedAck = "delayed-ack",
    /// The send buffer was full of unacknowledged bytes.
    SendBuffer = "send-buffer",
    /// The receiver window had no room.
    ReceiverWindow = "receiver-window",
    /// The receiver window was 0.
    ZeroWindow = "zero-window",
    /// Slow start: flights still grow towards the capacity of the path.
    SlowStart = "slow-start",
    /// The congestion window, reduced by packet loss.
    CongestionWindow = "congestion-window",
    /// Pacing: the sender spaces its segments.
    Pacing = "pacing",
    /// Loss recovery: the sender retransmits lost segments.
    LossRecovery = "loss-recovery",
    /// Retransmission timeout (RTO).
    Timeout = "timeout",
    /// Bytes are in transit or drain through the bottleneck.
    Network = "network",
    /// The connection is closing: time after the FIN.
    Close = "close",
    /// The capture does not show the cause.
    Unknown = "unknown",
}
