//! What a verdict rests on: the words beside a segment's kind. `schema.py` says what each means to people.

use serde::{Deserialize, Serialize};

use super::kind::Kind;

/// What a segment's kind is known by. The order is that of `EVIDENCE` in `schema.py`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Evidence {
    /// Its place in the stream, and what was sent and acknowledged before.
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
    /// The receiver gave up bytes that it had reported in SACK blocks (RFC 2018, 8).
    Reneging,
    /// An ACK that came before covers it.
    Acknowledged,
    /// An ACK for a part of what was outstanding when a recovery began (RFC 6582).
    PartialAck,
    /// TCP timestamps (RFC 7323, RFC 3522).
    Timestamp,
    /// IP identifications.
    IpId,
    /// Silence as long as a retransmission timeout (RFC 6298).
    Silence,
    /// Silence as long as a probe timeout (RFC 8985, 7.2).
    ProbeTime,
    /// Sooner than a round trip allows.
    Rtt,
    /// The advertised window.
    Window,
    /// Only the time between two segments.
    Time,
    /// A RST that came before.
    Reset,
    /// Another time to live, or other layers around the same packet.
    Path,
    /// The link says so.
    Link,
    /// Nothing.
    None,
}

/// How sure a verdict is. The order is that of `CONFIDENCES` in `schema.py`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Confidence {
    /// It follows from the protocol's rules and what was captured.
    #[default]
    Proved,
    /// All that was captured fits, and what else would fit is rare.
    Consistent,
    /// Other explanations fit as well.
    Possible,
}

/// What made a sender send bytes again. The order is that of `RESENT_BY` in `schema.py`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[repr(u8)]
pub enum ResentBy {
    /// Duplicate ACKs or SACK blocks: the first of a recovery (RFC 5681, 3.2; RFC 6675, 5; RFC 8985).
    Fast,
    /// The recovery that an earlier one began (RFC 6582, RFC 6675; after a timeout RFC 5681, 3.1).
    Recovery,
    /// The retransmission timer (RFC 6298).
    Timeout,
    /// The probe timer (RFC 8985, 7).
    TailProbe,
    /// The opening of the connection: a SYN or its data again.
    Handshake,
    /// The capture does not tell.
    Unknown,
}

impl ResentBy {
    /// The kind of a segment sent for this reason.
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

/// What a RST is to the side that it is sent to. The order is that of `RESET_KINDS` in `schema.py`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ResetKind {
    /// The answer to a SYN: no connection was made.
    Refused,
    /// Its number is the one that is expected next: it is obeyed (RFC 5961, 3.2).
    Exact,
    /// Inside the window only: it is answered with a challenge ACK (RFC 5961, 3.2).
    InWindow,
    /// Outside: it is ignored, and anyone may have sent it.
    OutOfWindow,
    /// The connection was over already.
    AfterClose,
    /// The capture does not tell what was expected.
    Unknown,
}

/// A step of TCP Fast Open (RFC 7413). The order is that of `TFO` in `schema.py`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Tfo {
    /// A SYN that asks for a cookie.
    CookieRequest,
    /// A SYN-ACK that gives one.
    CookieGrant,
    /// A SYN that brings a cookie, perhaps without data.
    Cookie,
    /// A SYN that brings data.
    Data,
    /// A SYN-ACK that acknowledges the SYN's data.
    DataAccepted,
    /// A SYN-ACK that acknowledges the SYN alone.
    DataRefused,
}

/// What the ECN flags of a segment say (RFC 3168, 6.1). The order is that of `ECN_SIGNALS` in `schema.py`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum EcnSignal {
    /// A SYN that offers ECN.
    Setup,
    /// A SYN-ACK that accepts it.
    Accepted,
    /// ECE: a packet came with the mark of congestion.
    Echo,
    /// CWR: the sender has slowed down.
    Reduced,
    /// Both of the last two.
    EchoReduced,
    /// Accurate ECN (RFC 9768): the flags are a counter.
    Accurate,
}

/// What a segment is, and what that rests on.
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs)] // one fact has one home
pub struct Verdict {
    pub kind: Kind,
    pub evidence: Evidence,
    pub confidence: Confidence,
    /// Set for resent segments only.
    pub resent_by: Option<ResentBy>,
    /// The other frame of the proof; 0: none.
    pub frame: u64,
}

impl Verdict {
    /// A verdict that needs no other frame.
    pub(crate) const fn new(kind: Kind, evidence: Evidence, confidence: Confidence) -> Self {
        Self { kind, evidence, confidence, resent_by: None, frame: 0 }
    }

    /// The same with the other frame of the proof.
    pub(crate) const fn with(self, frame: u64) -> Self {
        Self { frame, ..self }
    }
}
