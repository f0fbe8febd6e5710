//! The record of the wait before each segment, and the totals of a whole direction.

use serde::{Deserialize, Serialize};

use crate::connection::RetransmitTrigger;
use crate::nullable::Nullable;

/// An ACK may have ended a wait if it arrived within the last 1/8 of that wait (a heuristic).
pub(crate) const RELEASE_PART: i64 = 8;

/// One wait, and what the sender knew when a segment ended it.
///
/// Each time runs from an event to the segment that ended the wait. There are four exceptions: the lag of the last ACK,
/// the last RTT sample, the RTT sample of the neighbouring segment, and the smoothed RTT.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)] // each field name states its fact
#[allow(clippy::struct_excessive_bools)] // they are columns of a table, not states
pub struct Wait {
    pub wait_ns: Nullable,
    pub frame_before: Nullable,
    pub sent_ticks: Nullable,
    pub queueing_delay_ns: Nullable,
    pub queue_grew_ns: Nullable,
    pub since_all_acked_ns: Nullable,
    pub since_ack_ns: Nullable,
    pub ack_frame: Nullable,
    pub ack_lag_ns: Nullable,
    pub rtt_sample_ns: Nullable,
    pub previous_rtt_sample_ns: Nullable,
    pub srtt_ns: Nullable,
    pub loss_signalled_ns: Nullable,
    pub echo_ns: Nullable,
    pub window_opened_ns: Nullable,
    pub peer_first_ns: Nullable,
    pub peer_last_ns: Nullable,
    /// Time from the peer's last data or SYN to the end of the wait. `peer_data_ns` exceeds `peer_last_ns` if a FIN
    /// without data came last.
    pub peer_data_ns: Nullable,
    pub peer_payload_bytes: Nullable,
    pub payload_before_bytes: Nullable,
    pub flight_before_bytes: Nullable,
    pub flight_after_bytes: Nullable,
    pub missed_bytes: Nullable,
    /// Time from the ACK that covers all bytes before the segment, if the capture lacks some of these bytes.
    pub missed_acked_ns: Nullable,
    pub left_out_segments: Nullable,
    pub usable_window_before_bytes: Nullable,
    pub previous_round_flight_bytes: Nullable,
    pub flown_before: bool,
    pub flown_bytes: Nullable,
    pub smss_bytes: Nullable,
    pub window_closed: bool,
    pub small: bool,
    pub small_before: bool,
    pub held_before: bool,
    pub pushed_before: bool,
    pub last_small: LastSmall,
    pub small_passes: bool,
    pub recovering: bool,
    pub repaired_by: Option<RetransmitTrigger>,
    pub after_loss: bool,
    pub fills_unscaled: bool,
    /// Whether either host sent a keepalive during the wait.
    pub kept_alive: bool,
}

/// The state of the last small segment when a wait began (`snd_sml` of Linux; Minshall's variant of Nagle's algorithm).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum LastSmall {
    /// The last small segment was acknowledged, or there was none.
    #[default]
    Acked,
    /// The last small segment was in flight.
    InFlight,
    /// The last small segment was in flight, and the last ACK of new data was the ACK that covered it.
    JustAcked,
}

impl LastSmall {
    /// Whether the last small segment was in flight when the wait began.
    #[must_use]
    pub fn was_in_flight(self) -> bool {
        self != Self::Acked
    }
}

impl Wait {
    /// Whether an event `ago_ns` before the end of the wait may have ended it.
    pub(super) fn may_be_ended_by(&self, ago_ns: i64) -> bool {
        ago_ns.saturating_mul(RELEASE_PART) <= self.wait_ns.get().unwrap_or(0)
    }
}

/// Totals of a direction, which follow from all of its waits and segments together.
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs)] // each field name states its fact
pub struct SenderTotals {
    pub first: Option<FirstDeparture>,
    /// The last wait, which ends with the connection.
    pub ending: Wait,
    pub level_flight_bytes: Nullable,
    pub level_rounds: u16,
    pub other_level_flight_bytes: Nullable,
    pub other_level_rounds: u16,
    pub clocked: u32,
    pub unclocked: u32,
    pub small_behind_small: u32,
    pub small_delayed_run: u16,
    pub small_past_full: u16,
    pub small_delayed_over_full: u16,
    pub small_delayed_continued: u16,
    pub small_before_answer: u16,
    pub small_after_answer: u16,
    pub tick_ns: Nullable,
    pub line_payload_bytes: Nullable,
    pub serialization_ns: Nullable,
    pub spaced_payload_bytes: Nullable,
    pub spaced_ns: Nullable,
    pub exchange_bytes: Nullable,
    pub exchange_cells: Nullable,
    pub exchange_ns: Nullable,
    pub fin_ns: Nullable,
    pub steady_payload_bytes: Nullable,
    pub steady_ns: Nullable,
    pub followed_segments: u32,
    pub steady_segments: u32,
    pub steady_other_sizes: u32,
    pub paced_payload_bytes: Nullable,
    pub paced_ns: Nullable,
    pub paced_bursts: u32,
    pub written_ns: Nullable,
    pub writes_by_clock: u32,
    pub writes_by_ack: u32,
    pub departures_early: u32,
    pub departures_late: u32,
    pub reaction_ns: Nullable,
    pub top_flight_bytes: Nullable,
    pub top_rounds: u16,
    pub emptied_flight_bytes: Nullable,
    pub emptied_times: u16,
    pub other_emptied_flight_bytes: Nullable,
    pub other_emptied_times: u16,
}

/// The first segment of a direction. The waits of the direction begin with it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct FirstDeparture {
    pub ts_ns: i64,
    pub frame: u64,
    pub is_syn: bool,
}
