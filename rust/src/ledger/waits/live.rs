//! The waits of all open connections, in bounded memory.

use std::io;

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use super::encoding::Encoder;
use super::log::{ConnectionLog, EndedWaits, WaitLog};
use super::record::WaitRecord;
use super::spool::Spool;
use crate::connection::{Kind, Revision};
use crate::flows::SegmentRow;

/// When all logs together exceed this size, they are written to the spool.
pub const MAX_MEMORY_BYTES: usize = 64 << 20;

/// The waits of all open connections.
#[derive(Debug)]
pub struct LiveWaits {
    connections: HashMap<u32, ConnectionLog, RandomState>,
    encoder: Encoder,
    memory_bytes: usize,
    max_memory_bytes: usize,
    spool: Option<Spool>,
    failure: Option<io::Error>,
}

impl Default for LiveWaits {
    fn default() -> Self {
        Self::within(MAX_MEMORY_BYTES)
    }
}

impl LiveWaits {
    /// Creates logs that use at most this many bytes of memory.
    #[must_use]
    pub fn within(max_memory_bytes: usize) -> Self {
        Self {
            connections: HashMap::default(),
            encoder: Encoder::default(),
            memory_bytes: 0,
            max_memory_bytes,
            spool: None,
            failure: None,
        }
    }

    /// Adds the wait that a segment ended, if the segment ended a wait.
    #[inline]
    pub fn add(&mut self, row: &SegmentRow) {
        if let Some(mut record) = WaitRecord::of(row) {
            self.add_record(row.conn, row.from_client, &mut record);
        }
    }

    #[inline]
    fn add_record(&mut self, conn: u32, from_client: bool, record: &mut WaitRecord) {
        let [client, server] = &mut self.connections.entry(conn).or_default().directions;
        let log = if from_client { client } else { server };
        self.memory_bytes += log.add(record, from_client, &mut self.encoder);
        if self.memory_bytes > self.max_memory_bytes {
            self.spill();
        }
    }

    /// Adds the revised kinds of earlier frames. A later segment of connection `conn` showed these kinds.
    #[cold]
    pub fn revise(&mut self, conn: u32, revisions: &[Revision]) {
        let verdicts = revisions.iter().map(|revision| (revision.frame, revision.kind));
        self.connections.entry(conn).or_default().revised.extend(verdicts.filter(|(_, kind)| *kind != Kind::default()));
    }

    /// Reduces the memory for the waits of a connection that will probably get no more waits.
    pub fn compact(&mut self, conn: u32) {
        let logs = self.connections.get_mut(&conn).into_iter().flat_map(|log| &mut log.directions);
        let freed_bytes: usize = logs.map(WaitLog::compact).sum();
        self.memory_bytes -= freed_bytes.min(self.memory_bytes);
    }

    /// Removes and returns the waits of a connection that has ended.
    pub fn end(&mut self, conn: u32) -> EndedWaits {
        let log = self.connections.remove(&conn).unwrap_or_default();
        let memory_bytes: usize = log.directions.iter().map(WaitLog::memory_bytes).sum();
        self.memory_bytes -= memory_bytes.min(self.memory_bytes);
        log.ended(self.spool.as_ref().map(Spool::file))
    }

    /// Returns the error that prevented waits from being stored, if there is one. After an error, the results lack the
    /// waits that were not stored.
    pub fn take_failure(&mut self) -> Option<io::Error> {
        self.failure.take()
    }

    #[cold]
    fn spill(&mut self) {
        if let Err(error) = self.spill_all() {
            self.failure.get_or_insert(error);
            self.connections.clear();
        }
        self.memory_bytes = 0;
    }

    fn spill_all(&mut self) -> io::Result<()> {
        if self.spool.is_none() {
            self.spool = Some(Spool::new()?);
        }
        let Some(spool) = &mut self.spool else { return Ok(()) };
        for log in self.connections.values_mut().flat_map(|log| &mut log.directions) {
            log.spill(spool)?;
        }
        spool.write()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::LiveWaits;
    use crate::connection::{Confidence, Evidence, Kind, Revision};
    use crate::ledger::WaitRecord;
    use crate::ledger::waits::encoding::tests::{described, record};
    use crate::ledger::waits::log::EndedWaits;

    fn records(ended: EndedWaits) -> Vec<Vec<String>> {
        ended
            .directions
            .into_iter()
            .map(|log| {
                let mut records = Vec::new();
                for block in log.into_blocks().unwrap() {
                    let count = records.len();
                    block.each(|record| records.push(*record)).unwrap();
                    assert_eq!((records.len() - count) as u64, block.records());
                }
                described(&records)
            })
            .collect()
    }

    fn logged(waits: &[(u32, bool, WaitRecord)], max_memory_bytes: usize) -> Vec<Vec<Vec<String>>> {
        let mut live = LiveWaits::within(max_memory_bytes);
        for (conn, from_client, record) in waits {
            live.add_record(*conn, *from_client, &mut record.clone());
            if record.frame.is_multiple_of(3) {
                live.compact(*conn);
            }
        }
        assert!(live.take_failure().is_none());
        (0..3).map(|conn| records(live.end(conn))).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn logs_in_the_spool_are_those_in_memory(waits in prop::collection::vec((0_u32..3, any::<bool>(), record()), 0..25), most in 0_usize..1500) {
            let of = |conn, from_client| -> Vec<_> {
                waits.iter().filter(|(c, f, _)| (*c, *f) == (conn, from_client)).map(|(_, _, record)| *record).collect()
            };
            let expected: Vec<Vec<_>> = (0..3).map(|conn| [true, false].map(|side| described(&of(conn, side))).to_vec()).collect();
            prop_assert_eq!(logged(&waits, usize::MAX), expected.clone());
            prop_assert_eq!(logged(&waits, most), expected);
        }
    }

    #[test]
    fn logs_of_several_blocks_keep_their_order() {
        let wait =
            |frame| (0, true, WaitRecord { frame, ts_ns: frame as i64 * 977_777_777_777, ..WaitRecord::default() });
        let waits: Vec<_> = (1..3000).map(wait).collect();
        let in_memory = logged(&waits, usize::MAX);
        assert_eq!(in_memory[0][0].len(), waits.len());
        assert!(in_memory == logged(&waits, 5000));
    }

    #[test]
    fn memory_is_given_back_when_connections_end() {
        let mut live = LiveWaits::default();
        for conn in 0..10 {
            live.add_record(conn, true, &mut WaitRecord::default());
            live.add_record(conn, false, &mut WaitRecord::default());
        }
        let revision = Revision {
            frame: 1,
            evidence_frame: 2,
            kind: Kind::Spurious,
            evidence: Evidence::Dsack,
            confidence: Confidence::Proved,
        };
        live.revise(3, &[revision]);
        assert!(live.memory_bytes > 0);
        (0..10).for_each(|conn| drop(live.end(conn)));
        assert_eq!((live.memory_bytes, live.connections.len()), (0, 0));
    }
}
