//! Rows of segments on their way into columns: by column already, 64 at a time.
//!
//! The thread that concludes writes each value straight into its column; what is left for the other is to copy whole
//! columns and to find the nulls. Rows kept one by one would be read again for each of their columns, from memory that
//! is no longer near.

#![allow(clippy::inline_always)] // measured: else rows are put together first, and taken apart again

use crate::connection::{Departure, Nullable, SegmentRow, SegmentSink};
use crate::wire::AtmFacts;

/// Rows per block: as many as there are bits in a word of a validity mask.
pub(super) const BLOCK_ROWS: usize = 64;
/// Stands in a column of codes for none.
pub(super) const NO_CODE: u8 = u8::MAX;

/// A column of one block.
pub(super) type Of<T> = [T; BLOCK_ROWS];

/// The columns of a block, named as in [`SegmentRow`]; those of [`Departure`] but the codes hold rests of earlier rows where `departs` is not set.
#[derive(Debug)]
pub(super) struct Block {
    pub len: usize,
    pub frame: Of<u64>,
    pub ts_ns: Of<Nullable>,
    pub conn: Of<u32>,
    pub from_client: Of<bool>,
    pub seq: Of<i64>,
    pub ack: Of<Nullable>,
    pub payload_bytes: Of<i64>,
    pub captured_payload_bytes: Of<i64>,
    pub flags: Of<u16>,
    pub window_bytes: Of<Nullable>,
    /// Whether `tsval` and `tsecr` mean anything.
    pub timed: Of<bool>,
    pub tsval: Of<u32>,
    pub tsecr: Of<u32>,
    /// Whether `ip_id` means anything.
    pub identified: Of<bool>,
    pub ip_id: Of<u16>,
    pub ttl: Of<u8>,
    pub ect: Of<u8>,
    pub kind: Of<u8>,
    pub evidence: Of<u8>,
    /// 0: none.
    pub evidence_frame: Of<u64>,
    pub confidence: Of<u8>,
    pub resent_by: Of<u8>,
    /// 0: none.
    pub transmission: Of<u8>,
    pub dsack: Of<bool>,
    pub reset_kind: Of<u8>,
    pub tfo: Of<u8>,
    pub ecn_signal: Of<u8>,
    pub in_flight_bytes: Of<Nullable>,
    pub usable_window_bytes: Of<Nullable>,
    pub since_previous_ns: Of<Nullable>,
    pub since_last_ack_ns: Of<Nullable>,
    pub since_last_data_ns: Of<Nullable>,
    pub released_by: Of<u8>,
    pub released_by_frame: Of<Nullable>,
    pub acked_bytes: Of<Nullable>,
    pub acked_unseen_bytes: Of<Nullable>,
    pub ack_lag_ns: Of<Nullable>,
    pub rtt_ns: Of<Nullable>,
    pub path: Of<u16>,
    pub departs: Of<bool>,
    pub held_ns: Of<Nullable>,
    pub held_since_frame: Of<Nullable>,
    pub sent_ticks: Of<Nullable>,
    pub queued_ns: Of<Nullable>,
    pub queue_grew_ns: Of<Nullable>,
    pub idle_ns: Of<Nullable>,
    pub acked_ago_ns: Of<Nullable>,
    pub acked_by_frame: Of<Nullable>,
    pub acked_lag_ns: Of<Nullable>,
    pub round_trip_ns: Of<Nullable>,
    pub neighbour_ns: Of<Nullable>,
    pub smoothed_ns: Of<Nullable>,
    pub loss_told_ns: Of<Nullable>,
    pub echo_ns: Of<Nullable>,
    pub window_opened_ns: Of<Nullable>,
    pub peer_first_ns: Of<Nullable>,
    pub peer_last_ns: Of<Nullable>,
    pub peer_payload_bytes: Of<Nullable>,
    pub payload_before_bytes: Of<Nullable>,
    pub unacked_before_bytes: Of<Nullable>,
    pub unacked_bytes: Of<Nullable>,
    pub missed_bytes: Of<Nullable>,
    pub left_out_segments: Of<Nullable>,
    pub usable_before_bytes: Of<Nullable>,
    pub flight_bytes: Of<Nullable>,
    pub flown_before: Of<bool>,
    pub flown_bytes: Of<Nullable>,
    pub full_bytes: Of<Nullable>,
    pub window_closed: Of<bool>,
    pub small: Of<bool>,
    pub small_before: Of<bool>,
    pub held_before: Of<bool>,
    pub pushed_before: Of<bool>,
    pub small_unacked: Of<bool>,
    pub small_passes: Of<bool>,
    pub recovering: Of<bool>,
    pub repaired_by: Of<u8>,
    pub after_loss: Of<bool>,
    pub fills_unscaled: Of<bool>,
}

