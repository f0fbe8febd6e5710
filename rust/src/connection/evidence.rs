//! The types of the columns that explain a segment's kind: evidence, confidence, trigger. `tcptrace_lab/schema/`
//! describes these columns for users.

use serde::{Deserialize, Serialize};

use super::kind::Kind;

/// The evidence from which a segment's kind is derived, in the order of `EVIDENCE` in `tcptrace_lab/schema/`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Evidence {
    /// The segment's sequence number, compared with the data sent and acknowledged before.
    #[default]
    Sequence,
    /// SYN flags.
    Syn,
    /// Duplicate ACKs (RFC 5681, 3.2).
    DuplicateAcks,
    /// SACK blocks of the peer (RFC 2018, RFC 6675).
    Sack,
    /// A duplicate-SACK block (RFC 2883).
    Dsack,
    /// The receiver discarded data that it had reported in SACK blocks (reneging; RFC 2018, 8).
    Reneging,
    /// An earlier ACK covers the segment.
    Acknowledged,
    /// A partial ACK: it covers only a part of the data that was in flight when loss recovery began (RFC 6582).
    PartialAck,
    /// TCP timestamps of the segments (RFC 7323, RFC 3522).
    Timestamp,
    /// IP identifications.
    IpId,
    /// The sender was silent for at least a retransmission timeout (RFC 6298).
    Silence,
    /// The sender was silent for at least a probe timeout (RFC 8985, 7.2).
    ProbeTime,
    /// The segment was captured sooner than a round trip allows.
    Rtt,
    /// The advertised window.
    Window,
    /// The time between two segments is the only evidence.
    Time,
    /// An earlier RST.
    Reset,
    /// A copy of the packet was captured with another TTL or other layers.
    Path,
    /// The link layer reports that the segment is damaged.
    Link,
    /// No evidence.
    None,
}

/// The certainty of a verdict, in the order of `CONFIDENCES` in `tcptrace_lab/schema/`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Confidence {
    /// The verdict follows from the protocol and the capture.
    #[default]
    Proved,
    /// All captured segments fit the verdict, and other explanations are rare.
    Consistent,
    /// The verdict fits the capture, but other explanations fit too.
    Possible,
}

/// What triggered a retransmission, in the order of `RETRANSMIT_TRIGGERS` in `tcptrace_lab/schema/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[repr(u8)]
pub enum RetransmitTrigger {
    /// Duplicate ACKs or SACK blocks triggered the first retransmission of a loss recovery (RFC 5681, 3.2; RFC 6675, 5;
    /// RFC 8985).
    Fast,
    /// The retransmission belongs to a loss recovery that an earlier retransmission began (RFC 6582, RFC 6675; after a
    /// timeout RFC 5681, 3.1).
    Recovery,
    /// The retransmission timer expired (RFC 6298).
    Timeout,
    /// The probe timeout expired: the retransmission is a tail loss probe (RFC 8985, 7).
    TailProbe,
    /// A SYN, or the data of a SYN, is sent again during the handshake.
    Handshake,
    /// The capture does not show the trigger.
    Unknown,
}

impl RetransmitTrigger {
    pub(crate) fn kind(self) -> Kind {
        match self {
            Self::Fast => Kind::FastRetransmit,
            Self::Recovery => Kind::RecoveryRetransmit,
            Self::Timeout => Kind::RtoRetransmit,
            Self::TailProbe => Kind::TailProbe,
            Self::Handshake => Kind::SynRetransmit,
            Self::Unknown => Kind::Retransmit,
        }
    }
}

/// The effect of a RST on the host that receives it, in the order of `RESET_KINDS` in `tcptrace_lab/schema/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ResetKind {
    /// The RST answers a SYN: the connection was refused.
    Refused,
    /// The RST has the next expected sequence number, so it resets the connection (RFC 5961, 3.2).
    Exact,
    /// The RST has another sequence number inside the window, so the receiver answers with a challenge ACK (RFC 5961,
    /// 3.2).
    InWindow,
    /// The RST has a sequence number outside the window, so the receiver ignores it. The RST may be forged.
    OutOfWindow,
    /// The connection was already closed.
    AfterClose,
    /// The capture does not show which sequence number the receiver expected.
    Unknown,
}

/// A step of TCP Fast Open (RFC 7413), in the order of `TFO` in `tcptrace_lab/schema/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Tfo {
    /// A SYN that requests a cookie.
    CookieRequest,
    /// A SYN-ACK that grants a cookie.
    CookieGrant,
    /// A SYN that has a cookie, but no data.
    Cookie,
    /// A SYN with data.
    Data,
    /// A SYN-ACK that acknowledges the SYN's data.
    DataAccepted,
    /// A SYN-ACK that acknowledges only the SYN.
    DataRefused,
}

/// What the ECN flags of a segment mean (RFC 3168, 6.1), in the order of `ECN_SIGNALS` in `tcptrace_lab/schema/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum EcnSignal {
    /// A SYN that offers ECN.
    Setup,
    /// A SYN-ACK that accepts ECN.
    Accepted,
    /// ECE: the sender of this segment received a packet with a CE mark.
    Echo,
    /// CWR: the sender of this segment reduced its congestion window.
    Reduced,
    /// ECE and CWR.
    EchoReduced,
    /// Accurate ECN (RFC 9768): the three ECN flags are a counter.
    Accurate,
}

/// The kind of a segment, and the evidence for it.
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs)] // each is defined in `tcptrace_lab/schema/`
pub struct Verdict {
    pub kind: Kind,
    pub evidence: Evidence,
    pub confidence: Confidence,
    /// The trigger of a retransmission; `None` for other segments.
    pub retransmit_trigger: Option<RetransmitTrigger>,
    /// Number of another frame that proves the verdict; 0 if there is none.
    pub frame: u64,
}

impl Verdict {
    /// A verdict without another frame.
    pub(crate) const fn new(kind: Kind, evidence: Evidence, confidence: Confidence) -> Self {
        Self { kind, evidence, confidence, retransmit_trigger: None, frame: 0 }
    }

    /// Returns this verdict, with the number of another frame that proves it.
    pub(crate) const fn with(self, frame: u64) -> Self {
        Self { frame, ..self }
    }
}
