//! The evidence, confidence and cause columns beside a segment's kind. `tcptrace_lab/schema/` holds their meanings for
//! users.

use serde::{Deserialize, Serialize};

use super::kind::Kind;

/// What a segment's kind is derived from, in the order of `EVIDENCE` in `tcptrace_lab/schema/`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Evidence {
    /// Its sequence number, compared with what was sent and acknowledged before.
    #[default]
    Sequence,
    /// SYN flags.
    Syn,
    /// Duplicate ACKs (RFC 5681, 3.2).
    DuplicateAcks,
    /// SACK blocks (RFC 2018, RFC 6675).
    Sack,
    /// A duplicate-SACK block (RFC 2883).
    Dsack,
    /// The receiver discarded data that it had reported in SACK blocks (reneging; RFC 2018, 8).
    Reneging,
    /// An earlier ACK covers it.
    Acknowledged,
    /// An ACK of part of the data outstanding when loss recovery began (RFC 6582).
    PartialAck,
    /// TCP timestamps (RFC 7323, RFC 3522).
    Timestamp,
    /// IP identifications.
    IpId,
    /// Silence for at least a retransmission timeout (RFC 6298).
    Silence,
    /// Silence for at least a probe timeout (RFC 8985, 7.2).
    ProbeTime,
    /// It was captured sooner than a round trip allows.
    Rtt,
    /// The advertised window.
    Window,
    /// Only the time between two segments.
    Time,
    /// An earlier RST.
    Reset,
    /// Another TTL, or other layers around the same packet.
    Path,
    /// The link layer reports it.
    Link,
    /// No evidence.
    None,
}

/// How certain a verdict is, in the order of `CONFIDENCES` in `tcptrace_lab/schema/`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Confidence {
    /// It follows from the protocol and the capture.
    #[default]
    Proved,
    /// Everything captured fits, and other explanations are rare.
    Consistent,
    /// Other explanations fit as well.
    Possible,
}

/// What triggered a retransmission, in the order of `RETRANSMIT_TRIGGERS` in `tcptrace_lab/schema/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[repr(u8)]
pub enum RetransmitTrigger {
    /// Duplicate ACKs or SACK blocks: the first retransmission of a loss recovery (RFC 5681, 3.2; RFC 6675, 5;
    /// RFC 8985).
    Fast,
    /// A loss recovery that an earlier retransmission began (RFC 6582, RFC 6675; after a timeout RFC 5681,
    /// 3.1).
    Recovery,
    /// The retransmission timer (RFC 6298).
    Timeout,
    /// The probe timeout (RFC 8985, 7).
    TailProbe,
    /// The handshake: a SYN, or its data, is sent again.
    Handshake,
    /// The capture does not show it.
    Unknown,
}

impl RetransmitTrigger {
    /// The kind of a retransmission with this trigger.
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

/// What a RST means to the host that receives it, in the order of `RESET_KINDS` in `tcptrace_lab/schema/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ResetKind {
    /// It answers a SYN: the connection was refused.
    Refused,
    /// It has the next expected sequence number, so it resets the connection (RFC 5961, 3.2).
    Exact,
    /// It is only inside the window, so a challenge ACK answers it (RFC 5961, 3.2).
    InWindow,
    /// It is outside the window, so it is ignored. Anyone may have sent it.
    OutOfWindow,
    /// The connection was already closed.
    AfterClose,
    /// The capture does not show which sequence number was expected.
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
    /// A SYN with a cookie, and without data.
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
    /// ECE: a packet arrived with a CE mark.
    Echo,
    /// CWR: the sender reduced its congestion window.
    Reduced,
    /// ECE and CWR.
    EchoReduced,
    /// Accurate ECN (RFC 9768): the flags are a counter.
    Accurate,
}

/// What a segment is, and the evidence for it.
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs)] // each is defined in `tcptrace_lab/schema/`
pub struct Verdict {
    pub kind: Kind,
    pub evidence: Evidence,
    pub confidence: Confidence,
    /// Set for retransmissions only.
    pub retransmit_trigger: Option<RetransmitTrigger>,
    /// The other frame that proves the verdict; 0 if there is none.
    pub frame: u64,
}

impl Verdict {
    /// A verdict without another frame.
    pub(crate) const fn new(kind: Kind, evidence: Evidence, confidence: Confidence) -> Self {
        Self { kind, evidence, confidence, retransmit_trigger: None, frame: 0 }
    }

    /// This verdict with the other frame that proves it.
    pub(crate) const fn with(self, frame: u64) -> Self {
        Self { frame, ..self }
    }
}
