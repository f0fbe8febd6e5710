//! Target: TCP segments with arbitrary numbers between few endpoints.
//!
//! An input is a list of records of [`RECORD_BYTES`] bytes, one per segment. Random sequence and acknowledgment numbers
//! would rarely be in the window. A record can therefore give these numbers relative to earlier ones.

use tcptrace_lab_core::capture::Frame;

use crate::bounds;
use crate::pipeline::{Account, Pipeline};

/// Bytes of one record.
pub const RECORD_BYTES: usize = 24;
/// RAW in the LINKTYPE registry: IP without a link header.
pub const RAW: u32 = 101;
/// Maximum length of TCP options (RFC 9293, 3.1).
const MAX_OPTION_BYTES: usize = 40;
/// Units of time steps: none, 1 µs, 1 ms, and 1 ms backward.
const STEP_UNITS_NS: [i64; 4] = [0, 1_000, 1_000_000, -1_000_000];

/// The record of one segment.
pub struct Record<'a> {
    bytes: &'a [u8; RECORD_BYTES],
}

impl<'a> Record<'a> {
    /// The segment that these bytes describe.
    pub fn of(bytes: &'a [u8; RECORD_BYTES]) -> Self {
        Self { bytes }
    }

    fn bit(&self, at: usize, bit: u8) -> bool {
        self.bytes[at] >> bit & 1 == 1
    }

    fn half(&self, at: usize) -> u16 {
        u16::from_le_bytes([self.bytes[at], self.bytes[at + 1]])
    }

    fn word(&self, at: usize) -> u32 {
        u32::from_le_bytes([self.bytes[at], self.bytes[at + 1], self.bytes[at + 2], self.bytes[at + 3]])
    }

    /// The number of the connection, one of four (byte 0, bits 0 and 1). Bit 2 is the direction.
    pub fn connection(&self) -> usize {
        usize::from(self.bytes[0] & 3)
    }

    fn backwards(&self) -> bool {
        self.bit(0, 2)
    }

    fn is_v6(&self) -> bool {
        self.bit(0, 3)
    }

    /// Number of time units before the segment (byte 2).
    pub fn step_count(&self) -> u8 {
        self.bytes[2]
    }

    /// Time before the segment. The unit is in byte 0, bits 4 and 5, and the number of units in byte 2.
    pub fn step_ns(&self) -> i64 {
        STEP_UNITS_NS[usize::from(self.bytes[0] >> 4 & 3)] * i64::from(self.step_count())
    }

    /// Whether the data is missing from the capture (byte 0, bit 6).
    fn is_cut(&self) -> bool {
        self.bit(0, 6)
    }

    /// Whether the packet is longer than the length field of IP allows (byte 0, bit 7).
    fn is_jumbo(&self) -> bool {
        self.bit(0, 7)
    }

    fn flags(&self) -> u8 {
        self.bytes[1]
    }

    /// The sequence number, which is relative to earlier ones if bit 6 of byte 3 is set. If bit 7 is set, the
    /// acknowledgment number is relative.
    fn seq(&self, next: u32) -> u32 {
        if self.bit(3, 6) { next.wrapping_add(self.word(4)) } else { self.word(4) }
    }

    fn ack(&self, next: u32) -> u32 {
        if self.bit(3, 7) { next.wrapping_add(self.word(8)) } else { self.word(8) }
    }

    fn payload_bytes(&self) -> u32 {
        let bytes = u32::from(self.half(14));
        if self.is_jumbo() { bytes << 16 } else { bytes }
    }

    /// The options that byte 3, bits 0 to 5 select: MSS, window scale, SACK permitted, timestamps, number of SACK
    /// blocks.
    fn options(&self, ack: u32, echo: u32) -> Vec<u8> {
        let mut options = Vec::new();
        if self.bit(3, 3) {
            options.extend([1, 1, 8, 10]);
            options.extend(self.word(20).to_be_bytes());
            options.extend(echo.to_be_bytes());
        }
        if self.bit(3, 0) {
            options.extend([2, 4]);
            options.extend(self.half(16).to_be_bytes());
        }
        if self.bit(3, 1) {
            options.extend([3, 3, self.bytes[18]]);
        }
        if self.bit(3, 2) {
            options.extend([4, 2]);
        }
        let blocks = self.bytes[3] >> 4 & 3;
        if blocks > 0 {
            options.extend([5, 2 + 8 * blocks]);
            for block in 1..=u32::from(blocks) {
                let left = ack.wrapping_add(block * (u32::from(self.bytes[19]) << (self.bytes[18] & 15)));
                options.extend(left.to_be_bytes());
                options.extend(left.wrapping_add(u32::from(self.half(16))).to_be_bytes());
            }
        }
        options.truncate(MAX_OPTION_BYTES);
        options.resize(options.len().next_multiple_of(4), 0);
        options
    }
}