impl Block {
    fn new() -> Self {
        const NULLS: Of<Nullable> = [Nullable::NULL; BLOCK_ROWS];
        const NO: Of<bool> = [false; BLOCK_ROWS];
        const CODES: Of<u8> = [NO_CODE; BLOCK_ROWS];
        Self {
            len: 0,
            frame: [0; BLOCK_ROWS],
            ts_ns: NULLS,
            conn: [0; BLOCK_ROWS],
            from_client: NO,
            seq: [0; BLOCK_ROWS],
            ack: NULLS,
            payload_bytes: [0; BLOCK_ROWS],
            captured_payload_bytes: [0; BLOCK_ROWS],
            flags: [0; BLOCK_ROWS],
            window_bytes: NULLS,
            timed: NO,
            tsval: [0; BLOCK_ROWS],
            tsecr: [0; BLOCK_ROWS],
            identified: NO,
            ip_id: [0; BLOCK_ROWS],
            ttl: [0; BLOCK_ROWS],
            ect: [0; BLOCK_ROWS],
            kind: [0; BLOCK_ROWS],
            evidence: [0; BLOCK_ROWS],
            evidence_frame: [0; BLOCK_ROWS],
            confidence: [0; BLOCK_ROWS],
            resent_by: CODES,
            transmission: [0; BLOCK_ROWS],
            dsack: NO,
            reset_kind: CODES,
            tfo: CODES,
            ecn_signal: CODES,
            in_flight_bytes: NULLS,
            usable_window_bytes: NULLS,
            since_previous_ns: NULLS,
            since_last_ack_ns: NULLS,
            since_last_data_ns: NULLS,
            released_by: CODES,
            released_by_frame: NULLS,
            acked_bytes: NULLS,
            acked_unseen_bytes: NULLS,
            ack_lag_ns: NULLS,
            rtt_ns: NULLS,
            path: [0; BLOCK_ROWS],
            departs: NO,
            held_ns: NULLS,
            held_since_frame: NULLS,
            sent_ticks: NULLS,
            queued_ns: NULLS,
            queue_grew_ns: NULLS,
            idle_ns: NULLS,
            acked_ago_ns: NULLS,
            acked_by_frame: NULLS,
            acked_lag_ns: NULLS,
            round_trip_ns: NULLS,
            neighbour_ns: NULLS,
            smoothed_ns: NULLS,
            loss_told_ns: NULLS,
            echo_ns: NULLS,
            window_opened_ns: NULLS,
            peer_first_ns: NULLS,
            peer_last_ns: NULLS,
            peer_payload_bytes: NULLS,
            payload_before_bytes: NULLS,
            unacked_before_bytes: NULLS,
            unacked_bytes: NULLS,
            missed_bytes: NULLS,
            left_out_segments: NULLS,
            usable_before_bytes: NULLS,
            flight_bytes: NULLS,
            flown_before: NO,
            flown_bytes: NULLS,
            full_bytes: NULLS,
            window_closed: NO,
            small: NO,
            small_before: NO,
            held_before: NO,
            pushed_before: NO,
            small_unacked: NO,
            small_passes: NO,
            recovering: NO,
            repaired_by: CODES,
            after_loss: NO,
            fills_unscaled: NO,
        }
    }

