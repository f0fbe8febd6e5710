//! Which rows of segments the caller gets, and the times that it makes quantiles of: picked out while a segment is
//! concluded, because to carry all rows up to where they can be looked at costs more than to conclude them.

#![allow(clippy::inline_always)] // as in `table::rows`: else rows are put together first, and taken apart again

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use crate::connection::Revisions;
use crate::flows::{ConnectionRow, SegmentRow, SegmentSink};
use crate::ledger::LiveWaits;
use crate::nullable::Nullable;
use crate::table::{Sample, SegmentRows};
use crate::wire::TcpFlags;

/// Which rows, and which times.
#[derive(Debug, Default)]
pub(super) struct Selection {
    pub samples: bool,
    /// None: only what else is made of them is wanted.
    pub nothing: bool,
    /// The waits of the connections that are followed, if they will be judged.
    pub waits: Option<LiveWaits>,
    /// Revisions that `waits` knows of.
    revised: usize,
    /// The connection of the last row.
    conn: u32,
    /// Connection → bits of the sides that have sent their FIN.
    finished: HashMap<u32, u8, RandomState>,
}

impl Selection {
    pub(super) fn new(samples: bool, nothing: bool, waits: Option<LiveWaits>) -> Self {
        Self { samples, nothing, waits, ..Self::default() }
    }

    /// Remembers what the last segment showed of earlier ones of its connection, if it did.
    #[inline]
    pub(super) fn revise(&mut self, revisions: &Revisions) {
        let known = revisions.as_slice();
        if let Some(waits) = &mut self.waits
            && let Some(new) = known.get(self.revised..).filter(|new| !new.is_empty())
        {
            waits.revise(self.conn, new);
            self.revised = known.len();
        }
    }

    /// Takes rows into `rows`, as far as they are wanted.
    #[inline(always)]
    pub(super) fn onto<'a>(&'a mut self, rows: &'a mut SegmentRows) -> Selected<'a> {
        Selected { selection: self, rows }
    }

    /// Connections that are over need not be remembered.
    pub(super) fn forget(&mut self, over: &[ConnectionRow]) {
        for row in over {
            self.finished.remove(&row.conn);
        }
    }

    /// Whether the other side's FIN came before a segment of `conn` from one side.
    fn other_has_finished(&self, conn: u32, from_client: bool) -> bool {
        self.finished.get(&conn).is_some_and(|finished| finished & side(!from_client) != 0)
    }

    #[inline(always)]
    fn sample(&mut self, row: &SegmentRow, samples: &mut Vec<Sample>) {
        if row.rtt_ns.is_some() {
            let (conn, from_client) = (row.conn, row.from_client);
            // A round trip is that of the data's side, whoever acknowledges it.
            samples.push(Sample { conn, from_client: !from_client, ack_lag: false, ns: row.rtt_ns.value() });
            let is_pure = row.payload_bytes == 0 && !row.flags.any(TcpFlags::FIN | TcpFlags::SYN | TcpFlags::RST);
            let is_lag = row.ack_lag_ns.is_some() && row.ack_lag_ns.value() >= 0;
            // What a FIN ends is acknowledged at once.
            if is_pure && is_lag && beyond_syn(row.ack) && !self.other_has_finished(conn, from_client) {
                samples.push(Sample { conn, from_client, ack_lag: true, ns: row.ack_lag_ns.value() });
            }
        }
        if row.flags.any(TcpFlags::FIN) {
            *self.finished.entry(row.conn).or_default() |= side(row.from_client);
        }
    }
}

fn side(client: bool) -> u8 {
    1 << u8::from(client)
}

/// Whether an ACK covers more than a SYN.
#[inline]
fn beyond_syn(ack: Nullable) -> bool {
    ack.is_some() && ack.value() > 1
}

/// Where concluded rows go.
pub(super) struct Selected<'a> {
    selection: &'a mut Selection,
    rows: &'a mut SegmentRows,
}

impl SegmentSink for Selected<'_> {
    #[inline(always)]
    fn push(&mut self, row: SegmentRow) {
        if self.selection.samples {
            self.selection.sample(&row, &mut self.rows.samples);
        }
        if let Some(waits) = &mut self.selection.waits {
            self.selection.conn = row.conn;
            waits.add(&row);
        }
        self.rows.seen += 1;
        if !self.selection.nothing {
            self.rows.push(row);
        }
    }
}
