//! The retransmissions and duplicate packets of one direction, and the SACK blocks about its data. Later ACKs are
//! compared with these packets to find spurious retransmissions.
//!
//! Only directions with losses or repeated bytes have a history. The history has a limited size; the oldest entries are
//! dropped first.

use std::collections::VecDeque;

use super::evidence::{Confidence, Evidence, RetransmitTrigger};
use super::kind::Kind;
use super::revisions::Revision;
use super::sequence_space::{Placed, Ranges, Stamp};
use crate::nullable::Nullable;

/// Maximum number of retransmissions stored per direction.
const MAX_RESENDS: usize = 256;
/// Maximum number of duplicate packets stored per direction. A D-SACK reports a duplicate packet within a round trip.
const MAX_COPIES: usize = 32;
/// If an ACK follows a retransmission within 3/4 of the shortest RTT, the retransmission did not cause the ACK (Allman
/// and Paxson, "On Estimating End-to-End Network Path Properties", 1999).
const SOONER_THAN_RTT: (i64, i64) = (3, 4);
/// The shortest RTT for which an early ACK is evidence of a spurious retransmission (a heuristic). Below this RTT,
/// clocks and schedulers are not accurate enough.
const MIN_JUDGED_RTT_NS: i64 = 1_000_000;

/// A segment that was retransmitted or duplicated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resend {
    start: i64,
    end: i64,
    stamp: Stamp,
    acknowledged: bool,
    spurious: bool,
    dsacked: bool,
}

impl Resend {
    fn new(placed: Placed, stamp: Stamp) -> Self {
        let Placed { start, end } = placed;
        Self { start, end, stamp, acknowledged: false, spurious: false, dsacked: false }
    }
}

/// The fields of an ACK that are compared with earlier retransmissions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckReport {
    pub ts_ns: Nullable,
    pub frame: u64,
    /// Lowest unacknowledged offset before this ACK.
    pub una: i64,
    pub ack: i64,
    /// The timestamp echo reply of the ACK, if valid.
    pub tsecr: Option<u32>,
    /// Shortest RTT between capture point and receiver.
    pub rtt_min_ns: Option<i64>,
    /// The D-SACK block of the ACK.
    pub dsack: Option<(i64, i64)>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    resends: VecDeque<Resend>,
    /// Number of stored retransmissions that are not acknowledged yet.
    unacknowledged: usize,
    copies: VecDeque<(Resend, bool)>,
    /// Ranges above the ACK that the receiver reported in SACK blocks.
    pub sacked: Ranges,
    /// The last frame that reported a new range.
    pub sack_frame: u64,
    /// Reneging: the end of a reported range that the receiver discarded, and the frame that showed it.
    pub reneged: Option<(i64, u64)>,
    /// Highest offset sent when the current loss recovery began.
    recovery_point: Nullable,
    /// Whether a tail loss probe is not acknowledged yet.
    pub probing: bool,
}

impl History {
    /// Whether loss recovery is still in progress after an ACK of `una`.
    pub(crate) fn recovers(&self, una: i64) -> bool {
        self.recovery_point.get().is_some_and(|point| una < point)
    }

    /// Whether an ACK without SACK blocks cannot change the history. The history stays unchanged if all retransmissions
    /// and probes are acknowledged, loss recovery has ended at `una`, and no SACK block or reneging is stored.
    #[inline]
    pub(crate) fn is_quiet(&self, una: i64) -> bool {
        self.unacknowledged == 0
            && !self.probing
            && !self.recovers(una)
            && self.reneged.is_none()
            && self.sacked.is_empty()
    }

    pub(crate) fn resent(
        &mut self,
        placed: Placed,
        stamp: Stamp,
        by: RetransmitTrigger,
        spurious: bool,
        una: i64,
        snd_max: i64,
    ) {
        match by {
            RetransmitTrigger::TailProbe => self.probing = true,
            RetransmitTrigger::Fast | RetransmitTrigger::Timeout if !self.recovers(una) => {
                self.recovery_point = Some(snd_max).into();
            }
            _ => {}
        }
        if self.resends.len() >= MAX_RESENDS
            && let Some(oldest) = self.resends.pop_front()
        {
            self.unacknowledged -= usize::from(!oldest.acknowledged);
        }
        let acknowledged = placed.end <= una;
        self.unacknowledged += usize::from(!acknowledged);
        self.resends.push_back(Resend { acknowledged, spurious, ..Resend::new(placed, stamp) });
    }

    /// Adds a duplicate packet. `counted` is true if the packet was already counted as a network duplicate.
    pub(crate) fn remember_copy(&mut self, placed: Placed, stamp: Stamp, counted: bool) {
        if self.copies.len() >= MAX_COPIES {
            self.copies.pop_front();
        }
        self.copies.push_back((Resend::new(placed, stamp), counted));
    }

    /// The last retransmission of the byte at the offset `start`.
    pub(crate) fn last_resend(&self, start: i64) -> Option<Stamp> {
        self.resends.iter().rev().find(|resend| resend.start <= start && start < resend.end).map(|resend| resend.stamp)
    }

    /// Frame of the last retransmission.
    pub(crate) fn newest_resend(&self) -> Option<u64> {
        self.resends.back().map(|resend| resend.stamp.frame)
    }

