//! Reconstructs application messages from segments. A message is a run of bytes in one direction, with its stalls, its
//! ACK and its answer.
//!
//! A message ends where the direction of the dialogue changes: the sender's next bytes acknowledge all data of the
//! peer, some of it for the first time. A message also ends where the application pauses for 10 ms or two RTTs,
//! whichever is longer; the ledger marks these pauses ([`crate::ledger::rows::NoteRow`]). Time in which TCP delayed the
//! data is not a pause. PSH on a segment below the MSS ends a write, not a message: an application may write one
//! message in pieces.
//!
//! If a host sends bytes while data of the peer are in flight (pipelined requests, full duplex), message boundaries are
//! unknown. In this case, the current and the next message of both directions are marked as overlapping, and nothing is
//! concluded from them. A message has a special state if it starts before the capture, or if some of its bytes are
//! missing from the capture.
//!
//! Segments come in batches. Two kinds of message are kept between batches: unacknowledged messages, and the last
//! message of each direction.

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use crate::connection::Kind;
use crate::ledger::{Cause, Note};

/// Maximum number of writes that are listed per message. If there are more, the first ones are listed.
const MAX_WRITES: usize = 64;

/// An unacknowledged message becomes final after more than this many later messages in its direction. Its ACK is then
/// no longer expected.
const UNACKED_MESSAGES: i64 = 64;

/// The PSH flag (RFC 9293, 3.1).
const PSH: u16 = 8;

/// The properties of a segment from which messages are reconstructed; the segment has data or acknowledges new data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Segment {
    pub conn: u32,
    pub from_client: bool,
    pub frame: i64,
    pub ts_ns: Option<i64>,
    /// Stream offset of the segment's first byte.
    pub seq: i64,
    pub ack: Option<i64>,
    pub payload_bytes: i64,
    pub flags: u16,
    /// Code of the segment's kind ([`Kind`]).
    pub kind: u8,
    pub acked_bytes: i64,
    pub acked_unseen_bytes: i64,
    pub smss_bytes: Option<i64>,
}

impl Segment {
    fn end(&self) -> i64 {
        self.seq.saturating_add(self.payload_bytes)
    }

    fn is_new(&self) -> bool {
        self.payload_bytes > 0 && self.kind == Kind::New as u8
    }

    /// Whether the segment's data belong to a message.
    fn brings(&self) -> bool {
        const OTHERS: [Kind; 4] = [Kind::CaptureDuplicate, Kind::NetworkDuplicate, Kind::Keepalive, Kind::LinkDamaged];
        self.payload_bytes > 0 && !OTHERS.iter().any(|kind| self.kind == *kind as u8)
    }

    /// Whether the segment is smaller than a full-sized one. For a merged segment, this applies to the last of the
    /// merged segments.
    fn is_small(&self) -> bool {
        self.smss_bytes.is_some_and(|full| full > 0 && self.payload_bytes % full != 0)
    }
}

/// The ledger's note on a transmission, and its frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Noted {
    pub frame: i64,
    pub note: Note,
    pub caused_ns: i64,
}

/// Whether a message is completely known, and if not, the reason. The states are in the order of `MESSAGE_STATES` in
/// `tcptrace_lab/schema/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum State {
    /// Complete.
    Whole,
    /// Data of the peer were in flight while the message was sent, so the end of the message is unknown.
    Overlapping,
    /// The message is the first of its direction, and the bytes before it are missing from the capture.
    StartMissing,
    /// Some bytes of the message are missing from the capture.
    BytesMissing,
}

/// One message. Offsets are stream offsets; times are those of segments and are null if unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, clippy::struct_excessive_bools)] // independent facts
pub struct Message {
    pub conn: u32,
    pub from_client: bool,
    /// Number of the message in its direction, from 0.
    pub index: i64,
    pub start_offset: i64,
    pub end_offset: i64,
    pub segments: i64,
    pub first_frame: i64,
    pub last_frame: i64,
    /// Frame of the segment that ended the first stall.
    pub stall_frame: Option<i64>,
    /// Frame of the segment that ended the first short wait caused by Nagle's algorithm.
    pub short_nagle_wait_frame: Option<i64>,
    pub first_ts_ns: Option<i64>,
    pub last_ts_ns: Option<i64>,
    pub acked_ts_ns: Option<i64>,
    answer_ts_ns: Option<i64>,
    pub short_nagle_wait_ns: i64,
    pub stalled_ns: i64,
    longest_stall: Option<(i64, Cause)>,
    small_ends: Vec<i64>,
    is_held: bool,
    is_unpushed: bool,
    is_overlapping: bool,
    is_after_overlap: bool,
    is_start_missing: bool,
    has_hole: bool,
    is_missing_bytes: bool,
    is_resent: bool,
}

