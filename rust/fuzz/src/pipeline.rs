//! The engine's work from frames to rows, in one thread. Every result is checked against invariants that hold for all
//! captures.

use arrow_array::RecordBatch;
use tcptrace_lab_core::accounts::Counts;
use tcptrace_lab_core::capture::Frame;
use tcptrace_lab_core::connection::{DirectionFigures, Kind, MAX_REVISIONS};
use tcptrace_lab_core::engine::DEFAULT_BATCH_ROWS;
use tcptrace_lab_core::flows::{ConnectionRow, Connections, DatagramRow, FlowRow, Flows, SegmentRow, SegmentSink};
use tcptrace_lab_core::nullable::Nullable;
use tcptrace_lab_core::table::{self, SegmentRows, Segments};
use tcptrace_lab_core::wire::{Datagram, Dissector, Packet, Segment};

use crate::totals::Totals;

/// Approximate length of a record without its frame.
const RECORD_BYTES: usize = 16;
/// The largest possible window (RFC 7323, 2.3).
const MAX_WINDOW_BYTES: u32 = 65_535 << 14;
/// Maximum number of SACK edges in one header (RFC 2018).
const MAX_SACK_EDGES: usize = 8;

/// What a target has read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Account {
    /// Bytes of frames, plus [`RECORD_BYTES`] for each.
    pub bytes_read: usize,
    /// TCP segments.
    pub segments: u64,
    /// Payload bytes of the TCP segments.
    pub payload_bytes: u64,
    /// UDP datagrams.
    pub datagrams: u64,
}

/// The pipeline from frames to tables.
#[derive(Default)]
pub struct Pipeline {
    dissector: Dissector,
    packets: Vec<Packet>,
    connections: Connections,
    flows: Flows,
    segment_rows: Vec<SegmentRow>,
    datagram_rows: Vec<DatagramRow>,
    /// Sums over returned connections.
    out: Out,
    account: Account,
    /// Totals of the tables, if the caller wants them.
    pub totals: Option<Totals>,
    /// Resolution of the capture's timestamps.
    pub resolution_ns: i64,
}

impl Pipeline {
    /// Produces the rows of a frame.
    pub fn take(&mut self, frame: &Frame<'_>) {
        self.account.bytes_read += frame.data.len() + RECORD_BYTES;
        self.packets.clear();
        let read = self.dissector.read(frame, &mut self.packets);
        let packets = std::mem::take(&mut self.packets);
        assert_eq!(read.is_ok(), !packets.is_empty(), "{read:?} with {} packets", packets.len());
        for packet in &packets {
            match packet {
                Packet::Tcp(segment) => self.take_segment(segment, frame),
                Packet::Udp(datagram) => self.take_datagram(datagram, frame),
            }
        }
        self.packets = packets;
        if self.segment_rows.len().max(self.datagram_rows.len()) >= DEFAULT_BATCH_ROWS {
            self.hand_out();
        }
    }

    fn take_segment(&mut self, segment: &Segment, frame: &Frame<'_>) {
        // A segment whose PDU has lost its last cell is recognized only at the end of the next PDU.
        let earlier = segment.damaged && segment.frame < frame.number;
        assert!(earlier || (segment.frame, segment.ts_ns) == (frame.number, frame.ts_ns), "a segment of another frame");
        assert!(segment.captured_payload_bytes <= segment.payload_bytes, "more captured than sent: {segment:?}");
        let rows = self.segment_rows.len();
        self.connections.take(segment, &mut self.segment_rows);
        assert_eq!(self.segment_rows.len(), rows + 1, "a segment is a row");
        let copy = self
            .segment_rows
            .last()
            .is_some_and(|row| matches!(row.kind, Kind::CaptureDuplicate | Kind::NetworkDuplicate));
        self.account.segments += 1;
        if !copy {
            self.account.payload_bytes += u64::from(segment.payload_bytes);
        }
        if let Some(closed) = self.connections.take_closed() {
            self.out.take(&closed, self.resolution_ns, &mut self.totals);
        }
    }

    fn take_datagram(&mut self, datagram: &Datagram, frame: &Frame<'_>) {
        let earlier = datagram.frame < frame.number;
        assert!(
            earlier || (datagram.frame, datagram.ts_ns) == (frame.number, frame.ts_ns),
            "a datagram of another frame"
        );
        assert!(datagram.captured_payload_bytes <= datagram.payload_bytes, "more captured than sent: {datagram:?}");
        self.datagram_rows.push(self.flows.take(datagram));
        self.account.datagrams += 1;
        if let Some(closed) = self.flows.take_closed() {
            self.take_flows(&closed);
        }
    }

    fn take_flows(&mut self, rows: &[FlowRow]) {
        let table = table::flows(rows).expect("columns of one length");
        assert_eq!(table.num_rows(), rows.len());
        add("flows", &table, &mut self.totals);
    }

    /// Ends the capture.
    pub fn finish(self) -> Account {
        self.finish_with_totals().0
    }

    /// Ends the capture. Also returns the totals of the tables, if the caller wants them.
    pub fn finish_with_totals(mut self) -> (Account, Option<Totals>) {
        self.hand_out();
        while let Some(flows) = self.flows.take_rest() {
            self.take_flows(&flows);
        }
        for incident in self.dissector.incidents() {
            assert!(incident.count >= 1, "{incident:?}");
        }
        let connections = self.connections.len();
        let revisions = self.connections.take_revisions();
        assert!(revisions.as_slice().len() <= MAX_REVISIONS);
        assert!(revisions.as_slice().iter().all(|revision| revision.frame <= revision.evidence_frame), "{revisions:?}");
        table::revisions(revisions.as_slice()).expect("columns of one length");
        while let Some(rows) = self.connections.take_rest() {
            self.out.take(&rows, self.resolution_ns, &mut self.totals);
        }
        let Out { numbers, segments, payload_bytes } = self.out;
        assert!(numbers.len() == connections && numbers.iter().all(|out| *out), "each connection is handed out once");
        assert_eq!(segments, self.account.segments, "connections with other segments than were read");
        assert_eq!(payload_bytes, self.account.payload_bytes, "connections with other bytes than were read");
        (self.account, self.totals)
    }