    /// Writes a row behind the others; there must be room.
    #[inline(always)]
    fn put(&mut self, row: &SegmentRow) {
        let at = self.len % BLOCK_ROWS;
        self.len += 1;
        set(&mut self.frame, at, row.frame);
        set(&mut self.ts_ns, at, row.ts_ns);
        set(&mut self.conn, at, row.conn);
        set(&mut self.from_client, at, row.from_client);
        set(&mut self.seq, at, row.seq);
        set(&mut self.ack, at, row.ack);
        set(&mut self.payload_bytes, at, row.payload_bytes.into());
        set(&mut self.captured_payload_bytes, at, row.captured_payload_bytes.into());
        set(&mut self.flags, at, row.flags.0);
        set(&mut self.window_bytes, at, row.window_bytes.map(i64::from).into());
        let (tsval, tsecr) = row.timestamps.unwrap_or_default();
        set(&mut self.timed, at, row.timestamps.is_some());
        set(&mut self.tsval, at, tsval);
        set(&mut self.tsecr, at, tsecr);
        set(&mut self.identified, at, row.ip_id.is_some());
        set(&mut self.ip_id, at, row.ip_id.unwrap_or_default());
        set(&mut self.ttl, at, row.ttl);
        set(&mut self.ect, at, row.ecn.0);
        set(&mut self.kind, at, row.kind as u8);
        set(&mut self.evidence, at, row.evidence as u8);
        set(&mut self.evidence_frame, at, row.evidence_frame);
        set(&mut self.confidence, at, row.confidence as u8);
        set(&mut self.resent_by, at, row.resent_by.map_or(NO_CODE, |by| by as u8));
        set(&mut self.transmission, at, row.transmission);
        set(&mut self.dsack, at, row.dsack);
        set(&mut self.reset_kind, at, row.reset_kind.map_or(NO_CODE, |kind| kind as u8));
        set(&mut self.tfo, at, row.tfo.map_or(NO_CODE, |step| step as u8));
        set(&mut self.ecn_signal, at, row.ecn_signal.map_or(NO_CODE, |signal| signal as u8));
        set(&mut self.in_flight_bytes, at, row.in_flight_bytes);
        set(&mut self.usable_window_bytes, at, row.usable_window_bytes);
        set(&mut self.since_previous_ns, at, row.since_previous_ns);
        set(&mut self.since_last_ack_ns, at, row.since_last_ack_ns);
        set(&mut self.since_last_data_ns, at, row.since_last_data_ns);
        set(&mut self.released_by, at, row.released_by.map_or(NO_CODE, |by| by as u8));
        set(&mut self.released_by_frame, at, row.released_by_frame);
        set(&mut self.acked_bytes, at, row.acked_bytes);
        set(&mut self.acked_unseen_bytes, at, row.acked_unseen_bytes);
        set(&mut self.ack_lag_ns, at, row.ack_lag_ns);
        set(&mut self.rtt_ns, at, row.rtt_ns);
        set(&mut self.path, at, row.path);
        set(&mut self.departs, at, row.departure.is_some());
        let repaired_by = row.departure.as_ref().and_then(|left| left.repaired_by);
        set(&mut self.repaired_by, at, repaired_by.map_or(NO_CODE, |by| by as u8));
        if let Some(departure) = &row.departure {
            self.put_departure(at, departure);
        }
    }