impl Message {
    /// Whether the message is completely known.
    #[must_use]
    pub fn state(&self) -> State {
        if self.is_overlapping || self.is_after_overlap {
            State::Overlapping
        } else if self.is_start_missing {
            State::StartMissing
        } else if self.is_missing_bytes || (self.has_hole && self.acked_ts_ns.is_none()) {
            State::BytesMissing
        } else {
            State::Whole
        }
    }

    /// Time of the first byte of the peer's answer; `None` if the peer sent no answer, or if both hosts sent at the
    /// same time.
    #[must_use]
    pub fn answer_ts_ns(&self) -> Option<i64> {
        self.answer_ts_ns.filter(|_| self.state() != State::Overlapping)
    }

    /// Cause of the message's longest stall.
    #[must_use]
    pub fn stall_cause(&self) -> Option<Cause> {
        self.longest_stall.map(|(_, cause)| cause)
    }

    /// Sizes of the message's writes. A segment below the MSS ends a write of the application. `None` if bytes were
    /// retransmitted or some bytes are missing.
    #[must_use]
    pub fn writes(&self) -> Option<Vec<i64>> {
        if self.is_resent || self.state() != State::Whole {
            return None;
        }
        let mut from = self.start_offset;
        let ends = self.small_ends.iter().chain([&self.end_offset]);
        let sizes = ends.map(|end| end.saturating_sub(std::mem::replace(&mut from, *end)));
        Some(sizes.filter(|size| *size > 0).collect())
    }

    /// Whether `writes` is reliable: there are several writes, Nagle's algorithm delayed none of them, and each ends
    /// with PSH.
    #[must_use]
    pub fn writes_fit(&self, writes: &[i64]) -> bool {
        writes.len() > 1 && !self.is_held && !self.is_unpushed
    }

    fn started_by(segment: &Segment, index: i64, is_after_overlap: bool) -> Self {
        Self {
            conn: segment.conn,
            from_client: segment.from_client,
            index,
            start_offset: segment.seq,
            end_offset: segment.end(),
            segments: 0,
            first_frame: segment.frame,
            last_frame: segment.frame,
            stall_frame: None,
            short_nagle_wait_frame: None,
            first_ts_ns: segment.ts_ns,
            last_ts_ns: segment.ts_ns,
            acked_ts_ns: None,
            answer_ts_ns: None,
            short_nagle_wait_ns: 0,
            stalled_ns: 0,
            longest_stall: None,
            small_ends: Vec::new(),
            is_held: false,
            is_unpushed: false,
            is_overlapping: false,
            is_after_overlap,
            is_start_missing: index == 0 && segment.seq != 1,
            has_hole: false,
            is_missing_bytes: false,
            is_resent: false,
        }
    }

    /// Adds a segment with data. `inside` is false for the first segment of every message except the first message,
    /// because a wait before this segment is not part of the message.
    fn add(&mut self, segment: &Segment, noted: &Noted, inside: bool) {
        let (frame, end) = (segment.frame, segment.end());
        self.segments += 1;
        (self.last_frame, self.last_ts_ns) = (frame, segment.ts_ns);
        self.start_offset = self.start_offset.min(segment.seq);
        if end > self.end_offset {
            (self.end_offset, self.acked_ts_ns) = (end, None);
        }
        let (note, caused_ns) = (noted.note, noted.caused_ns);
        if let Some(cause) = note.stall_cause {
            self.is_held |= matches!(cause, Cause::Nagle | Cause::NagleDelayedAck);
            if inside {
                self.stall_frame = self.stall_frame.or(Some(frame));
                self.stalled_ns = self.stalled_ns.saturating_add(caused_ns);
                if self.longest_stall.is_none_or(|(longest_ns, _)| caused_ns > longest_ns) {
                    self.longest_stall = Some((caused_ns, cause));
                }
            }
        }
        if inside && note.short_nagle_delay {
            self.short_nagle_wait_frame = self.short_nagle_wait_frame.or(Some(frame));
            self.short_nagle_wait_ns = self.short_nagle_wait_ns.saturating_add(caused_ns);
        }
        self.is_resent |= note.is_resent;
        if segment.is_new() && segment.is_small() {
            self.is_unpushed |= segment.flags & PSH == 0;
            if self.small_ends.len() < MAX_WRITES {
                self.small_ends.push(end);
            }
        }
    }
}

