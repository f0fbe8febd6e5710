//! The rows of the segments table before their conversion to Arrow columns, stored by column in blocks of 64 rows.
//!
//! The worker thread writes each value directly into its column. Another thread then copies whole columns and looks for
//! nulls. If whole rows were stored, the second thread would read all rows again for each column, although the rows
//! have already left the cache.

#![expect(clippy::inline_always, reason = "measured: otherwise rows are built in memory before columns are filled")]

use crate::flows::{SegmentRow, SegmentSink};
use crate::nullable::Nullable;
use crate::wire::AtmFacts;

/// Number of rows per block, which is the number of bits in a word of a validity mask.
pub(super) const BLOCK_ROWS: usize = 64;
/// Stands for null in a column of codes.
pub(super) const NO_CODE: u8 = u8::MAX;

/// A column of one block.
pub(super) type Of<T> = [T; BLOCK_ROWS];

/// The columns of a block, with the names in [`SegmentRow`]. In a row without `departs`, `wait_ns` and `smss_bytes` are
/// left over from an earlier batch and must not be read.
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
    /// Whether the segment has a timestamps option. If not, `tsval` and `tsecr` are not valid.
    pub timed: Of<bool>,
    pub tsval: Of<u32>,
    pub tsecr: Of<u32>,
    /// Whether `ip_id` is valid.
    pub identified: Of<bool>,
    pub ip_id: Of<u16>,
    pub ttl: Of<u8>,
    pub ect: Of<u8>,
    pub kind: Of<u8>,
    pub evidence: Of<u8>,
    /// Number of the evidence frame, or 0 without evidence.
    pub evidence_frame: Of<u64>,
    pub confidence: Of<u8>,
    pub retransmit_trigger: Of<u8>,
    /// Number of transmissions of the segment's bytes, or 0 for a segment that has neither data nor SYN nor FIN.
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
    pub wait_ns: Of<Nullable>,
    pub smss_bytes: Of<Nullable>,
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
            retransmit_trigger: CODES,
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
            wait_ns: NULLS,
            smss_bytes: NULLS,
        }
    }

    /// Appends a row to a block that is not full.
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
        set(&mut self.retransmit_trigger, at, row.retransmit_trigger.map_or(NO_CODE, |by| by as u8));
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
        if let Some(wait) = &row.departure {
            set(&mut self.wait_ns, at, wait.wait_ns);
            set(&mut self.smss_bytes, at, wait.smss_bytes);
        }
    }
}

#[inline(always)]
fn set<T>(column: &mut Of<T>, at: usize, value: T) {
    // `get_mut` lets the compiler remove the bounds check, because `at` is less than the length.
    if let Some(place) = column.get_mut(at) {
        *place = value;
    }
}

/// The rows of one batch. [`SegmentRows::clear`] keeps the memory for the next batch.
#[derive(Debug, Default)]
pub struct SegmentRows {
    /// The blocks with the rows. Only the last block in use can have free rows.
    blocks: Vec<Box<Block>>,
    len: usize,
    /// Values of few rows: (index of the row, value).
    pub(super) sack_blocks: Vec<(usize, Box<[i64]>)>,
    pub(super) atm: Vec<(usize, AtmFacts)>,
}

impl SegmentRows {
    /// Number of rows.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Removes the rows, but keeps the memory.
    pub fn clear(&mut self) {
        for block in self.blocks.iter_mut().take(self.len.div_ceil(BLOCK_ROWS)) {
            block.len = 0;
        }
        self.len = 0;
        self.sack_blocks.clear();
        self.atm.clear();
    }

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
