//! Segments of a few connections at arbitrary times: the input of the targets [`crate::sender`] and [`crate::ledger`].
//!
//! An input is one byte of options, followed by records of [`RECORD_BYTES`] bytes. A record is a segment as in
//! [`crate::tcp`], and a byte that can move the clock far ([`Step`]).

use tcptrace_lab_core::capture::Frame;
use tcptrace_lab_core::connection::Revision;
use tcptrace_lab_core::flows::{ConnectionRow, Connections, SegmentRow};
use tcptrace_lab_core::ledger::LiveWaits;
use tcptrace_lab_core::wire::{Dissector, Packet};

use crate::pipeline::Account;
use crate::tcp;

/// Bytes of one record.
pub const RECORD_BYTES: usize = tcp::RECORD_BYTES + 1;

/// The last byte of a record, which moves the clock.
#[derive(Clone, Copy)]
struct Step(u8);

impl Step {
    /// Whether bit 6 is clear. If bit 6 is set, the segment has no time.
    fn has_time(self) -> bool {
        self.0 >> 6 & 1 == 0
    }

    /// The capture time of a segment after `ts_ns`. If bits 0 to 5 are 0, the step is `usual_ns`. If bits 0 to 5
    /// contain a number n above 0, the step is (`count` + 1) · 2^n ns. If bit 7 is set, the step goes backward.
    fn after(self, ts_ns: i64, usual_ns: i64, count: u8) -> i64 {
        let step_ns = match self.0 & 63 {
            0 => i128::from(usual_ns),
            power => (i128::from(count) + 1) << power,
        };
        let signed_ns = if self.0 >> 7 == 1 { -step_ns } else { step_ns };
        // The smallest i64 means an unknown time.
        let bounded = (i128::from(ts_ns) + signed_ns).clamp(i128::from(i64::MIN + 1), i128::from(i64::MAX));
        i64::try_from(bounded).expect("bounded")
    }
}

/// What the engine knows about some segments before it judges waits.
pub struct Followed {
    /// A row for each segment.
    pub segments: Vec<SegmentRow>,
    /// The rows of the connections.
    pub connections: Vec<ConnectionRow>,
    /// Revisions of earlier segments, with the index of the row whose segment caused them.
    revised: Vec<(usize, Vec<Revision>)>,
    account: Account,
}

impl Followed {
    /// Reads the segments in `records`.
    pub fn of(records: &[u8]) -> Self {
        let (mut dissector, mut connections) = (Dissector::default(), Connections::default());
        let (mut segments, mut revised, mut packets) = (Vec::new(), Vec::new(), Vec::new());
        let (mut sent, mut ts_ns, mut known) = (tcp::nothing_sent(), 0, 0);
        let (records, _) = records.as_chunks::<RECORD_BYTES>();
        let mut account = Account::default();
        for (bytes, number) in records.iter().zip(1..) {
            let (step, bytes) =
                bytes.split_last_chunk::<1>().map(|(bytes, [step])| (Step(*step), bytes)).expect("a last byte");
            let record = tcp::Record::of(bytes.try_into().expect("a record"));
            ts_ns = step.after(ts_ns, record.step_ns(), record.step_count());
            let (data, original_bytes) = tcp::packet(&record, &mut sent[record.connection()]);
            let ts_ns = step.has_time().then_some(ts_ns);
            packets.clear();
            dissector
                .read(&Frame { number, ts_ns, link_type: Some(tcp::RAW), original_bytes, data: &data }, &mut packets)
                .expect("a segment");
            for packet in &packets {
                let Packet::Tcp(segment) = packet else { panic!("no segment: {packet:?}") };
                account.segments += 1;
                account.bytes_read += data.len();
                connections.take(segment, &mut segments);
            }
            let revisions = connections.revisions().as_slice();
            if revisions.len() > known {
                revised.push((segments.len() - 1, revisions[known..].to_vec()));
                known = revisions.len();
            }
        }
        let mut rows = Vec::new();
        while let Some(mut some) = connections.take_rest() {
            rows.append(&mut some);
        }
        Self { segments, connections: rows, revised, account }
    }

    /// What was read.
    pub fn account(&self) -> Account {
        self.account
    }

    /// The waits of all segments, in at most `max_memory_bytes` of memory.
    pub fn waits(&self, max_memory_bytes: usize) -> LiveWaits {
        let mut live = LiveWaits::within(max_memory_bytes);
        let mut revised = self.revised.iter().peekable();
        for (row, at) in self.segments.iter().zip(0..) {
            live.add(row);
            if let Some((_, revisions)) = revised.next_if(|(place, _)| *place == at) {
                live.revise(row.conn, revisions);
            }
        }
        assert!(live.take_failure().is_none(), "the temporary file fails");
        live
    }
}