/// An ACK of new data in this batch.
#[derive(Clone, Copy, Debug)]
struct Ack {
    offset: i64,
    ts_ns: Option<i64>,
}

/// One direction of a connection.
#[derive(Debug, Default)]
struct Direction {
    /// Messages that may still change, in order; the next segment may belong to the last one.
    open: Vec<Message>,
    /// The acknowledgment number of the last segment with new data, as a stream offset of the peer.
    acked: Option<i64>,
    /// The highest offset of the data so far.
    end: Option<i64>,
    /// ACKs of new data that the peer sent in this batch, and the acknowledged ranges that are missing from the
    /// capture.
    acks: Vec<Ack>,
    unseen: Vec<(i64, i64)>,
}

impl Direction {
    /// Adds a segment with data, and returns whether it was sent while data of the peer were in flight.
    fn add(&mut self, segment: &Segment, noted: &Noted, peer_end: Option<i64>) -> bool {
        let acks_all = peer_end.is_none_or(|end| segment.ack.is_some_and(|ack| ack >= end));
        let overlaps = segment.is_new() && peer_end.is_some() && segment.ack.is_some() && !acks_all;
        let own_end = self.end;
        let mut turned = false;
        if segment.is_new() {
            let acked = [segment.ack, peer_end].into_iter().flatten().min().unwrap_or(0);
            turned = acks_all && self.acked.is_some_and(|before| acked > before);
            self.acked = Some(acked);
        }
        let last = self.open.last();
        let follows = segment.is_new() && segment.seq >= own_end.unwrap_or(0);
        let begins = last.is_some() && follows && (turned || noted.note.paused);
        if begins || last.is_none() {
            let (index, after_overlap) = last.map_or((0, false), |last| (last.index + 1, last.is_overlapping));
            self.open.push(Message::started_by(segment, index, after_overlap));
        }
        if let Some(message) = self.open.last_mut() {
            message.add(segment, noted, !begins);
            message.is_overlapping |= overlaps;
            message.has_hole |= segment.is_new() && own_end.is_some_and(|end| segment.seq > end);
        }
        overlaps
    }

    /// Applies the ACKs of a batch, and moves the messages that are final to `done`.
    fn settle(&mut self, done: &mut Vec<Message>) {
        self.acks.sort_by_key(|ack| ack.offset);
        for message in &mut self.open {
            let (from, to) = (message.start_offset, message.end_offset);
            message.is_missing_bytes |= self.unseen.iter().any(|(low, high)| from < *high && to > *low);
            if message.acked_ts_ns.is_none() {
                let place = self.acks.partition_point(|ack| ack.offset < to);
                message.acked_ts_ns = self.acks.get(place).and_then(|ack| ack.ts_ns);
            }
        }
        self.acks.clear();
        self.unseen.clear();
        let Some(last) = self.open.last().map(|message| message.index) else { return };
        let is_final = |message: &Message| {
            let behind = last - message.index;
            behind > UNACKED_MESSAGES || (behind > 0 && message.acked_ts_ns.is_some())
        };
        done.extend(self.open.extract_if(.., |message| is_final(message)));
    }
}

/// The messages of one connection: the server's direction first, then the client's.
#[derive(Debug, Default)]
struct Dialogue {
    directions: [Direction; 2],
    is_touched: bool,
}

