//! Reads files in ERF, Endace's Extensible Record Format. The file is a sequence of records, without a file header or a
//! magic number. Each record has a 16-byte header and a content.
//!
//! A frame is a whole record, as in pcap files of link type 197, so `wire::erf` can dissect the records of both kinds
//! of files. Endace's "ERF types reference guide" describes the format. Times, lengths and padding are read as in
//! Wireshark's wiretap.

use super::blocks::Blocks;
use super::source::{Stop, damaged};
use super::stream::{LinkType, Stream};

/// Link type of ERF records (`LINKTYPE_ERF`).
const LINK_TYPE: LinkType = 197;

/// Length of a record's header: time, type, flags, record length, loss counter or colour, and length on the wire.
const HEADER_BYTES: usize = 16;

/// The bit of a record's type that announces an extension header of `EXTENSION_BYTES`. In the first byte of an
/// extension header, this bit announces another extension header.
const EXTENDED: u8 = 0x80;
const EXTENSION_BYTES: usize = 8;

/// Type of padding records. As in Wireshark, padding records get no frame number.
const PAD: u8 = 48;

/// A file is read as ERF if its first `TRIED_PACKETS` records with a packet are consistent. At most `TRIED_RECORDS`
/// records of any type are read for this check. Wireshark checks at least as many records.
///
/// Random bytes look like a consistent second or third record in about 1 of 600 cases. A random time is within a year
/// of the previous time in 1 of 136 cases, and 57 of the 256 types are assigned.
const TRIED_PACKETS: usize = 3;
const TRIED_RECORDS: usize = 20;

/// The first timestamp must be between 1990 and 2100, here in seconds since 1970. Endace was founded in 2001, so these
/// limits are generous.
const PLAUSIBLE_S: std::ops::Range<u64> = 631_152_000..4_102_444_800;

/// From one of the first records to the next, the time advances by at most a year, or goes back by at most a second
/// (limits of Wireshark). Records of several interfaces are not strictly in order of time.
const PLAUSIBLE_STEP_S: u64 = 365 * 24 * 3600;
const PLAUSIBLE_STEP_BACK_S: u64 = 1;

/// Timestamp resolution in nanoseconds: 1/4 ns, rounded up. The card's clock is coarser, but the file does not contain
/// its tick.
pub(super) const RESOLUTION_NS: i64 = 1;

const NS_PER_S: u64 = 1_000_000_000;

struct Header {
    /// Seconds since 1970 in the upper 32 bits, fraction of a second in the lower 32 bits.
    time: u64,
    /// Record type, with the bit for extension headers.
    kind: u8,
    record_bytes: u16,
    /// Number of records lost before this record, or a colour in some record types.
    lost: u16,
    wire_bytes: u16,
}

impl Header {
    /// Reads the record header at the start of `bytes`, or `None` if it is incomplete.
    #[inline]
    fn read(bytes: &[u8]) -> Option<Self> {
        let [t0, t1, t2, t3, t4, t5, t6, t7, kind, _flags, r0, r1, l0, l1, w0, w1] = *bytes.first_chunk()?;
        Some(Self {
            time: u64::from_le_bytes([t0, t1, t2, t3, t4, t5, t6, t7]),
            kind,
            record_bytes: u16::from_be_bytes([r0, r1]),
            lost: u16::from_be_bytes([l0, l1]),
            wire_bytes: u16::from_be_bytes([w0, w1]),
        })
    }

    /// The time, rounded to a nanosecond as in Wireshark. The result fits into 63 bits, because 2^32 s are less than
    /// 2^63 ns.
    #[inline]
    fn ts_ns(&self) -> i64 {
        let fraction_ns = ((self.time & 0xFFFF_FFFF) * NS_PER_S + (1 << 31)) >> 32;
        ((self.time >> 32) * NS_PER_S + fraction_ns) as i64
    }

    fn plain_kind(&self) -> u8 {
        self.kind & !EXTENDED
    }

    /// Number of bytes between the headers and the packet, such as a channel number, or Ethernet's offset and padding.
    fn sub_header_bytes(&self) -> usize {
        match self.plain_kind() {
            5..=9 | 12 | 17 | 18 => 4,
            2 | 11 | 16 | 20 => 2,
            _ => 0,
        }
    }

    /// The number of lost records, or `None` for record types that have a colour instead.
    fn counted_lost(&self) -> Option<u64> {
        match self.plain_kind() {
            10 | 11 | 15..=17 | 19 | 20 | PAD => None,
            _ => Some(u64::from(self.lost)),
        }
    }

    /// Whether the record type is assigned and occurs in files. Type 0 is a legacy format, and types 26 and 30 to 47
    /// are reserved.
    fn is_known(&self) -> bool {
        matches!(self.plain_kind(), 1..=25 | 27..=29) || self.kind == PAD
    }
}