    /// Marks the retransmission in `frame` as spurious, because the original segment was captured in `evidence_frame`.
    pub(crate) fn original_came(&mut self, frame: u64, evidence: Evidence, evidence_frame: u64) -> Option<Revision> {
        let resend = self.resends.iter_mut().rev().find(|resend| resend.stamp.frame == frame && !resend.spurious)?;
        resend.spurious = true;
        Some(spurious(frame, evidence, evidence_frame, Confidence::Proved))
    }

    /// Checks whether an ACK shows that earlier retransmissions were spurious.
    #[cold]
    pub(crate) fn judge(&mut self, report: &AckReport, mut revise: impl FnMut(Revision)) {
        if report.ack > report.una {
            self.probing = false;
            if self.unacknowledged > 0 {
                self.judge_acknowledged(report, &mut revise);
            }
        }
        if let Some(block) = report.dsack {
            self.judge_dsack(report, block, &mut revise);
        }
    }

    /// Stores the SACK blocks of an ACK, except a D-SACK, and detects reneging on earlier SACK blocks.
    pub(crate) fn report(&mut self, report: &AckReport, blocks: &[i64], snd_max: i64) {
        let una = report.una.max(report.ack);
        if let Some(end) = self.sacked.forget_below(una).filter(|_| report.ack > report.una) {
            // A receiver that has discarded this data may also have discarded data above it (RFC 2018, 8).
            self.reneged = Some((end, report.frame));
            self.sacked.clear();
        }
        if self.reneged.is_some_and(|(end, _)| una >= end) {
            self.reneged = None;
        }
        let (blocks, _) = blocks.as_chunks::<2>();
        for (number, [left, right]) in blocks.iter().enumerate() {
            let duplicate = number == 0 && report.dsack.is_some();
            if !duplicate && *left >= una && *right <= snd_max.max(una) && self.sacked.add(*left, *right) {
                self.sack_frame = report.frame;
            }
        }
    }

    fn judge_acknowledged(&mut self, report: &AckReport, revise: &mut impl FnMut(Revision)) {
        for resend in self.resends.iter_mut().filter(|resend| !resend.acknowledged && resend.end <= report.ack) {
            resend.acknowledged = true;
            self.unacknowledged -= 1;
            if resend.spurious {
                continue;
            }
            if let Some((evidence, confidence)) = needless(resend, report) {
                resend.spurious = true;
                revise(spurious(resend.stamp.frame, evidence, report.frame, confidence));
            }
        }
    }

    /// Processes a D-SACK block, which reports that bytes arrived twice (RFC 2883, 4). The second arrival is attributed
    /// to the last retransmission that had enough time to arrive.
    fn judge_dsack(&mut self, report: &AckReport, (left, right): (i64, i64), revise: &mut impl FnMut(Revision)) {
        let arrived = |resend: &Resend| {
            let since_ns = report.ts_ns.since(resend.stamp.ts_ns).get();
            resend.start < right
                && left < resend.end
                && !resend.dsacked
                && (since_ns.zip(report.rtt_min_ns)).is_none_or(|(since_ns, rtt_ns)| since_ns >= sooner_than(rtt_ns))
        };
        if let Some(resend) = self.resends.iter_mut().rev().find(|resend| arrived(resend)) {
            resend.dsacked = true;
            if !std::mem::replace(&mut resend.spurious, true) {
                revise(spurious(resend.stamp.frame, Evidence::Dsack, report.frame, Confidence::Proved));
            }
            return;
        }
        let Some((copy, counted)) = self.copies.iter_mut().rev().find(|(copy, _)| arrived(copy)) else { return };
        copy.dsacked = true;
        if !*counted {
            revise(Revision {
                kind: Kind::NetworkDuplicate,
                ..spurious(copy.stamp.frame, Evidence::Dsack, report.frame, Confidence::Proved)
            });
        }
    }
}

fn spurious(frame: u64, evidence: Evidence, evidence_frame: u64, confidence: Confidence) -> Revision {
    Revision { frame, evidence_frame, kind: Kind::Spurious, evidence, confidence }
}

fn sooner_than(rtt_ns: i64) -> i64 {
    rtt_ns.saturating_mul(SOONER_THAN_RTT.0) / SOONER_THAN_RTT.1
}

/// Evidence that a retransmission was spurious: the ACK of the retransmitted bytes was triggered by another packet.
fn needless(resend: &Resend, report: &AckReport) -> Option<(Evidence, Confidence)> {
    // An ACK echoes the timestamp of the segment at the left edge of the window (RFC 7323, 4.3). The echoed timestamp
    // is therefore evidence only about a retransmission of that segment.
    let at_left_edge = resend.start <= report.una && report.una < resend.end;
    if at_left_edge
        && let (Some(value), Some(echo)) = (resend.stamp.tsval, report.tsecr)
        && (echo.wrapping_sub(value.get()) as i32) < 0
    {
        return Some((Evidence::Timestamp, Confidence::Proved));
    }
    let rtt_ns = report.rtt_min_ns.filter(|rtt_ns| *rtt_ns >= MIN_JUDGED_RTT_NS)?;
    let since_ns = report.ts_ns.since(resend.stamp.ts_ns).get().filter(|since_ns| *since_ns >= 0)?;
    (at_left_edge && since_ns < sooner_than(rtt_ns)).then_some((Evidence::Rtt, Confidence::Consistent))
}