impl Dialogue {
    fn add(&mut self, segment: &Segment, noted: &Noted) {
        let [server, client] = &mut self.directions;
        let (own, peer) = if segment.from_client { (client, server) } else { (server, client) };
        if segment.brings() {
            let overlaps = own.add(segment, noted, peer.end);
            if segment.is_new()
                && let Some(before) = peer.open.last_mut()
            {
                before.answer_ts_ns = before.answer_ts_ns.or(segment.ts_ns);
                before.is_overlapping |= overlaps;
            }
            own.end = own.end.max(Some(segment.end()));
        }
        if segment.acked_bytes > 0
            && let Some(offset) = segment.ack
        {
            peer.acks.push(Ack { offset, ts_ns: segment.ts_ns });
            if segment.acked_unseen_bytes > 0 {
                peer.unseen.push((offset.saturating_sub(segment.acked_bytes), offset));
            }
        }
    }
}

/// Reconstructs the messages of many connections from their segments, which are added in capture order.
///
/// ```
/// use tcptrace_lab_core::connection::Kind;
/// use tcptrace_lab_core::messages::{Messages, Segment};
///
/// let request = Segment { conn: 0, from_client: true, frame: 4, ts_ns: Some(0), seq: 1, ack: Some(1), payload_bytes: 100,
///     flags: 24, kind: Kind::New as u8, acked_bytes: 0, acked_unseen_bytes: 0, smss_bytes: Some(1460) };
/// let answer = Segment { from_client: false, frame: 5, ts_ns: Some(30_000_000), ack: Some(101), payload_bytes: 400,
///     acked_bytes: 100, ..request };
/// let mut messages = Messages::new(Vec::new());
/// [request, answer].iter().for_each(|segment| messages.add(segment));
/// let answered: Vec<_> = messages.rest().iter().map(|message| message.answer_ts_ns()).collect();
/// assert_eq!(answered, [None, Some(30_000_000)]); // the server's direction comes first
/// ```
#[derive(Debug)]
pub struct Messages {
    notes: Vec<Noted>,
    next_note: usize,
    dialogues: HashMap<u32, Dialogue, RandomState>,
    touched: Vec<u32>,
}

impl Messages {
    /// Returns a reconstruction without segments. `notes` are the ledger's notes on the connections whose segments will
    /// be added.
    #[must_use]
    pub fn new(mut notes: Vec<Noted>) -> Self {
        notes.sort_by_key(|noted| noted.frame);
        Self { notes, next_note: 0, dialogues: HashMap::default(), touched: Vec::new() }
    }

    /// Adds the next segment. Segments must be added in the order of their frames.
    pub fn add(&mut self, segment: &Segment) {
        let later = self.notes.get(self.next_note..).unwrap_or_default();
        self.next_note += later.iter().take_while(|noted| noted.frame < segment.frame).count();
        let noted = self.notes.get(self.next_note).filter(|noted| noted.frame == segment.frame);
        let dialogue = self.dialogues.entry(segment.conn).or_default();
        dialogue.add(segment, &noted.copied().unwrap_or_default());
        if !std::mem::replace(&mut dialogue.is_touched, true) {
            self.touched.push(segment.conn);
        }
    }

    /// Ends a batch, and returns the messages that are final. The messages are ordered by connection, then by direction
    /// (the server's first), then by time.
    pub fn settled(&mut self) -> Vec<Message> {
        let mut done = Vec::new();
        self.touched.sort_unstable();
        for conn in self.touched.drain(..) {
            if let Some(dialogue) = self.dialogues.get_mut(&conn) {
                dialogue.is_touched = false;
                dialogue.directions.iter_mut().for_each(|direction| direction.settle(&mut done));
            }
        }
        done
    }

    /// Returns the messages that were not final before, ordered as in [`Messages::settled`]. Call this function after
    /// the last batch.
    pub fn rest(&mut self) -> Vec<Message> {
        let mut left: Vec<(u32, Dialogue)> = std::mem::take(&mut self.dialogues).into_iter().collect();
        left.sort_unstable_by_key(|(conn, _)| *conn);
        left.into_iter().flat_map(|(_, dialogue)| dialogue.directions).flat_map(|direction| direction.open).collect()
    }
}