    fn hand_out(&mut self) {
        let paths = self.dissector.path_names();
        for row in &self.segment_rows {
            check_segment(row, self.connections.len());
        }
        let mut rows = SegmentRows::default();
        self.segment_rows.drain(..).for_each(|row| rows.push(row));
        let table = Segments::new(None).batch(&rows, &paths).expect("columns of one length");
        assert_eq!(table.num_rows(), rows.len());
        add("segments", &table, &mut self.totals);
        let table = table::datagrams(&self.datagram_rows, &paths).expect("columns of one length");
        assert_eq!(table.num_rows(), self.datagram_rows.len());
        add("datagrams", &table, &mut self.totals);
        self.datagram_rows.clear();
    }
}

/// Sums over returned connections.
#[derive(Default)]
struct Out {
    /// For each connection number, whether its connection was returned.
    numbers: Vec<bool>,
    segments: u64,
    payload_bytes: u64,
}

impl Out {
    fn take(&mut self, rows: &[ConnectionRow], resolution_ns: i64, totals: &mut Option<Totals>) {
        for row in rows {
            let number = row.conn as usize;
            self.numbers.resize(self.numbers.len().max(number + 1), false);
            assert!(!std::mem::replace(&mut self.numbers[number], true), "connection {number} is handed out twice");
            check_connection(row);
            self.segments += row.directions.iter().map(all_segments).sum::<u64>();
            self.payload_bytes += row.counts.iter().map(|counts| counts.payload_bytes).sum::<u64>();
        }
        let table = table::connections(rows, resolution_ns).expect("columns of one length");
        assert_eq!(table.num_rows(), rows.len());
        add("connections", &table, totals);
    }
}

fn add(name: &'static str, batch: &RecordBatch, totals: &mut Option<Totals>) {
    if let Some(totals) = totals {
        totals.add(name, batch);
    }
}

/// Number of segments of a direction, including duplicates.
fn all_segments(figures: &DirectionFigures) -> u64 {
    figures.segments + u64::from(figures.capture_duplicates) + u64::from(figures.network_duplicates)
}

/// Whether the value is null or at least 0.
fn natural(value: Nullable) -> bool {
    value.get().is_none_or(|value| value >= 0)
}

fn check_segment(row: &SegmentRow, connections: usize) {
    assert!((row.conn as usize) < connections, "unknown connection: {row:?}");
    assert!(
        natural(row.in_flight_bytes)
            && natural(row.acked_bytes)
            && natural(row.rtt_ns)
            && natural(row.acked_unseen_bytes),
        "below nothing: {row:?}"
    );
    assert!(row.window_bytes.is_none_or(|window| window <= MAX_WINDOW_BYTES), "window: {row:?}");
    assert!(row.evidence_frame <= row.frame, "evidence from later on: {row:?}");
    assert_eq!(row.kind.is_resent(), row.retransmit_trigger.is_some(), "sent again, or not: {row:?}");
    let edges = row.sack_blocks.as_ref().map_or(0, |edges| edges.len());
    assert!(edges <= MAX_SACK_EDGES && edges.is_multiple_of(2), "SACK blocks: {row:?}");
}

fn check_connection(row: &ConnectionRow) {
    assert!(row.first_frame <= row.last_frame, "frames: {row:?}");
    for (figures, counts) in row.directions.iter().zip(&row.counts) {
        check_direction(figures, counts);
    }
}

fn check_direction(figures: &DirectionFigures, counts: &Counts) {
    let segments = figures.segments;
    let of_all = [
        figures.data_segments,
        counts.pure_acks,
        counts.truncated_segments,
        counts.retransmitted_segments.into(),
        counts.out_of_order_segments.into(),
        counts.duplicate_acks.into(),
        counts.keepalives.into(),
        counts.zero_window_probes.into(),
        counts.window_updates.into(),
        counts.zero_window_advertisements.into(),
        counts.pushed_segments.into(),
        figures.syn_segments.into(),
        figures.fin_segments.into(),
        figures.rst_segments.into(),
    ];
    assert!(figures.spurious_retransmissions <= counts.retransmitted_segments, "needless: {figures:?} {counts:?}");
    assert!(of_all.iter().all(|some| *some <= segments), "a part is more than the whole: {figures:?} {counts:?}");
    let payload = counts.payload_bytes;
    assert!(counts.unique_bytes <= payload && counts.retransmitted_bytes <= payload, "bytes counted twice: {counts:?}");
    assert!(u64::from(figures.max_segment_bytes) <= payload, "largest segment: {figures:?}");
    assert!(natural(figures.max_in_flight_bytes), "in flight: {figures:?}");
    assert!(figures.window_scale.is_none_or(|scale| scale <= 14), "window scale: {figures:?}");
    if let (Some(min), Some(max)) = (counts.min_window_bytes, counts.max_window_bytes) {
        assert!(min <= max, "windows: {counts:?}");
    }
    if let (Some(min), Some(mean), Some(max)) = (counts.rtt.min_ns(), counts.rtt.mean_ns(), counts.rtt.max_ns()) {
        assert!(0 <= min && min <= mean && mean <= max, "round trips: {counts:?}");
    }
}
