//! The names of causes.

/// Makes [`Cause`] of its lines: a cause, and its name in tables and JSON.
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
            /// All causes, by their codes.
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
    /// Opening the connection.
    Handshake = "handshake",
    /// A long silence in which nobody owed anything.
    Idle = "idle",
    /// The sender's program had nothing to send.
    Application = "application",
    /// Waiting for the other side's message.
    Peer = "peer",
    /// Held by Nagle's algorithm, although no ACK was delayed.
    Nagle = "nagle",
    /// Held by Nagle's algorithm until a delayed ACK.
    NagleDelayedAck = "nagle-delayed-ack",
    /// Another wait for a delayed ACK.
    DelayedAck = "delayed-ack",
    /// The send buffer was full of unacknowledged bytes.
    SendBuffer = "send-buffer",
    /// The receiver's window had no room.
    ReceiverWindow = "receiver-window",
    /// The receiver's window was closed.
    ZeroWindow = "zero-window",
    /// Flights still growing towards what the path can carry.
    SlowStart = "slow-start",
    /// The congestion window, small after a loss.
    CongestionWindow = "congestion-window",
    /// Spaced by the sender.
    Pacing = "pacing",
    /// Repairing losses.
    LossRecovery = "loss-recovery",
    /// Waiting for the retransmission timer.
    Timeout = "timeout",
    /// Bytes in transit, or draining through the bottleneck.
    Network = "network",
    /// After the FIN.
    Close = "close",
    /// The capture does not tell.
    Unknown = "unknown",
}
