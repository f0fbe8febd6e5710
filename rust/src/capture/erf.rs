//! Reads files in ERF, Endace's Extensible Record Format. An ERF file is a sequence of records, without a file header
//! or a magic number. Each record has a 16-byte header and the content that the header describes. A frame is the whole
//! record, as in pcap files of link type 197, so that `wire::erf` dissects the records of ERF files and pcap files.
//!
//! The format is that of Endace's "ERF types reference guide". Times, lengths and padding are read as in Wireshark's
//! wiretap.

use super::blocks::Blocks;
use super::source::{Stop, damaged};
use super::stream::{LinkType, Stream};

/// Link type of ERF records (`LINKTYPE_ERF`).
const LINK_TYPE: LinkType = 197;

/// Length of a record's header: time, type, flags, record length, loss counter or colour, length on the wire.
const HEADER_BYTES: usize = 16;

/// The bit of the type which says that an extension header of `EXTENSION_BYTES` follows. If the first byte of an
/// extension header has this bit, another extension header follows.
const EXTENDED: u8 = 0x80;
const EXTENSION_BYTES: usize = 8;

/// Type of padding records. As in Wireshark, a padding record gets no frame number.
const PAD: u8 = 48;

/// A file is read as ERF if its first `TRIED_PACKETS` records with a packet are consistent. At most `TRIED_RECORDS`
/// records of any type are read for this check. (Wireshark checks at least as many.) Random bytes look like a
/// consistent second or third record in about 1 of 600 cases. The time must be within a year of the previous record's
/// time (1 of 136 years), and the type must be one of 57 of the 256 types.
const TRIED_PACKETS: usize = 3;
const TRIED_RECORDS: usize = 20;

/// The timestamp of the first record must be between 1990 and 2100; the limits are in seconds since 1970. The limits
/// are a heuristic: Endace was founded in 2001.
const PLAUSIBLE_S: std::ops::Range<u64> = 631_152_000..4_102_444_800;

/// Between two of the first records, the time may advance by at most a year and go back by at most a second (limits of
/// Wireshark). Records of several interfaces are not strictly in order of time.
const PLAUSIBLE_STEP_S: u64 = 365 * 24 * 3600;
const PLAUSIBLE_STEP_BACK_S: u64 = 1;

/// Timestamp resolution in nanoseconds, rounded up: the unit of the fraction is 1/4 ns. The clock of the capture card
/// is coarser, and the file does not say by how much.
pub(super) const RESOLUTION_NS: i64 = 1;

const NS_PER_S: u64 = 1_000_000_000;

/// The header of a record.
struct Header {
    /// The upper 32 bits are the seconds since 1970, the lower 32 bits the fraction of a second.
    time: u64,
    /// Record type, with the bit for extension headers.
    kind: u8,
    record_bytes: u16,
    /// Number of records lost before this record. Some record types store a colour in this field instead.
    lost: u16,
    wire_bytes: u16,
}

impl Header {
    /// Reads the record header at the start of `bytes`; `None` if it is incomplete.
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

    /// Rounds the time to the nearest nanosecond, as Wireshark does. The result fits in 63 bits: 2^32 s < 2^63 ns.
    #[inline]
    fn ts_ns(&self) -> i64 {
        let fraction_ns = ((self.time & 0xFFFF_FFFF) * NS_PER_S + (1 << 31)) >> 32;
        ((self.time >> 32) * NS_PER_S + fraction_ns) as i64
    }

    /// The type without the bit for extension headers.
    fn plain_kind(&self) -> u8 {
        self.kind & !EXTENDED
    }

    /// Number of bytes between the headers and the packet. Depending on the record type, these bytes are a channel
    /// number, or Ethernet's offset and padding.
    fn sub_header_bytes(&self) -> usize {
        match self.plain_kind() {
            5..=9 | 12 | 17 | 18 => 4,
            2 | 11 | 16 | 20 => 2,
            _ => 0,
        }
    }

    /// The number of lost records; `None` for record types that store a colour in this field.
    fn counted_lost(&self) -> Option<u64> {
        match self.plain_kind() {
            10 | 11 | 15..=17 | 19 | 20 | PAD => None,
            _ => Some(u64::from(self.lost)),
        }
    }

    /// Whether the record type is assigned and occurs in files (type 0 is a legacy format; types 26 and 30 to 47 are
    /// reserved).
    fn is_known(&self) -> bool {
        matches!(self.plain_kind(), 1..=25 | 27..=29) || self.kind == PAD
    }
}

/// Number of bytes of `record` before its packet: header, extension headers and the bytes that the record type adds.
/// `None` if the record is shorter than these headers, or has only the first header.
fn headers_bytes(header: &Header, record: &[u8]) -> Option<usize> {
    let (mut bytes, mut more) = (HEADER_BYTES, header.kind & EXTENDED);
    while more != 0 {
        more = record.get(bytes)? & EXTENDED;
        bytes += EXTENSION_BYTES;
    }
    bytes += header.sub_header_bytes();
    (bytes <= record.len() && record.len() > HEADER_BYTES).then_some(bytes)
}

/// Whether `blocks` begins with ERF records. ERF has no magic number, so the first records are checked. The time of the
/// first record must be plausible. Each of the first three records with a packet must have an assigned type, a length
/// greater than its headers, and a time near that of the previous record. A file with fewer records may be truncated,
/// but at least one record must be complete, and no record may be inconsistent.
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

/// Whether a record with the timestamp `time` may follow a record with the timestamp `last`.
fn is_plausible_after(time: u64, last: Option<u64>) -> bool {
    match last {
        None => PLAUSIBLE_S.contains(&(time >> 32)),
        Some(last) if time < last => (last - time) >> 32 <= PLAUSIBLE_STEP_BACK_S,
        Some(last) => (time - last) >> 32 <= PLAUSIBLE_STEP_S,
    }
}

/// An ERF file.
#[derive(Default)]
pub(super) struct Erf {
    /// Number of records that the capture card reports as lost; `None` before the first record that has a loss counter.
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

/// Reads the next record completely into the buffer, or returns the error that prevents it.
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
