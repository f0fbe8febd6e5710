//! Builds captures byte by byte, and reads everything in a capture.

use std::io::{Cursor, Read};

use tcptrace_lab_core::capture::{Capture, CaptureInfo};
use tcptrace_lab_core::error::{CaptureError, Problem};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Little,
    Big,
}

pub const BOTH_ORDERS: [Order; 2] = [Order::Little, Order::Big];

impl Order {
    pub fn u16(self, value: u16) -> [u8; 2] {
        if self == Self::Little { value.to_le_bytes() } else { value.to_be_bytes() }
    }

    pub fn u32(self, value: u32) -> [u8; 4] {
        if self == Self::Little { value.to_le_bytes() } else { value.to_be_bytes() }
    }

    pub fn u64(self, value: u64) -> [u8; 8] {
        if self == Self::Little { value.to_le_bytes() } else { value.to_be_bytes() }
    }

    pub fn words(self, values: &[u32]) -> Vec<u8> {
        values.iter().flat_map(|value| self.u32(*value)).collect()
    }
}

pub const MICROSECONDS: u32 = 0xA1B2_C3D4;
pub const NANOSECONDS: u32 = 0xA1B2_3C4D;
pub const MODIFIED: u32 = 0xA1B2_CD34;
pub const ETHERNET: u32 = 1;
pub const RAW: u32 = 101;

/// The header of a pcap file, version 2.4.
pub fn pcap_header(order: Order, magic: u32, snaplen: u32, network: u32) -> Vec<u8> {
    pcap_header_of_version(order, magic, (2, 4), snaplen, network)
}

pub fn pcap_header_of_version(
    order: Order,
    magic: u32,
    (major, minor): (u16, u16),
    snaplen: u32,
    network: u32,
) -> Vec<u8> {
    let mut file = order.u32(magic).to_vec();
    file.extend(order.u16(major));
    file.extend(order.u16(minor));
    file.extend(order.words(&[0, 0, snaplen, network]));
    file
}

/// A pcap record: seconds, fraction, captured length, original length, data.
pub fn pcap_record(order: Order, seconds: u32, fraction: u32, data: &[u8], original: u32) -> Vec<u8> {
    let mut record = order.words(&[seconds, fraction, data.len() as u32, original]);
    record.extend(data);
    record
}

/// A pcapng block: type, length, body padded to a multiple of four, length.
pub fn block(order: Order, kind: u32, body: &[u8]) -> Vec<u8> {
    let bytes = body.len().next_multiple_of(4) as u32 + 12;
    let mut block = order.words(&[kind, bytes]);
    block.extend(body);
    block.resize(bytes as usize - 4, 0);
    block.extend(order.u32(bytes));
    block
}

/// A pcapng option: code, length, value padded to a multiple of four.
pub fn option(order: Order, code: u16, value: &[u8]) -> Vec<u8> {
    let mut option = order.u16(code).to_vec();
    option.extend(order.u16(value.len() as u16));
    option.extend(value);
    option.resize(option.len().next_multiple_of(4), 0);
    option
}

pub fn section(order: Order) -> Vec<u8> {
    let mut body = order.u32(0x1A2B_3C4D).to_vec();
    body.extend(order.u16(1));
    body.extend(order.u16(0));
    body.extend(order.u64(u64::MAX));
    block(order, 0x0A0D_0D0A, &body)
}

pub fn interface(order: Order, link_type: u16, snaplen: u32, options: &[Vec<u8>]) -> Vec<u8> {
    let mut body = order.u16(link_type).to_vec();
    body.extend([0, 0]);
    body.extend(order.u32(snaplen));
    body.extend(options.concat());
    block(order, 1, &body)
}

pub fn enhanced(order: Order, id: u32, ticks: u64, data: &[u8], original: u32, options: &[Vec<u8>]) -> Vec<u8> {
    let mut body = order.words(&[id, (ticks >> 32) as u32, ticks as u32, data.len() as u32, original]);
    body.extend(data);
    body.resize(body.len().next_multiple_of(4), 0);
    body.extend(options.concat());
    block(order, 6, &body)
}

pub fn simple(order: Order, data: &[u8], original: u32) -> Vec<u8> {
    block(order, 3, &[order.u32(original).to_vec(), data.to_vec()].concat())
}

/// The header of an ERF record.
#[derive(Clone, Debug)]
pub struct Erf {
    pub kind: u8,
    pub seconds: u32,
    /// Fraction of a second in units of 2^-32 s.
    pub fraction: u32,
    pub lost: u16,
    /// Type and content of each extension header. The bit that announces another header is added when the record is
    /// built.
    pub extensions: Vec<[u8; 8]>,
}

