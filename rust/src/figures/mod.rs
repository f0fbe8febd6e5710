//! Data for the figures of one direction in a report: lines, marks, bursts, throughput and causes.
//!
//! Segments and waits arrive in batches, in the order of the capture. A series stores a limited number of points, and
//! counts all points. A connection of any length therefore needs limited memory, and the report can state how many
//! points it does not draw. The size of the batches does not affect the figures.

mod holes;
mod points;
mod state;
mod strip;

use std::collections::BTreeMap;

pub use holes::{Holes, MAX_HOLES};
pub use points::{LONGEST_GAPS, Point, even, line_points};
use state::SENDER_MARKS;
pub use state::{Segment, State, Tracked, Tracker};
pub use strip::{Band, Strip};

use crate::connection::Kind;
use crate::wire::TcpFlags;

/// Number of points per line, or of marks per name, that are kept between two batches. The number is several times the
/// number of drawn points, so that the reduction between batches is not visible in the figure.
const HELD_POINTS: usize = 20_000;

/// Names of the lines in order.
pub const LINES: [&str; 7] = ["acked", "window_edge", "flight", "offered", "rtt", "ack_lag", "payload"];

/// Names of the marks in order. The kinds of the sender's segments (`SENDER_MARKS`) come first, then other events of
/// both hosts. `zero_window`, `peer_reset` and `duplicate_ack` mark segments of the receiver. `sack` marks each SACK
/// block of the receiver.
pub const MARKS: [&str; 19] = [
    "retransmit",
    "fast_retransmit",
    "rto_retransmit",
    "tail_probe",
    "spurious",
    "recovery_retransmit",
    "syn_retransmit",
    "out_of_order",
    "network_duplicate",
    "capture_duplicate",
    "keepalive",
    "zero_window_probe",
    "reset",
    "syn",
    "fin",
    "zero_window",
    "peer_reset",
    "duplicate_ack",
    "sack",
];

/// Indices in `MARKS` of the other events.
const SYN_MARK: usize = SENDER_MARKS.len();
const FIN_MARK: usize = SYN_MARK + 1;
const ZERO_WINDOW_MARK: usize = SYN_MARK + 2;
const PEER_RESET_MARK: usize = SYN_MARK + 3;
const DUPLICATE_ACK_MARK: usize = SYN_MARK + 4;
const SACK_MARK: usize = SYN_MARK + 5;

/// Consecutive data segments that one stroke represents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Burst {
    pub t_ns: i64,
    pub t_end_ns: i64,
    /// The lowest stream offset of the stroke.
    pub low: i64,
    /// The highest stream offset of the stroke, plus one.
    pub high: i64,
    pub segments: i64,
    pub payload_bytes: i64,
    pub frame: i64,
    pub frame_end: i64,
}

/// A mark for a segment or SACK block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Mark {
    pub t_ns: i64,
    /// The stream offset of the mark, or `None` if the segment has no acknowledgment number.
    pub low: Option<i64>,
    pub payload_bytes: i64,
    pub frame: i64,
}

/// Limits for the series of one direction.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Length of a bin for throughput.
    pub bin_ns: i64,
    /// Maximum number of data segments in one stroke.
    pub run: i64,
    /// The longest pause within a stroke. Longer pauses stay visible.
    pub silence_ns: i64,
}

/// The points of one line, or the marks of one name. As soon as there are more than twice `HELD_POINTS` points, they
/// are reduced.
#[derive(Debug)]
struct Held<T> {
    points: Vec<T>,
    count: u64,
    reduce: fn(&[T], usize) -> Vec<T>,
}

impl<T> Held<T> {
    fn new(reduce: fn(&[T], usize) -> Vec<T>) -> Self {
        Self { points: Vec::new(), count: 0, reduce }
    }

    fn add(&mut self, point: T) {
        self.count += 1;
        self.points.push(point);
        if self.points.len() > 2 * HELD_POINTS {
            self.points = (self.reduce)(&self.points, HELD_POINTS);
        }
    }

    fn drawn(&self, keep: usize) -> Drawn<T> {
        Drawn { points: (self.reduce)(&self.points, keep), count: self.count }
    }
}

/// A step line: the points at which the value changes, and the last point.
#[derive(Debug)]
struct Steps {
    line: Held<Point>,
    /// The last point of the line, if the value did not change at this point.
    last: Option<Point>,
    y: Option<i64>,
}