/// Number of bytes before the packet in `record`, or `None` if the record is too short for its headers, or if it ends
/// after the first header.
fn headers_bytes(header: &Header, record: &[u8]) -> Option<usize> {
    let (mut bytes, mut more) = (HEADER_BYTES, header.kind & EXTENDED);
    while more != 0 {
        more = record.get(bytes)? & EXTENDED;
        bytes += EXTENSION_BYTES;
    }
    bytes += header.sub_header_bytes();
    (bytes <= record.len() && record.len() > HEADER_BYTES).then_some(bytes)
}

/// Whether `blocks` begins with ERF records. ERF has no magic number, so the first records are checked.
///
/// The first time must be plausible. The first three records with a packet must have an assigned type, a length that
/// exceeds their headers, and a time near the previous one. A truncated file can have fewer records, but it needs at
/// least one complete record.
pub(super) fn detect(blocks: &mut Blocks) -> bool {
    let (mut at, mut packets, mut last_time) = (0, 0, None);
    for _ in 0..TRIED_RECORDS {
        blocks.fill_to(at + HEADER_BYTES);
        let Some(header) = blocks.available().get(at..).and_then(Header::read) else { break };
        let end = at + usize::from(header.record_bytes);
        if !header.is_known() || end < at + HEADER_BYTES {
            return false;
        }
        let is_packet = header.kind != PAD;
        if is_packet && !is_plausible_after(header.time, last_time) {
            return false;
        }
        if !blocks.fill_to(end) {
            break;
        }
        let record = blocks.available().get(at..end).unwrap_or_default();
        if is_packet {
            if headers_bytes(&header, record).is_none() {
                return false;
            }
            last_time = Some(header.time);
            packets += 1;
            if packets == TRIED_PACKETS {
                break;
            }
        }
        at = end;
    }
    packets > 0
}

/// Whether a record with timestamp `time` can follow a record with timestamp `last`.
fn is_plausible_after(time: u64, last: Option<u64>) -> bool {
    match last {
        None => PLAUSIBLE_S.contains(&(time >> 32)),
        Some(last) if time < last => (last - time) >> 32 <= PLAUSIBLE_STEP_BACK_S,
        Some(last) => (time - last) >> 32 <= PLAUSIBLE_STEP_S,
    }
}

#[derive(Default)]
pub(super) struct Erf {
    /// Number of records that the card reports as lost, or `None` until a record with a loss counter arrives.
    lost: Option<u64>,
}

impl Erf {
    /// Moves to the next record with a packet. Returns false at the end of the file.
    #[inline]
    pub(super) fn advance(&mut self, stream: &mut Stream) -> Result<bool, Stop> {
        let Stream { blocks, record, .. } = stream;
        loop {
            let available = blocks.available();
            if let Some(header) = Header::read(available)
                && let Some(bytes) = available.get(..usize::from(header.record_bytes))
                && bytes.len() >= HEADER_BYTES
            {
                if header.kind == PAD {
                    blocks.consume(bytes.len());
                    continue;
                }
                if let Some(headers_bytes) = headers_bytes(&header, bytes) {
                    if let Some(lost) = header.counted_lost() {
                        self.lost = Some(self.lost.unwrap_or(0).saturating_add(lost));
                    }
                    record.ts_ns = Some(header.ts_ns());
                    record.link_type = Some(LINK_TYPE);
                    record.original_bytes = headers_bytes as u32 + u32::from(header.wire_bytes);
                    record.data = blocks.consume(bytes.len());
                    return Ok(true);
                }
            }
            if !fill(blocks)? {
                return Ok(false);
            }
        }
    }

    pub(super) fn lost(&self) -> Option<u64> {
        self.lost
    }
}

/// Reads the whole next record into the buffer. Returns false at the end of the file.
#[cold]
#[inline(never)]
fn fill(blocks: &mut Blocks) -> Result<bool, Stop> {
    if !blocks.fill_to(1) {
        return blocks.end_between_records();
    }
    let offset = blocks.offset();
    blocks.fill_to(HEADER_BYTES);
    let got = blocks.available().len();
    let Some(header) = Header::read(blocks.available()) else {
        return Err(blocks.cut("a record header", "record header", HEADER_BYTES as u64, got as u64, offset));
    };
    let record_bytes = usize::from(header.record_bytes);
    if record_bytes < HEADER_BYTES {
        let what = format!("an ERF record claims {record_bytes} bytes, fewer than the {HEADER_BYTES} of its header");
        return Err(damaged(what, offset));
    }
    if !blocks.fill_to(record_bytes) {
        let got = blocks.available().len() as u64;
        return Err(blocks.cut("a record", "rlen", record_bytes as u64, got, offset));
    }
    let record = blocks.available().get(..record_bytes).unwrap_or_default();
    if header.kind != PAD && headers_bytes(&header, record).is_none() {
        let what = format!("an ERF record claims {record_bytes} bytes, too few for its type");
        return Err(damaged(what, offset));
    }
    Ok(true)
}
