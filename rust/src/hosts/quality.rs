//! Faults in the capture of one connection. Each fault lowers the confidence of verdicts by a factor, which is an
//! estimate.

use crate::flows::ConnectionRow;

/// If at most 0.1% of the bytes are missing, nearly all verdicts are the same as in a complete capture.
const FEW: f64 = 0.001;

/// More bytes in flight than this multiple of the largest window mean that ACKs are missing (a heuristic). The limit is
/// above 1, because a sender that stays within the window seems to exceed the window if an ACK was captured late.
const WINDOWS_IN_FLIGHT: i64 = 2;

/// Longest silence of a connection. After 24 days, TCP timestamps are no longer valid (RFC 7323, 5.5). A longer silence
/// means that the clock jumped, or that several captures were joined.
const LONGEST_SILENCE_NS: i64 = 24 * 86_400 * 1_000_000_000;

/// A fault of the capture, in the order of `CAPTURE_FAULTS` in `tcptrace_lab/schema/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Fault {
    /// The capture contains only one direction.
    OneDirection,
    /// The start of the connection is missing.
    StartMissing,
    /// A few bytes are missing.
    NotCaptured,
    /// Many bytes are missing.
    MuchNotCaptured,
    /// ACKs are missing, because the bytes in flight exceed the receiver's window by far.
    AcksMissing,
    /// The clock jumped: the connection is silent for longer than TCP allows.
    ClockJump,
    /// Segments were captured after their ACKs.
    Reordered,
    /// Segments were captured twice.
    Duplicated,
    /// The network card merged segments, or it split them only after the capture.
    Offload,
}

impl Fault {
    /// The name of the fault in the tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::OneDirection => "one_direction",
            Self::StartMissing => "start_missing",
            Self::NotCaptured => "not_captured",
            Self::MuchNotCaptured => "much_not_captured",
            Self::AcksMissing => "acks_missing",
            Self::ClockJump => "clock_jump",
            Self::Reordered => "reordered",
            Self::Duplicated => "duplicated",
            Self::Offload => "offload",
        }
    }

    /// The factor for the confidence of a verdict. The factors of several faults are multiplied.
    #[must_use]
    pub fn factor(self) -> f64 {
        match self {
            Self::ClockJump => 0.1,
            Self::OneDirection | Self::MuchNotCaptured | Self::AcksMissing => 0.5,
            Self::Reordered => 0.8,
            Self::StartMissing | Self::NotCaptured | Self::Duplicated | Self::Offload => 0.9,
        }
    }
}

/// The faults in the capture of a connection.
#[must_use]
pub fn faults(row: &ConnectionRow) -> Vec<Fault> {
    let figures =
        |value: fn(&crate::connection::DirectionFigures) -> u64| row.directions.iter().map(value).sum::<u64>();
    let sending = |value: fn(&crate::accounts::Sending) -> u32| {
        row.behaviours.iter().map(|behaviour| u64::from(value(&behaviour.sending))).sum::<u64>()
    };
    let missing = figures(|figures| figures.not_captured_bytes);
    let sent: u64 = row.counts.iter().map(|counts| counts.unique_bytes).sum();
    let few = missing as f64 <= FEW * sent as f64;
    let silent = row.directions.iter().any(|figures| figures.segments == 0);
    // A host sends only SYNs until the other host has answered.
    let answers = figures(|figures| figures.segments) > figures(|figures| figures.syn_segments.into());
    [
        (Fault::OneDirection, silent && answers),
        (Fault::StartMissing, figures(|figures| figures.syn_segments.into()) == 0),
        (Fault::NotCaptured, missing > 0 && few),
        (Fault::MuchNotCaptured, missing > 0 && !few),
        (Fault::AcksMissing, lacks_acks(row)),
        (Fault::ClockJump, has_jumped(row)),
        (Fault::Reordered, sending(|sending| sending.late_segments) > 0),
        (Fault::Duplicated, figures(|figures| figures.capture_duplicates.into()) > 0),
        (Fault::Offload, sending(|sending| sending.super_segments) > 0),
    ]
    .into_iter()
    .filter_map(|(fault, holds)| holds.then_some(fault))
    .collect()
}

/// Whether more bytes were in flight than the receiver's window allows, which means that ACKs are missing.
fn lacks_acks(row: &ConnectionRow) -> bool {
    row.directions.iter().zip(row.counts.iter().rev()).any(|(sender, receiver)| {
        let known = sender.max_in_flight_bytes.get().zip(receiver.max_window_bytes);
        known.is_some_and(|(in_flight, window)| in_flight > WINDOWS_IN_FLIGHT * i64::from(window))
    })
}

/// Whether the connection is silent for longer than TCP allows.
fn has_jumped(row: &ConnectionRow) -> bool {
    let Some(life_ns) = row.last_ts_ns.since(row.first_ts_ns).get() else { return false };
    let silent_ns = row.statistics.iter().filter_map(|figures| figures.usual.max_gap_ns.get()).max();
    let gaps = row.directions.iter().map(|figures| figures.segments).sum::<u64>().saturating_sub(1);
    let on_average = i128::from(life_ns) > i128::from(LONGEST_SILENCE_NS) * i128::from(gaps);
    life_ns > LONGEST_SILENCE_NS && (silent_ns.is_some_and(|ns| ns > LONGEST_SILENCE_NS) || on_average)
}
