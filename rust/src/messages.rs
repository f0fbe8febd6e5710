//! Reconstructs application messages from segments. A message is a run of bytes in one direction, with its stalls, its
//! ACK and its answer.
//!
//! Two events end a message. The first is a turn of the dialogue: the sender's next bytes acknowledge all data of the
//! peer, and some of this data for the first time. The second is a pause of the application of at least 10 ms and two
//! RTTs, which the ledger marks ([`crate::ledger::rows::NoteRow`]). Time in which TCP delayed the data is not a pause.
//! PSH on a segment below the MSS ends a write, but not a message, because an application can write a message in
//! pieces.
//!
//! If a host sends while data of the peer is in flight (pipelined requests, full duplex), message boundaries are
//! unknown. In this case, the current and the next message of both directions count as overlapping, and no conclusions
//! are drawn from these messages. A message also has a state of its own if it starts before the capture, or if the
//! capture lacks some of its bytes.
//!
//! Segments come in batches. Unacknowledged messages and the last message of each direction are kept between batches.

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use crate::connection::Kind;
use crate::ledger::{Cause, Note};

/// Maximum number of listed writes per message. Later writes are not listed.
const MAX_WRITES: usize = 64;

/// An unacknowledged message is final as soon as more than this many messages follow in its direction. An ACK is not
/// expected after so many messages.
const UNACKED_MESSAGES: i64 = 64;

/// The PSH flag (RFC 9293, 3.1).
const PSH: u16 = 8;

/// The properties of a segment that messages need. The segment has data, or it acknowledges new data.
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

    /// Whether the data of the segment belongs to a message.
    fn brings(&self) -> bool {
        const OTHERS: [Kind; 4] = [Kind::CaptureDuplicate, Kind::NetworkDuplicate, Kind::Keepalive, Kind::LinkDamaged];
        self.payload_bytes > 0 && !OTHERS.iter().any(|kind| self.kind == *kind as u8)
    }

    /// Whether the segment is smaller than a full-sized one. If offload merged several segments, the last one decides.
    fn is_small(&self) -> bool {
        self.smss_bytes.is_some_and(|full| full > 0 && self.payload_bytes % full != 0)
    }
}

/// The ledger's note about a transmission.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Noted {
    pub frame: i64,
    pub note: Note,
    pub caused_ns: i64,
}

/// Whether a message is completely known, or the reason why not. The order is that of `MESSAGE_STATES` in
/// `tcptrace_lab/schema/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum State {
    /// Complete.
    Whole,
    /// Data of the peer was in flight during the message, so the end of the message is unknown.
    Overlapping,
    /// The message is the first one of its direction, and the capture lacks the bytes before it.
    StartMissing,
    /// The capture lacks some bytes of the message.
    BytesMissing,
}

/// One message. Offsets are stream offsets. Times are capture times of segments, or null if unknown.
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
    /// Frame at the end of the first stall.
    pub stall_frame: Option<i64>,
    /// Frame at the end of the first short wait for Nagle's algorithm.
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

    /// Time of the first byte of the peer's answer, or `None` if there is no answer or both hosts sent at the same
    /// time.
    #[must_use]
    pub fn answer_ts_ns(&self) -> Option<i64> {
        self.answer_ts_ns.filter(|_| self.state() != State::Overlapping)
    }

    /// Cause of the longest stall.
    #[must_use]
    pub fn stall_cause(&self) -> Option<Cause> {
        self.longest_stall.map(|(_, cause)| cause)
    }

    /// Sizes of the application's writes, or `None` if bytes were retransmitted or are missing. A segment below the MSS
    /// ends a write.
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

    /// Whether `writes` is reliable. This requires several writes that all end with PSH and did not wait for Nagle's
    /// algorithm.
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

    /// Adds a segment with data. A wait before the segment counts only if the wait is `inside` the message. The wait
    /// before a new message belongs to no message.
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

#[derive(Clone, Copy, Debug)]
struct Ack {
    offset: i64,
    ts_ns: Option<i64>,
}

#[derive(Debug, Default)]
struct Direction {
    /// Messages that can still change, in order. Only the last message can get more segments.
    open: Vec<Message>,
    /// The acknowledgment number of the last segment with new data, as an offset in the peer's stream.
    acked: Option<i64>,
    /// The end of the data so far.
    end: Option<i64>,
    /// The peer's ACKs of new data in this batch, and the acknowledged ranges that the capture lacks.
    acks: Vec<Ack>,
    unseen: Vec<(i64, i64)>,
}

impl Direction {
    /// Adds a segment with data. Returns whether data of the peer was in flight when the segment was sent.
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

    /// Applies the ACKs of a batch, and moves final messages to `done`.
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

/// The messages of both directions of a connection, the server's direction first.
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

/// Reconstructs the messages of many connections.
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
    /// A reconstruction without segments. `notes` are the ledger's notes about the connections.
    #[must_use]
    pub fn new(mut notes: Vec<Noted>) -> Self {
        notes.sort_by_key(|noted| noted.frame);
        Self { notes, next_note: 0, dialogues: HashMap::default(), touched: Vec::new() }
    }

    /// Adds the next segment in order of the frames.
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

    /// Ends a batch. Returns the final messages, ordered by connection, then by direction (the server's direction
    /// first), then by time.
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

    /// Returns the remaining messages after the last batch, ordered as in [`Messages::settled`].
    pub fn rest(&mut self) -> Vec<Message> {
        let mut left: Vec<(u32, Dialogue)> = std::mem::take(&mut self.dialogues).into_iter().collect();
        left.sort_unstable_by_key(|(conn, _)| *conn);
        left.into_iter().flat_map(|(_, dialogue)| dialogue.directions).flat_map(|direction| direction.open).collect()
    }
}