impl Steps {
    fn new() -> Self {
        Self { line: Held::new(line_points), last: None, y: None }
    }

    fn add(&mut self, t_ns: i64, y: Option<i64>, frame: i64) {
        let Some(y) = y else { return };
        let point = Point { t_ns, y, frame };
        if self.y == Some(y) {
            self.last = Some(point);
        } else {
            self.y = Some(y);
            self.last = None;
            self.line.add(point);
        }
    }

    fn end(mut self) -> Held<Point> {
        if let Some(last) = self.last {
            self.line.add(last);
        }
        self.line
    }
}

/// A reduced series, and the number of points or marks before the reduction.
#[derive(Debug)]
#[allow(missing_docs)]
pub struct Drawn<T> {
    pub points: Vec<T>,
    pub count: u64,
}

/// Collects the series of one direction.
#[derive(Debug)]
pub struct Series {
    limits: Limits,
    bursts: Vec<Burst>,
    /// Number of data segments drawn so far.
    strokes: i64,
    steps: [Steps; 4],
    samples: [Held<Point>; 3],
    marks: [Held<Mark>; MARKS.len()],
    holes: Holes,
    bins: BTreeMap<i64, i64>,
}

impl Series {
    /// A series without points.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            bursts: Vec::new(),
            strokes: 0,
            steps: std::array::from_fn(|_| Steps::new()),
            samples: std::array::from_fn(|_| Held::new(line_points)),
            marks: std::array::from_fn(|_| Held::new(even)),
            holes: Holes::default(),
            bins: BTreeMap::new(),
        }
    }

    /// Adds the next segment of the connection, in either direction.
    pub fn add(&mut self, segment: &Segment, tracked: &Tracked) {
        let (t_ns, frame, payload_bytes) = (tracked.t_ns, segment.frame, segment.payload_bytes);
        if tracked.mine {
            self.add_sent(segment, tracked);
        } else {
            self.add_received(segment, tracked);
        }
        let levels = [tracked.acked, tracked.edge, tracked.flight, tracked.offered];
        for (steps, level) in self.steps.iter_mut().zip(levels) {
            steps.add(t_ns, level, frame);
        }
        let of_data = (tracked.mine && payload_bytes > 0).then_some(payload_bytes);
        let of_acks = [segment.rtt_ns, segment.ack_lag_ns].map(|sample| sample.filter(|_| !tracked.mine));
        for (line, sample) in self.samples.iter_mut().zip(of_acks.into_iter().chain([of_data])) {
            if let Some(y) = sample {
                line.add(Point { t_ns, y, frame });
            }
        }
    }

    /// Processes a segment before the drawn section. The segment is not drawn, but can open a hole that a later segment
    /// fills.
    pub fn skip(&mut self, segment: &Segment, tracked: &Tracked) {
        if tracked.mine && segment.brings_data() {
            self.fill_hole(segment, tracked);
        }
    }

    /// Number of marks of each name so far.
    #[must_use]
    pub fn mark_counts(&self) -> [u64; MARKS.len()] {
        std::array::from_fn(|place| self.marks.get(place).map_or(0, |marks| marks.count))
    }

    /// Returns the series, and starts again without points. `keep` is the approximate number of points per line.
    /// `granted` contains the maximum number of marks of each name.
    #[must_use]
    pub fn take(&mut self, keep: usize, granted: &[usize]) -> Figures {
        std::mem::replace(self, Self::new(self.limits)).finish(keep, granted)
    }

    fn finish(self, keep: usize, granted: &[usize]) -> Figures {
        let lines = self.steps.into_iter().map(Steps::end).chain(self.samples);
        let granted = granted.iter().copied().chain(std::iter::repeat(0));
        Figures {
            bursts: self.bursts,
            lines: lines.map(|line| line.drawn(keep)).collect(),
            marks: self.marks.iter().zip(granted).map(|(marks, keep)| marks.drawn(keep)).collect(),
            throughput: self.bins.into_iter().filter(|(_, bytes)| *bytes > 0).collect(),
        }
    }

    fn add_sent(&mut self, segment: &Segment, tracked: &Tracked) {
        if let Some(place) = segment.mark() {
            let is_reset = segment.kind == Kind::Reset as u8;
            // The sequence number of a RST is arbitrary, so its mark is drawn at the highest sent offset.
            let low = if is_reset { tracked.sent.unwrap_or(0) } else { segment.seq };
            self.mark(place, segment, tracked, Some(low));
        } else {
            for (flag, place, low) in [(TcpFlags::SYN, SYN_MARK, segment.seq), (TcpFlags::FIN, FIN_MARK, segment.end())]
            {
                if segment.flags.any(flag) {
                    self.mark(place, segment, tracked, Some(low));
                }
            }
            if segment.payload_bytes > 0 {
                self.stroke(segment, tracked.t_ns);
            }
        }
        if segment.brings_data() {
            let unique = segment.fresh_bytes(tracked.sent_before) + self.fill_hole(segment, tracked);
            let bin = tracked.t_ns.div_euclid(self.limits.bin_ns).saturating_mul(self.limits.bin_ns);
            let sum = self.bins.entry(bin).or_default();
            *sum = sum.saturating_add(unique);
        }
    }

    fn add_received(&mut self, segment: &Segment, tracked: &Tracked) {
        if segment.flags.any(TcpFlags::RST) {
            self.mark(PEER_RESET_MARK, segment, tracked, Some(tracked.acked.or(tracked.sent).unwrap_or(0)));
        } else {
            if segment.window_bytes == Some(0) && segment.ack.is_some() {
                self.mark(ZERO_WINDOW_MARK, segment, tracked, segment.ack);
            }
            if segment.kind == Kind::DuplicateAck as u8 {
                self.mark(DUPLICATE_ACK_MARK, segment, tracked, segment.ack);
            }
        }
        let (blocks, _) = segment.sack_blocks.as_chunks::<2>();
        for [left, right] in blocks {
            let mark = Mark {
                t_ns: tracked.t_ns,
                low: Some(*left),
                payload_bytes: right.saturating_sub(*left),
                frame: segment.frame,
            };
            self.marks[SACK_MARK].add(mark);
        }
    }

    fn mark(&mut self, place: usize, segment: &Segment, tracked: &Tracked, low: Option<i64>) {
        let mark = Mark { t_ns: tracked.t_ns, low, payload_bytes: segment.payload_bytes, frame: segment.frame };
        if let Some(marks) = self.marks.get_mut(place) {
            marks.add(mark);
        }
    }

    /// Adds a data segment to the last stroke. After a pause, or if the last stroke is full, starts a new stroke.
    fn stroke(&mut self, segment: &Segment, t_ns: i64) {
        let joins = self.strokes % self.limits.run.max(1) != 0;
        self.strokes += 1;
        let (low, high, frame) = (segment.seq, segment.end(), segment.frame);
        match self.bursts.last_mut() {
            Some(last) if joins && t_ns.saturating_sub(last.t_end_ns) <= self.limits.silence_ns => {
                (last.t_end_ns, last.frame_end) = (t_ns, frame);
                (last.low, last.high) = (last.low.min(low), last.high.max(high));
                last.segments += 1;
                last.payload_bytes = last.payload_bytes.saturating_add(segment.payload_bytes);
            }
            _ => self.bursts.push(Burst {
                t_ns,
                t_end_ns: t_ns,
                low,
                high,
                segments: 1,
                payload_bytes: segment.payload_bytes,
                frame,
                frame_end: frame,
            }),
        }
    }

    /// Opens a hole if the segment starts above the expected offset, and fills holes if the segment starts below the
    /// expected offset. Returns the number of filled bytes.
    fn fill_hole(&mut self, segment: &Segment, tracked: &Tracked) -> i64 {
        match tracked.sent_before {
            Some(before) if segment.seq > before => self.holes.open(before, segment.seq),
            Some(before) if segment.seq < before && segment.may_fill_holes() => {
                return self.holes.fill(segment.seq, segment.end().min(before));
            }
            _ => {}
        }
        0
    }
}

/// The reduced series of one direction.
#[derive(Debug)]
pub struct Figures {
    /// The data segments as strokes.
    pub bursts: Vec<Burst>,
    /// The lines in the order of `LINES`.
    pub lines: Vec<Drawn<Point>>,
    /// The marks in the order of `MARKS`.
    pub marks: Vec<Drawn<Mark>>,
    /// Start of each bin with data, and its number of bytes that were new to the capture.
    pub throughput: Vec<(i64, i64)>,
}