    #[inline(always)]
    fn put_departure(&mut self, at: usize, left: &Departure) {
        set(&mut self.held_ns, at, left.held_ns);
        set(&mut self.held_since_frame, at, left.held_since_frame);
        set(&mut self.sent_ticks, at, left.sent_ticks);
        set(&mut self.queued_ns, at, left.queued_ns);
        set(&mut self.queue_grew_ns, at, left.queue_grew_ns);
        set(&mut self.idle_ns, at, left.idle_ns);
        set(&mut self.acked_ago_ns, at, left.acked_ago_ns);
        set(&mut self.acked_by_frame, at, left.acked_by_frame);
        set(&mut self.acked_lag_ns, at, left.acked_lag_ns);
        set(&mut self.round_trip_ns, at, left.round_trip_ns);
        set(&mut self.neighbour_ns, at, left.neighbour_ns);
        set(&mut self.smoothed_ns, at, left.smoothed_ns);
        set(&mut self.loss_told_ns, at, left.loss_told_ns);
        set(&mut self.echo_ns, at, left.echo_ns);
        set(&mut self.window_opened_ns, at, left.window_opened_ns);
        set(&mut self.peer_first_ns, at, left.peer_first_ns);
        set(&mut self.peer_last_ns, at, left.peer_last_ns);
        set(&mut self.peer_payload_bytes, at, left.peer_payload_bytes);
        set(&mut self.payload_before_bytes, at, left.payload_before_bytes);
        set(&mut self.unacked_before_bytes, at, left.unacked_before_bytes);
        set(&mut self.unacked_bytes, at, left.unacked_bytes);
        set(&mut self.missed_bytes, at, left.missed_bytes);
        set(&mut self.left_out_segments, at, left.left_out_segments);
        set(&mut self.usable_before_bytes, at, left.usable_before_bytes);
        set(&mut self.flight_bytes, at, left.flight_bytes);
        set(&mut self.flown_before, at, left.flown_before);
        set(&mut self.flown_bytes, at, left.flown_bytes);
        set(&mut self.full_bytes, at, left.full_bytes);
        set(&mut self.window_closed, at, left.window_closed);
        set(&mut self.small, at, left.small);
        set(&mut self.small_before, at, left.small_before);
        set(&mut self.held_before, at, left.held_before);
        set(&mut self.pushed_before, at, left.pushed_before);
        set(&mut self.small_unacked, at, left.small_unacked);
        set(&mut self.small_passes, at, left.small_passes);
        set(&mut self.recovering, at, left.recovering);
        set(&mut self.after_loss, at, left.after_loss);
        set(&mut self.fills_unscaled, at, left.fills_unscaled);
    }
}

#[inline(always)]
fn set<T>(column: &mut Of<T>, at: usize, value: T) {
    // `at` is below the length, as the compiler sees.
    if let Some(place) = column.get_mut(at) {
        *place = value;
    }
}

/// Rows of one batch of the segments table. Its memory is used again after [`SegmentRows::clear`].
#[derive(Debug, Default)]
pub struct SegmentRows {
    /// All but the last one in use are full.
    blocks: Vec<Box<Block>>,
    len: usize,
    /// What few rows have, and the rows.
    pub(super) sack_blocks: Vec<(usize, Box<[i64]>)>,
    pub(super) atm: Vec<(usize, AtmFacts)>,
    /// Times that came meanwhile, and segments: also those without a row here.
    pub samples: Vec<Sample>,
    /// See `samples`.
    pub seen: u64,
}

/// A time of one way of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The connection.
    pub conn: u32,
    /// Whose data a round trip is of, or whose ACK was so late.
    pub from_client: bool,
    /// Whether it is the lag of an ACK; else a round trip.
    pub ack_lag: bool,
    /// Nanoseconds.
    pub ns: i64,
}

impl SegmentRows {
    /// Number of rows.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// True without any row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Forgets the rows, and keeps the memory.
    pub fn clear(&mut self) {
        for block in self.blocks.iter_mut().take(self.len.div_ceil(BLOCK_ROWS)) {
            block.len = 0;
        }
        self.len = 0;
        self.sack_blocks.clear();
        self.atm.clear();
        self.samples.clear();
        self.seen = 0;
    }

    /// The blocks with rows.
    pub(super) fn blocks(&self) -> impl Iterator<Item = &Block> {
        self.blocks.iter().take(self.len.div_ceil(BLOCK_ROWS)).map(AsRef::as_ref)
    }

    #[cold]
    fn push_rare(&mut self, row: SegmentRow) {
        if let Some(blocks) = row.sack_blocks {
            self.sack_blocks.push((self.len, blocks));
        }
        if let Some(atm) = row.atm {
            self.atm.push((self.len, atm));
        }
    }
}

impl SegmentSink for SegmentRows {
    #[inline(always)]
    fn push(&mut self, row: SegmentRow) {
        let at = self.len / BLOCK_ROWS;
        if at == self.blocks.len() {
            self.blocks.push(Box::new(Block::new()));
        }
        if let Some(block) = self.blocks.get_mut(at) {
            block.put(&row);
        }
        if row.sack_blocks.is_some() || row.atm.is_some() {
            self.push_rare(row);
        }
        self.len += 1;
    }
}