/// The end of a direction's data so far, and its last TCP timestamp.
#[derive(Clone, Copy, Default)]
pub struct Sent {
    next: u32,
    tsval: u32,
}

/// The four connections before their first segments.
pub fn nothing_sent() -> [[Sent; 2]; 4] {
    [[Sent::default(); 2]; 4]
}

/// Reads the segments of `input`.
pub fn segments(input: &[u8]) -> Account {
    bounds::hold(input, 0, || {
        let mut pipeline = Pipeline::default();
        let mut sent = nothing_sent();
        let mut ts_ns = 0i64;
        let (records, _) = input.as_chunks::<RECORD_BYTES>();
        for (bytes, number) in records.iter().zip(1..) {
            let record = Record::of(bytes);
            ts_ns += record.step_ns();
            let (data, original_bytes) = packet(&record, &mut sent[record.connection()]);
            pipeline.take(&Frame { number, ts_ns: Some(ts_ns), link_type: Some(RAW), original_bytes, data: &data });
        }
        let account = pipeline.finish();
        assert_eq!(account.segments, records.len() as u64, "each packet is a segment");
        account
    })
}

/// The captured bytes of the packet in `record`, and its length on the wire.
pub fn packet(record: &Record<'_>, sent: &mut [Sent; 2]) -> (Vec<u8>, u32) {
    let (from, to) = if record.backwards() { (1, 0) } else { (0, 1) };
    let (seq, ack) = (record.seq(sent[from].next), record.ack(sent[to].next));
    let options = record.options(ack, sent[to].tsval);
    let header_bytes = (if record.is_v6() { 40 } else { 20 }) + 20 + options.len() as u32;
    // A jumbo packet has the length 0 in its header, so the frame's length counts.
    let most = if record.is_jumbo() { u32::MAX } else { 65_535 };
    let payload_bytes = record.payload_bytes().min(most - header_bytes);
    let controls = u32::from(record.flags() & 1) + u32::from(record.flags() >> 1 & 1);
    sent[from] = Sent { next: seq.wrapping_add(payload_bytes).wrapping_add(controls), tsval: record.word(20) };

    let mut bytes = ip_header(record, header_bytes + payload_bytes, (from, to));
    let ports = [40_000 + record.connection() as u16, 80];
    bytes.extend(ports[from].to_be_bytes());
    bytes.extend(ports[to].to_be_bytes());
    bytes.extend(seq.to_be_bytes());
    bytes.extend(ack.to_be_bytes());
    // In one of 256 cases, the data offset is wrong.
    let words = if record.bytes[19] == 0xff { record.bytes[18] & 15 } else { 5 + options.len() as u8 / 4 };
    bytes.extend([words << 4, record.flags()]);
    bytes.extend(record.half(12).to_be_bytes());
    bytes.extend([0; 4]);
    bytes.extend(&options);
    if !record.is_cut() {
        let start = &record.bytes[20..];
        bytes.extend(&start[..start.len().min(payload_bytes as usize)]);
    }
    (bytes, header_bytes + payload_bytes)
}

fn ip_header(record: &Record<'_>, packet_bytes: u32, (from, to): (usize, usize)) -> Vec<u8> {
    const TCP: u8 = 6;
    const TTL: u8 = 64;
    let length = if record.is_jumbo() { 0 } else { packet_bytes as u16 };
    let mut bytes = Vec::new();
    if record.is_v6() {
        bytes.extend([0x60, 0, 0, 0]);
        bytes.extend(length.saturating_sub(40).to_be_bytes());
        bytes.extend([TCP, TTL]);
        for side in [from, to] {
            bytes.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, side as u8]);
        }
    } else {
        bytes.extend([0x45, record.bytes[19] & 3]);
        bytes.extend(length.to_be_bytes());
        bytes.extend(record.half(16).to_be_bytes());
        bytes.extend([0, 0, TTL, TCP, 0, 0]);
        for side in [from, to] {
            bytes.extend([10, 0, 0, side as u8]);
        }
    }
    bytes
}