impl Erf {
    /// A record of type `kind`, captured in 2023.
    pub fn of(kind: u8) -> Self {
        Self { kind, seconds: 1_700_000_000, fraction: 0, lost: 0, extensions: Vec::new() }
    }
}

/// An ERF record, padded to a multiple of eight. `body` begins with the bytes that the record type puts before the
/// packet.
pub fn erf_record(erf: &Erf, body: &[u8], wire_bytes: u16) -> Vec<u8> {
    const EXTENDED: u8 = 0x80;
    const VARYING_LENGTH: u8 = 4;
    let more = if erf.extensions.is_empty() { 0 } else { EXTENDED };
    let record_bytes = (16 + 8 * erf.extensions.len() + body.len()).next_multiple_of(8);
    let mut record = [erf.fraction.to_le_bytes(), erf.seconds.to_le_bytes()].concat();
    record.extend([erf.kind | more, VARYING_LENGTH]);
    record.extend([record_bytes as u16, erf.lost, wire_bytes].iter().flat_map(|field| field.to_be_bytes()));
    for (index, extension) in erf.extensions.iter().enumerate() {
        let more = if index + 1 < erf.extensions.len() { EXTENDED } else { 0 };
        record.push(extension[0] | more);
        record.extend(&extension[1..]);
    }
    record.extend(body);
    record.resize(record_bytes, 0);
    record
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owned {
    pub number: u64,
    pub ts_ns: Option<i64>,
    pub link_type: Option<u32>,
    pub original_bytes: u32,
    pub data: Vec<u8>,
}

/// Everything that a capture returns.
#[derive(Debug, Default)]
pub struct All {
    pub frames: Vec<Owned>,
    pub errors: Vec<CaptureError>,
    pub problems: Vec<Problem>,
    pub info: CaptureInfo,
}

/// Reads a capture to its end, and checks that further calls find no frame.
pub fn read_all(mut capture: Capture) -> All {
    let mut all = All::default();
    loop {
        match capture.advance() {
            Ok(false) => break,
            Ok(true) => {
                let frame = capture.frame();
                all.frames.push(Owned {
                    number: frame.number,
                    ts_ns: frame.ts_ns,
                    link_type: frame.link_type,
                    original_bytes: frame.original_bytes,
                    data: frame.data.to_vec(),
                });
            }
            Err(error) => all.errors.push(error),
        }
    }
    assert!(!capture.advance().expect("an error is given once"), "the end stays the end");
    assert_eq!((capture.frame().number, capture.frame().data.len()), (0, 0), "no frame behind the end");
    all.problems = capture.problems();
    all.info = capture.info();
    all
}

pub fn read_bytes(bytes: Vec<u8>) -> Result<All, CaptureError> {
    Capture::from_stream("memory", Cursor::new(bytes)).map(read_all)
}

/// Reads a capture from memory, which must not give errors.
pub fn read_whole(bytes: Vec<u8>) -> All {
    let all = read_bytes(bytes).expect("opens");
    assert_eq!(all.errors.len(), 0, "{:?}", all.errors);
    all
}

/// A stream that returns a few bytes at a time, like a pipe.
pub struct Trickle {
    pub bytes: Cursor<Vec<u8>>,
    pub step: usize,
}

impl Read for Trickle {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let step = self.step.min(out.len());
        self.bytes.read(&mut out[..step])
    }
}

/// The number of records that Wireshark checks before it recognizes a file as ERF, set to the number of this engine.
const ERF_RECORDS: (&str, &str) = ("ERF_RECORDS_TO_CHECK", "3");

/// Whether all comparisons must run (`CI=true`).
pub fn in_ci() -> bool {
    std::env::var("CI").is_ok_and(|value| !matches!(value.to_lowercase().as_str(), "" | "0" | "false"))
}

/// Runs one of Wireshark's tools. Returns `None` if the tool is not installed, but fails in continuous integration.
pub fn wireshark_tool(name: &str, arguments: &[&str]) -> Option<String> {
    match std::process::Command::new(name).args(arguments).env(ERF_RECORDS.0, ERF_RECORDS.1).output() {
        Ok(output) => Some(String::from_utf8_lossy(&output.stdout).into_owned()),
        Err(error) if !in_ci() => {
            eprintln!("{name} is not there ({error}): nothing to compare with");
            None
        }
        Err(error) => panic!("{name} is needed for this test: {error}"),
    }
}

/// A file that exists until the end of the test.
pub struct Temporary(pub std::path::PathBuf);

impl Temporary {
    pub fn new(name: &str, bytes: &[u8]) -> Self {
        let path = std::env::temp_dir().join(format!("tcptrace-lab-{}-{name}", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        Self(path)
    }

    pub fn path(&self) -> String {
        self.0.to_str().unwrap().to_owned()
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // The test has possibly deleted the file.
        let _ = std::fs::remove_file(&self.0);
    }
}
